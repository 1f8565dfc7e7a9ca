//! Unique names for types, none of which a language uses already.

use std::collections::HashSet;

use crate::spelling::words;

/// Longer names are cut.
const LONGEST: usize = 60;

/// The names given so far.
#[derive(Debug, Default)]
pub(super) struct TypeNames {
    given: HashSet<String>,
}

impl TypeNames {
    /// A new name made of these parts. Every part starts with a capital; characters beyond ASCII are left
    /// out, and equal names get a number.
    pub(super) fn give(&mut self, parts: &[&str]) -> String {
        let made: Vec<String> =
            parts.iter().map(|part| pascal(part)).filter(|part| !part.is_empty()).collect();
        let mut name: String = made.join("_").chars().take(LONGEST).collect();
        // With an underscore it is no name of either language's own.
        if !name.contains('_') {
            name.push_str("_Type");
        }
        if name.starts_with(|first: char| !first.is_ascii_alphabetic()) {
            name.insert(0, 'T');
        }
        let mut unique = name.clone();
        let mut number = 2_usize;
        while !self.given.insert(unique.clone()) {
            unique = format!("{name}{number}");
            number += 1;
        }
        unique
    }
}

fn pascal(part: &str) -> String {
    let mut made = String::new();
    for word in words(part) {
        let ascii: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        let mut characters = ascii.chars();
        if let Some(first) = characters.next() {
            made.push(first.to_ascii_uppercase());
            made.push_str(&characters.as_str().to_ascii_lowercase());
        }
    }
    made
}
