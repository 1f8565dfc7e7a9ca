//! An intent, split into its sentences, with the neighbours of its words.
//!
//! An intent of several sentences often asks for several tools. A tool that fits one sentence well is as
//! good as one that fits all a little, so every sentence is also searched for alone. An intent often
//! says in other words what a tool does, so the words nearest in meaning are looked up, too.

use std::collections::HashMap;

use crate::{
    index::Index,
    meaning::QueryMeaning,
    neighbours::Neighbours,
    reader::{DocumentReader, Term},
    table::VectorTable,
};

/// Characters that are read of an intent.
const MOST_CHARACTERS: usize = 4_000;
/// How many different terms are looked up.
const MOST_TERMS: usize = 128;
/// How many sentences are searched for alone.
const MOST_SENTENCES: usize = 8;
/// A sentence with fewer terms is ignored.
const FEWEST_TERMS: usize = 2;
/// How many neighbours of its words are looked up, of an intent or of one of its sentences.
const MOST_NEIGHBOURS: usize = 128;
/// How much a neighbour of a word counts; the word itself counts 1. A neighbour that is rarer than its
/// word counts as if it were as frequent.
const NEIGHBOUR: f32 = 0.4;

/// The terms and the meaning of an intent, or of one of its sentences.
#[derive(Debug)]
pub(crate) struct IntentPart {
    /// Each term once, with its rarity: first those of the text, in its order, then their
    /// neighbours, whose rarity counts less.
    pub(crate) terms: Vec<(Term, f32)>,
    /// How many of them are of the text itself.
    pub(crate) own_terms: usize,
    pub(crate) meaning: QueryMeaning,
}

/// A sentence of an intent.
#[derive(Debug)]
pub(crate) struct Sentence {
    /// Its terms, as places among the terms of the whole. What is only a neighbour here may be a
    /// word elsewhere in the intent, so each has the share of its weight that counts here.
    pub(crate) terms: Vec<(usize, f32)>,
    pub(crate) meaning: QueryMeaning,
}

/// An intent, ready to be compared with tools.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) whole: IntentPart,
    /// Empty if there is only one.
    pub(crate) sentences: Vec<Sentence>,
    /// For each term of the text, the word it comes from. Neighbours have none.
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
                let place = |(term, rarity): &(Term, f32)| {
                    let mut known = whole.terms.iter().enumerate();
                    let (at, (_, of_whole)) = known.find(|(_, (known, _))| known == term)?;
                    Some((at, rarity / of_whole))
                };
                let terms = part.terms.iter().filter_map(place).collect();
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
    let mut terms = TermList { index, terms: Vec::new() };
    let mut near = Vec::new();
    let mut count = 0;
    let meaning = reader.ask(text, MOST_CHARACTERS, |word, term, pieces| {
        count += 1;
        if terms.terms.len() == MOST_TERMS {
            return;
        }
        if let Some(term) = terms.add(term, |rarity| rarity) {
            words.entry(term).or_insert_with(|| word.text.to_owned());
        }
        if let [whole] = pieces {
            let most = index.lexicon.get(term).map_or(f32::MAX, |term| terms.rarity(term));
            near.extend(Neighbours::get().of(*whole).map(|piece| (piece, most)));
        }
    });
    let own_terms = terms.terms.len();
    let most_terms = own_terms + MOST_NEIGHBOURS;
    for (piece, most) in near {
        let Some(word) = VectorTable::get().word(piece) else { continue };
        if terms.terms.len() == most_terms {
            break;
        }
        reader.terms_of(word, |term| {
            terms.add(term, |rarity| NEIGHBOUR * rarity.min(most));
        });
    }
    (IntentPart { terms: terms.terms, own_terms, meaning: QueryMeaning::new(&meaning) }, count)
}

/// The terms of a part that some tool has, each once.
struct TermList<'a> {
    index: &'a Index,
    terms: Vec<(Term, f32)>,
}

impl TermList<'_> {
    /// Adds a term with a weight that depends on its rarity, unless no tool has it or it is here already.
    fn add(&mut self, term: &str, weight: impl Fn(f32) -> f32) -> Option<Term> {
        let term = self.index.lexicon.get(term)?;
        let is_here = self.terms.iter().any(|(known, _)| *known == term);
        if is_here || self.index.postings(term).is_empty() {
            return None;
        }
        self.terms.push((term, weight(self.rarity(term))));
        Some(term)
    }

    fn rarity(&self, term: Term) -> f32 {
        let (all, with) = (self.index.len() as f32, self.index.postings(term).len() as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
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
