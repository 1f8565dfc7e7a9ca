//! Renders a tool call for the person who decides about it.
//!
//! Everything here comes from guest code. Nothing may be hidden, reordered or obeyed by the
//! terminal, and no part may push the rest out of sight. Omitted parts are marked, so that no
//! person approves a call without having seen all of it.

use serde::de::IgnoredAny;

use crate::cli::terminal::{
    columns::cut,
    json_text::{Layout, lay_out},
    style::{TextRole, TextStyle},
    visible::{candid_json, visible},
};

/// Most lines of arguments.
const MOST_LINES: usize = 40;
/// Most characters of each line.
const MOST_IN_LINE: usize = 400;
/// Most characters of arguments on a single line.
const ONE_LINE: usize = 200;

/// How much of a call's arguments was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    InPart,
}

/// The beginning of the arguments, indented, and whether that is all of them.
pub(crate) fn arguments(json: &str, style: TextStyle) -> (String, Extent) {
    let shown = laid_out(json, style);
    let mut text = String::new();
    for line in shown.lines().take(MOST_LINES) {
        text.push_str(&format!("    {}\n", cut(line, MOST_IN_LINE)));
    }
    let is_wide = |line: &str| line.chars().nth(MOST_IN_LINE).is_some();
    let is_cut = shown.lines().nth(MOST_LINES).is_some() || shown.lines().any(is_wide);
    (text, if is_cut { Extent::InPart } else { Extent::Whole })
}

/// Says where to see the omitted part.
pub(crate) fn cut_note(id: &str, json: &str, style: TextStyle) -> String {
    let note = format!("… cut, {} bytes in total: belljar approvals show {id}", json.len());
    format!("    {}\n", style.paint(TextRole::Caution, &note))
}

/// All arguments, indented below their question.
pub(crate) fn all_arguments(json: &str, style: TextStyle) -> String {
    laid_out(json, style).lines().map(|line| format!("    {line}\n")).collect()
}

fn laid_out(json: &str, style: TextStyle) -> String {
    if serde_json::from_str::<IgnoredAny>(json).is_ok() {
        // Cutting lines would break colour sequences apart.
        lay_out(
            &candid_json(json),
            Layout::Fitted,
            TextStyle { colours: TextStyle::PLAIN.colours, ..style },
        )
    } else {
        visible(json).into_owned()
    }
}

/// The arguments on one line, possibly shortened.
pub(crate) fn arguments_in_line(json: &str) -> String {
    let one_line = json.replace(['\n', '\r', '\t'], " ");
    cut(&visible(&candid_json(&one_line)), ONE_LINE)
}

/// A name on one line, with hidden characters made visible. Servers choose the names of their
/// tools.
pub(crate) fn name_in_line(name: &str) -> String {
    visible(&candid_json(name)).replace('\n', "\\n").replace('\t', "\\t")
}

/// The run, and the line of its code that makes the call.
pub(crate) fn place(run_id: &str, line: Option<u32>, code_line: Option<&str>) -> String {
    let line = line.map_or_else(String::new, |line| format!(", line {line}"));
    let code = code_line.map_or_else(String::new, |code| format!(": {}", visible(code)));
    format!("run {}{line}{code}", visible(run_id)).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests;
