//! Escapes control characters in guest text, so that a terminal never obeys them.
//!
//! With escape sequences a guest could rewrite text that a person has already read, set the
//! window's title, or on some terminals type commands.

use std::{borrow::Cow, fmt::Write as _};

use belljar_wire::text::{is_invisible, reorders_text};

use super::style::{Device, TextStyle};

/// The text for a stream: unchanged for a file, escaped for a terminal.
pub(crate) fn for_stream(text: &str, style: TextStyle) -> Cow<'_, str> {
    match style.device {
        Device::Terminal => visible(text),
        Device::Pipe => Cow::Borrowed(text),
    }
}

/// Writes C0 and C1 controls and direction overrides as `\x1b` or `\u{202e}`. Line feeds and tabs
/// stay; the carriage return of a line ending is dropped.
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
    let is_layout = matches!(character, '\n' | '\t');
    !is_layout && (character.is_control() || reorders_text(character))
}

/// JSON in which nothing is hidden: characters without width, direction overrides and control
/// characters become JSON escapes. The meaning stays the same, so a person sees what will be sent.
pub(crate) fn candid_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if !is_hidden(character) {
            safe.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            let _ = write!(safe, "\\u{unit:04x}");
        }
    }
    Cow::Owned(safe)
}

/// Whether this character is invisible, or changes how others are shown. In JSON such characters
/// occur only in strings, except the carriage return.
fn is_hidden(character: char) -> bool {
    (is_dangerous(character) && character != '\r') || is_invisible(character)
}

#[cfg(test)]
mod tests;
