//! The last line of standard output, which is the value when it is JSON.

/// Keeps the last line that is not blank, up to a size.
#[derive(Debug)]
pub(super) struct JsonLine {
    max: usize,
    current: Vec<u8>,
    last: Vec<u8>,
}

/// The kind of the last line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LastLine {
    /// JSON, as it was printed.
    Json(Vec<u8>),
    /// It looks like JSON, but is larger than a value may be.
    TooLarge,
    /// Some text, or nothing at all.
    Text,
}

impl JsonLine {
    /// For values of at most this size.
    pub(super) fn new(max: usize) -> Self {
        Self { max, current: Vec::new(), last: Vec::new() }
    }

    /// Takes the bytes that were read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // One byte too many is enough to know.
            let room = self.max.saturating_add(1).saturating_sub(self.current.len());
            let line = piece.strip_suffix(b"\n").unwrap_or(piece);
            self.current.extend_from_slice(line.get(..room).unwrap_or(line));
            if piece.len() > line.len() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if !self.current.trim_ascii().is_empty() {
            std::mem::swap(&mut self.current, &mut self.last);
        }
        self.current.clear();
    }

    /// Classifies the last line, once all output is read.
    pub(super) fn finish(mut self) -> LastLine {
        self.end_line();
        if self.last.len() > self.max {
            let looks_so = matches!(self.last.trim_ascii_start(), [b'{' | b'[' | b'"', ..]);
            return if looks_so { LastLine::TooLarge } else { LastLine::Text };
        }
        let line = self.last.trim_ascii();
        match serde_json::from_slice::<serde_json::Value>(line) {
            Ok(_) => LastLine::Json(line.to_vec()),
            Err(_) => LastLine::Text,
        }
    }
}

#[cfg(test)]
mod tests;
