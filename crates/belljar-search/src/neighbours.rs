//! Words of like meaning: for a word of the table, the few that are nearest to it.
//!
//! `scripts/distill` computes the lists from the table and writes them beside it. A question is
//! searched by its own words and, with less weight, by their neighbours; tools are not.

use std::sync::OnceLock;

use crate::table::{Piece, VectorTable};

/// A `static` for the same reason as the table.
static FILE: &[u8] = include_bytes!("../table/neighbours.bin");
const MAGIC: &[u8; 8] = b"BJNEARS1";
/// After the magic come the hash of the table that the lists belong to and that of what follows.
const HASH: usize = 32;

/// The neighbours of every piece.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// For each piece, where its list ends; it begins where the list before ends.
    ends: Vec<u32>,
    /// All lists: numbers of pieces.
    lists: &'static [[u8; 2]],
}

impl Neighbours {
    /// The lists of this program. The first call parses them.
    pub(crate) fn get() -> &'static Self {
        static NEIGHBOURS: OnceLock<Neighbours> = OnceLock::new();
        NEIGHBOURS.get_or_init(|| {
            Self::read(FILE).unwrap_or_else(|| Self { ends: Vec::new(), lists: &[] })
        })
    }

    fn read(file: &'static [u8]) -> Option<Self> {
        let file = file.strip_prefix(MAGIC)?.strip_prefix(VectorTable::hash())?.get(HASH..)?;
        let (lengths, lists) = file.split_at_checked(VectorTable::get().len())?;
        let (lists, over) = lists.as_chunks();
        let ends: Vec<u32> = lengths
            .iter()
            .scan(0, |end, length| {
                *end += u32::from(*length);
                Some(*end)
            })
            .collect();
        let is_whole = ends.last().is_some_and(|end| *end as usize == lists.len());
        (is_whole && over.is_empty()).then_some(Self { ends, lists })
    }

    /// The neighbours of a piece, the nearest first.
    pub(crate) fn of(&self, Piece(piece): Piece) -> impl Iterator<Item = Piece> {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let at = piece as usize;
        let begin = at.checked_sub(1).map_or(0, end);
        let list = self.lists.get(begin..end(at)).unwrap_or_default();
        list.iter().map(|number| Piece(u16::from_le_bytes(*number).into()))
    }
}

#[cfg(test)]
mod tests;
