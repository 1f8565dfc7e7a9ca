//! The code a cell runs, in huge pages of its zygote's own.
//!
//! A clone does not inherit the page-table entries of a program's file: each cell maps those pages
//! again, in some seventy faults, and unmaps them when it ends. It does inherit huge pages of
//! anonymous memory, a few entries, so that a cell has its code mapped from the start.
//!
//! This is an optimisation only: where it is not possible, the code stays where it is.

use std::{fs, io, ops::Range};

use crate::sys::{memory::CodeCopy, process::assert_single_threaded};

/// More code than this is not copied. Behind the code of cells, a linker puts code that they do not run: the
/// proxy's cryptography, for example.
const MOST_BYTES: usize = 8 << 20;

/// Puts the code from this address on into huge pages, at most [`MOST_BYTES`] of it.
///
/// A linker puts the dependencies of a crate behind it: the code of cells begins with an engine's
/// own code, and the code before that belongs to the host.
pub(crate) fn gather_from(address: usize) -> io::Result<()> {
    assert_single_threaded()?;
    let Some(code) = OwnCode::from(address)? else { return Ok(()) };
    let (before, bytes) = (huge_bytes()?, code.bytes());
    let copy = CodeCopy::new(code)?;
    // Small pages would be worse than those of the file: their table is copied for every cell.
    if huge_bytes()?.saturating_sub(before) >= bytes {
        copy.take_the_place();
    }
    Ok(())
}

/// The range of the running program's code, in whole huge pages, as the kernel reports it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnCode {
    range: Range<usize>,
}

impl OwnCode {
    /// The size of a huge page; an ordinary one has 4 KiB.
    pub(crate) const HUGE_PAGE: usize = 2 << 20;

    /// `None` if there is too little to be worth it.
    fn from(address: usize) -> io::Result<Option<Self>> {
        Ok(Self::from_maps(&fs::read_to_string("/proc/self/maps")?, address))
    }

    fn from_maps(maps: &str, address: usize) -> Option<Self> {
        let own = maps.lines().find_map(|line| {
            let (range, access) = mapping(line)?;
            (range.contains(&address) && access.starts_with("r-x")).then_some(range)
        })?;
        let first = address - address % Self::HUGE_PAGE;
        let start = first.max(own.start.checked_next_multiple_of(Self::HUGE_PAGE)?);
        // Data may be in the same page as the end of the code.
        let end = (own.end - own.end % Self::HUGE_PAGE).min(start.checked_add(MOST_BYTES)?);
        (start < end).then_some(Self { range: start..end })
    }

    /// The address of its first byte.
    pub(crate) fn start(&self) -> usize {
        self.range.start
    }

    /// The length of the range.
    pub(crate) fn bytes(&self) -> usize {
        self.range.len()
    }
}

/// The range of a line of `/proc/PID/maps`, and the rest of the line, which begins with its access.
fn mapping(line: &str) -> Option<(Range<usize>, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(start)?..number(end)?, rest))
}

/// How much of this process is in huge pages.
fn huge_bytes() -> io::Result<usize> {
    let all = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = all.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests;
