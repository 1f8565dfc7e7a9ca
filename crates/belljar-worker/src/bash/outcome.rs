//! From the end of a script to a value, or an error that says what to do.

use std::os::unix::process::ExitStatusExt;

use belljar_contract::{ErrorCode, Grant};
use belljar_wire::{GuestError, RunCommand, RunValue};

use super::{
    commands,
    json_line::LastLine,
    launch, paths,
    pump::ShellExit,
    refusals::RefusedCommand,
    stderr::{Complaint, complaint},
};
use crate::disk;

/// The statuses of a shell for a command that may not be executed, or does not exist.
const REFUSED: [i32; 2] = [126, NOT_FOUND];
const NOT_FOUND: i32 = 127;
/// bash ends with this when the code does not parse.
const UNPARSED: i32 = 2;
const NO_NETWORK: &str = "Only granted hosts can be reached, and only by programs that use a proxy, such \
    as curl. Or pass the data in with `context`.";
/// A shell reports a command that was killed by signal n as 128 + n.
const SIGNALLED: i32 = 128;

/// A run that has ended.
#[derive(Debug)]
pub(super) struct ShellOutcome<'a> {
    pub(super) run: &'a RunCommand,
    pub(super) ended: ShellExit,
}

impl ShellOutcome<'_> {
    /// The value of a script that ended with 0, and the error of any other.
    pub(super) fn conclude(self) -> Result<RunValue, GuestError> {
        let ShellExit { status, .. } = &self.ended;
        let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
        let code = match code.unwrap_or(-1) {
            // A script in a file would end with 1; `-c` makes this one exception.
            NOT_FOUND if self.is_expansion() => 1,
            code => code,
        };
        if code == 0 && !self.ended.is_overdue {
            return self.value();
        }
        if self.ended.is_overdue {
            let limit = self.run.limits.wall_ms;
            let message = format!("timed out: the run went over its {limit} ms of wall time");
            return Err(
                GuestError::new(ErrorCode::LimitTimeout, message).with_hint("Do less at a time.")
            );
        }
        let mut error = match status.signal() {
            Some(signal) => {
                let message = format!("bash was killed by {}", signal_name(signal));
                self.limit().unwrap_or_else(|| GuestError::new(ErrorCode::RuntimeExit, message))
            }
            None => self.explain(code),
        };
        error.exit_code = Some(code);
        Err(error)
    }

    /// An expansion ended the script: `set -u`, or `${x:?}`.
    fn is_expansion(&self) -> bool {
        let about_commands = ["not found", "No such file or directory", "not granted"];
        let last = self.ended.tail.last();
        last.and_then(|last| complaint(last, &self.run.file_name))
            .is_some_and(|said| !about_commands.iter().any(|words| said.what.contains(words)))
    }

    fn value(self) -> Result<RunValue, GuestError> {
        let value = match self.ended.last_line {
            LastLine::Json(value) => value,
            LastLine::Text => b"null".to_vec(),
            LastLine::TooLarge => {
                let limit = self.run.limits.result_bytes;
                let message = format!("the value is larger than {limit} bytes of JSON");
                return Err(GuestError::new(ErrorCode::LimitResult, message)
                    .with_hint("Print a summary as the last line: filter, count, or use head."));
            }
        };
        Ok(RunValue { lossy: false, cut: false, value })
    }

    fn explain(&self, code: i32) -> GuestError {
        self.syntax(code)
            .or_else(|| self.refused(code))
            .or_else(|| self.network())
            .or_else(|| self.limit())
            .unwrap_or_else(|| self.exited(code))
    }

    /// The code does not parse.
    fn syntax(&self, code: i32) -> Option<GuestError> {
        if code != UNPARSED {
            return None;
        }
        let file_name = &self.run.file_name;
        let Complaint { line, what } = self.ended.tail.recent().find_map(|text| {
            complaint(text, file_name).filter(|complaint| {
                complaint.what.starts_with("syntax error")
                    || complaint.what.starts_with("unexpected EOF while looking for")
            })
        })?;
        let mut error = GuestError::new(ErrorCode::SyntaxInvalid, format!("SyntaxError: {what}"));
        // A part that is missing at the end is missing on a line after the last.
        let last = u32::try_from(self.run.code.lines().count()).unwrap_or(u32::MAX);
        error.line = Some(line.min(last.max(1)));
        if what.contains("end of file") || what.contains("EOF") {
            let hint = "Something is not closed: check quotes, parentheses, fi, done, esac and }.";
            error = error.with_hint(hint);
        }
        Some(error)
    }

    /// The code ended with a command that was refused.
    fn refused(&self, code: i32) -> Option<GuestError> {
        let RefusedCommand { name, .. } =
            self.ended.refusals.last().filter(|_| REFUSED.contains(&code))?;
        let message = format!("PermissionError: command {name} is not granted");
        let error = self.placed(GuestError::new(ErrorCode::PermissionCommand, message));
        Some(match name.rsplit_once('/') {
            Some(("/bin" | "/sbin" | "/usr/bin" | "/usr/sbin" | "/usr/local/bin", name)) => {
                commands::with_hint(error, "", name)
            }
            Some(_) => error.with_hint(format!(
                "Files cannot be executed directly. Run a script with: bash {name}"
            )),
            None => commands::with_hint(error, "", name),
        })
    }

    /// The code ended over bash's own way to the network.
    fn network(&self) -> Option<GuestError> {
        let device = self.ended.tail.recent().find_map(paths::network_device)?;
        let message = format!("PermissionError: {device} needs the network");
        let error = GuestError::new(ErrorCode::PermissionNetwork, message);
        Some(self.placed(error).with_hint(NO_NETWORK))
    }

    /// The limit that the last messages of the script are about.
    fn limit(&self) -> Option<GuestError> {
        let said = |words: &[&str]| {
            self.ended.tail.recent().any(|line| words.iter().any(|word| line.contains(word)))
        };
        let error = if said(&["fork: Resource temporarily", "fork: retry", "Cannot fork"]) {
            launch::too_many_processes(self.run)
        } else if said(&[
            "No space left on device",
            "Disk quota exceeded",
            "File size limit",
            "File too large",
        ]) {
            let limit = disk::exhausted_limit();
            let is_table = limit == ErrorCode::LimitInodes;
            let message =
                if is_table { "the limit on files is reached" } else { "the disk is full" };
            GuestError::new(limit, message)
                .with_hint("Write less, or delete files that are no longer needed.")
        } else if said(&["Too many open files"]) || self.is_descriptor_beyond_limit() {
            GuestError::new(ErrorCode::LimitOpenFiles, "too many open files")
                .with_hint("Close descriptors that are no longer needed: exec 3>&-")
        } else if said(&["Cannot allocate memory", "memory exhausted", "cannot allocate"]) {
            let mib = self.run.limits.memory_bytes >> 20;
            GuestError::new(
                ErrorCode::LimitMemory,
                format!("out of memory: the limit is {mib} MiB"),
            )
            .with_hint("Process the data in smaller pieces.")
        } else {
            return None;
        };
        Some(self.placed(error))
    }

    /// bash was asked for a descriptor whose number there cannot be: `exec 300>file`.
    fn is_descriptor_beyond_limit(&self) -> bool {
        let complaint =
            self.ended.tail.last().and_then(|last| complaint(last, &self.run.file_name));
        let number = complaint.and_then(|said| said.what.strip_suffix(": Bad file descriptor"));
        number.and_then(|number| number.parse().ok()) >= Some(self.run.limits.open_files)
    }

    /// The error for any other exit status.
    fn exited(&self, code: i32) -> GuestError {
        let mut message = format!("bash exited with status {code}");
        if let Some(signal) = code.checked_sub(SIGNALLED).filter(|signal| (1..=64).contains(signal))
        {
            message.push_str(&format!(" (a command was killed by {})", signal_name(signal)));
        }
        if let Some(last) = self.ended.tail.last() {
            message.push_str(&format!(": {last}"));
        }
        self.with_hint(self.placed(GuestError::new(ErrorCode::RuntimeExit, message)), code)
    }

    fn with_hint(&self, error: GuestError, code: i32) -> GuestError {
        let last = self.ended.tail.last().unwrap_or_default();
        let error = match paths::missing(last) {
            Some(path) => self.with_hint_for_missing(error, path),
            None => error,
        };
        if error.hint.is_some() {
            return error;
        }
        let denied =
            [": Permission denied", ": Read-only file system", ": Operation not permitted"];
        if denied.iter().any(|words| last.ends_with(words)) {
            let hint = "Files can be read and written in /work and /tmp, other paths only as far as \
                they are granted.";
            return error.with_hint(hint);
        }
        if let Some(RefusedCommand { name, .. }) = self.ended.refusals.last() {
            return commands::with_hint(error, &format!("{name} was refused earlier. "), name);
        }
        if code == NOT_FOUND {
            return error.with_hint("The command does not exist here, or was not granted.");
        }
        error
    }

    /// Adds a hint about a path that does not exist.
    fn with_hint_for_missing(&self, error: GuestError, path: &str) -> GuestError {
        let granted = &self.run.grants.paths;
        if paths::is_outside(path, granted) {
            let hint = "Only /work, /tmp and granted paths exist here.";
            return error.with_hint(hint).with_missing(Grant::Read, path);
        }
        if let Some(found) = paths::granted_at(path, granted) {
            return error.with_hint(format!("It is granted under its host path: {found}"));
        }
        if path.starts_with("/tmp/") {
            let hint = "/tmp belongs to this run, not to the host.";
            return error.with_hint(hint).with_missing(Grant::Read, path);
        }
        error
    }

    /// With the line the last message is about.
    fn placed(&self, mut error: GuestError) -> GuestError {
        let last = self.ended.tail.last();
        let complaint = last.and_then(|last| complaint(last, &self.run.file_name));
        error.line = complaint.map(|complaint| complaint.line);
        error
    }
}

/// Signals a script is likely to meet, by name.
fn signal_name(number: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (10, "SIGUSR1"),
        (11, "SIGSEGV"),
        (12, "SIGUSR2"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
