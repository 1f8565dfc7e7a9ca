//! The baseline for search: the simplest BM25. It indexes name and description as lower-case words,
//! and nothing else.

use std::collections::HashMap;

use super::data::SearchTool;

const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// An index for plain BM25.
#[derive(Debug)]
pub(super) struct PlainBm25 {
    /// Word → the tools that contain it, with the number of occurrences.
    found: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

impl PlainBm25 {
    pub(super) fn new(tools: &[SearchTool]) -> Self {
        let mut found: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(tools.len());
        for (place, tool) in tools.iter().enumerate() {
            let text = format!("{} {}", tool.name, tool.description.as_deref().unwrap_or_default());
            let mut counts: HashMap<String, f64> = HashMap::new();
            words(&text).for_each(|word| *counts.entry(word).or_default() += 1.0);
            lengths.push(counts.values().sum());
            for (word, count) in counts {
                found.entry(word).or_default().push((place, count));
            }
        }
        let average = lengths.iter().sum::<f64>() / (tools.len().max(1) as f64);
        Self { found, lengths, average: average.max(1.0) }
    }

    /// Indices of the best tools, best first.
    pub(super) fn best(&self, query: &str, k: usize) -> Vec<usize> {
        let mut asked: Vec<String> = words(query).collect();
        asked.sort();
        asked.dedup();
        let mut scores = vec![0.0; self.lengths.len()];
        for found in asked.iter().filter_map(|word| self.found.get(word)) {
            let (all, with) = (self.lengths.len() as f64, found.len() as f64);
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for (place, count) in found {
                let length = self.lengths.get(*place).copied().unwrap_or(0.0) / self.average;
                let held_back = SATURATION * (1.0 - LENGTH + LENGTH * length);
                if let Some(score) = scores.get_mut(*place) {
                    *score += rarity * count * (SATURATION + 1.0) / (count + held_back);
                }
            }
        }
        let mut ranked: Vec<(usize, f64)> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        ranked.into_iter().take(k).map(|(place, _)| place).collect()
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase)
}
