//! Ranks the tools that fit an intent.
//!
//! Two scores, each divided by the best of its kind for this question, so that neither outweighs the
//! other because of its scale: the words shared (BM25F), and the nearness of meaning. Both look at
//! every tool. The best few hundred are then compared sentence by sentence, and helped a little by
//! the best tool of their server; [`coverage`] chooses among them. docs/decisions/0015 and 0021 say how
//! the weights were chosen.

mod coverage;

use std::cmp::Ordering;

use crate::{
    index::{Index, Key},
    intent::{Intent, IntentPart, Sentence},
    usage::UsageHistory,
};

/// How much meaning counts; the rest is words.
const MEANING: f32 = 0.5;
/// How much the best sentence counts; the rest is the whole.
const SENTENCE: f32 = 0.6;
/// How much of the score of a server's best tool its others get.
const SERVER: f32 = 0.3;
/// How much a hint at the server counts.
const HINT: f32 = 0.3;
/// How many of the best tools are compared sentence by sentence.
const CANDIDATES: usize = 256;
/// A tool that shares no word with the intent has to be at least this near in meaning.
const NEAR: f32 = 0.1;

/// One search: the intent and what narrows it.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The wanted ability of the tool, in natural language.
    pub intent: &'a str,
    /// How many results are wanted.
    pub k: usize,
    /// A guess what the server is about, if the caller has one.
    pub server_hint: Option<&'a str>,
    /// Filters the tools; `None` admits all.
    pub may_find: Option<&'a dyn Fn(&Key) -> bool>,
    /// Which tools earlier runs used together.
    pub usage: Option<&'a UsageHistory>,
    /// Which scores are used; all, unless something is being measured.
    pub scores: ScoreSet,
}

/// Which scores a search uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScoreSet {
    /// Words and meaning, in equal parts.
    #[default]
    All,
    /// Only words; for measuring.
    Words,
    /// Only meaning; for measuring.
    Meaning,
}

/// One result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit<'a> {
    /// The tool that was found.
    pub key: &'a Key,
    /// Higher is better; only to be compared within one search.
    pub score: f32,
    /// The scores that it was made of.
    pub parts: Parts,
    /// The words of the intent that are in it, the heaviest first.
    pub words: Vec<String>,
}

/// The two parts of a score, each from 0 to 1, where 1 is the best tool of this search.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// How many of the intent's words it has, weighted by how rare they are.
    pub words: f32,
    /// The nearness of meaning.
    pub meaning: f32,
}

impl<'a> Query<'a> {
    /// The `k` best for an intent.
    pub fn new(intent: &'a str, k: usize) -> Self {
        let (server_hint, may_find, usage) = (None, None, None);
        Self { intent, k, server_hint, may_find, usage, scores: ScoreSet::All }
    }
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = (self.intent, self.k, self.server_hint, self.scores);
        formatter.debug_tuple("Query").field(&shown).finish()
    }
}

/// A tool among the best so far.
#[derive(Debug, Clone)]
struct Candidate {
    slot: u32,
    score: f32,
    parts: Parts,
    /// The share of the score that comes from its server.
    of_server: f32,
}

/// The best parts that any tool has for the whole intent, and for each sentence.
#[derive(Debug)]
struct BestParts {
    whole: Parts,
    sentences: Vec<Parts>,
}

impl Index {
    /// The tools that fit best, best first; fewer than asked for if fewer fit at all.
    pub fn search(&self, query: &Query<'_>) -> Vec<SearchHit<'_>> {
        let intent = Intent::new(query.intent, self);
        let most = query.k.clamp(CANDIDATES, self.entries.len().max(CANDIDATES));
        let (mut candidates, whole) = self.scored(&intent.whole, query, most);
        let sentences = self.by_sentence(&intent, &mut candidates, query.scores);
        self.by_server(&mut candidates, query);
        let best = BestParts { whole, sentences };
        // A tool may move up from any place to where tools that were used with it stand.
        let chosen = if query.usage.is_some() { candidates.len() } else { query.k };
        let mut candidates = self.covering(&intent, &best, candidates, query.scores, chosen);
        if let Some(usage) = query.usage {
            let key = |candidate: &Candidate| self.entry(candidate.slot).map(|entry| &entry.key);
            usage.reorder(&mut candidates, key, |candidate| candidate.score);
        }
        candidates.truncate(query.k);
        candidates.into_iter().filter_map(|found| self.found(&found, &intent)).collect()
    }

    /// The best tools for one part of the intent, unsorted, and the best parts that any tool has.
    fn scored(&self, part: &IntentPart, query: &Query<'_>, most: usize) -> (Vec<Candidate>, Parts) {
        let mut words = vec![0.0_f32; self.entries.len()];
        let mut shares_word = vec![false; self.entries.len()];
        for (at, (term, rarity)) in part.terms.iter().enumerate() {
            for posting in self.postings(*term) {
                let slot = posting.slot as usize;
                if let (Some(sum), Some(shares)) = (words.get_mut(slot), shares_word.get_mut(slot))
                {
                    *sum += rarity * posting.weight;
                    *shares |= at < part.own_terms;
                }
            }
        }
        let meanings = self.meanings.iter().zip(&self.scales);
        let mut near: Vec<f32> =
            meanings.map(|(numbers, scale)| part.meaning.nearness(numbers, *scale)).collect();
        for (slot, (words, meaning)) in (0_u32..).zip(words.iter_mut().zip(&mut near)) {
            // A neighbour of a word alone is too little: "Paris" is near to much.
            let fits = shares_word.get(slot as usize) == Some(&true) || *meaning >= NEAR;
            if !(fits && self.is_allowed(slot, query)) {
                (*words, *meaning) = (0.0, 0.0);
            }
        }
        let largest = |all: &[f32]| all.iter().copied().fold(0.0, f32::max);
        let best = Parts { words: largest(&words), meaning: largest(&near) };
        let mut top = Top::new(most);
        for (slot, (words, meaning)) in (0..).zip(words.into_iter().zip(near)) {
            let parts = Parts { words, meaning: meaning.max(0.0) }.over(best);
            let score = parts.score(query.scores);
            if score > top.least {
                let candidate = Candidate { slot, score, parts, of_server: 0.0 };
                top.add(candidate, |left, right| self.order(left, right));
            }
        }
        (top.cut(|left, right| self.order(left, right)), best)
    }

    fn is_allowed(&self, slot: u32, query: &Query<'_>) -> bool {
        query.may_find.is_none_or(|may| self.entry(slot).is_some_and(|entry| may(&entry.key)))
    }

    /// Adds to each score how well the tool fits its best sentence; returns the best parts of each.
    fn by_sentence(
        &self,
        intent: &Intent,
        candidates: &mut [Candidate],
        scores: ScoreSet,
    ) -> Vec<Parts> {
        if intent.sentences.is_empty() {
            return Vec::new();
        }
        let weights: Vec<Vec<f32>> =
            candidates.iter().map(|one| self.weights(one.slot, &intent.whole)).collect();
        let mut best_of_sentences = Vec::with_capacity(intent.sentences.len());
        let mut bests = vec![0.0_f32; candidates.len()];
        for sentence in &intent.sentences {
            let parts: Vec<Parts> = weights
                .iter()
                .zip(&*candidates)
                .map(|(weights, candidate)| self.parts(sentence, candidate.slot, weights))
                .collect();
            let mut most = Parts::default();
            parts.iter().for_each(|parts| most.raise(*parts));
            for (best, parts) in bests.iter_mut().zip(parts) {
                *best = best.max(parts.over(most).score(scores));
            }
            best_of_sentences.push(most);
        }
        for (candidate, best) in candidates.iter_mut().zip(bests) {
            candidate.score = with_sentence(candidate.score, best);
        }
        best_of_sentences
    }

    /// How well a tool fits a sentence, given the weights of the whole intent's terms in it.
    fn parts(&self, sentence: &Sentence, slot: u32, weights: &[f32]) -> Parts {
        let at = slot as usize;
        let meaning =
            self.meanings.get(at).zip(self.scales.get(at)).map_or(0.0, |(numbers, scale)| {
                sentence.meaning.nearness(numbers, *scale).max(0.0)
            });
        let weight = |(at, share): &(usize, f32)| weights.get(*at).map(|weight| weight * share);
        Parts { words: sentence.terms.iter().filter_map(weight).sum(), meaning }
    }

    /// The weight of each term of a part in one tool.
    fn weights(&self, slot: u32, part: &IntentPart) -> Vec<f32> {
        let terms = self.entry(slot).map(|entry| entry.terms.as_slice()).unwrap_or_default();
        let weight = |term| {
            let at = terms.binary_search_by_key(&term, |(term, _)| *term).ok()?;
            terms.get(at).map(|(_, weight)| *weight)
        };
        part.terms.iter().map(|(term, rarity)| rarity * weight(*term).unwrap_or(0.0)).collect()
    }

    /// Raises the tools of servers whose best tool fits well, and of servers that fit the hint.
    fn by_server(&self, candidates: &mut [Candidate], query: &Query<'_>) {
        let best = self.best_of_servers(candidates);
        let hinted = query.server_hint.map(|hint| {
            let hint = Intent::new(hint, self);
            self.best_of_servers(&self.scored(&hint.whole, query, CANDIDATES).0)
        });
        for candidate in candidates {
            let Some(server) = self.server(candidate.slot) else { continue };
            let of = |best: &Vec<f32>| best.get(server).copied().unwrap_or(0.0);
            candidate.of_server = SERVER * of(&best) + HINT * hinted.as_ref().map_or(0.0, of);
            candidate.score += candidate.of_server;
        }
    }

    fn best_of_servers(&self, candidates: &[Candidate]) -> Vec<f32> {
        let mut best = vec![0.0_f32; self.server_count()];
        for candidate in candidates {
            let server = self.server(candidate.slot);
            if let Some(best) = server.and_then(|server| best.get_mut(server)) {
                *best = best.max(candidate.score);
            }
        }
        best
    }

    /// The number of a tool's server, if it has one.
    fn server(&self, slot: u32) -> Option<usize> {
        let is_named = self.entry(slot).is_some_and(|entry| !entry.key.server.is_empty());
        let number = self.server_of.get(slot as usize).filter(|_| is_named)?;
        Some(*number as usize)
    }

    /// Better ones first; ties are ordered by name, so that equal searches give equal results.
    fn order(&self, left: &Candidate, right: &Candidate) -> Ordering {
        let key = |candidate: &Candidate| self.entry(candidate.slot).map(|entry| &entry.key);
        right.score.total_cmp(&left.score).then_with(|| key(left).cmp(&key(right)))
    }

    fn found(&self, candidate: &Candidate, intent: &Intent) -> Option<SearchHit<'_>> {
        let entry = self.entry(candidate.slot)?;
        let weights = self.weights(candidate.slot, &intent.whole);
        let terms = intent.whole.terms.iter().zip(weights).filter(|(_, weight)| *weight > 0.0);
        let mut shared: Vec<(f32, &String)> = terms
            .filter_map(|((term, _), weight)| Some((weight, intent.words.get(term)?)))
            .collect();
        shared.sort_by(|left, right| right.0.total_cmp(&left.0));
        let mut words: Vec<String> = shared.into_iter().map(|(_, word)| word.clone()).collect();
        words.dedup();
        let Candidate { score, parts, .. } = *candidate;
        Some(SearchHit { key: &entry.key, score, parts, words })
    }
}

/// The score of a tool for the whole intent, with that for its best sentence.
fn with_sentence(whole: f32, best: f32) -> f32 {
    (1.0 - SENTENCE) * whole + SENTENCE * best
}

/// The best candidates so far; surplus ones are cut off from time to time.
struct Top {
    kept: Vec<Candidate>,
    most: usize,
    /// A candidate has to score higher than this to be among the best.
    least: f32,
}

impl Top {
    fn new(most: usize) -> Self {
        Self { kept: Vec::with_capacity(2 * most), most, least: 0.0 }
    }

    fn add(&mut self, one: Candidate, order: impl FnMut(&Candidate, &Candidate) -> Ordering) {
        self.kept.push(one);
        if self.kept.len() >= 2 * self.most {
            self.shrink(order);
        }
    }

    fn shrink(&mut self, order: impl FnMut(&Candidate, &Candidate) -> Ordering) {
        if self.kept.len() > self.most {
            let (_, last, _) = self.kept.select_nth_unstable_by(self.most - 1, order);
            // One with the same score may still come before it by name.
            self.least = last.score.next_down();
            self.kept.truncate(self.most);
        }
    }

    fn cut(mut self, order: impl FnMut(&Candidate, &Candidate) -> Ordering) -> Vec<Candidate> {
        self.shrink(order);
        self.kept
    }
}

impl Parts {
    fn raise(&mut self, other: Self) {
        self.words = self.words.max(other.words);
        self.meaning = self.meaning.max(other.meaning);
    }

    /// As shares of the best.
    fn over(self, best: Self) -> Self {
        let share = |part: f32, best: f32| if best > 0.0 { part / best } else { 0.0 };
        Self { words: share(self.words, best.words), meaning: share(self.meaning, best.meaning) }
    }

    fn score(self, scores: ScoreSet) -> f32 {
        match scores {
            ScoreSet::All => (1.0 - MEANING) * self.words + MEANING * self.meaning,
            ScoreSet::Words => self.words,
            ScoreSet::Meaning => self.meaning,
        }
    }
}

#[cfg(test)]
mod tests;
