//! Makes untrusted text safe to show.
//!
//! Names and descriptions come from servers that may be hostile: control and bidirectional
//! characters could make a message, a comment or a type read as something else than it is.

use std::fmt::Write as _;

use belljar_wire::text::is_invisible;

/// Whether `character` changes how the text around it is shown, or is not shown at all.
pub fn is_deceptive(character: char) -> bool {
    character.is_control() || is_invisible(character)
}

/// One line of at most `limit` characters, with deceptive characters escaped.
pub fn line(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count >= limit {
            shown.push('…');
            break;
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            _ if is_deceptive(character) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// The text as paragraphs to read: lines kept, trailing space and empty ends dropped, deceptive
/// characters left out, cut at a word after about `limit` characters.
pub(crate) fn prose(text: &str, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut left = limit;
    // A carriage return or a separator of Unicode ends a line for the readers of some languages.
    for raw in text
        .replace("\r\n", "\n")
        .split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}'])
    {
        let clean: String = raw
            .chars()
            .map(|character| if character == '\t' { ' ' } else { character })
            .filter(|character| !is_deceptive(*character))
            .collect();
        let clean = clean.trim_end();
        let empty_before = lines.last().is_none_or(String::is_empty);
        if clean.is_empty() && empty_before {
            continue;
        }
        let length = clean.chars().count();
        if length > left {
            lines.push(cut(clean, left));
            return lines;
        }
        left = left.saturating_sub(length.max(1));
        lines.push(clean.to_owned());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The first `limit` characters, back to the end of a word if one is near, with a mark.
fn cut(text: &str, limit: usize) -> String {
    let head: String = text.chars().take(limit).collect();
    let kept = match head.rfind(' ') {
        Some(space) if space * 4 >= head.len() * 3 => head.get(..space).unwrap_or(&head),
        _ => &head,
    };
    format!("{}…", kept.trim_end())
}

/// A list for a message: the first few, and how many more there are.
pub fn list(names: &[String], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).map(|name| line(name, 80)).collect();
    if names.len() > most {
        shown.push(format!("and {} more", names.len() - most));
    }
    shown.join(", ")
}
