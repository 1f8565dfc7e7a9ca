//! The body of an agent's node: its code sees the keys of its context as variables.

use belljar_contract::Language;
use belljar_worker::bash::RESTRICTED_CALL;
use belljar_workflow::{Code, ResultShape};

/// Words and signs that must start a line in Python.
const FIRST: [&str; 12] =
    ["def", "class", "if", "for", "while", "with", "try", "async", "match", "from", "#", "@"];

/// The code as it runs. The worker knows the inserted call and adds changes of `state` to the
/// result. The call is inserted in the first line, so that line numbers in errors match the source;
/// where Python does not allow that, it gets a line of its own.
pub(super) fn wrapped(code: &Code) -> String {
    let is_of_agent = matches!(code.shape, ResultShape::Node | ResultShape::Report);
    if code.language == Language::Bash && is_of_agent && !code.grants.permissive {
        // The worker knows the word, and takes it out.
        return format!("{RESTRICTED_CALL}{}", code.code);
    }
    let before = match (code.shape, code.language) {
        (ResultShape::Node, Language::Python) => "__belljar_node__()",
        (ResultShape::Node, Language::TypeScript | Language::JavaScript) => {
            "Object.assign(globalThis, context)"
        }
        (ResultShape::Node, Language::Bash) | (ResultShape::Value | ResultShape::Report, _) => {
            return code.code.clone();
        }
    };
    let body = code.code.trim_start_matches(['\r', '\n']);
    let lines = code.code.len() - body.len();
    let between = if is_shifted(code) { "\n" } else { "; " };
    format!("{}{before}{between}{body}", "\n".repeat(lines))
}

/// Whether the inserted call shifts the source by one line.
pub(super) fn is_shifted(code: &Code) -> bool {
    let is_python = code.language == Language::Python;
    let body = code.code.trim_start();
    let word: String = body.chars().take_while(char::is_ascii_alphabetic).collect();
    let first = if word.is_empty() { body.get(..1).unwrap_or_default() } else { &word };
    code.shape == ResultShape::Node && is_python && FIRST.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f8_the_body_of_a_node_keeps_its_lines() {
        for (body, line, is_down) in [
            ("x = 1\nreturn x", "__belljar_node__(); x = 1", false),
            ("import json", "__belljar_node__(); import json", false),
            ("def f():\n    pass", "__belljar_node__()", true),
            ("# why\nx = 1", "__belljar_node__()", true),
            ("@cache\ndef f(): pass", "__belljar_node__()", true),
            ("fork = 1", "__belljar_node__(); fork = 1", false),
        ] {
            let shape = ResultShape::Node;
            let code = Code { code: body.to_owned(), shape, ..Code::default() };
            assert_eq!(wrapped(&code).lines().next(), Some(line), "{body}");
            assert_eq!(is_shifted(&code), is_down, "{body}");
        }
    }
}
