//! Patterns of names: `*` is any run of characters, `?` any one; everything else is itself.

use serde::{Deserialize, Serialize};

/// A pattern of names or texts. Case counts; there are no other special characters and no escapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// The pattern as written.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only one text can match.
    pub fn is_exact(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether a text that begins like this could match.
    pub(super) fn may_begin_with(&self, prefix: &str) -> bool {
        for (wanted, found) in self.0.chars().zip(prefix.chars()) {
            match wanted {
                '*' => return true,
                '?' => {}
                wanted if wanted == found => {}
                _ => return false,
            }
        }
        self.0.chars().count() >= prefix.chars().count()
    }

    /// Whether the whole text matches. Takes at most the product of the two lengths.
    pub fn matches(&self, text: &str) -> bool {
        let mut pattern = self.0.as_str();
        let mut text = text;
        // Where to go on if what follows the last star turns out not to fit.
        let mut retry: Option<(&str, &str)> = None;
        loop {
            let mut rest = pattern.chars();
            match rest.next() {
                None if text.is_empty() => return true,
                Some('*') => {
                    pattern = rest.as_str();
                    retry = Some((pattern, text));
                    continue;
                }
                Some(wanted) => {
                    let mut after = text.chars();
                    if after.next().is_some_and(|found| wanted == '?' || wanted == found) {
                        (pattern, text) = (rest.as_str(), after.as_str());
                        continue;
                    }
                }
                None => {}
            }
            let Some((after_star, from)) = retry else { return false };
            let mut from = from.chars();
            if from.next().is_none() {
                return false;
            }
            (pattern, text) = (after_star, from.as_str());
            retry = Some((after_star, from.as_str()));
        }
    }
}

impl From<&str> for Glob {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}
