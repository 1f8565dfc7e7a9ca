//! What standard error said last, which is how bash tells why it ended.

use std::collections::VecDeque;

use super::launch::PREFIX;

/// As many lines are remembered.
const MAX_LINES: usize = 8;
/// As much of each.
const MAX_LINE_BYTES: usize = 600;

/// The last lines of standard error.
#[derive(Debug, Default)]
pub(super) struct Said {
    lines: VecDeque<String>,
}

/// A message of bash about a line of the code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint<'a> {
    pub(super) line: u32,
    pub(super) what: &'a str,
}

impl Said {
    /// Remembers a line.
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

    /// The last line.
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

/// A line of standard error as it would be if the code were a file: bash names the way the code
/// came in syntax errors, quotes the first line with our prefix, and calls the place of functions
/// that are in no file "environment".
pub(super) fn as_if_a_file(line: &[u8], file_name: &str) -> Option<Vec<u8>> {
    if let Some(rest) = line.strip_prefix(b"environment: ")
        && [&b"line "[..], b"fork: "].iter().any(|how| rest.starts_with(how))
    {
        return Some([file_name.as_bytes(), b": ", rest].concat());
    }
    let rest = line.strip_prefix(file_name.as_bytes())?.strip_prefix(b": ")?;
    let rest = rest.strip_prefix(b"-c: ").or_else(|| rest.strip_prefix(b"eval: "))?;
    let quoted = format!("`{PREFIX}");
    let rest = match rest.windows(quoted.len()).position(|part| part == quoted.as_bytes()) {
        Some(at) => {
            let (before, after) = rest.split_at(at);
            [before, b"`", after.get(quoted.len()..)?].concat()
        }
        None => rest.to_vec(),
    };
    Some([file_name.as_bytes(), b": ", &rest].concat())
}

#[cfg(test)]
mod tests;
