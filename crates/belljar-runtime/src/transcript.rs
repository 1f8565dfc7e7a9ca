//! Collects what a run prints, within caps that the host enforces.

use std::{fmt::Debug, sync::Arc};

use belljar_contract::{Limits, Stream, Truncation, head_and_tail};
use tokio::sync::mpsc;

/// Receives what a run prints, as it prints: every print and log line, until the run has printed more than
/// it may.
pub trait Listener: Debug + Send + Sync {
    /// Must not block. `text` is what the code printed, in pieces that may end anywhere.
    fn printed(&self, stream: Stream, text: &[u8]);
}

/// The host keeps no more log entries than this, however small they are.
const MAX_LOG_ENTRIES: usize = 10_000;

/// An entry that does not fit is cut to its beginning and end, unless there is less room than this.
const MIN_CUT_ENTRY: usize = 512;

/// Collects a run's output within its caps.
#[derive(Debug)]
pub(crate) struct Transcript {
    kept_bytes: usize,
    fatal_bytes: u64,
    stdout: StreamCapture,
    stderr: StreamCapture,
    logs: Vec<String>,
    log_bytes: usize,
    logs_cut: bool,
    log_seen: u64,
    listener: Option<Arc<dyn Listener>>,
    /// Lines of the host that come while the run goes on.
    host_lines: Option<mpsc::UnboundedReceiver<String>>,
}

#[derive(Debug, Default)]
struct StreamCapture {
    bytes: Vec<u8>,
    seen: u64,
}

/// A stream went over what a run may print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchOutput {
    /// The name of the stream, for the error message.
    pub(crate) stream: &'static str,
}

/// The output of a run that has ended.
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
            stdout: StreamCapture::default(),
            stderr: StreamCapture::default(),
            logs: Vec::new(),
            log_bytes: 0,
            logs_cut: false,
            log_seen: 0,
            listener,
            host_lines: None,
        }
    }

    /// Adds one print of the code.
    pub(crate) fn print(&mut self, stream: Stream, text: &[u8]) -> Result<(), TooMuchOutput> {
        self.notify(stream, text);
        self.add_log_entry(text)?;
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

    /// Adds a log entry of the host.
    pub(crate) fn log(&mut self, text: &[u8]) -> Result<(), TooMuchOutput> {
        self.notify(Stream::Log, text);
        self.add_log_entry(text)
    }

    /// Also takes lines of the host from this channel.
    pub(crate) fn take_lines_of(&mut self, lines: mpsc::UnboundedReceiver<String>) {
        self.host_lines = Some(lines);
    }

    /// Waits for the next line of the host, and adds it.
    pub(crate) async fn log_host_line(&mut self) -> Result<(), TooMuchOutput> {
        let Some(lines) = &mut self.host_lines else { return std::future::pending().await };
        match lines.recv().await {
            Some(line) => self.log(line.as_bytes()),
            None => {
                self.host_lines = None;
                std::future::pending().await
            }
        }
    }

    /// Adds the lines of the host that have come and were not waited for. Too many of them end nothing: the
    /// run has ended.
    pub(crate) fn log_last_host_lines(&mut self) {
        let Some(mut lines) = self.host_lines.take() else { return };
        while let Ok(line) = lines.try_recv() {
            let _ = self.log(line.as_bytes());
        }
    }

    fn notify(&self, stream: Stream, text: &[u8]) {
        if let Some(listener) = &self.listener {
            listener.printed(stream, text);
        }
    }

    /// An entry counts as at least one byte, so that empty entries reach the limit too.
    fn add_log_entry(&mut self, text: &[u8]) -> Result<(), TooMuchOutput> {
        self.log_seen += text.len().max(1) as u64;
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let room = self.kept_bytes.saturating_sub(self.log_bytes);
        let is_long = text.len() > room;
        self.logs_cut |= is_long || self.logs.len() >= MAX_LOG_ENTRIES;
        if self.logs.len() < MAX_LOG_ENTRIES && !is_long {
            self.log_bytes += text.len();
            self.logs.push(String::from_utf8_lossy(text).into_owned());
        } else if self.logs.len() < MAX_LOG_ENTRIES && room >= MIN_CUT_ENTRY {
            // Half of the room: what is printed after a long line is worth as much as its middle.
            self.log_bytes += room / 2;
            self.logs.push(head_and_tail(&String::from_utf8_lossy(text), room / 2));
        }
        // Prints are log entries too, so the log holds what both streams may.
        let fatal = self.fatal_bytes.saturating_mul(3);
        if self.log_seen > fatal { Err(TooMuchOutput { stream: "logs" }) } else { Ok(()) }
    }

    /// Ends the collection and returns the texts.
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

impl StreamCapture {
    fn is_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }

    /// Drops a character that the cap cut in half, and replaces other bytes that are not UTF-8.
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
