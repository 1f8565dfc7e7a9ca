//! An intent, split into its sentences.
//!
//! An intent of several sentences often asks for several tools. A tool that fits one sentence well is as
//! good as one that fits all a little, so every sentence is also searched for alone.

use std::collections::HashMap;

use crate::{
    index::Index,
    meaning::QueryMeaning,
    reader::{DocumentReader, Term},
};

/// Characters that are read of an intent.
const MOST_CHARACTERS: usize = 4_000;
/// How many different terms are looked up.
const MOST_TERMS: usize = 128;
/// How many sentences are searched for alone.
const MOST_SENTENCES: usize = 8;
/// A sentence with fewer terms is ignored.
const FEWEST_TERMS: usize = 2;

/// The terms and the meaning of an intent, or of one of its sentences.
#[derive(Debug)]
pub(crate) struct IntentPart {
    /// Each term once, with how rare it is, in the order of the text.
    pub(crate) terms: Vec<(Term, f32)>,
    pub(crate) meaning: QueryMeaning,
}

/// A sentence of an intent.
#[derive(Debug)]
pub(crate) struct Sentence {
    /// Its terms, as places among the terms of the whole.
    pub(crate) terms: Vec<usize>,
    pub(crate) meaning: QueryMeaning,
}

/// An intent, ready to be compared with tools.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) whole: IntentPart,
    /// Empty if there is only one.
    pub(crate) sentences: Vec<Sentence>,
    /// For each term, the word it comes from.
    pub(crate) words: HashMap<Term, String>,
}

impl Intent {
    pub(crate) fn new(text: &str, index: &Index) -> Self {
        let end = text.char_indices().nth(MOST_CHARACTERS).map_or(text.len(), |(at, _)| at);
        let text = text.get(..end).unwrap_or_default();
        let mut reader = DocumentReader::new();
        let mut words = HashMap::new();
        let (whole, _) = part(text, index, &mut reader, &mut words);
        let mut sentences = Vec::new();
        for sentence in sentences_of(text) {
            let (part, count) = part(sentence, index, &mut reader, &mut words);
            if count >= FEWEST_TERMS && sentences.len() < MOST_SENTENCES {
                let place = |term| whole.terms.iter().position(|(known, _)| *known == term);
                let terms = part.terms.iter().filter_map(|(term, _)| place(*term)).collect();
                sentences.push(Sentence { terms, meaning: part.meaning });
            }
        }
        if sentences.len() < 2 {
            sentences.clear();
        }
        Self { whole, sentences, words }
    }
}

/// Reads a text of the intent; also returns how many terms it has, known ones or not.
fn part(
    text: &str,
    index: &Index,
    reader: &mut DocumentReader,
    words: &mut HashMap<Term, String>,
) -> (IntentPart, usize) {
    let mut terms: Vec<(Term, f32)> = Vec::new();
    let mut count = 0;
    let all = index.len() as f32;
    let meaning = reader.ask(text, MOST_CHARACTERS, |word, term| {
        count += 1;
        let Some(term) = index.lexicon.get(term) else { return };
        let with = index.postings(term).len() as f32;
        if with > 0.0 && terms.len() < MOST_TERMS && !terms.iter().any(|(known, _)| *known == term)
        {
            terms.push((term, (1.0 + (all - with + 0.5) / (with + 0.5)).ln()));
            words.entry(term).or_insert_with(|| word.text.to_owned());
        }
    });
    (IntentPart { terms, meaning: QueryMeaning::new(&meaning) }, count)
}

/// A sentence ends at a line's end, and at a mark that is followed by space.
fn sentences_of(text: &str) -> impl Iterator<Item = &str> {
    let mut begin = 0;
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let after = at + character.len_utf8();
        let mut is_before_space = || characters.peek().is_none_or(|(_, next)| next.is_whitespace());
        let is_end = match character {
            '\n' | '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' | ';' => is_before_space(),
            _ => false,
        };
        if is_end {
            ends.push((begin, after));
            begin = after;
        }
    }
    ends.push((begin, text.len()));
    ends.into_iter().filter_map(|(begin, end)| text.get(begin..end))
}

#[cfg(test)]
mod tests;
