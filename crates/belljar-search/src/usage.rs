//! Which tools runs have used together: a run that reads a mailbox often sends a mail, too.
//!
//! Its influence is limited twice. The bonus of a tool is capped; and tools that were never used keep
//! their place, so that habit never pushes down a tool that no run has tried yet.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::Key;

/// The most a score is raised.
const MOST: f32 = 0.15;
/// How many of the top tools give a bonus to the others.
const LEADERS: usize = 3;
/// A leader scores at least this share of the best.
const LEADING: f32 = 0.8;
/// Pairs seen less often than this are ignored.
const FEWEST: u32 = 2;
/// Pairs that are remembered.
const MOST_PAIRS: usize = 200_000;
/// Tools of one run that are looked at.
const MOST_OF_RUN: usize = 20;

/// How often tools were used, and which in one run.
#[derive(Debug, Clone, Default)]
pub struct UsageHistory {
    used: BTreeMap<Key, u32>,
    pairs: BTreeMap<(Key, Key), u32>,
}

impl UsageHistory {
    /// Adds the tools that one run has used.
    pub fn note(&mut self, run: impl IntoIterator<Item = Key>) {
        let tools: BTreeSet<Key> = run.into_iter().take(MOST_OF_RUN).collect();
        for left in &tools {
            *self.used.entry(left.clone()).or_default() += 1;
            for right in tools.range(left..).skip(1) {
                let pair = (left.clone(), right.clone());
                if self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
                    *self.pairs.entry(pair).or_default() += 1;
                }
            }
        }
    }

    /// Whether no run was added.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// The share of the runs with either of two tools that had both.
    fn share(&self, left: &Key, right: &Key) -> f32 {
        let pair = if left <= right { (left, right) } else { (right, left) };
        let both = self.pairs.get(&(pair.0.clone(), pair.1.clone())).copied().unwrap_or(0);
        let used = |key| self.used.get(key).copied().unwrap_or(0);
        let either = used(left) + used(right) - both.min(used(left));
        if both < FEWEST || either == 0 { 0.0 } else { both as f32 / either as f32 }
    }

    /// Lets tools that were used with the best ones move up, past other used ones only.
    pub(crate) fn reorder<'a, T>(
        &self,
        ranked: &mut [T],
        key: impl Fn(&T) -> Option<&'a Key>,
        score: impl Fn(&T) -> f32,
    ) {
        let best = ranked.first().map_or(0.0, &score);
        let leaders: Vec<&Key> = ranked
            .iter()
            .take(LEADERS)
            .filter(|one| score(one) >= LEADING * best)
            .filter_map(&key)
            .collect();
        let help = |one: &Key| {
            let others = leaders.iter().filter(|leader| **leader != one);
            others.map(|leader| self.share(leader, one)).fold(0.0, f32::max) * MOST
        };
        let is_used = |one: &T| key(one).is_some_and(|key| self.used.contains_key(key));
        let places: Vec<usize> =
            (0..).zip(&*ranked).filter(|(_, one)| is_used(one)).map(|(at, _)| at).collect();
        let helped = |one: &T| score(one) + key(one).map_or(0.0, help);
        // Few are out of order, and a place is only ever given up to a used tool.
        let mut order: Vec<(f32, usize)> =
            places.iter().filter_map(|at| Some((helped(ranked.get(*at)?), *at))).collect();
        order.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        permute(ranked, &places, order.into_iter().map(|(_, from)| from).collect());
    }
}

/// Puts what is at `from[n]` to `places[n]`, for every n; both have the same numbers.
fn permute<T>(ranked: &mut [T], places: &[usize], mut from: Vec<usize>) {
    for at in 0..places.len() {
        let (Some(&place), Some(&source)) = (places.get(at), from.get(at)) else { return };
        ranked.swap(place, source);
        // The item that was here is now at `source`.
        for later in from.iter_mut().skip(at + 1) {
            if *later == place {
                *later = source;
            }
        }
    }
}

#[cfg(test)]
mod tests;
