//! The table of engines: what the host takes for granted about it.

use super::*;

#[test]
fn every_language_has_one_engine() {
    let languages = [Language::TypeScript, Language::JavaScript, Language::Python, Language::Bash];
    for language in languages {
        let engines = ENGINES.iter().filter(|engine| engine.languages().contains(&language));
        assert_eq!(engines.count(), 1, "{}", language.as_str());
    }
}

#[test]
fn engines_are_found_by_their_names() {
    for (engine, name) in ENGINES.iter().zip(["quickjs", "cpython", "bash"]) {
        assert_eq!(engine.name(), name);
        assert!(find(name).is_some_and(|found| found.name() == name));
    }
    assert!(find("").is_none() && find("deno").is_none());
}
