//! The value of a script: its whole standard output when that is one JSON text, as `jq` prints it, or
//! else the last line when that is JSON.

/// Keeps the last line that is not blank, and all lines as long as they may be one JSON text, up to a
/// size.
#[derive(Debug)]
pub(super) struct JsonLine {
    max: usize,
    current: Vec<u8>,
    last: Vec<u8>,
    /// `None` once it is too large, or begins as no array and no object does.
    whole: Option<Vec<u8>>,
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
        Self { max, current: Vec::new(), last: Vec::new(), whole: Some(Vec::new()) }
    }

    /// Takes the bytes that were read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.keep_whole(bytes);
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

    fn keep_whole(&mut self, bytes: &[u8]) {
        let Some(whole) = &mut self.whole else { return };
        whole.extend_from_slice(bytes);
        let may_be = matches!(whole.trim_ascii_start(), [] | [b'{' | b'[', ..]);
        if !may_be || whole.len() > self.max {
            self.whole = None;
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
        let whole =
            self.whole.as_deref().map(<[u8]>::trim_ascii).filter(|all| all.contains(&b'\n'));
        if let Some(value) = whole.filter(|all| is_json(all)) {
            return LastLine::Json(compact(value));
        }
        if self.last.len() > self.max {
            let looks_so = matches!(self.last.trim_ascii_start(), [b'{' | b'[' | b'"', ..]);
            return if looks_so { LastLine::TooLarge } else { LastLine::Text };
        }
        let line = self.last.trim_ascii();
        if is_json(line) { LastLine::Json(line.to_vec()) } else { LastLine::Text }
    }
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(text).is_ok()
}

/// The same JSON without the space between its parts.
fn compact(json: &[u8]) -> Vec<u8> {
    let (mut in_text, mut is_escaped) = (false, false);
    let mut kept = Vec::with_capacity(json.len());
    for &byte in json {
        if in_text || !byte.is_ascii_whitespace() {
            kept.push(byte);
        }
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = in_text && byte == b'\\' && !is_escaped;
        in_text ^= is_end;
    }
    kept
}

#[cfg(test)]
mod tests;
