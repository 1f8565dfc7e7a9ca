//! A tool call as a person sees it who has to decide about it.
//!
//! Everything here comes from guest code, so nothing of it may be hidden, reordered or obeyed by a
//! terminal, and none of it may push the rest out of sight.

use serde::de::IgnoredAny;

use super::{
    columns::cut,
    json_text::{Layout, lay_out},
    look::{Look, Role},
    visible::{candid_json, visible},
};

/// Lines of arguments that are shown.
const MOST_LINES: usize = 40;
/// Characters of each of them.
const MOST_IN_LINE: usize = 400;
/// Characters of arguments on one line.
const ONE_LINE: usize = 200;

/// The arguments on lines of their own, indented; said to be cut when they are.
pub(crate) fn arguments(json: &str, look: Look) -> String {
    let shown = if serde_json::from_str::<IgnoredAny>(json).is_ok() {
        // Colours would be cut apart with the lines they are on.
        lay_out(&candid_json(json), Layout::Fitted, Look { colours: Look::PLAIN.colours, ..look })
    } else {
        visible(json).into_owned()
    };
    let mut text = String::new();
    let count = shown.lines().count();
    for line in shown.lines().take(MOST_LINES) {
        text.push_str("    ");
        text.push_str(&cut(line, MOST_IN_LINE));
        text.push('\n');
    }
    let is_cut = count > MOST_LINES || shown.lines().any(|line| line.len() > MOST_IN_LINE);
    if is_cut {
        let note = format!("… cut, {} bytes in all: belljar approvals list --json", json.len());
        text.push_str(&format!("    {}\n", look.paint(Role::Caution, &note)));
    }
    text
}

/// The arguments on one line, the beginning of them at least.
pub(crate) fn arguments_in_line(json: &str) -> String {
    let one_line = json.replace(['\n', '\r', '\t'], " ");
    cut(&visible(&candid_json(&one_line)), ONE_LINE)
}

/// The run and the line of its code that makes the call.
pub(crate) fn place(run_id: &str, line: Option<u32>, code_line: Option<&str>) -> String {
    let line = line.map_or_else(String::new, |line| format!(", line {line}"));
    let code = code_line.map_or_else(String::new, |code| format!(": {}", visible(code)));
    format!("run {}{line}{code}", visible(run_id)).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests;
