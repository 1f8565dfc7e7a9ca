//! One question about all calls that wait at once.

use std::collections::VecDeque;

use belljar_contract::Verdict;
use belljar_tools::ApprovalNotice;

use super::{
    super::text::{Extent, arguments, name_in_line, place},
    TextRole, TextStyle, visible,
};

/// The most calls in one question, and the most lines: a person must see all of it at once.
const MOST_CALLS: usize = 20;
const MOST_LINES: usize = 60;

/// The meaning of a line that answers such a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GroupReply {
    /// One answer for all of them.
    All(Verdict),
    /// Ask about each.
    Each,
    /// The line is no answer: ask again.
    Unclear,
    /// The input has ended.
    Gone,
}

impl GroupReply {
    pub(super) fn read(line: Option<&str>) -> Self {
        let Some(line) = line else { return Self::Gone };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Self::All(Verdict::Approve),
            "" | "n" | "no" => Self::All(Verdict::Deny),
            "each" => Self::Each,
            _ => Self::Unclear,
        }
    }
}

/// The question; none if there are not several calls, or if not all of them can be shown as a whole.
pub(super) fn question(waiting: &VecDeque<ApprovalNotice>, style: TextStyle) -> Option<String> {
    if !(2..=MOST_CALLS).contains(&waiting.len()) {
        return None;
    }
    let count = waiting.len();
    let title = format!("approval needed: {count} calls");
    let mut text = format!("{}\n", style.paint(TextRole::Caution, &title));
    for (number, notice) in (1..).zip(waiting) {
        let (shown, extent) = arguments(&notice.asked.arguments, style);
        // A call in doubt has other answers.
        if extent == Extent::InPart || notice.asked.is_in_doubt() {
            return None;
        }
        let asked = &notice.asked;
        text.push_str(&format!(
            "{number}. {}\n  {}\n  {}\n{shown}",
            style.paint(TextRole::Strong, &name_in_line(&asked.tool)),
            style.paint(
                TextRole::Dim,
                &place(&asked.run_id, asked.line, asked.code_line.as_deref())
            ),
            style.paint(TextRole::Dim, &visible(&notice.reason)),
        ));
    }
    if text.lines().count() > MOST_LINES {
        return None;
    }
    let prompt = style.paint(TextRole::Strong, &format!("make these {count} calls?"));
    text.push_str(&format!("{prompt} [y/N/each] "));
    Some(text)
}
