//! Prints the result of a run for a person.
//!
//! The code's output and its value go to standard output; everything about the run goes to standard
//! error. A program that reads standard output sees only what the code produced.

mod code_frame;
mod log_lines;

use std::{io, io::Write, path::Path};

use belljar_contract::{Change, ChangeKind, ErrorCode, RunError, RunResult, RunStatus, Tier};
use belljar_project::config::quantity::{grouped, milliseconds};
use code_frame::code_frame;
use log_lines::only_logged;
use serde::Deserialize;

use super::{
    live_output::{BLOCKED, OutputState, log_line},
    terminal::{
        json_text::{Layout, lay_out},
        style::{TextRole, TextStyle},
        visible::for_stream,
    },
};

/// Source code for the frame around an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameSource<'a> {
    pub(crate) code: &'a str,
    /// Shown name; may be a host path, because the person typed it.
    pub(crate) name: &'a str,
}

/// The parts of a result that need no printing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintedParts<'a> {
    pub(crate) output: OutputState,
    /// The directory that returned files are written to.
    pub(crate) kept: Option<&'a Path>,
}

impl PrintedParts<'_> {
    /// Nothing is printed yet, and files are not kept.
    pub(crate) const NONE: Self = Self { output: OutputState::Unprinted, kept: None };
}

/// Writes the code's output, unless it was printed while the code ran, and its value.
pub(crate) fn write_output(
    result: &RunResult,
    parts: PrintedParts<'_>,
    stdout: &mut impl Write,
    stderr: &mut impl Write,
    (out, err): (TextStyle, TextStyle),
) -> io::Result<()> {
    let ends_line = match parts.output {
        OutputState::Printed { ends_line } => ends_line,
        OutputState::Unprinted => {
            let printed = for_stream(&result.stdout, out);
            stdout.write_all(printed.as_bytes())?;
            stderr.write_all(for_stream(&result.stderr, err).as_bytes())?;
            printed.is_empty() || printed.ends_with('\n')
        }
    };
    let value = value_text(result, out);
    if !value.is_empty() {
        if !ends_line {
            stdout.write_all(b"\n")?;
        }
        stdout.write_all(value.as_bytes())?;
        stdout.write_all(b"\n")?;
    }
    stdout.flush()
}

/// The value: a string without quotes, anything else as JSON, null as nothing.
fn value_text(result: &RunResult, style: TextStyle) -> String {
    let json = result.result.get();
    if !result.success || json == "null" {
        return String::new();
    }
    match serde_json::from_str::<String>(json) {
        Ok(text) => for_stream(&text, style).into_owned(),
        Err(_) => lay_out(json, Layout::Fitted, style),
    }
}

/// Everything about the run: logs, error, truncation, and on a terminal one line of metrics.
pub(crate) fn about(
    result: &RunResult,
    shown: FrameSource<'_>,
    parts: PrintedParts<'_>,
    style: TextStyle,
) -> String {
    let mut text = String::new();
    let is_unprinted = parts.output == OutputState::Unprinted;
    let unseen = |entry: &&str| is_unprinted || !entry.starts_with(BLOCKED);
    for entry in only_logged(result).into_iter().filter(unseen) {
        text.push_str(&log_line(entry, style));
    }
    if let Some(error) = &result.error {
        text.push_str(&error_text(error, shown, style));
    }
    text.push_str(&files_text(result, parts.kept, style));
    for note in notes(result, parts.output) {
        text.push_str(&style.paint(TextRole::Caution, &format!("note: {note}")));
        text.push('\n');
    }
    if style.is_terminal() {
        text.push_str(&style.paint(TextRole::Dim, &metrics_line(result)));
        text.push('\n');
    }
    text
}

fn error_text(error: &RunError, shown: FrameSource<'_>, style: TextStyle) -> String {
    let mut lines = Vec::new();
    let kind = if error.code == ErrorCode::RunAborted {
        RunStatus::Aborted.to_string()
    } else if error.code == ErrorCode::RunInterrupted {
        RunStatus::Interrupted.to_string()
    } else {
        format!("{:?}", error.kind)
    };
    let message = error.message.trim_end();
    // The engine repeats the name of JavaScript's own error class.
    let message = message.strip_prefix(&format!("{kind}: ")).unwrap_or(message);
    lines.push(format!("{}: {}", style.paint(TextRole::Bad, &kind), for_stream(message, style)));
    if let Some(line) = error.line {
        let column = error.column.unwrap_or(1);
        let place = format!("{}:{line}:{column}", for_stream(shown.name, style));
        lines.push(style.paint(TextRole::Dim, &format!("  at {place}")));
        if let Some(frame) = code_frame(shown.code, line, column, style) {
            lines.push(String::new());
            lines.push(frame);
        }
    }
    if let Some(frames) = error.stack.as_deref().and_then(frames) {
        lines.push(style.paint(TextRole::Dim, &for_stream(&frames, style)));
    }
    if let Some(hint) = &error.hint {
        let label = style.paint(TextRole::Accent, "hint");
        lines.push(format!("{label}: {}", for_stream(hint, style)));
    }
    lines.join("\n") + "\n"
}

/// Changed files of the workspace, and returned artifacts.
fn files_text(result: &RunResult, kept: Option<&Path>, style: TextStyle) -> String {
    let mut lines = Vec::new();
    let changes = &result.changes;
    if !changes.is_empty() {
        lines.push(style.paint(TextRole::Dim, &format!("changes ({}):", commit_outcome(result))));
    }
    for change in changes {
        let sign = match change.kind {
            ChangeKind::Added => '+',
            ChangeKind::Deleted => '-',
            ChangeKind::Modified => '~',
        };
        let note = change.note.as_ref().map_or_else(String::new, |note| format!("  ({note})"));
        let path = for_stream(&change.path, style);
        lines.push(format!("  {sign} {}{note}", path.escape_debug()));
    }
    for artifact in &result.artifacts {
        let path = for_stream(&artifact.path, style);
        let (kind, bytes) = (&artifact.media_type, artifact.bytes);
        let kept = artifact.handle.as_ref();
        let kept = kept.map_or_else(String::new, |id| format!("; belljar blob {id}"));
        lines.push(format!("artifact: {} ({kind}, {bytes} bytes{kept})", path.escape_debug()));
    }
    if !result.unreturned.files.is_empty() {
        let hint = "not returned (write to /work/out to get them back):";
        lines.push(style.paint(TextRole::Dim, hint));
    }
    for file in &result.unreturned.files {
        let path = for_stream(&file.path, style);
        lines.push(format!("  {} ({} bytes)", path.escape_debug(), file.bytes));
    }
    if result.unreturned.more {
        lines.push("  … and more".to_owned());
    }
    match (result.artifacts.is_empty(), kept) {
        (true, _) => {}
        (false, Some(directory)) => {
            let directory = directory.display().to_string();
            lines.push(format!("artifacts are written to {}", for_stream(&directory, style)));
        }
        (false, None) => lines.push(style.paint(
            TextRole::Caution,
            "note: artifacts are gone after the run; --artifacts DIR writes them to a directory",
        )),
    }
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// Whether the changes were committed. The notes show whether a commit was requested.
fn commit_outcome(result: &RunResult) -> &'static str {
    let changes = &result.changes;
    let has_note = |change: &Change, start: &str| {
        change.note.as_deref().is_some_and(|note| note.starts_with(start))
    };
    if changes.iter().all(|change| change.committed) {
        "committed"
    } else if changes.iter().any(|change| change.committed) {
        "committed, except where noted"
    } else if !result.success {
        "not committed"
    } else if changes.iter().any(|change| has_note(change, "not committed: ")) {
        "none committed: each is withheld, see below"
    } else if changes.iter().all(|change| has_note(change, "will not be committed: ")) {
        "not committed: --commit would withhold each, see below"
    } else {
        "not committed: --commit writes them to the directory"
    }
}

/// The stack frames, if there are more than the one already shown.
fn frames(stack: &str) -> Option<String> {
    let frames: Vec<String> = stack
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("at "))
        .map(|line| format!("  {line}"))
        .collect();
    (frames.len() > 1).then(|| frames.join("\n"))
}

/// The summary that replaces a stored value.
#[derive(Debug, Deserialize)]
struct Summary {
    handle: String,
    bytes: u64,
}

/// Why the value is incomplete.
fn cut_value(result: &RunResult) -> String {
    match serde_json::from_str::<Summary>(result.result.get()) {
        Ok(Summary { handle, bytes }) if handle.starts_with("blob_") => {
            format!(
                "the value has {} bytes; print all of it: belljar blob {handle}",
                grouped(bytes)
            )
        }
        _ => "a table in the value has more rows than are shown".to_owned(),
    }
}

fn notes(result: &RunResult, output: OutputState) -> Vec<String> {
    // Output that was printed while the code ran is complete.
    let is_unprinted = output == OutputState::Unprinted;
    let all = [
        (
            is_unprinted && result.truncated.stdout,
            "standard output was cut; --max-output keeps more of it",
        ),
        (
            is_unprinted && result.truncated.stderr,
            "standard error was cut; --max-output keeps more of it",
        ),
        (
            is_unprinted && result.truncated.logs,
            "log lines were dropped; --max-output keeps more of them",
        ),
        (result.truncated.result, &*cut_value(result)),
        (result.lossy, "numbers that JSON cannot represent (NaN, Infinity) became null"),
    ];
    all.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note.to_owned()).collect()
}

fn metrics_line(result: &RunResult) -> String {
    if result.cached {
        return "answered from the cache; nothing ran".to_owned();
    }
    if result.isolation.tier == Tier::Refused {
        return "nothing ran".to_owned();
    }
    let metrics = &result.metrics;
    let verb = match result.status {
        RunStatus::Running => "running for",
        RunStatus::Completed => "completed in",
        RunStatus::Failed => "failed after",
        RunStatus::Aborted => "aborted after",
        RunStatus::Interrupted => "interrupted after",
        RunStatus::ApprovalRequired => "waits for a person after",
        RunStatus::InDoubt => "in doubt after",
    };
    let isolation = &result.isolation;
    [
        format!("{verb} {}", milliseconds(metrics.startup_ms + metrics.execution_ms)),
        format!("start {}", milliseconds(metrics.startup_ms)),
        format!("cpu {}", milliseconds(metrics.cpu_ms)),
        format!("{:.1} MB", metrics.memory_mb),
        format!("{} isolation ({})", isolation.tier, isolation.engine),
    ]
    .join(" · ")
}

#[cfg(test)]
mod tests;
