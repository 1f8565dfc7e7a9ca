//! Untrusted texts in source code: quotes and comments that the text cannot end.

use std::fmt::Write as _;

use crate::visible::{is_deceptive, line, prose};

/// Characters of a tool's description that are written.
pub(super) const TOOL_TEXT: usize = 700;
/// Characters of a field's note that are written.
pub(super) const FIELD_TEXT: usize = 240;

/// A text in double quotes, as both JavaScript and Python read it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if !is_deceptive(character) => quoted.push(character),
            _ => escape(&mut quoted, character),
        }
    }
    quoted.push('"');
    quoted
}

/// Both languages have `\uXXXX`; beyond it they differ, but a pair of surrogates would not be one
/// character in Python, so those few characters are left out. None of them can be seen.
fn escape(quoted: &mut String, character: char) {
    if let Ok(unit) = u16::try_from(u32::from(character)) {
        let _ = write!(quoted, "\\u{unit:04x}");
    }
}

/// A TypeScript doc comment; empty without text.
pub(super) fn doc_comment(text: &str, limit: usize, indent: &str) -> String {
    let lines: Vec<String> =
        prose(text, limit).into_iter().map(|line| line.replace("*/", "*\\/")).collect();
    match lines.as_slice() {
        [] => String::new(),
        [only] => format!("{indent}/** {} */\n", only.trim_start()),
        several => {
            let mut comment = format!("{indent}/**\n");
            for line in several {
                let _ = writeln!(comment, "{indent} * {line}");
            }
            comment = comment.replace(" * \n", " *\n");
            let _ = writeln!(comment, "{indent} */");
            comment
        }
    }
}

/// A Python docstring; `None` without text.
pub(super) fn doc_string(text: &str, limit: usize, indent: &str) -> Option<String> {
    let lines: Vec<String> = prose(text, limit)
        .into_iter()
        .map(|line| line.replace('\\', "\\\\").replace('"', "\\\""))
        .collect();
    match lines.as_slice() {
        [] => None,
        [only] => Some(format!("{indent}\"\"\"{}\"\"\"\n", only.trim_start())),
        several => {
            let mut text = format!("{indent}\"\"\"\n");
            for line in several {
                let _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
            }
            let _ = writeln!(text, "{indent}\"\"\"");
            Some(text)
        }
    }
}

/// A Python comment at the end of a line; empty without text.
pub(super) fn remark(text: &str, limit: usize) -> String {
    let joined = prose(text, limit).join(" ");
    if joined.trim().is_empty() {
        return String::new();
    }
    // `# type: …` and similar comments are directives to type checkers, anywhere in a line.
    let mut parts = joined.trim().split('#');
    let mut remark = format!("  # {}", disarmed(parts.next().unwrap_or_default()));
    for part in parts {
        let _ = write!(remark, "#{}", disarmed(part));
    }
    remark
}

fn disarmed(comment: &str) -> String {
    let orders = ["type", "pyright", "mypy", "noqa", "ruff", "fmt"];
    let start = comment.trim_start();
    if orders.iter().any(|order| start.starts_with(order)) {
        format!(" … {start}")
    } else {
        comment.to_owned()
    }
}

/// A name in a comment of one line.
pub(super) fn mentioned(name: &str) -> String {
    line(&quoted(name), 200).replace("*/", "*\\/")
}
