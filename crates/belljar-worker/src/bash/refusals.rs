//! Commands that were refused: told by the handler through its descriptor, or, where bash was not
//! the one who looked for the command (`xargs rm`, `exec rm`, `/usr/bin/rm`), read from what was
//! said about it.
//!
//! The code could write to that descriptor too. All it wins is a false line in the log.

use std::path::Path;

use super::{
    commands::{DIRECTORIES, refusal_of},
    paths,
    stderr::{StderrRewriter, complaint},
};

/// The host need not hear of more.
const MAX_REPORTED: usize = 100;
/// What the handler may write without a NUL before it is forgotten.
const MAX_UNREAD_BYTES: usize = 4096;

/// One command that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedCommand {
    /// The command's name or path.
    pub(super) name: String,
    /// The whole attempt, as far as it is known.
    pub(super) attempt: String,
}

/// What was refused so far.
#[derive(Debug, Default)]
pub(super) struct RefusedCommands {
    unread: Vec<u8>,
    reported: usize,
    last: Option<RefusedCommand>,
}

impl RefusedCommands {
    /// Takes what the handler wrote; gives what the host is to hear of.
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

    /// Looks whether a line of standard error tells of a refusal, or of something that was reached
    /// for in vain.
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

/// Who says of a command that it is not there, and in which words.
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

/// The command a line says was not found or not allowed.
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
    !name.is_empty() && (refusal_of(name).is_some() || exists())
}

fn in_a_directory_of_commands(path: &str) -> bool {
    let parent = Path::new(path).parent();
    parent.is_some_and(|parent| DIRECTORIES.iter().any(|at| Path::new(at) == parent))
}

#[cfg(test)]
mod tests;
