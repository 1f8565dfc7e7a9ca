//! Finding tools by what they are for: words of the intent against the words of the catalogue.
//!
//! BM25 over what a tool says of itself: its server, its name split into words, its description,
//! and the names and descriptions of its arguments. Words are lower-cased and lightly stemmed, so
//! that `commits` finds `list_commit`. What a server writes can win a search, never more.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::{names::Catalogue, spelling::words, tool::Tool};

/// How soon more of the same word stops counting.
const SATURATION: f64 = 1.2;
/// How much long texts are held back.
const LENGTH: f64 = 0.6;
/// A description is read this far; what comes after is examples or an attempt to be found.
const MAX_TEXT: usize = 2_000;
/// Arguments read of one tool.
const MAX_ARGUMENTS: usize = 60;
/// Words that say nothing about what a tool is for.
const EMPTY: [&str; 40] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "have", "how",
    "i", "if", "in", "into", "is", "it", "me", "my", "of", "on", "or", "our", "please", "that",
    "the", "their", "them", "this", "to", "use", "using", "want", "we", "with", "you", "your",
];

/// A tool found.
#[derive(Debug, Clone)]
pub struct Hit<'a> {
    /// What was found.
    pub tool: &'a Tool,
    /// Higher is better; only to be compared within one search.
    pub score: f64,
    /// The words of the intent that were found in it, best first.
    pub why: Vec<String>,
}

/// The `k` tools of the catalogue that fit the intent best, best first; fewer if fewer fit at all.
pub fn search<'a>(catalogue: &'a Catalogue, intent: &str, k: usize) -> Vec<Hit<'a>> {
    let mut query: Vec<String> = text_words(intent);
    let mut seen = HashSet::new();
    query.retain(|word| !EMPTY.contains(&word.as_str()) && seen.insert(word.clone()));
    let mut scores: BTreeMap<usize, Match<'_>> = BTreeMap::new();
    for word in &query {
        for (tool, score) in catalogue.index().scores(word) {
            let found = scores.entry(tool).or_default();
            found.score += score;
            found.words.push((score, word));
        }
    }
    let mut ranked: Vec<(usize, Match<'_>)> = scores.into_iter().collect();
    // Ties go by name, so that one question has one answer.
    ranked.sort_by(|left, right| right.1.score.total_cmp(&left.1.score).then(left.0.cmp(&right.0)));
    let hits = ranked.into_iter().take(k).filter_map(|(tool, mut found)| {
        found.words.sort_by(|left, right| right.0.total_cmp(&left.0));
        let why = found.words.into_iter().map(|(_, word)| word.to_owned()).collect();
        Some(Hit { tool: catalogue.tools().get(tool)?, score: found.score, why })
    });
    hits.collect()
}

/// What of an intent a tool has.
#[derive(Default)]
struct Match<'a> {
    score: f64,
    /// Each word with what it adds.
    words: Vec<(f64, &'a str)>,
}

/// The words of a catalogue.
#[derive(Debug)]
pub(crate) struct Index {
    /// Which tools a word is in, and how heavily.
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

impl Index {
    pub(crate) fn new(tools: &[Tool]) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(tools.len());
        for (at, tool) in tools.iter().enumerate() {
            let weights = weights(tool);
            lengths.push(weights.values().sum());
            for (word, weight) in weights {
                postings.entry(word).or_default().push((at, weight));
            }
        }
        let average = lengths.iter().sum::<f64>() / (tools.len().max(1) as f64);
        Self { postings, lengths, average: average.max(1.0) }
    }

    fn scores(&self, word: &str) -> impl Iterator<Item = (usize, f64)> {
        let found = self.postings.get(word).map(Vec::as_slice).unwrap_or_default();
        let (all, with) = (self.lengths.len() as f64, found.len() as f64);
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        found.iter().map(move |(tool, weight)| {
            let length = self.lengths.get(*tool).copied().unwrap_or(self.average) / self.average;
            let held_back = SATURATION * (1.0 - LENGTH + LENGTH * length);
            (*tool, rarity * weight * (SATURATION + 1.0) / (weight + held_back))
        })
    }
}

/// The words of a tool with what each place they stand in counts.
fn weights(tool: &Tool) -> HashMap<String, f64> {
    let mut weights: HashMap<String, f64> = HashMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in text_words(text) {
            *weights.entry(word).or_default() += weight;
        }
    };
    add(&tool.name, 3.0);
    add(&tool.server, 1.5);
    add(tool.title.as_deref().unwrap_or_default(), 1.5);
    add(tool.description.as_deref().unwrap_or_default(), 1.0);
    let arguments = tool.input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in arguments.into_iter().flatten().take(MAX_ARGUMENTS) {
        add(name, 0.5);
        add(schema.get("description").and_then(Value::as_str).unwrap_or_default(), 0.5);
        for choice in schema.get("enum").and_then(Value::as_array).into_iter().flatten().take(20) {
            add(choice.as_str().unwrap_or_default(), 0.5);
        }
    }
    weights
}

fn text_words(text: &str) -> Vec<String> {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
    let mut found = Vec::new();
    for word in words(text.get(..end).unwrap_or(text)) {
        let word = word.to_lowercase();
        if word.is_ascii() {
            found.push(stem(&word));
            continue;
        }
        // Scripts without spaces are matched by pairs of characters.
        let characters: Vec<char> = word.chars().collect();
        found.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
        found.push(word);
    }
    found
}

/// The word without the endings of English that change no meaning here.
fn stem(word: &str) -> String {
    let long_enough = |rest: &&str| rest.len() >= 3;
    for (ending, instead) in [("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")] {
        let Some(rest) = word.strip_suffix(ending).filter(long_enough) else { continue };
        if ending == "s" && (rest.ends_with('s') || rest.ends_with('u') || rest.ends_with('i')) {
            return word.to_owned();
        }
        // `creating`, `create` and `creates` are to meet, so a final `e` goes too.
        let rest = rest.strip_suffix('e').filter(long_enough).unwrap_or(rest);
        return format!("{rest}{instead}");
    }
    word.strip_suffix('e').filter(long_enough).unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests;
