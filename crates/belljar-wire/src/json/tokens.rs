//! JSON text, token by token. The text is known to be valid; on any other it ends early.

/// The kinds of tokens of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonTokenKind {
    /// The start of an object or an array: `{` or `[`.
    Open,
    /// The end of an object or an array: `}` or `]`.
    Close,
    /// A comma between two items.
    Comma,
    /// The colon after a key.
    Colon,
    /// A key or a text, with its quotes and escapes.
    String,
    /// A number, with all its digits.
    Number,
    /// `true`, `false` or `null`.
    Literal,
}

/// One token, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonToken<'a> {
    /// The kind that its first byte shows.
    pub kind: JsonTokenKind,
    /// The text as it is written, quotes and escapes included.
    pub text: &'a str,
}

/// The tokens that are left. Cheap to clone, so looking ahead is a clone.
#[derive(Debug, Clone)]
pub struct JsonTokens<'a> {
    rest: &'a str,
}

impl<'a> JsonTokens<'a> {
    /// The tokens of a JSON text.
    pub fn new(json: &'a str) -> Self {
        Self { rest: json }
    }
}

impl<'a> Iterator for JsonTokens<'a> {
    type Item = JsonToken<'a>;

    fn next(&mut self) -> Option<JsonToken<'a>> {
        let text = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let (kind, length) = match text.bytes().next()? {
            b'{' | b'[' => (JsonTokenKind::Open, 1),
            b'}' | b']' => (JsonTokenKind::Close, 1),
            b',' => (JsonTokenKind::Comma, 1),
            b':' => (JsonTokenKind::Colon, 1),
            b'"' => (JsonTokenKind::String, string_length(text)?),
            b'-' | b'0'..=b'9' => (JsonTokenKind::Number, scalar_length(text)),
            _ => (JsonTokenKind::Literal, scalar_length(text)),
        };
        let (token, rest) = text.split_at_checked(length)?;
        self.rest = rest;
        Some(JsonToken { kind, text: token })
    }
}

/// Bytes of the string at the start of the text, with both quotes.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        match bytes.get(at) {
            Some(b'"') => return Some(at + 1),
            // An escaped character ends nothing.
            _ => at += 2,
        }
    }
}

fn scalar_length(text: &str) -> usize {
    text.find([',', ':', '[', ']', '{', '}', '"', ' ', '\t', '\n', '\r']).unwrap_or(text.len())
}
