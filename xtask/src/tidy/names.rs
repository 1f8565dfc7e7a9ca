//! Names that a stranger understands: no bare participle as a type, no type name with two meanings, no
//! metaphor that ARCHITECTURE's table of words does not have.

use std::collections::BTreeMap;

/// Participles that do not end in `ed` or `ing`.
const IRREGULAR: &[&str] = &[
    "Begun",
    "Bound",
    "Broken",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Cut",
    "Done",
    "Drawn",
    "Driven",
    "Found",
    "Frozen",
    "Given",
    "Gone",
    "Grown",
    "Heard",
    "Held",
    "Hidden",
    "Kept",
    "Known",
    "Left",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Ran",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Spent",
    "Taken",
    "Thrown",
    "Told",
    "Understood",
    "Withheld",
    "Written",
];
/// Nouns that look like participles.
const NOUNS: &[&str] = &[
    "Beginning",
    "Ending",
    "Everything",
    "Feed",
    "Finding",
    "Greeting",
    "Listing",
    "Mapping",
    "Meaning",
    "Posting",
    "Recording",
    "Scoring",
    "Seed",
    "Setting",
    "String",
    "Warning",
];
/// Words that a reader would have to learn, and what the code says instead.
const METAPHORS: &[(&str, &str)] = &[
    ("brood", "process tree"),
    ("dice", "random"),
    ("flight", "turn"),
    ("fly", "run"),
    ("hands", "performer"),
    ("moments", "times"),
    ("patience", "timeout or delay"),
    ("patrol", "watch"),
];
/// Names that two crates share because they mean the same, with the reason there are two types.
const SHARED: &[(&str, &str)] = &[
    ("ChangeKind", "the jail, loaded into Python, does not link the contract"),
    ("EntryKind", "the jail, loaded into Python, does not link the contract"),
];

/// The type names of a tree that are seen beyond their file, by crate.
#[derive(Debug, Default)]
pub(super) struct DeclaredTypes {
    crates_by_name: BTreeMap<String, BTreeMap<String, String>>,
}

impl DeclaredTypes {
    /// Checks the names of types in a test.
    pub(super) fn check_test(file: &str, text: &str, faults: &mut Vec<String>) {
        for (number, line) in text.lines().enumerate() {
            let name = declared_type(line).map(|(name, _)| name);
            if let Some(name) = name.filter(|name| is_bare_participle(name)) {
                let at = format!("{file}:{}", number + 1);
                faults.push(format!("{at}: `{name}` is a participle; name the thing"));
            }
        }
    }

    /// Checks one production file of a crate, and notes the types it declares.
    pub(super) fn check_file(
        &mut self,
        crate_name: &str,
        file: &str,
        text: &str,
        faults: &mut Vec<String>,
    ) {
        let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
        check_words(file, stem, faults);
        for (number, line) in text.lines().enumerate() {
            let at = format!("{file}:{}", number + 1);
            if let Some((name, is_visible)) = declared_type(line) {
                if is_bare_participle(name) {
                    faults.push(format!("{at}: `{name}` is a participle; name the thing"));
                }
                check_words(&at, &snake_case(name), faults);
                if is_visible {
                    let crates = self.crates_by_name.entry(name.to_owned()).or_default();
                    match crates.get(crate_name) {
                        Some(other) if !is_associated(line) => faults.push(format!(
                            "`{name}` is a type of two files of {crate_name}: {other}, {at}"
                        )),
                        Some(_) => {}
                        None => drop(crates.insert(crate_name.to_owned(), at)),
                    }
                }
            } else if let Some(name) = declared_function(line) {
                check_words(&at, name, faults);
            }
        }
    }

    /// The names that several crates declare.
    pub(super) fn check_shared(&self, faults: &mut Vec<String>) {
        for (name, crates) in &self.crates_by_name {
            let is_excused = SHARED.iter().any(|(shared, _)| shared == name);
            if crates.len() > 1 && !is_excused {
                let places: Vec<&str> = crates.values().map(String::as_str).collect();
                faults.push(format!("`{name}` is a type of several crates: {}", places.join(", ")));
            }
        }
    }
}

/// The type a line declares, and whether it is seen beyond its file.
fn declared_type(line: &str) -> Option<(&str, bool)> {
    let (visibility, rest) = without_visibility(line.trim_start());
    let keywords = ["struct ", "enum ", "trait ", "union "];
    let rest = keywords.iter().find_map(|keyword| rest.strip_prefix(keyword)).or_else(|| {
        // An associated type of an implementation is indented.
        rest.strip_prefix("type ").filter(|_| !line.starts_with(' '))
    })?;
    let name = identifier(rest);
    name.starts_with(char::is_uppercase).then_some((name, visibility))
}

/// A type that an implementation names, or one that a macro declares.
fn is_associated(line: &str) -> bool {
    line.starts_with(' ')
}

fn declared_function(line: &str) -> Option<&str> {
    let (_, rest) = without_visibility(line.trim_start());
    let rest = rest.trim_start_matches("const ").trim_start_matches("async ");
    rest.strip_prefix("fn ").map(identifier)
}

fn without_visibility(line: &str) -> (bool, &str) {
    let Some(rest) = line.strip_prefix("pub") else { return (false, line) };
    if let Some(rest) = rest.strip_prefix(' ') {
        return (true, rest);
    }
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => (true, rest),
        None => (false, line),
    }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn is_bare_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(char::is_lowercase) && name.len() > 1;
    let looks_so = name.ends_with("ed") || name.ends_with("ing") || IRREGULAR.contains(&name);
    is_one_word && looks_so && !NOUNS.contains(&name)
}

fn check_words(at: &str, name: &str, faults: &mut Vec<String>) {
    for word in name.split('_') {
        if let Some((_, instead)) = METAPHORS.iter().find(|(metaphor, _)| *metaphor == word) {
            faults.push(format!("{at}: `{word}` in a name; say {instead}"));
        }
    }
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(file: &str, text: &str) -> Vec<String> {
        let (mut names, mut faults) = (DeclaredTypes::default(), Vec::new());
        names.check_file("one", file, text, &mut faults);
        faults
    }

    #[test]
    fn participles_and_metaphors_are_found() {
        for (text, is_fault) in [
            ("pub(crate) struct Told {", true),
            ("enum Parked {", true),
            ("struct ParkedCell;", false),
            ("pub enum Finding {", false),
            ("    type Error = Failed;", false),
            ("pub async fn fly(", true),
            ("fn apply(", false),
            ("struct CellPatrol;", true),
        ] {
            assert_eq!(!faults("crates/one/src/a.rs", text).is_empty(), is_fault, "{text}");
        }
        assert_eq!(faults("crates/one/src/dice.rs", "").len(), 1);
    }

    #[test]
    fn a_name_of_two_files_and_a_participle_of_a_test_are_found() {
        let (mut names, mut faults) = (DeclaredTypes::default(), Vec::new());
        names.check_file("one", "a.rs", "pub struct Answer;\nstruct Row;", &mut faults);
        names.check_file("one", "b.rs", "struct Row;", &mut faults);
        DeclaredTypes::check_test("tests.rs", "struct PausedCell;", &mut faults);
        assert_eq!(faults, Vec::<String>::new(), "control");
        names.check_file("one", "b.rs", "pub(crate) enum Answer {}", &mut faults);
        DeclaredTypes::check_test("tests.rs", "struct Paused;", &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn a_name_of_two_crates_is_found_unless_it_is_private() {
        let (mut names, mut faults) = (DeclaredTypes::default(), Vec::new());
        names.check_file("one", "a.rs", "pub struct Answer;\nstruct Row;", &mut faults);
        names.check_file("two", "b.rs", "pub(super) enum Answer {}\nstruct Row;", &mut faults);
        assert_eq!(faults, Vec::<String>::new());
        names.check_shared(&mut faults);
        assert_eq!(faults, ["`Answer` is a type of several crates: a.rs:1, b.rs:1"]);
    }
}
