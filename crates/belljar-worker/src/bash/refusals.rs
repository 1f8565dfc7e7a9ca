//! Commands that were refused: reported by the handler through its descriptor, or, where another
//! program than bash looked for the command (`xargs rm`, `exec rm`, `/usr/bin/rm`), read from that
//! program's message.
//!
//! The code could write to that descriptor too, but that only adds a false line to its own log.

use std::path::Path;

use super::{
    commands::{DIRECTORIES, is_known},
    paths,
    stderr::{StderrRewriter, complaint},
};

/// No more attempts are reported to the host.
const MAX_REPORTED: usize = 100;
/// The most the handler may write without a NUL before it is dropped.
const MAX_UNREAD_BYTES: usize = 4096;

/// One command that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedCommand {
    /// The command's name or path.
    pub(super) name: String,
    /// The whole attempt, as far as it is known.
    pub(super) attempt: String,
}

/// The refusals so far.
#[derive(Debug, Default)]
pub(super) struct RefusedCommands {
    unread: Vec<u8>,
    reported: usize,
    last: Option<RefusedCommand>,
}

impl RefusedCommands {
    /// Takes the bytes that the handler wrote; returns the attempts to report to the host.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        self.unread.extend_from_slice(bytes);
        let mut attempts = Vec::new();
        while let Some((name, attempt, length)) = first_record(&self.unread) {
            attempts.extend(self.note(RefusedCommand { name, attempt }));
            self.unread.drain(..length);
        }
        if self.unread.len() > MAX_UNREAD_BYTES {
            self.unread.clear();
        }
        attempts
    }

    /// Returns the attempt that a line of standard error is about, if it is about a refused
    /// command, a path that was not granted or the network.
    pub(super) fn scan_line(
        &mut self,
        line: &[u8],
        rewriter: &StderrRewriter<'_>,
    ) -> Option<String> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if let Some(name) = refused_in(line, rewriter.file_name) {
            return self.note(RefusedCommand { attempt: name.clone(), name });
        }
        let attempt = paths::attempt(line, rewriter.granted)?;
        self.reported += 1;
        (self.reported <= MAX_REPORTED).then_some(attempt)
    }

    /// The last command that was refused.
    pub(super) fn last(&self) -> Option<&RefusedCommand> {
        self.last.as_ref()
    }

    fn note(&mut self, refusal: RefusedCommand) -> Option<String> {
        self.reported += 1;
        let attempt = (self.reported <= MAX_REPORTED).then(|| refusal.attempt.clone());
        self.last = Some(refusal);
        attempt
    }
}

/// Two texts that end in NUL, and how many bytes they take.
fn first_record(bytes: &[u8]) -> Option<(String, String, usize)> {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let (name, attempt, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(name), text(attempt), bytes.len() - rest.len()))
}

/// The messages of programs about a command that does not exist: the text before and after its
/// name.
const TELLERS: &[(&str, &str)] = &[
    ("xargs: ", ": No such file or directory"),
    ("xargs: ", ": Permission denied"),
    ("find: ", ": No such file or directory"),
    ("env: ", ": No such file or directory"),
    ("env: ", ": Permission denied"),
    ("timeout: failed to run command ", ": No such file or directory"),
    ("timeout: failed to run command ", ": Permission denied"),
    ("nice: ", ": No such file or directory"),
    ("nohup: failed to run command ", ": No such file or directory"),
    ("stdbuf: failed to run command ", ": No such file or directory"),
    ("exec: ", ": not found"),
    ("bash: line 1: ", ": command not found"),
    ("bash: ", ": command not found"),
    ("sh: 1: ", ": not found"),
];

/// The command that a line says was not found or not allowed.
fn refused_in(line: &str, file_name: &str) -> Option<String> {
    let what = complaint(line, file_name).map(|complaint| complaint.what);
    let said = what.unwrap_or(line);
    let by_teller = |(who, how): &(&str, &str)| said.strip_prefix(*who)?.strip_suffix(*how);
    if let Some(name) = TELLERS.iter().find_map(by_teller) {
        let name = name.trim_matches(['‘', '’', '\'', '`', '"']);
        return is_refused(name).then(|| name.to_owned());
    }
    let path = what?.strip_suffix(": Permission denied").or_else(|| {
        let path = what?.strip_suffix(": No such file or directory")?;
        in_a_directory_of_commands(path).then_some(path)
    })?;
    path.contains('/').then(|| path.to_owned())
}

fn is_refused(name: &str) -> bool {
    if name.contains('/') {
        return in_a_directory_of_commands(name);
    }
    let exists = || DIRECTORIES.iter().any(|at| Path::new(at).join(name).exists());
    !name.is_empty() && (is_known(name) || exists())
}

fn in_a_directory_of_commands(path: &str) -> bool {
    let parent = Path::new(path).parent();
    parent.is_some_and(|parent| DIRECTORIES.iter().any(|at| Path::new(at) == parent))
}

#[cfg(test)]
mod tests;
