//! Reads documents and intents: their terms with weights, and their meaning.

use std::collections::HashMap;

use crate::{
    document::{Document, DocumentField},
    meaning::Meaning,
    table::{DIMENSIONS, Piece, VectorTable},
    terms::TermSplitter,
    words::{Humps, SplitWord, Splitter},
};

/// BM25's k1: how soon repetitions of a term stop counting.
const SATURATION: f32 = 2.5;
/// BM25's b: how much long texts are penalised, from 0 (not at all) to 1.
const LENGTH: f32 = 0.75;
/// Words remembered while many documents are read.
const MOST_REMEMBERED: usize = 100_000;

/// A term, as an index numbers it.
pub(crate) type Term = u32;

/// All terms of an index.
#[derive(Debug, Default, Clone)]
pub(crate) struct Lexicon {
    numbers: HashMap<Box<str>, Term>,
}

impl Lexicon {
    pub(crate) fn get(&self, term: &str) -> Option<Term> {
        self.numbers.get(term).copied()
    }

    /// The number of a term, a new one if need be.
    pub(crate) fn number(&mut self, term: &str) -> Term {
        if let Some(known) = self.numbers.get(term) {
            return *known;
        }
        let number = Term::try_from(self.numbers.len()).unwrap_or(Term::MAX);
        self.numbers.insert(term.into(), number);
        number
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Every term with its number, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Term)> {
        self.numbers.iter().map(|(term, number)| (&**term, *number))
    }
}

/// The terms and the meaning of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DocumentTerms {
    /// Each term once, by number, with how much it counts.
    pub(crate) terms: Vec<(Term, f32)>,
    pub(crate) meaning: Meaning,
}

/// The term and the pieces of a word, computed once.
#[derive(Debug)]
struct WordPieces {
    term: Option<Term>,
    pieces: Box<[Piece]>,
}

/// Reads documents one after the other, and remembers what their words are made of.
#[derive(Debug)]
pub(crate) struct DocumentReader {
    table: &'static VectorTable,
    splitter: Splitter,
    terms: TermSplitter,
    pieces: Vec<Piece>,
    /// ASCII words that were read before.
    remembered: HashMap<Box<str>, WordPieces>,
    /// The terms of the field that is being read.
    found: Vec<Term>,
}

impl DocumentReader {
    pub(crate) fn new() -> Self {
        Self {
            table: VectorTable::get(),
            splitter: Splitter::default(),
            terms: TermSplitter::default(),
            pieces: Vec::new(),
            remembered: HashMap::new(),
            found: Vec::new(),
        }
    }

    /// The terms and the meaning of one document.
    pub(crate) fn read(&mut self, document: &Document<'_>, lexicon: &mut Lexicon) -> DocumentTerms {
        let mut weights: Vec<(Term, f32)> = Vec::with_capacity(64);
        let mut sum = [0.0; DIMENSIONS];
        for (field, texts) in document.fields() {
            self.found.clear();
            for text in texts {
                self.text(text, field, lexicon, &mut sum);
            }
            let length = self.found.len() as f32 / field.typical;
            let weight = field.lexical / (1.0 - LENGTH + LENGTH * length);
            weights.extend(self.found.iter().map(|term| (*term, weight)));
        }
        DocumentTerms { terms: merged(weights), meaning: Meaning::of(&sum) }
    }

    fn text(
        &mut self,
        text: &str,
        field: DocumentField,
        lexicon: &mut Lexicon,
        sum: &mut [f32; DIMENSIONS],
    ) {
        let Self { table, splitter, terms, pieces, remembered, found } = self;
        terms.begin();
        splitter.split(text, field.most, Humps::Split, |word| {
            if let Some(WordPieces { term, pieces }) = remembered.get(word.text) {
                found.extend(term);
                pieces.iter().for_each(|piece| table.add(*piece, field.meaning, sum));
                return;
            }
            let before = found.len();
            terms.of(word, |term| found.push(lexicon.number(term)));
            // A word without terms says nothing, so it means nothing either.
            pieces.clear();
            if found.len() > before {
                table.pieces(word.text, pieces);
                pieces.iter().for_each(|piece| table.add(*piece, field.meaning, sum));
            }
            if word.text.is_ascii() && remembered.len() < MOST_REMEMBERED {
                let term = found.get(before).copied();
                let pieces = pieces.as_slice().into();
                remembered.insert(word.text.into(), WordPieces { term, pieces });
            }
        });
    }

    /// Reads an intent: calls `each` with every word, its term and its pieces, and returns the meaning.
    pub(crate) fn ask(
        &mut self,
        text: &str,
        most: usize,
        mut each: impl FnMut(SplitWord<'_>, &str, &[Piece]),
    ) -> Meaning {
        let Self { table, splitter, terms, pieces, .. } = self;
        let mut sum = [0.0; DIMENSIONS];
        terms.begin();
        splitter.split(text, most, Humps::Split, |word| {
            pieces.clear();
            terms.of(word, |term| {
                if pieces.is_empty() {
                    table.pieces(word.text, pieces);
                }
                each(word, term, pieces);
            });
            pieces.iter().for_each(|piece| table.add(*piece, 1.0, &mut sum));
        });
        Meaning::of(&sum)
    }

    /// Calls `each` with the terms of a single word.
    pub(crate) fn terms_of(&mut self, word: &str, each: impl FnMut(&str)) {
        self.terms.begin();
        let word = SplitWord { text: word, is_joined: false, is_punctuation: false };
        self.terms.of(word, each);
    }
}

/// Each term once, with the saturated sum of its weights.
fn merged(mut weights: Vec<(Term, f32)>) -> Vec<(Term, f32)> {
    weights.sort_by_key(|(term, _)| *term);
    weights.dedup_by(|(term, weight), (kept, sum)| {
        let is_same = term == kept;
        if is_same {
            *sum += *weight;
        }
        is_same
    });
    for (_, weight) in &mut weights {
        *weight = *weight * (SATURATION + 1.0) / (*weight + SATURATION);
    }
    weights
}
