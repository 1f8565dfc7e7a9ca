//! The index on disk, so that the next process does not have to read all tools again.
//!
//! A file is used only if its hash is right and it has this format and this table. Anything else is an
//! error, and the caller builds the index again: it is a copy of what the servers say, never the only
//! one.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
};

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{
    document::Fingerprint,
    index::{Index, Key, ToolEntry},
    meaning::Meaning,
    table::{DIMENSIONS, VectorTable},
};

/// Must change with the format, and with how documents are read.
const MAGIC: &[u8; 8] = b"BJINDEX1";
/// A larger file is not one of ours.
const MOST_BYTES: u64 = 2 << 30;

/// Why an index could not be loaded.
#[derive(Debug, Error)]
pub enum IndexLoadError {
    /// The file could not be read.
    #[error("cannot read the index of tools")]
    Io(#[from] io::Error),
    /// The file is damaged, or not an index at all.
    #[error("the index of tools is damaged")]
    Damaged,
    /// Another version wrote it.
    #[error("the index of tools was written by another version")]
    OtherVersion,
}

impl Index {
    /// Writes the index atomically: on failure the file stays as it was.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let body = self.body();
        let beside = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = fs::File::create(&beside)?;
        let written = [MAGIC.as_slice(), VectorTable::hash(), &Sha256::digest(&body), &body]
            .into_iter()
            .try_for_each(|part| file.write_all(part))
            .and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Reads an index that [`save`](Self::save) wrote.
    pub fn load(path: &Path) -> Result<Self, IndexLoadError> {
        if fs::metadata(path)?.len() > MOST_BYTES {
            return Err(IndexLoadError::Damaged);
        }
        Self::from_bytes(&fs::read(path)?)
    }

    pub(crate) fn from_bytes(file: &[u8]) -> Result<Self, IndexLoadError> {
        let file = file.strip_prefix(MAGIC).ok_or(IndexLoadError::OtherVersion)?;
        let file = file.strip_prefix(VectorTable::hash()).ok_or(IndexLoadError::OtherVersion)?;
        let (hash, body) = file.split_first_chunk::<32>().ok_or(IndexLoadError::Damaged)?;
        if Sha256::digest(body).as_slice() != hash {
            return Err(IndexLoadError::Damaged);
        }
        IndexBody(body).index().ok_or(IndexLoadError::Damaged)
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let terms: BTreeMap<u32, &str> =
            self.lexicon.iter().map(|(term, number)| (number, term)).collect();
        put_number(&mut body, terms.len());
        terms.values().for_each(|term| put_text(&mut body, term));
        put_number(&mut body, self.len());
        let slots = self.entries.iter().zip(self.meanings.iter().zip(&self.scales));
        for (entry, (numbers, scale)) in slots {
            let Some(entry) = entry else { continue };
            put_text(&mut body, &entry.key.server);
            put_text(&mut body, &entry.key.name);
            body.extend(entry.fingerprint);
            put_number(&mut body, entry.terms.len());
            for (term, weight) in &entry.terms {
                body.extend(term.to_le_bytes());
                body.extend(weight.to_le_bytes());
            }
            body.extend(scale.to_le_bytes());
            body.extend(numbers.map(i8::cast_unsigned));
        }
        body
    }
}

fn put_number(body: &mut Vec<u8>, number: usize) {
    body.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    put_number(body, text.len());
    body.extend(text.as_bytes());
}

/// The bytes that are left to read. The hash is right, and they are checked all the same.
struct IndexBody<'a>(&'a [u8]);

impl<'a> IndexBody<'a> {
    fn index(mut self) -> Option<Index> {
        let mut index = Index::default();
        let terms = self.number()?;
        for expected in 0..terms {
            if index.lexicon.number(self.text()?) != expected {
                return None;
            }
        }
        for _ in 0..self.number()? {
            let (entry, meaning) = self.entry(terms)?;
            index.insert(entry, &meaning);
        }
        self.0.is_empty().then_some(index)
    }

    fn entry(&mut self, known: u32) -> Option<(ToolEntry, Meaning)> {
        let key = Key { server: self.text()?.to_owned(), name: self.text()?.to_owned() };
        let fingerprint: Fingerprint = self.array()?;
        let count = self.number()? as usize;
        let mut terms = Vec::new();
        for _ in 0..count {
            let term = (self.number()?, self.fraction()?);
            let is_next = terms.last().is_none_or(|(before, _)| *before < term.0);
            terms.push(Some(term).filter(|(term, _)| is_next && *term < known)?);
        }
        let scale = self.fraction()?;
        let numbers = self.array::<DIMENSIONS>()?.map(u8::cast_signed);
        Some((ToolEntry { key, fingerprint, terms }, Meaning { numbers, scale }))
    }

    fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn fraction(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes).filter(|number| number.is_finite())
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests;
