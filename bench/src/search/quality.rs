//! Search quality: the share of correct tools among the first five results.

use belljar_search::{Query, ScoreSet};
use serde::{Deserialize, Serialize};

use super::{data::QuestionSet, plain::PlainBm25};

/// The number of tools that intent mode offers to code.
pub(super) const K: usize = 5;

/// Means over questions, each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Quality {
    /// The share of correct tools among the first five.
    pub(in super::super) recall_at_5: f64,
    /// The share of questions with at least one correct tool among the first five.
    pub(in super::super) hit_at_5: f64,
    /// Discounted cumulative gain: a correct tool in first place counts more than one in fifth.
    pub(in super::super) ndcg_at_5: f64,
}

/// A search method to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchMethod {
    Plain,
    Words,
    Meaning,
    Fusion,
    /// Passes the server that the question mentions as a hint.
    Hinted,
}

impl SearchMethod {
    pub(super) const ALL: [Self; 5] =
        [Self::Plain, Self::Words, Self::Meaning, Self::Fusion, Self::Hinted];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain BM25",
            Self::Words => "words (BM25F)",
            Self::Meaning => "meaning (static vectors)",
            Self::Fusion => "belljar",
            Self::Hinted => "belljar, with server hint",
        }
    }
}

/// Selects questions of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Both,
    /// Every second question, starting with the second; weights are chosen on the others.
    EverySecond,
}

/// Scores of one method for each question of a set, in the order of the set; `None` if the method
/// does not apply to the set.
pub(super) fn answers(set: &QuestionSet, way: SearchMethod) -> Option<Vec<Quality>> {
    if way == SearchMethod::Hinted && set.questions.iter().all(|one| one.server_hint.is_none()) {
        return None;
    }
    let places = set.places();
    let (index, plain) = (set.index(), PlainBm25::new(&set.tools));
    let answered = set.questions.iter().map(|question| {
        let scores = match way {
            SearchMethod::Words => ScoreSet::Words,
            SearchMethod::Meaning => ScoreSet::Meaning,
            SearchMethod::Plain | SearchMethod::Fusion | SearchMethod::Hinted => ScoreSet::All,
        };
        let server_hint = question.server_hint.as_deref().filter(|_| way == SearchMethod::Hinted);
        let query = Query { server_hint, scores, ..Query::new(&question.query, K) };
        let found: Vec<usize> = match way {
            SearchMethod::Plain => plain.best(&question.query, K),
            SearchMethod::Words
            | SearchMethod::Meaning
            | SearchMethod::Fusion
            | SearchMethod::Hinted => {
                let found = index.search(&query);
                found.iter().filter_map(|found| places.get(found.key).copied()).collect()
            }
        };
        Quality::of(&found, &question.right)
    });
    Some(answered.collect())
}

impl Half {
    /// The mean over the selected questions.
    pub(super) fn mean(self, answers: &[Quality]) -> Quality {
        match self {
            Self::Both => Quality::mean(answers.iter().copied()),
            Self::EverySecond => Quality::mean(answers.iter().copied().skip(1).step_by(2)),
        }
    }
}

impl Quality {
    fn of(found: &[usize], right: &[usize]) -> Self {
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let hits: Vec<usize> =
            (0..).zip(found).filter(|(_, tool)| right.contains(tool)).map(|(at, _)| at).collect();
        let ideal: f64 = (0..right.len().min(K)).map(gain).sum();
        Self {
            recall_at_5: hits.len() as f64 / right.len() as f64,
            hit_at_5: if hits.is_empty() { 0.0 } else { 1.0 },
            ndcg_at_5: hits.into_iter().map(gain).sum::<f64>() / ideal,
        }
    }

    pub(super) fn mean(all: impl IntoIterator<Item = Self>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0.0);
        for one in all {
            sum.recall_at_5 += one.recall_at_5;
            sum.hit_at_5 += one.hit_at_5;
            sum.ndcg_at_5 += one.ndcg_at_5;
            count += 1.0;
        }
        let count = f64::max(count, 1.0);
        Self {
            recall_at_5: sum.recall_at_5 / count,
            hit_at_5: sum.hit_at_5 / count,
            ndcg_at_5: sum.ndcg_at_5 / count,
        }
    }
}

#[cfg(test)]
mod tests;
