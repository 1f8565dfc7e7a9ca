//! Terms of words.

use super::{EMPTY, TermSplitter};
use crate::words::{Humps, Splitter};

fn terms(text: &str) -> Vec<String> {
    let (mut terms, mut found) = (TermSplitter::default(), Vec::new());
    Splitter::default().split(text, 10_000, Humps::Split, |word| {
        terms.of(word, |term| found.push(term.to_owned()));
    });
    found
}

#[test]
fn forms_of_a_word_meet() {
    assert_eq!(terms("create creates creating created"), ["creat"; 4]);
    assert_eq!(terms("query queries"), ["query"; 2]);
    assert_eq!(terms("the news is new"), ["news", "new"]);
    assert_eq!(terms("status pass glass"), ["status", "pass", "glass"]);
}

#[test]
fn scripts_without_spaces_are_pairs() {
    assert_eq!(terms("搜索"), ["搜", "索", "搜索"]);
    // Marks are dropped, in tools and in intents alike, as in the reference.
    assert_eq!(terms("ひらが"), ["ひらか", "ひら", "らか"]);
    assert_eq!(terms("поиск"), ["поиск"]);
}

#[test]
fn an_endless_word_is_clipped() {
    assert!(terms(&"x".repeat(5_000))[0].len() <= 40);
}

#[test]
fn the_list_of_empty_words_is_sorted() {
    assert!(EMPTY.is_sorted());
}
