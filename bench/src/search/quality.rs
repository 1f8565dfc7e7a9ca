//! How many of the right tools are among the first five.

use belljar_search::{Query, ScoreSet};
use serde::{Deserialize, Serialize};

use super::{data::QuestionSet, plain::PlainBm25};

/// As many as intent mode gives to code.
pub(super) const K: usize = 5;

/// Means over questions, each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(in super::super) struct Quality {
    /// The share of the right tools that is among the first five.
    pub(in super::super) recall_at_5: f64,
    /// Whether any right tool is.
    pub(in super::super) hit_at_5: f64,
    /// The same with places counted: the first more than the fifth.
    pub(in super::super) ndcg_at_5: f64,
}

/// A way to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchMethod {
    Plain,
    Words,
    Meaning,
    Fusion,
    /// With what the question says about the server.
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

/// Which questions: the weights were chosen on the first half and are reported on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Both,
    /// Every second one, from the second on.
    HeldOut,
}

/// How well each question of a set is answered in one way, in the order of the set. Nothing if the
/// way is not one for this set.
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
    /// The mean over these questions.
    pub(super) fn mean(self, answers: &[Quality]) -> Quality {
        match self {
            Self::Both => Quality::mean(answers.iter().copied()),
            Self::HeldOut => Quality::mean(answers.iter().copied().skip(1).step_by(2)),
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
