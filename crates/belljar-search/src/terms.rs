//! Splits words into terms: without stop words and endings; scripts without spaces become pairs of
//! characters.

use crate::words::{SplitWord, is_chinese};

/// Only the beginning of a longer word is used.
const MOST_CHARACTERS: usize = 40;
/// From here on, scripts are mostly written without spaces: Thai, Lao, Burmese, Khmer, kana, hangul.
const WITHOUT_SPACES: char = '\u{e00}';
/// Stop words; sorted, because they are searched by bisection.
const EMPTY: [&str; 104] = [
    "a", "about", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "being", "but", "by", "can", "could", "d", "did", "do", "does", "for", "from", "had",
    "has", "have", "he", "her", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it",
    "its", "just", "let", "like", "ll", "m", "me", "my", "myself", "need", "no", "not", "of", "on",
    "or", "our", "ours", "own", "please", "re", "s", "she", "should", "so", "some", "t", "than",
    "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "us", "use", "using", "ve", "very", "want", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your",
    "yours", "yourself",
];

/// Makes terms of consecutive words.
#[derive(Debug, Default)]
pub(crate) struct TermSplitter {
    term: String,
    before: Option<char>,
}

impl TermSplitter {
    /// Begins another text: the word before is forgotten.
    pub(crate) fn begin(&mut self) {
        self.before = None;
    }

    /// Calls `each` with every term of a word.
    pub(crate) fn of(&mut self, word: SplitWord<'_>, mut each: impl FnMut(&str)) {
        let before = self.before.take();
        if word.is_punctuation || is_empty(word.text) {
            return;
        }
        let mut characters = word.text.chars();
        if let (Some(only), None) = (characters.next(), characters.next())
            && is_chinese(only)
        {
            self.before = Some(only);
            each(word.text);
            if let Some(before) = before.filter(|_| word.is_joined) {
                self.pair(before, only, &mut each);
            }
            return;
        }
        if word.text.is_ascii() {
            each(stem(clipped(word.text), &mut self.term));
            return;
        }
        let word = clipped(word.text);
        each(word);
        if word.chars().any(|character| character >= WITHOUT_SPACES) {
            for (left, right) in word.chars().zip(word.chars().skip(1)) {
                self.pair(left, right, &mut each);
            }
        }
    }

    fn pair(&mut self, left: char, right: char, each: &mut impl FnMut(&str)) {
        self.term.clear();
        self.term.extend([left, right]);
        each(&self.term);
    }
}

fn is_empty(word: &str) -> bool {
    EMPTY.binary_search(&word).is_ok()
}

fn clipped(word: &str) -> &str {
    let end = word.char_indices().nth(MOST_CHARACTERS).map_or(word.len(), |(at, _)| at);
    word.get(..end).unwrap_or(word)
}

/// The word without the endings of English that change no meaning here, in `buffer` if need be.
fn stem<'a>(word: &'a str, buffer: &'a mut String) -> &'a str {
    // Not the plural of `new`.
    if word == "news" {
        return word;
    }
    let long_enough = |rest: &&str| rest.len() >= 3;
    let without_e = |rest: &'a str| rest.strip_suffix('e').filter(long_enough).unwrap_or(rest);
    for (ending, instead) in [("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")] {
        let Some(rest) = word.strip_suffix(ending).filter(long_enough) else { continue };
        if ending == "s" && rest.ends_with(['s', 'u', 'i']) {
            return word;
        }
        // `creating`, `create` and `creates` are to meet, so a final `e` goes too.
        let rest = without_e(rest);
        if instead.is_empty() {
            return rest;
        }
        buffer.clear();
        buffer.push_str(rest);
        buffer.push_str(instead);
        return buffer;
    }
    without_e(word)
}

#[cfg(test)]
mod tests;
