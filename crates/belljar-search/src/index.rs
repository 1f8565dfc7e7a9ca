//! The index: all tools, their terms and meanings, and the tools of each term.
//!
//! An entry depends on nothing but its tool, and the rarity of a term is computed for each search; so an
//! index that was updated step by step answers like a new one.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    document::{Document, Fingerprint},
    meaning::Meaning,
    reader::{DocumentReader, DocumentTerms, Lexicon, Term},
    table::DIMENSIONS,
};

/// How many unused terms are tolerated before the index is compacted.
const MOST_UNUSED: usize = 10_000;

/// Names one tool in an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The server that offers it; empty if there is none.
    pub server: String,
    /// The name it is called by.
    pub name: String,
}

/// A searchable set of tools.
#[derive(Debug, Default)]
pub struct Index {
    /// Tools by slot; a slot without a tool is free.
    pub(crate) entries: Vec<Option<ToolEntry>>,
    pub(crate) meanings: Vec<[i8; DIMENSIONS]>,
    pub(crate) scales: Vec<f32>,
    /// The server of each slot, by number.
    pub(crate) server_of: Vec<u32>,
    servers: HashMap<String, u32>,
    by_key: BTreeMap<Key, u32>,
    pub(crate) lexicon: Lexicon,
    /// By number of the term.
    postings: Vec<Vec<Posting>>,
    free: Vec<u32>,
}

/// The stored facts about a tool, apart from its meaning.
#[derive(Debug)]
pub(crate) struct ToolEntry {
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
    /// By number of the term.
    pub(crate) terms: Vec<(Term, f32)>,
}

/// A tool that has a term, and the weight of the term in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) slot: u32,
    pub(crate) weight: f32,
}

/// How many tools an update read, removed and kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Update {
    /// Tools that are new or have changed.
    pub read: usize,
    /// Tools that are no longer there.
    pub removed: usize,
    /// Tools that have not changed.
    pub kept: usize,
}

impl Index {
    /// An index of these tools. Of two tools with the same key the first is used.
    pub fn new<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Self {
        let mut index = Self::default();
        index.update(documents);
        index
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Changes the index so that it holds exactly these tools; only those that changed are read.
    pub fn update<'a>(&mut self, documents: impl IntoIterator<Item = Document<'a>>) -> Update {
        let mut reader = DocumentReader::new();
        let mut update = Update::default();
        let mut wanted = HashSet::with_capacity(self.len());
        let mut stale = Vec::new();
        let mut fresh = Vec::new();
        for document in documents {
            let key = Key { server: document.server.to_owned(), name: document.name.to_owned() };
            let fingerprint = document.fingerprint();
            let known = self.by_key.get(&key).copied();
            let entry = known.and_then(|slot| self.entry(slot));
            if entry.is_some_and(|entry| entry.fingerprint == fingerprint) {
                update.kept += usize::from(wanted.insert(key));
            } else if wanted.insert(key.clone()) {
                stale.extend(known);
                let DocumentTerms { terms, meaning } = reader.read(&document, &mut self.lexicon);
                fresh.push((ToolEntry { key, fingerprint, terms }, meaning));
            }
        }
        update.read = fresh.len();
        let replaced = stale.len();
        let gone = self.by_key.iter().filter(|(key, _)| !wanted.contains(*key));
        stale.extend(gone.map(|(_, slot)| *slot));
        update.removed = stale.len() - replaced;
        self.remove(stale);
        fresh.into_iter().for_each(|(entry, meaning)| self.insert(entry, &meaning));
        let unused = self.postings.iter().filter(|postings| postings.is_empty()).count();
        if unused > MOST_UNUSED && unused > self.postings.len() / 2 {
            self.compact();
        }
        update
    }

    /// Drops terms and servers that no tool has any more.
    fn compact(&mut self) {
        let old = std::mem::take(self);
        let mut terms: Vec<&str> = vec![""; old.lexicon.len()];
        for (term, number) in old.lexicon.iter() {
            if let Some(place) = terms.get_mut(number as usize) {
                *place = term;
            }
        }
        let slots = old.entries.into_iter().zip(old.meanings.into_iter().zip(old.scales));
        for (entry, (numbers, scale)) in slots {
            let Some(mut entry) = entry else { continue };
            for (term, _) in &mut entry.terms {
                let text = terms.get(*term as usize).copied().unwrap_or_default();
                *term = self.lexicon.number(text);
            }
            entry.terms.sort_by_key(|(term, _)| *term);
            self.insert(entry, &Meaning { numbers, scale });
        }
    }

    pub(crate) fn entry(&self, slot: u32) -> Option<&ToolEntry> {
        self.entries.get(slot as usize)?.as_ref()
    }

    /// The tools that have a term.
    pub(crate) fn postings(&self, term: Term) -> &[Posting] {
        self.postings.get(term as usize).map(Vec::as_slice).unwrap_or_default()
    }

    /// How many servers there are numbers for.
    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Adds a tool whose key is not in the index.
    pub(crate) fn insert(&mut self, entry: ToolEntry, meaning: &Meaning) {
        let next = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        let server = *self.servers.entry(entry.key.server.clone()).or_insert(next);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.meanings.push([0; DIMENSIONS]);
            self.scales.push(0.0);
            self.server_of.push(0);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        self.postings.resize_with(self.postings.len().max(self.lexicon.len()), Vec::new);
        for (term, weight) in &entry.terms {
            if let Some(postings) = self.postings.get_mut(*term as usize) {
                postings.push(Posting { slot, weight: *weight });
            }
        }
        self.by_key.insert(entry.key.clone(), slot);
        self.set(slot, Some(entry), meaning, server);
    }

    fn remove(&mut self, slots: Vec<u32>) {
        let mut terms = HashSet::new();
        for slot in &slots {
            let Some(entry) = self.entries.get_mut(*slot as usize).and_then(Option::take) else {
                continue;
            };
            self.by_key.remove(&entry.key);
            terms.extend(entry.terms.into_iter().map(|(term, _)| term));
            self.set(*slot, None, &Meaning::NONE, 0);
        }
        // Each list is traversed once, however many tools are removed.
        for term in terms {
            if let Some(postings) = self.postings.get_mut(term as usize) {
                let entries = &self.entries;
                let is_there = |slot: u32| entries.get(slot as usize).is_some_and(Option::is_some);
                postings.retain(|posting| is_there(posting.slot));
            }
        }
        self.free.extend(slots);
    }

    fn set(&mut self, slot: u32, entry: Option<ToolEntry>, meaning: &Meaning, server: u32) {
        let at = slot as usize;
        if let (Some(entries), Some(numbers), Some(scale), Some(of)) = (
            self.entries.get_mut(at),
            self.meanings.get_mut(at),
            self.scales.get_mut(at),
            self.server_of.get_mut(at),
        ) {
            (*entries, *numbers, *scale, *of) = (entry, meaning.numbers, meaning.scale, server);
        }
    }
}

#[cfg(test)]
mod tests;
