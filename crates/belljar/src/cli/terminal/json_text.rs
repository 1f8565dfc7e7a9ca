//! Formats JSON text for people, token by token.
//!
//! It never builds a tree: key order and digits stay as the guest wrote them, and a value nested
//! hundreds of thousands deep needs no stack. Indentation stops at a depth, so it needs little
//! space.

use std::fmt::Write as _;

use belljar_wire::json::{JsonToken, JsonTokenKind, JsonTokens};

use super::{
    style::{TextRole, TextStyle},
    visible::is_dangerous,
};

/// How containers are formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Every element on its own line.
    Expanded,
    /// Containers that fit stay on one line.
    Fitted,
}

/// Deeper containers are written on one line.
const MAX_DEPTH: usize = 32;

/// Formats JSON text, which must be valid, as a [`RawValue`](serde_json::value::RawValue) is.
pub(crate) fn lay_out(json: &str, layout: Layout, style: TextStyle) -> String {
    let mut printer = JsonPrinter {
        text: String::with_capacity(json.len() + json.len() / 4),
        layout,
        style,
        depth: 0,
        inline_above: None,
    };
    let mut tokens = JsonTokens::new(json);
    while let Some(token) = tokens.next() {
        printer.print(token, &tokens);
    }
    printer.text
}

struct JsonPrinter {
    text: String,
    layout: Layout,
    style: TextStyle,
    depth: usize,
    /// The depth outside the outermost container that is written on one line.
    inline_above: Option<usize>,
}

impl JsonPrinter {
    fn print(&mut self, token: JsonToken<'_>, rest: &JsonTokens<'_>) {
        match token.kind {
            JsonTokenKind::Open => self.open(token, rest),
            JsonTokenKind::Close => self.close(token),
            JsonTokenKind::Comma => self.comma(),
            JsonTokenKind::Colon => self.text.push_str(": "),
            JsonTokenKind::String => self.string(token, rest),
            JsonTokenKind::Number => {
                self.text.push_str(&self.style.paint(TextRole::Number, token.text))
            }
            JsonTokenKind::Literal => {
                self.text.push_str(&self.style.paint(TextRole::Literal, token.text))
            }
        }
    }

    fn open(&mut self, token: JsonToken<'_>, rest: &JsonTokens<'_>) {
        self.text.push_str(token.text);
        let stays_on_line =
            rest.clone().next().is_none_or(|next| next.kind == JsonTokenKind::Close)
                || self.depth >= MAX_DEPTH
                || (self.layout == Layout::Fitted && fits(rest.clone(), self.room()));
        if stays_on_line && self.inline_above.is_none() {
            self.inline_above = Some(self.depth);
        }
        self.depth += 1;
        if self.inline_above.is_none() {
            self.new_line();
        }
    }

    fn close(&mut self, token: JsonToken<'_>) {
        self.depth = self.depth.saturating_sub(1);
        if self.inline_above.is_none() {
            self.new_line();
        } else if self.inline_above == Some(self.depth) {
            self.inline_above = None;
        }
        self.text.push_str(token.text);
    }

    fn comma(&mut self) {
        self.text.push(',');
        if self.inline_above.is_some() {
            self.text.push(' ');
        } else {
            self.new_line();
        }
    }

    fn string(&mut self, token: JsonToken<'_>, rest: &JsonTokens<'_>) {
        let is_key = rest.clone().next().is_some_and(|next| next.kind == JsonTokenKind::Colon);
        let role = if is_key { TextRole::Key } else { TextRole::Text };
        let painted = self.style.paint(role, &inert(token.text));
        self.text.push_str(&painted);
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    /// Columns left for a container that starts here; approximate, it counts indentation only.
    fn room(&self) -> usize {
        self.style.width.saturating_sub(2 * self.depth + 16)
    }
}

/// Whether the container that was just opened closes within `room` columns.
fn fits(tokens: JsonTokens<'_>, room: usize) -> bool {
    let mut used = 0;
    let mut depth = 1_usize;
    for token in tokens {
        match token.kind {
            JsonTokenKind::Open => depth += 1,
            JsonTokenKind::Close => depth -= 1,
            JsonTokenKind::Comma | JsonTokenKind::Colon => used += 1,
            JsonTokenKind::String | JsonTokenKind::Number | JsonTokenKind::Literal => {}
        }
        used += token.text.len();
        if used > room {
            return false;
        }
        if depth == 0 {
            return true;
        }
    }
    true
}

/// JSON leaves DEL, C1 controls and direction overrides unescaped; a terminal may obey them.
fn inert(string: &str) -> String {
    if !string.contains(is_dangerous) {
        return string.to_owned();
    }
    let mut safe = String::with_capacity(string.len() + 16);
    for character in string.chars() {
        if is_dangerous(character) {
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests;
