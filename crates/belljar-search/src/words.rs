//! Splits text into words as the distilled model's own tokenizer does: cleaned,
//! without accents, in lower case, split at white space and punctuation, every Chinese character a
//! word of its own. Names are split at their humps besides: `getHTTPStatus` is get, http, status.

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed,
    props::{GeneralCategory, GeneralCategoryGroup},
};

/// Whether words are split at `aB` and `ABc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Humps {
    /// A word ends there.
    Split,
    /// Nothing, as in the reference.
    #[cfg(test)]
    Keep,
}

/// A word, or one sign of punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitWord<'a> {
    /// Folded and in lower case.
    pub(crate) text: &'a str,
    /// Whether nothing was between it and the word before.
    pub(crate) is_joined: bool,
    /// Whether it is punctuation.
    pub(crate) is_punctuation: bool,
}

/// Splits texts into words. Reuses its buffers, so that many short texts cost few allocations.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    characters: Vec<char>,
    word: String,
}

impl Splitter {
    /// Calls `each` with every word of the first `most` characters of `text`.
    pub(crate) fn split(
        &mut self,
        text: &str,
        most: usize,
        humps: Humps,
        mut each: impl FnMut(SplitWord<'_>),
    ) {
        self.clean(text, most);
        let mut characters = self.characters.iter().copied().peekable();
        let (mut before, mut is_joined) = (' ', false);
        let word = &mut self.word;
        word.clear();
        let mut end = |word: &mut String, is_joined: bool, is_punctuation: bool| {
            if !word.is_empty() {
                each(SplitWord { text: word, is_joined, is_punctuation });
                word.clear();
            }
        };
        while let Some(character) = characters.next() {
            let alone = is_chinese(character);
            let is_punctuation = is_punctuation(character);
            if character == ' ' || is_punctuation || alone {
                end(word, is_joined, false);
                is_joined = is_chinese(before);
                if character != ' ' {
                    word.extend(character.to_lowercase());
                    end(word, is_joined && alone, is_punctuation);
                }
                is_joined = false;
            } else {
                if humps == Humps::Split && is_hump(before, character, characters.peek()) {
                    end(word, is_joined, false);
                    is_joined = true;
                }
                word.extend(character.to_lowercase());
            }
            before = character;
        }
        end(word, is_joined, false);
    }

    /// Only what can be shown, white space as spaces, accents dropped.
    fn clean(&mut self, text: &str, most: usize) {
        self.characters.clear();
        let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
        let text = text.get(..end).unwrap_or_default();
        if text.is_ascii() {
            let cleaned = text.bytes().filter_map(|byte| match byte {
                b'\t' | b'\n' | b'\r' => Some(' '),
                0..=31 | 127 => None,
                shown => Some(char::from(shown)),
            });
            self.characters.extend(cleaned);
            return;
        }
        let kinds = CodePointMapData::<GeneralCategory>::new();
        let cleaned = text.chars().filter_map(|character| match character {
            '\u{fffd}' => None,
            white if white.is_whitespace() => Some(' '),
            hidden if is_hidden(kinds, hidden) => None,
            shown => Some(shown),
        });
        let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(cleaned);
        let is_mark = |character: &char| kinds.get(*character) == GeneralCategory::NonspacingMark;
        self.characters.extend(decomposed.filter(|character| !is_mark(character)));
    }
}

fn is_hidden(kinds: CodePointMapDataBorrowed<'_, GeneralCategory>, character: char) -> bool {
    GeneralCategoryGroup::Other.contains(kinds.get(character))
}

fn is_hump(before: char, character: char, after: Option<&char>) -> bool {
    character.is_uppercase()
        && (before.is_lowercase()
            || before.is_ascii_digit()
            || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())))
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || (!character.is_ascii() && {
            let kind = CodePointMapData::<GeneralCategory>::new().get(character);
            GeneralCategoryGroup::Punctuation.contains(kind)
        })
}

/// Characters of the blocks that the reference sets apart.
pub(crate) fn is_chinese(character: char) -> bool {
    matches!(u32::from(character),
        0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x2a6df
        | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f | 0x2b920..=0x2ceaf | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests;
