//! Identifiers for tools in the typed wrappers.
//!
//! An identifier keeps every letter and digit of the name in order and changes only case and separators,
//! so that both fold to the same text and the catalogue can resolve it.

use crate::spelling::words;

/// How a language writes names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// `readFile`, as in TypeScript.
    Camel,
    /// `read_file`, as in Python.
    Snake,
}

/// Names objects of JavaScript answer to by themselves, `then` above all: an object that has it is
/// taken for a promise.
const TAKEN_CAMEL: [&str; 14] = [
    "then",
    "constructor",
    "prototype",
    "proto",
    "toString",
    "toLocaleString",
    "valueOf",
    "toJSON",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "apply",
    "bind",
    "inspect",
];

/// Words Python cannot have after a dot. TypeScript can have any word there.
const KEYWORDS_SNAKE: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Whether Python could not take `name` as the name of an argument or a field.
pub(crate) fn is_python_keyword(name: &str) -> bool {
    KEYWORDS_SNAKE.contains(&name)
}

/// The name as an identifier, or nothing if it makes none: it is empty of letters and digits, it
/// is not ASCII (Python normalises such names, and few keyboards have them), or it is taken.
///
/// A Python keyword gets an underscore after it, as is custom there.
pub fn identifier(name: &str, style: Style) -> Option<String> {
    if !name.is_ascii() {
        return None;
    }
    let words = words(name);
    let mut made = match style {
        // Camel case already stays as its author wrote it.
        Style::Camel if is_camel(name) => name.to_owned(),
        Style::Camel => camel(&words),
        Style::Snake => words.join("_").to_ascii_lowercase(),
    };
    if made.starts_with(|first: char| first.is_ascii_digit()) {
        made.insert(0, '_');
    }
    if style == Style::Snake && is_python_keyword(&made) {
        made.push('_');
    }
    let taken = style == Style::Camel && TAKEN_CAMEL.contains(&made.as_str());
    (!made.is_empty() && !taken).then_some(made)
}

fn is_camel(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|character| character.is_ascii_alphanumeric())
}

fn camel(words: &[String]) -> String {
    let mut made = String::new();
    for word in words {
        let word = word.to_ascii_lowercase();
        let mut characters = word.chars();
        match characters.next() {
            Some(first) if !made.is_empty() => {
                made.push(first.to_ascii_uppercase());
                made.push_str(characters.as_str());
            }
            _ => made.push_str(&word),
        }
    }
    made
}
