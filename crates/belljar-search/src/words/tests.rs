//! Words of names and texts.

use super::{Humps, Splitter};

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    Splitter::default().split(text, 1_000, Humps::Split, |word| {
        if !word.is_punctuation {
            words.push(word.text.to_owned());
        }
    });
    words
}

#[test]
fn names_are_split_at_separators_and_humps() {
    assert_eq!(words("getHTTPStatus_code-v2Beta"), ["get", "http", "status", "code", "v2", "beta"]);
    assert_eq!(words("ÉcoleÜber"), ["ecole", "uber"]);
    assert_eq!(words("  "), Vec::<String>::new());
}

#[test]
fn chinese_characters_stand_alone_and_know_their_neighbour() {
    let mut found = Vec::new();
    Splitter::default().split("搜索web关", 1_000, Humps::Split, |word| {
        found.push((word.text.to_owned(), word.is_joined));
    });
    let expected = [("搜", false), ("索", true), ("web", false), ("关", false)];
    assert_eq!(found, expected.map(|(text, joined)| (text.to_owned(), joined)));
}

#[test]
fn only_so_much_is_read() {
    let mut count = 0;
    Splitter::default().split(&"é ".repeat(1_000_000), 10, Humps::Split, |_| count += 1);
    assert_eq!(count, 5);
}
