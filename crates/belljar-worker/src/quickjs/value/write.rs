//! JSON as bytes, up to a limit.

use std::io::Write as _;

use super::EncodeError;

/// Writes JSON and stops at the limit.
#[derive(Debug)]
pub(super) struct JsonWriter {
    out: Vec<u8>,
    max_bytes: usize,
    lossy: bool,
}

impl JsonWriter {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { out: Vec::new(), max_bytes, lossy: false }
    }

    /// The bytes, and whether something is not in them as it was.
    pub(super) fn finish(self) -> (Vec<u8>, bool) {
        (self.out, self.lossy)
    }

    /// Notes that something is not in the output as it was.
    pub(super) fn note_loss(&mut self, lossy: bool) {
        self.lossy |= lossy;
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// The bytes that were written after this many.
    pub(super) fn since(&self, start: usize) -> &[u8] {
        self.out.get(start..).unwrap_or_default()
    }

    /// Removes the bytes that were written after this many.
    pub(super) fn cut(&mut self, length: usize) {
        self.out.truncate(length);
    }

    /// Writes bytes that are JSON already.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.room(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn boolean(&mut self, value: bool) -> Result<(), EncodeError> {
        self.raw(if value { b"true" } else { b"false" })
    }

    pub(super) fn integer(&mut self, value: i32) -> Result<(), EncodeError> {
        self.room(11)?;
        // Writing to a vector does not fail.
        let _ = write!(self.out, "{value}");
        Ok(())
    }

    /// Writes a number as JavaScript does; NaN and infinities become null.
    pub(super) fn float(&mut self, value: f64) -> Result<(), EncodeError> {
        if !value.is_finite() {
            self.lossy = true;
            return self.raw(b"null");
        }
        if value == 0.0 {
            return self.raw(b"0");
        }
        self.room(25)?;
        // Both forms have the shortest digits that give the number back.
        let _ = match value.abs() {
            1e-6..1e21 => write!(self.out, "{value}"),
            _ => write!(self.out, "{value:e}"),
        };
        Ok(())
    }

    pub(super) fn string(&mut self, text: &str) -> Result<(), EncodeError> {
        self.room(text.len() + 2)?;
        self.out.push(b'"');
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(|byte| needs_escape(*byte)) {
            let (before, after) = rest.split_at(at);
            self.out.extend_from_slice(before);
            let Some((byte, after)) = after.split_first() else { break };
            self.escape(*byte)?;
            rest = after;
        }
        self.out.extend_from_slice(rest);
        self.raw(b"\"")
    }

    fn escape(&mut self, byte: u8) -> Result<(), EncodeError> {
        match byte {
            b'"' => self.raw(b"\\\""),
            b'\\' => self.raw(b"\\\\"),
            b'\n' => self.raw(b"\\n"),
            b'\r' => self.raw(b"\\r"),
            b'\t' => self.raw(b"\\t"),
            _ => {
                self.room(6)?;
                let _ = write!(self.out, "\\u{byte:04x}");
                Ok(())
            }
        }
    }

    fn room(&self, bytes: usize) -> Result<(), EncodeError> {
        match self.out.len().saturating_add(bytes) > self.max_bytes {
            true => Err(EncodeError::TooLarge),
            false => Ok(()),
        }
    }
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}
