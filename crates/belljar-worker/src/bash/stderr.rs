//! The last lines of standard error, where bash says why it ended.

use std::collections::VecDeque;

use belljar_wire::RunCommand;

use super::{
    launch::{PREFIX, SESSION_PREFIX},
    state::EARLIER_LINES,
};

/// The most lines that are kept.
const MAX_LINES: usize = 8;
/// The most bytes of each line that are kept.
const MAX_LINE_BYTES: usize = 600;

/// The last lines of standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail {
    lines: VecDeque<String>,
}

/// A message of bash about a line of the code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint<'a> {
    pub(super) line: u32,
    pub(super) what: &'a str,
}

impl StderrTail {
    /// Adds a line; the oldest one is dropped when there are too many.
    pub(super) fn push(&mut self, line: &[u8]) {
        let line = line.trim_ascii_end();
        let kept = line.get(..MAX_LINE_BYTES).unwrap_or(line);
        if kept.is_empty() {
            return;
        }
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(String::from_utf8_lossy(kept).into_owned());
    }

    /// The last line that is not blank.
    pub(super) fn last(&self) -> Option<&str> {
        self.lines.back().map(String::as_str)
    }

    /// The last few lines, the last one first.
    pub(super) fn recent(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().rev().take(3).map(String::as_str)
    }
}

/// `main.sh: line 3: what`.
pub(super) fn complaint<'a>(text: &'a str, file_name: &str) -> Option<Complaint<'a>> {
    let rest = text.strip_prefix(file_name)?.strip_prefix(": line ")?;
    let (line, what) = rest.split_once(": ")?;
    Some(Complaint { line: line.parse().ok()?, what })
}

/// Rewrites bash's messages so that they refer to the agent's code.
#[derive(Debug, Clone, Copy)]
pub(super) struct StderrRewriter<'a> {
    pub(super) file_name: &'a str,
    /// Lines from here on are of what earlier runs of the session have left.
    pub(super) earlier: Option<u32>,
    /// Paths of the host that were granted.
    pub(super) granted: &'a [String],
}

impl<'a> StderrRewriter<'a> {
    pub(super) fn new(run: &'a RunCommand) -> Self {
        let earlier = run.session.then_some(EARLIER_LINES);
        Self { file_name: &run.file_name, earlier, granted: &run.grants.paths }
    }

    /// A line of standard error as it would be if the code were a file: bash names the way the code
    /// came in syntax errors, quotes the first line with our prefix, and calls the place of
    /// functions that are in no file "environment".
    pub(super) fn as_if_a_file(&self, line: &[u8]) -> Option<Vec<u8>> {
        let name = self.file_name.as_bytes();
        if let Some(rest) = line.strip_prefix(b"environment: ")
            && [&b"line "[..], b"fork: "].iter().any(|how| rest.starts_with(how))
        {
            let rest = self.without_earlier_line(rest).unwrap_or(rest);
            return Some([name, b": ", rest].concat());
        }
        let rest = line.strip_prefix(name)?.strip_prefix(b": ")?;
        if let Some(what) = self.without_earlier_line(rest) {
            return Some([name, b": ", what].concat());
        }
        let rest = rest.strip_prefix(b"-c: ").or_else(|| rest.strip_prefix(b"eval: "))?;
        let mut rest = rest.to_vec();
        for prefix in [SESSION_PREFIX, PREFIX] {
            let quoted = format!("`{prefix}");
            let found = rest.windows(quoted.len()).position(|part| part == quoted.as_bytes());
            if let Some(at) = found {
                rest.splice(at + 1..at + quoted.len(), []);
            }
        }
        Some([name, b": ", &rest].concat())
    }

    /// `line 10003: what` without the line, if it is one of an earlier run's text.
    fn without_earlier_line<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let rest = text.strip_prefix(b"line ")?;
        let colon = rest.iter().position(|byte| *byte == b':')?;
        let (line, what) = rest.split_at_checked(colon)?;
        let line: u32 = str::from_utf8(line).ok()?.parse().ok()?;
        if line > self.earlier? { what.get(2..) } else { None }
    }
}

#[cfg(test)]
mod tests;
