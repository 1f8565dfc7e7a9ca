//! Makes control characters in a guest's text visible, so that a terminal never obeys them.
//!
//! A guest that could send escape sequences could rewrite what the person has already read, set the
//! window's title, or on some terminals type commands.

use std::{borrow::Cow, fmt::Write as _};

use super::look::{Device, Look};

/// The text as it may be written to the stream: unchanged for a file, made visible for a terminal.
pub(crate) fn for_stream(text: &str, look: Look) -> Cow<'_, str> {
    match look.device {
        Device::Terminal => visible(text),
        Device::Pipe => Cow::Borrowed(text),
    }
}

/// Writes C0 and C1 controls and direction overrides as `\x1b` or `\u{202e}`; line feeds and tabs
/// stay, and the carriage return of a line ending is dropped.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\r' && characters.peek() == Some(&'\n') {
            continue;
        }
        if !is_dangerous(character) {
            safe.push(character);
        } else if u32::from(character) < 0x100 {
            let _ = write!(safe, "\\x{:02x}", u32::from(character));
        } else {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        }
    }
    Cow::Owned(safe)
}

/// Whether a terminal might act on this character instead of showing it.
pub(crate) fn is_dangerous(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Direction overrides and isolates reorder what a person reads (CVE-2021-42574).
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests;
