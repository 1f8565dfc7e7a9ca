//! Faults and warnings of a file, each with its place and what to change.

use std::fmt;

use super::tree::Position;

/// The most faults that are reported; later ones are rarely new.
const MAX_REPORTED: usize = 100;

/// How many names are compared with an unknown one.
const CONSIDERED: usize = 1_000;

/// A fault that keeps a file from being read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileFault {
    /// The name of the file, as given to [`read`](super::read).
    pub file: String,
    /// Counted from 1; the first line of the fault.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The node or task with the fault, if it is in one.
    pub node: Option<String>,
    /// The fault in words, for the author of the file.
    pub message: String,
    /// The remedy for the author.
    pub help: Option<String>,
}

impl fmt::Display for FileFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if let Some(node) = &self.node {
            write!(out, "`{node}`: ")?;
        }
        out.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(out, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FileFault {}

/// Something that was read, though perhaps not as its author meant it. Displayed like a fault.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Warning(pub FileFault);

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Collects faults and warnings while a file is read.
#[derive(Debug)]
pub(super) struct Diagnostics<'f> {
    file: &'f str,
    node: Option<String>,
    faults: Vec<FileFault>,
    warnings: Vec<Warning>,
}

impl<'f> Diagnostics<'f> {
    pub(super) fn new(file: &'f str) -> Self {
        Self { file, node: None, faults: Vec::new(), warnings: Vec::new() }
    }

    /// Adds a fault and what to do about it; an empty `help` means none.
    pub(super) fn fault(
        &mut self,
        at: Position,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.faults.len() < MAX_REPORTED {
            let fault = self.note(at, message.into(), help.into());
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
    }

    /// Adds a warning and what to do about it; an empty `help` means none.
    pub(super) fn warn(
        &mut self,
        at: Position,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.warnings.len() < MAX_REPORTED {
            let warning = Warning(self.note(at, message.into(), help.into()));
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// Names the node or task for everything added while `work` runs.
    pub(super) fn about<T>(&mut self, node: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.node.replace(shortened(node));
        let done = work(self);
        self.node = before;
        done
    }

    /// Whether the list of faults is full: searching for similar names is then wasted.
    pub(super) fn full(&self) -> bool {
        self.faults.len() >= MAX_REPORTED
    }

    /// Whether there are faults.
    pub(super) fn any(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The faults and the warnings, each in the order of the file.
    pub(super) fn end(mut self) -> (Vec<FileFault>, Vec<Warning>) {
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
        self.warnings.sort_by_key(|warning| (warning.0.line, warning.0.column));
        (self.faults, self.warnings)
    }

    fn note(&self, at: Position, message: String, help: String) -> FileFault {
        FileFault {
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            node: self.node.clone(),
            message,
            help: (!help.is_empty()).then_some(help),
        }
    }
}

/// A name as messages show it: names in a file may be long.
pub(super) fn shortened(name: &str) -> String {
    if name.chars().count() <= 60 {
        return name.to_owned();
    }
    name.chars().take(57).chain("...".chars()).collect()
}

/// A "did you mean" with the nearest known name; empty when none is near.
pub(super) fn near<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let best = known
        .into_iter()
        .take(CONSIDERED)
        .filter_map(|other| distance(name, other).map(|far| (far, other)))
        .min_by_key(|(far, _)| *far);
    best.map(|(_, other)| format!("did you mean `{other}`?")).unwrap_or_default()
}

/// The number of characters that differ, when it is small enough for a typing error.
fn distance(left: &str, right: &str) -> Option<usize> {
    let plain = |name: &str| -> Vec<char> {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (short, long) = (left.len().min(right.len()), left.len().max(right.len()));
    if long > 64 || long - short > 3 + short / 4 {
        return None;
    }
    let (left, right) = (plain(left), plain(right));
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, one) in left.iter().enumerate() {
        let mut next = vec![line + 1];
        for (column, (other, pair)) in right.iter().zip(row.windows(2)).enumerate() {
            let (&[above_left, above], Some(&before)) = (pair, next.get(column)) else { continue };
            let changed = above_left + usize::from(one != other);
            next.push(changed.min(above + 1).min(before + 1));
        }
        row = next;
    }
    let allowed = (left.len().min(right.len()) / 4).max(1);
    row.last().copied().filter(|far| *far <= allowed && !left.is_empty())
}
