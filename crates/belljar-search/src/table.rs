//! A vector for every word piece, distilled from a language model.
//!
//! `scripts/distill` makes the file, `table/NOTICE` names its sources. It is part of the program, so
//! nothing is read from disk; the first use parses the list of pieces.

use std::{collections::HashMap, fmt, sync::OnceLock};

/// How many numbers a vector has.
pub const DIMENSIONS: usize = 256;
/// A `static`, so that the program has one copy: of a `const`, each use may become one.
static FILE: &[u8] = include_bytes!("../table/table.bin");
const MAGIC: &[u8; 8] = b"BJTABLE1";
/// After the magic comes the SHA-256 of what follows.
const HASH: usize = 32;
/// Longer words are not taken apart, as in the reference.
const MOST_CHARACTERS: usize = 100;
/// The prefix in the vocabulary of a piece inside a word.
const INSIDE: &str = "##";

/// A vector for every piece of a word.
pub struct VectorTable {
    /// Pieces that begin a word.
    first: HashMap<&'static str, u32>,
    /// Pieces that go on with one, without their mark.
    further: HashMap<&'static str, u32>,
    /// Every piece as the vocabulary writes it, with the mark of those inside a word.
    names: Vec<&'static str>,
    /// The factor of each row; it includes how much the piece says.
    scales: Vec<f32>,
    /// One row for each piece; the bytes are signed numbers.
    rows: &'static [[u8; DIMENSIONS]],
    longest: usize,
}

/// One piece of a word, as the table numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece(pub(crate) u32);

impl VectorTable {
    /// The table of this program. The first call parses it.
    pub fn get() -> &'static Self {
        static TABLE: OnceLock<VectorTable> = OnceLock::new();
        TABLE.get_or_init(Self::load)
    }

    /// Parses the file.
    ///
    /// A file that the script did not write gives a table without pieces; a test makes sure that the
    /// one in the program is right.
    #[doc(hidden)]
    pub fn load() -> Self {
        Self::read(FILE).unwrap_or_else(|| Self {
            first: HashMap::new(),
            further: HashMap::new(),
            names: Vec::new(),
            scales: Vec::new(),
            rows: &[],
            longest: 0,
        })
    }

    fn read(file: &'static [u8]) -> Option<Self> {
        let file = file.strip_prefix(MAGIC)?.get(HASH..)?;
        let (count, file) = number(file)?;
        let (dimensions, file) = number(file)?;
        if dimensions != DIMENSIONS {
            return None;
        }
        let (lengths, file) = file.split_at_checked(count)?;
        let (scales, mut file) = file.split_at_checked(count.checked_mul(4)?)?;
        let mut table = Self {
            first: HashMap::with_capacity(count),
            further: HashMap::with_capacity(count / 4),
            names: Vec::with_capacity(count),
            scales: Vec::with_capacity(count),
            rows: &[],
            longest: 0,
        };
        for (at, (length, scale)) in (0..).zip(lengths.iter().zip(scales.chunks_exact(4))) {
            let (piece, rest) = file.split_at_checked(usize::from(*length))?;
            file = rest;
            let piece = std::str::from_utf8(piece).ok()?;
            table.longest = table.longest.max(piece.len());
            table.names.push(piece);
            table.scales.push(f32::from_le_bytes(scale.try_into().ok()?));
            match piece.strip_prefix(INSIDE) {
                Some(further) if !further.is_empty() => table.further.insert(further, at),
                _ => table.first.insert(piece, at),
            };
        }
        let (rows, over) = file.as_chunks();
        table.rows = rows;
        (rows.len() == count && over.is_empty()).then_some(table)
    }

    /// Calls `each` with the pieces of a word: again and again the longest there is. A word that is
    /// not made of known pieces has none.
    pub(crate) fn pieces(&self, word: &str, found: &mut Vec<Piece>) {
        found.clear();
        if word.chars().nth(MOST_CHARACTERS).is_some() {
            return;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let known = if rest.len() == word.len() { &self.first } else { &self.further };
            let Some((piece, length)) = self.longest_piece(rest, known) else {
                found.clear();
                return;
            };
            found.push(piece);
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    fn longest_piece(&self, rest: &str, known: &HashMap<&str, u32>) -> Option<(Piece, usize)> {
        let ends = (1..=rest.len().min(self.longest)).rev();
        let mut beginnings = ends.filter_map(|end| Some((rest.get(..end)?, end)));
        beginnings.find_map(|(text, end)| known.get(text).map(|piece| (Piece(*piece), end)))
    }

    /// Adds `weight` times the meaning of a piece to `sum`.
    pub(crate) fn add(&self, Piece(piece): Piece, weight: f32, sum: &mut [f32; DIMENSIONS]) {
        let at = piece as usize;
        if let (Some(row), Some(scale)) = (self.rows.get(at), self.scales.get(at)) {
            let scale = scale * weight;
            for (sum, number) in sum.iter_mut().zip(row) {
                *sum += scale * f32::from(number.cast_signed());
            }
        }
    }

    /// The text of a piece that can be a whole word.
    pub(crate) fn word(&self, Piece(piece): Piece) -> Option<&'static str> {
        self.names.get(piece as usize).copied().filter(|name| !name.starts_with(INSIDE))
    }

    /// How many pieces it knows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Identifies this table: the hash in its file.
    pub(crate) fn hash() -> &'static [u8] {
        FILE.get(MAGIC.len()..MAGIC.len() + HASH).unwrap_or_default()
    }
}

impl fmt::Debug for VectorTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Table").field("pieces", &self.len()).finish_non_exhaustive()
    }
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((usize::try_from(u32::from_le_bytes(*number)).ok()?, rest))
}

#[cfg(test)]
mod tests;
