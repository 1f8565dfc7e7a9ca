//! JSON text, token by token. The text is known to be valid; on any other it ends early.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    Comma,
    Colon,
    String,
    Number,
    Literal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// The tokens that are left. Cheap to clone, so looking ahead is a clone.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self { rest: json }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let text = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let (kind, length) = match text.bytes().next()? {
            b'{' | b'[' => (Kind::Open, 1),
            b'}' | b']' => (Kind::Close, 1),
            b',' => (Kind::Comma, 1),
            b':' => (Kind::Colon, 1),
            b'"' => (Kind::String, string_length(text)?),
            b'-' | b'0'..=b'9' => (Kind::Number, scalar_length(text)),
            _ => (Kind::Literal, scalar_length(text)),
        };
        let (token, rest) = text.split_at_checked(length)?;
        self.rest = rest;
        Some(Token { kind, text: token })
    }
}

/// Bytes of the string at the start of the text, with both quotes.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

fn scalar_length(text: &str) -> usize {
    text.find([',', ':', '[', ']', '{', '}', '"', ' ', '\t', '\n', '\r']).unwrap_or(text.len())
}
