//! The state that a shell hands to the next one of its session: text that bash writes and reads.
//!
//! No process lives between two runs. At the end of each, however the script ends, the shell
//! writes its options, variables, functions and aliases to a descriptor (`save.sh`); the next one
//! evaluates them before its code. A shell that is replaced (`exec`) or killed writes nothing, and
//! what was there before it stays.

use std::fmt::Write as _;

use belljar_contract::ErrorCode;
use belljar_wire::{GuestError, RunCommand};

use super::commands;

/// The most that is kept; the kernel takes arguments of two megabytes in all.
pub(super) const MAX_STATE_BYTES: usize = 1 << 20;
/// An argument may have 128 KiB.
const ARGUMENT_BYTES: usize = 100 << 10;
/// Functions of earlier runs are parsed on lines from here on, so that what bash says about their
/// lines is not taken for lines of the code.
pub(super) const EARLIER_LINES: u32 = 10_000;
/// The code that the shell runs when it ends.
const SAVE: &str = include_str!("save.sh");
/// Options that would keep the next shell from running anything, or are not the script's to set.
const NOT_KEPT: [&str; 4] = ["noexec", "onecmd", "privileged", "history"];
/// Variables every run is given.
const GIVEN: [&str; 7] = ["HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "LC_CTYPE", "PATH"];

/// The state at the end of one run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ShellState {
    options: String,
    switches: String,
    variables: String,
    functions: String,
    others: String,
    /// Processes it started in the background, each perhaps with a group of its own.
    jobs: Vec<i32>,
}

/// Descriptors a shell of a session writes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShellDescriptors {
    pub(super) refused: i32,
    pub(super) state: i32,
}

impl ShellState {
    /// Reads the output of a shell: the last whole record, if there is one.
    pub(super) fn read(written: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(written);
        let (whole, _) = text.rsplit_once('\0')?;
        let sections: Vec<&str> = whole.split('\0').collect();
        let last = sections.chunks_exact(6).next_back()?;
        let [options, switches, variables, functions, others, jobs] = *last else { return None };
        let [options, switches, variables, functions, others] =
            [options, switches, variables, functions, others].map(str::to_owned);
        let jobs = jobs.lines().filter_map(|line| line.trim().parse().ok()).collect();
        Some(Self { options, switches, variables, functions, others, jobs })
    }

    /// Processes the shell has left in the background.
    pub(super) fn jobs(&self) -> &[i32] {
        &self.jobs
    }

    /// The text that the next shell evaluates before its code, in pieces that fit an argument each.
    pub(super) fn arguments(&self, run: &RunCommand, descriptors: ShellDescriptors) -> Vec<String> {
        let text = self.prologue(run, descriptors);
        let mut rest = text.as_str();
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(ARGUMENT_BYTES));
            pieces.push(piece.to_owned());
            rest = after;
        }
        pieces
    }

    fn prologue(&self, run: &RunCommand, descriptors: ShellDescriptors) -> String {
        let granted: Vec<&str> =
            run.grants.env.keys().map(String::as_str).filter(|name| is_name(name)).collect();
        let given = [&GIVEN[..], &granted[..]].concat().join(" ");
        let granted = granted.join(" ");
        let is_kept = |line: &&str| !NOT_KEPT.iter().any(|option| line.ends_with(option));
        let options: Vec<&str> = self.options.lines().filter(is_kept).collect();
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "IFS=$' \\t\\n'
declare -A __belljar_given=()
for __belljar_name in {given}; do __belljar_given[$__belljar_name]=${{!__belljar_name}}; done
{}
{}
for __belljar_name in {granted}; do \
export \"$__belljar_name=${{__belljar_given[$__belljar_name]}}\"; done
unset -v __belljar_name",
            self.switches, self.variables
        );
        if !self.functions.is_empty() {
            text.extend(std::iter::repeat_n('\n', EARLIER_LINES as usize));
        }
        let _ = writeln!(
            text,
            "{}\n{}\n{} {}\n{}\n__belljar_options() {{\n{{ :\n{}\n}} 2>/dev/null\n}}",
            self.functions,
            self.others,
            commands::HANDLER,
            commands::handler(descriptors.refused),
            SAVE.replace("@STATE@", &descriptors.state.to_string()),
            options.join("\n")
        );
        text
    }
}

/// Whether a shell can have a variable of this name.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

/// The error of a script whose state is larger than what is kept.
pub(super) fn too_large() -> GuestError {
    let kibibytes = MAX_STATE_BYTES >> 10;
    let message = format!(
        "the session's variables and functions are larger than {kibibytes} KiB: the changes of this run \
         were not saved"
    );
    GuestError::new(ErrorCode::LimitMemory, message)
        .with_hint("Keep data in files in /work, and unset what is no longer needed.")
}

#[cfg(test)]
mod tests;
