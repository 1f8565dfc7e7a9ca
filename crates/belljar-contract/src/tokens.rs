//! An estimate of the tokens that a model reads, and texts cut to a number of tokens.
//!
//! No tokenizer is part of the program: its tables are larger than all the rest, and each model has its
//! own. The estimate splits a text as those tokenizers do, at changes between letters, digits and marks,
//! and takes the cautious number for each piece. It is exact for no text and too low for hardly any:
//! `scripts/answer-tokens` compares it with real tokenizers.

#[cfg(test)]
mod tests;

/// Letters of an ordinary word in one token.
const WORD_LETTERS: usize = 5;
/// A longer piece of letters is no word; its letters are in the vocabulary by twos.
const LONGEST_WORD: usize = 16;
/// Digits in one token.
const DIGITS: usize = 3;
/// White space of one kind in one token, when there is a lot of it.
const SPACES: usize = 16;

/// The kinds of characters between which tokenizers split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Lower,
    Upper,
    Digit,
    Space,
    Break,
    Mark,
    Other,
}

impl CharKind {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            ' ' | '\t' => Self::Space,
            '\n' | '\r' => Self::Break,
            character if character.is_ascii() => Self::Mark,
            _ => Self::Other,
        }
    }
}

/// Counts a text character by character.
#[derive(Debug, Default)]
struct TokenCount {
    /// Tokens of the pieces that are complete.
    whole: usize,
    /// The piece that may still grow: its kind, its length, and whether it has capitals after its first letter.
    piece: Option<(CharKind, usize, bool)>,
}

impl TokenCount {
    fn add(&mut self, character: char) {
        let kind = CharKind::of(character);
        if kind == CharKind::Other {
            self.close();
            self.whole += match character {
                // Kana, common Chinese characters, Hangul, and their punctuation.
                '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{ff00}'..='\u{ffef}' => 1,
                // Rare letters are one for each byte but the first.
                _ => character.len_utf8() - 1,
            };
            return;
        }
        match (&mut self.piece, kind) {
            // A capital begins a word, or is one of several.
            (Some((piece @ CharKind::Upper, length, _)), CharKind::Lower) => {
                (*piece, *length) = (CharKind::Lower, *length + 1);
            }
            (Some((CharKind::Upper, length, has_capitals)), CharKind::Upper) => {
                (*length, *has_capitals) = (*length + 1, true);
            }
            (Some((piece, length, _)), kind) if *piece == kind => *length += 1,
            _ => {
                self.close();
                self.piece = Some((kind, 1, false));
            }
        }
    }

    fn close(&mut self) {
        self.whole = self.total();
        self.piece = None;
    }

    fn total(&self) -> usize {
        let Some((kind, length, has_capitals)) = self.piece else { return self.whole };
        let tokens = match kind {
            CharKind::Lower | CharKind::Upper if has_capitals || length > LONGEST_WORD => {
                length.div_ceil(2)
            }
            CharKind::Lower | CharKind::Upper => length.div_ceil(WORD_LETTERS),
            CharKind::Digit => length.div_ceil(DIGITS),
            // One space belongs to the word after it.
            CharKind::Space if length == 1 => 0,
            CharKind::Space | CharKind::Break => length.div_ceil(SPACES),
            CharKind::Mark => length.div_ceil(2),
            CharKind::Other => length,
        };
        self.whole + tokens
    }
}

/// Roughly how many tokens a text has. It stops counting soon after `most`.
pub fn estimate(text: &str, most: usize) -> usize {
    let mut count = TokenCount::default();
    for character in text.chars() {
        count.add(character);
        if count.whole > most {
            break;
        }
    }
    count.total()
}

/// The longest beginning of a text that has so many tokens.
pub fn beginning(text: &str, tokens: usize) -> &str {
    let mut count = TokenCount::default();
    for (place, character) in text.char_indices() {
        count.add(character);
        if count.total() > tokens {
            return text.get(..place).unwrap_or_default();
        }
    }
    text
}

/// The longest end of a text that has so many tokens.
pub fn end(text: &str, tokens: usize) -> &str {
    let mut count = TokenCount::default();
    for (place, character) in text.char_indices().rev() {
        count.add(character);
        if count.total() > tokens {
            return text.get(place + character.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

/// A text as its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutText<'a> {
    /// The first part.
    pub head: &'a str,
    /// The last part.
    pub tail: &'a str,
    /// Lines of which nothing is left.
    pub lines: usize,
    /// Bytes that are left out.
    pub bytes: usize,
}

/// Cuts a text to so many tokens, at the ends of lines where there are any near: `None` if it has no
/// more than that. Its end is worth as much as its beginning, so each has half.
pub fn cut(text: &str, tokens: usize) -> Option<CutText<'_>> {
    if estimate(text, tokens) <= tokens {
        return None;
    }
    let head = beginning(text, tokens / 2);
    // A line is kept whole unless that would lose most of the part.
    let head = match head.rfind('\n') {
        Some(last) if last >= head.len() / 2 => head.get(..=last).unwrap_or(head),
        _ => head,
    };
    let rest = text.get(head.len()..).unwrap_or_default();
    let tail = end(rest, tokens / 2);
    let tail = match tail.find('\n') {
        Some(first) if first < tail.len() / 2 => tail.get(first + 1..).unwrap_or(tail),
        _ => tail,
    };
    let between = rest.get(..rest.len() - tail.len()).unwrap_or_default();
    let lines = between.matches('\n').count();
    Some(CutText { head, tail, lines, bytes: between.len() })
}
