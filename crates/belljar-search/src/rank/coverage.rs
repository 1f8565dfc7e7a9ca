//! Chooses the results one after the other, so that together they cover the intent.
//!
//! A word of the intent that a chosen tool has counts less for the next ones. Tools that are nearly
//! alike then do not take all places, and a tool for the other half of the intent gets one.
//!
//! The choice is lazy. A score can only fall while tools are chosen, so a tool is scored again only when
//! it stands first with a score from before the last choice.

use std::{cmp::Ordering, collections::BinaryHeap};

use super::{BestParts, Candidate, Parts, ScoreSet, with_sentence};
use crate::{
    index::{Index, Key},
    intent::Intent,
};

/// The weight of a word after each chosen tool that has it, as a share of its weight before.
const COVERED: f32 = 0.95;
/// How many tools are chosen in this way; later ones are ordered by what is left of their scores.
const MOST_CHOSEN: usize = 10;

/// A candidate that waits to be chosen.
#[derive(Debug)]
struct WaitingCandidate<'a> {
    candidate: Candidate,
    key: Option<&'a Key>,
    /// How many tools had been chosen when it was scored.
    scored_after: usize,
}

impl Index {
    /// At least the `k` best candidates, best first, with scores that never rise.
    pub(super) fn covering(
        &self,
        intent: &Intent,
        best: &BestParts,
        candidates: Vec<Candidate>,
        scores: ScoreSet,
        k: usize,
    ) -> Vec<Candidate> {
        let mut left = vec![1.0_f32; intent.whole.terms.len()];
        let mut chosen = Vec::with_capacity(candidates.len().min(k));
        let mut waiting: BinaryHeap<WaitingCandidate<'_>> =
            candidates.into_iter().map(|candidate| self.waiting(candidate, 0)).collect();
        while chosen.len() < k.min(MOST_CHOSEN) {
            let Some(first) = waiting.pop() else { break };
            let weights = self.weights(first.candidate.slot, &intent.whole);
            if first.scored_after == chosen.len() {
                for (left, _) in left.iter_mut().zip(weights).filter(|(_, weight)| *weight > 0.0) {
                    *left *= COVERED;
                }
                chosen.push(first.candidate);
            } else {
                let again =
                    self.score_again(intent, best, first.candidate, scores, (&weights, &left));
                waiting.push(self.waiting(again, chosen.len()));
            }
        }
        if k > chosen.len() {
            let rest = waiting.into_iter().map(|one| {
                let weights = self.weights(one.candidate.slot, &intent.whole);
                self.score_again(intent, best, one.candidate, scores, (&weights, &left))
            });
            let mut rest: Vec<Candidate> = rest.collect();
            rest.sort_by(|left, right| self.order(left, right));
            chosen.extend(rest);
        }
        chosen
    }

    fn waiting(&self, candidate: Candidate, scored_after: usize) -> WaitingCandidate<'_> {
        let key = self.entry(candidate.slot).map(|entry| &entry.key);
        WaitingCandidate { candidate, key, scored_after }
    }

    /// The candidate with the score that is left to it, given the weight of each term of the intent in
    /// it and the share of each term that still counts.
    fn score_again(
        &self,
        intent: &Intent,
        best: &BestParts,
        candidate: Candidate,
        scores: ScoreSet,
        (weights, left): (&[f32], &[f32]),
    ) -> Candidate {
        let weights: Vec<f32> = weights.iter().zip(left).map(|(one, left)| one * left).collect();
        let words = Parts { words: weights.iter().sum(), meaning: 0.0 }.over(best.whole).words;
        let mut score = Parts { words, ..candidate.parts }.score(scores);
        let of_sentences = intent.sentences.iter().zip(&best.sentences).map(|(sentence, best)| {
            self.parts(sentence, candidate.slot, &weights).over(*best).score(scores)
        });
        if let Some(best) = of_sentences.reduce(f32::max) {
            score = with_sentence(score, best);
        }
        // Sums in another order may differ in the last digit; a score must not rise.
        let score = (score + candidate.of_server).min(candidate.score);
        Candidate { score, ..candidate }
    }
}

impl Ord for WaitingCandidate<'_> {
    /// The greatest is the next to be chosen: the highest score, then the first name.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.candidate.score.total_cmp(&other.candidate.score);
        by_score.then_with(|| other.key.cmp(&self.key))
    }
}

impl PartialOrd for WaitingCandidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WaitingCandidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for WaitingCandidate<'_> {}

#[cfg(test)]
mod tests;
