//! Bytes of a stream, as prints of one line each.

/// A line longer than this is printed in pieces.
const MAX_PRINT_BYTES: usize = 64 << 10;
/// The host keeps no more log entries than this: further lines may as well share a print.
const MAX_SINGLE_LINES: usize = 10_000;

/// Puts the lines of one stream together.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    pending: Vec<u8>,
    single: usize,
}

impl LineBuffer {
    /// Takes the bytes that were read and gives printable pieces, one after the other.
    pub(super) fn push<E>(
        &mut self,
        bytes: &[u8],
        mut print: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(piece) = rest.split_inclusive(|byte| *byte == b'\n').next() {
            if self.single >= MAX_SINGLE_LINES {
                self.flush(&mut print)?;
                return pieces(rest).try_for_each(print);
            }
            rest = rest.get(piece.len()..).unwrap_or_default();
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.single += 1;
                self.flush(&mut print)?;
            }
            while self.pending.len() >= MAX_PRINT_BYTES {
                let later =
                    self.pending.split_off(whole_characters(&self.pending, MAX_PRINT_BYTES));
                print(&self.pending)?;
                self.pending = later;
            }
        }
        Ok(())
    }

    /// Prints the beginning of a line without waiting for its end.
    pub(super) fn flush<E>(
        &mut self,
        mut print: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in pieces(&self.pending) {
            print(piece)?;
        }
        self.pending.clear();
        Ok(())
    }

    /// Whether the beginning of a line waits for its end.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// A line and its predecessors may together be a little longer than a print.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = whole_characters(bytes, MAX_PRINT_BYTES);
        let (piece, rest) = bytes.split_at_checked(end)?;
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// At most `max` bytes, without half a character at the end.
fn whole_characters(bytes: &[u8], max: usize) -> usize {
    if bytes.len() <= max {
        return bytes.len();
    }
    let is_inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    // A rest longer than a character is not UTF-8, and may be cut anywhere.
    let begin = (max.saturating_sub(3)..=max).rev().find(|at| !is_inside(at));
    begin.filter(|at| *at > 0).unwrap_or(max)
}

#[cfg(test)]
mod tests;
