//! What a run printed, cut by the reader.

use belljar_contract::{Limits, Stream, Truncation};
use std::{fmt::Debug, sync::Arc};

/// Hears what a run prints while it goes on: every print and log line, until the run has printed
/// more than it may.
pub trait Listener: Debug + Send + Sync {
    /// Must not wait. `text` is as the code printed it, in pieces that may end anywhere.
    fn printed(&self, stream: Stream, text: &[u8]);
}

/// No more log entries than this are kept, however small.
const MAX_LOG_ENTRIES: usize = 10_000;

/// Collects a run's output within its caps.
#[derive(Debug)]
pub(crate) struct Transcript {
    kept_bytes: usize,
    fatal_bytes: u64,
    stdout: Captured,
    stderr: Captured,
    logs: Vec<String>,
    log_bytes: usize,
    logs_cut: bool,
    log_seen: u64,
    listener: Option<Arc<dyn Listener>>,
}

#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    seen: u64,
}

/// A stream printed more than a run may print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchOutput {
    /// Which one, by name.
    pub(crate) stream: &'static str,
}

/// The texts of a finished run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) logs: Vec<String>,
    pub(crate) truncated: Truncation,
}

impl Transcript {
    pub(crate) fn new(limits: &Limits, listener: Option<Arc<dyn Listener>>) -> Self {
        Self {
            kept_bytes: usize::try_from(limits.output_bytes).unwrap_or(usize::MAX),
            fatal_bytes: limits.output_fatal_bytes(),
            stdout: Captured::default(),
            stderr: Captured::default(),
            logs: Vec::new(),
            log_bytes: 0,
            logs_cut: false,
            log_seen: 0,
            listener,
        }
    }

    /// Takes one print.
    pub(crate) fn print(&mut self, stream: Stream, text: &[u8]) -> Result<(), TooMuchOutput> {
        self.tell(stream, text);
        self.enter(text)?;
        let (captured, stream) = match stream {
            Stream::Stdout => (&mut self.stdout, "stdout"),
            Stream::Stderr => (&mut self.stderr, "stderr"),
            Stream::Log => return Ok(()),
        };
        captured.seen += text.len() as u64;
        let room = self.kept_bytes.saturating_sub(captured.bytes.len());
        captured.bytes.extend_from_slice(text.get(..room).unwrap_or(text));
        if captured.seen > self.fatal_bytes { Err(TooMuchOutput { stream }) } else { Ok(()) }
    }

    /// Adds a log entry that was not printed.
    pub(crate) fn log(&mut self, text: &[u8]) -> Result<(), TooMuchOutput> {
        self.tell(Stream::Log, text);
        self.enter(text)
    }

    fn tell(&self, stream: Stream, text: &[u8]) {
        if let Some(listener) = &self.listener {
            listener.printed(stream, text);
        }
    }

    /// An entry of the log counts as a byte at least, so that empty ones end too.
    fn enter(&mut self, text: &[u8]) -> Result<(), TooMuchOutput> {
        self.log_seen += text.len().max(1) as u64;
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let room = self.kept_bytes.saturating_sub(self.log_bytes);
        if text.len() > room || self.logs.len() >= MAX_LOG_ENTRIES {
            self.logs_cut = true;
        } else {
            self.log_bytes += text.len();
            self.logs.push(String::from_utf8_lossy(text).into_owned());
        }
        // Prints are log entries too: both streams may be full before this is.
        let fatal = self.fatal_bytes.saturating_mul(3);
        if self.log_seen > fatal { Err(TooMuchOutput { stream: "logs" }) } else { Ok(()) }
    }

    /// What there is to show.
    pub(crate) fn finish(self) -> Texts {
        let truncated = Truncation {
            stdout: self.stdout.is_cut(),
            stderr: self.stderr.is_cut(),
            logs: self.logs_cut,
            ..Truncation::default()
        };
        let (stdout, stderr) = (self.stdout.into_text(), self.stderr.into_text());
        Texts { stdout, stderr, logs: self.logs, truncated }
    }
}

impl Captured {
    fn is_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }

    /// A character cut in half at the cap is dropped; other bytes that are not UTF-8 are replaced.
    fn into_text(mut self) -> String {
        if self.is_cut() {
            let complete = match std::str::from_utf8(&self.bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => self.bytes.len(),
            };
            self.bytes.truncate(complete);
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests;
