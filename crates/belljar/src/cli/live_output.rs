//! Prints what guest code prints while it runs: standard output to standard output, standard error to
//! standard error.
//!
//! A thread of its own writes, so that neither a slow reader nor an open question holds up the run and its
//! limits. The run's output limit bounds what waits for the thread.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use belljar_contract::Stream;
use belljar_runtime::Listener;

use super::terminal::{
    progress,
    style::{TextRole, TextStyle},
    visible::for_stream,
};

/// How the log entries begin that a person sees while the run goes on: it may wait for what was blocked.
pub(crate) const BLOCKED: &str = "[blocked] ";

/// An entry of the log as a person sees it, with the end of its line.
pub(crate) fn log_line(entry: &str, style: TextStyle) -> String {
    let line = format!("log: {}", for_stream(entry, style));
    format!("{}\n", style.paint(TextRole::Dim, &line))
}

/// How much of a run's output a person has seen already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputState {
    /// Nothing: all of it is in the result.
    Unprinted,
    /// All of it. Says whether standard output ends with a whole line.
    Printed { ends_line: bool },
}

/// Prints the output of one run.
#[derive(Debug)]
pub(crate) struct LiveOutput {
    sender: mpsc::Sender<Message>,
    writer: Mutex<Option<JoinHandle<io::Result<bool>>>>,
}

#[derive(Debug)]
enum Message {
    Text(Stream, Vec<u8>),
    End,
}

impl LiveOutput {
    /// Starts the thread that writes.
    pub(crate) fn start() -> Arc<Self> {
        let (sender, received) = mpsc::channel();
        let writer = thread::spawn(move || write_all(&received));
        Arc::new(Self { sender, writer: Mutex::new(Some(writer)) })
    }

    /// Waits until everything is written; the run is over, so no question holds it back.
    ///
    /// # Errors
    /// If standard output or standard error cannot be written.
    pub(crate) fn finish(&self) -> io::Result<OutputState> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.sender.send(Message::End);
        progress::close_questions();
        let Some(writer) = writer else { return Ok(OutputState::Printed { ends_line: true }) };
        let written = writer.join();
        let ends_line = written.unwrap_or_else(|_| Err(io::Error::other("the writer ended")))?;
        Ok(OutputState::Printed { ends_line })
    }
}

impl Listener for LiveOutput {
    fn printed(&self, stream: Stream, text: &[u8]) {
        // Other log entries are shown with the result.
        if stream != Stream::Log || text.starts_with(BLOCKED.as_bytes()) {
            let _ = self.sender.send(Message::Text(stream, text.to_vec()));
        }
    }
}

/// Writes until the run ends; returns whether standard output ends with a whole line.
fn write_all(received: &mpsc::Receiver<Message>) -> io::Result<bool> {
    let mut out = StreamWriter::new(io::stdout(), TextStyle::of_stdout());
    let mut err = StreamWriter::new(io::stderr(), TextStyle::of_stderr());
    while let Ok(Message::Text(stream, text)) = received.recv() {
        match stream {
            Stream::Stdout => out.write(&text)?,
            Stream::Stderr => err.write(&text)?,
            Stream::Log => err.write_entry(&text)?,
        }
    }
    out.end()?;
    err.end()?;
    Ok(out.ends_line)
}

/// Writes pieces of text that may end in the middle of a character.
#[derive(Debug)]
struct StreamWriter<W> {
    to: W,
    style: TextStyle,
    /// The beginning of a character whose end has not come yet.
    rest: Vec<u8>,
    ends_line: bool,
}

impl<W: Write> StreamWriter<W> {
    fn new(to: W, style: TextStyle) -> Self {
        Self { to, style, rest: Vec::new(), ends_line: true }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.rest.extend_from_slice(text);
        let complete = complete_bytes(&self.rest);
        let rest = self.rest.split_off(complete);
        let text = std::mem::replace(&mut self.rest, rest);
        self.print(&text)
    }

    /// Writes an entry of the log on a line of its own.
    fn write_entry(&mut self, text: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(text);
        let line = log_line(text.trim_end_matches('\n'), self.style);
        let before = if self.ends_line { "" } else { "\n" };
        self.ends_line = true;
        let to = &mut self.to;
        progress::between_questions(false, || {
            to.write_all(format!("{before}{line}").as_bytes())?;
            to.flush()
        })
    }

    fn end(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.rest);
        self.print(&text)
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(last) = bytes.last() else { return Ok(()) };
        self.ends_line = *last == b'\n';
        let text = String::from_utf8_lossy(bytes);
        let text = for_stream(&text, self.style);
        let (to, is_terminal) = (&mut self.to, self.style.is_terminal());
        progress::between_questions(is_terminal && !self.ends_line, || {
            to.write_all(text.as_bytes())?;
            to.flush()
        })
    }
}

/// The number of bytes without a character that has only begun at the end.
fn complete_bytes(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let begun = bytes.iter().enumerate().skip(tail).rfind(|(_, byte)| **byte >= 0xC0);
    match begun {
        Some((at, first)) => {
            let length = match first {
                0xF0.. => 4,
                0xE0.. => 3,
                _ => 2,
            };
            if bytes.len() - at < length { at } else { bytes.len() }
        }
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_written_whole() {
        let mut writer = StreamWriter::new(Vec::new(), TextStyle::PLAIN);
        for byte in "aä€😀\n".as_bytes() {
            writer.write(&[*byte]).unwrap();
            assert!(std::str::from_utf8(&writer.to).is_ok());
        }
        assert!(writer.ends_line && writer.rest.is_empty());
        writer.write(&[b'x', 0xE2]).unwrap();
        assert!(!writer.ends_line);
        writer.end().unwrap();
        assert_eq!(String::from_utf8(writer.to).unwrap(), "aä€😀\nx\u{fffd}");
    }
}
