//! Rewrites templates so that every value they make is counted.
//!
//! minijinja's operators cannot be replaced, and it even joins constants while it parses. So each
//! operand of `+`, `~` and `*`, each list and each slice gets a filter of [`budget`] that counts
//! it. Statements that keep text in memory are refused.
//!
//! [`budget`]: super::budget

/// Words that are not operands.
const WORDS: [&str; 11] =
    ["and", "or", "not", "if", "elif", "else", "in", "is", "for", "set", "recursive"];
/// The statements that are allowed.
const STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "set"];

/// Marks the beginning and end of text that is not a template; only this spelling is accepted.
const RAW: &str = "{% raw %}";
const END_RAW: &str = "{% endraw %}";

/// An expression rewritten so that its values are counted.
pub(super) fn expression(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let tokens = read(text, None).0;
    rewrite(text, &tokens, &mut out);
    out
}

/// A text rewritten so that the values of its expressions are counted.
pub(super) fn text(text: &str) -> Result<String, String> {
    rewritten(text, &mut rewrite)
}

/// An expression without its slices, if it has any: minijinja does not report the names they apply
/// to.
pub(super) fn unsliced_expression(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    may_slice(text).then(|| unslice(text, &read(text, None).0, &mut out))?;
    Some(out)
}

/// A text whose expressions have no slices, if one had any.
pub(super) fn unsliced_text(text: &str) -> Option<String> {
    may_slice(text).then(|| rewritten(text, &mut unslice).ok())?
}

fn may_slice(text: &str) -> bool {
    text.contains('[') && text.contains(':')
}

/// The filters and tests in an expression.
pub(super) fn called_in_expression(text: &str) -> FiltersAndTests {
    let mut called = FiltersAndTests::default();
    called.collect(text, &read(text, None).0);
    called
}

/// The filters and tests in a text.
pub(super) fn called_in_text(text: &str) -> FiltersAndTests {
    let mut called = FiltersAndTests::default();
    // A text that cannot be parsed is reported elsewhere.
    let _ = rewritten(text, &mut |text, tokens, _| called.collect(text, tokens));
    called
}

/// The names of filters and tests that a template uses.
#[derive(Debug, Default)]
pub(super) struct FiltersAndTests {
    pub(super) filters: Vec<String>,
    pub(super) tests: Vec<String>,
}

impl FiltersAndTests {
    fn collect(&mut self, text: &str, tokens: &[Token]) {
        let word = |token: &Token| text.get(token.from..token.to).unwrap_or_default();
        for (index, token) in tokens.iter().enumerate() {
            let rest = tokens.get(index + 1..).unwrap_or_default();
            let name = match (token.kind, word(token)) {
                (TokenKind::Pipe, _) => rest.first(),
                (TokenKind::Word, "is") => rest.iter().find(|next| word(next) != "not"),
                _ => None,
            };
            let Some(name) = name.filter(|name| name.kind == TokenKind::Name).map(word) else {
                continue;
            };
            let is_filter = token.kind == TokenKind::Pipe;
            let called = if is_filter { &mut self.filters } else { &mut self.tests };
            called.push(name.to_owned());
        }
    }
}

/// A text with each expression rewritten by `rewrite`.
fn rewritten(
    text: &str,
    rewrite: &mut dyn FnMut(&str, &[Token], &mut String),
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        if let Some(raw) = tag.strip_prefix(RAW) {
            let (inside, after) = raw.split_once(END_RAW).ok_or("`raw` is not closed")?;
            // As a literal, the raw text is not parsed again.
            out.push_str(&format!("{{{{ {} }}}}", serde_json::Value::from(inside)));
            rest = after;
            continue;
        }
        let close = match tag.as_bytes().get(1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => {
                rest = tag.split_once("#}").ok_or("a comment is not closed")?.1;
                continue;
            }
            Some(_) | None => {
                out.push('{');
                rest = tag.get(1..).unwrap_or_default();
                continue;
            }
        };
        let (open, inside) = tag.split_at(2);
        let (tokens, length) = read(inside, Some(close));
        let (inside, after) = inside.split_at(length);
        if close == "%}" {
            statement(inside, &tokens)?;
        }
        out.push_str(open);
        rewrite(inside, &tokens, &mut out);
        rest = after.strip_prefix(close).ok_or("`{{` or `{%` is not closed")?;
        out.push_str(close);
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a statement is allowed.
fn statement(text: &str, tokens: &[Token]) -> Result<(), String> {
    let names = tokens
        .iter()
        .filter(|token| token.kind == TokenKind::Name || token.kind == TokenKind::Word);
    let words: Vec<&str> = names.filter_map(|token| text.get(token.from..token.to)).collect();
    let first = words.first().copied().unwrap_or_default();
    if !STATEMENTS.contains(&first) || words.contains(&"recursive") {
        return Err(format!("unknown statement {first}"));
    }
    let assigns = tokens.iter().any(|token| token.kind == TokenKind::Equals && token.level == 0);
    if first == "set" && !assigns {
        return Err("`set` without a value".to_owned());
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Name,
    Word,
    Literal,
    Number,
    Open(char),
    Close,
    /// An operator that continues an operand.
    Dot,
    Pipe,
    Colon,
    Equals,
    Plus,
    Tilde,
    Times,
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: TokenKind,
    from: usize,
    to: usize,
    level: usize,
}

impl Token {
    fn ends_operand(self) -> bool {
        matches!(
            self.kind,
            TokenKind::Name | TokenKind::Literal | TokenKind::Number | TokenKind::Close
        )
    }
}

/// The tokens of an expression and its length: up to where it is closed, or all of it.
fn read(text: &str, close: Option<&str>) -> (Vec<Token>, usize) {
    let mut tokens: Vec<Token> = Vec::new();
    let (mut at, mut level) = (0, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if level == 0 && close.is_some_and(|close| rest.starts_with(close)) {
            break;
        }
        let Some(letter) = rest.chars().next() else { break };
        let (kind, length) = token(rest, letter);
        let from = at;
        at += length;
        let Some(kind) = kind else { continue };
        let operand = tokens.last().is_some_and(|last: &Token| last.ends_operand());
        // A `*` that is not between two operands spreads arguments.
        let kind = if kind == TokenKind::Times && !operand { TokenKind::Other } else { kind };
        if kind == TokenKind::Close {
            level = level.saturating_sub(1);
        }
        tokens.push(Token { kind, from, to: at, level });
        level += usize::from(matches!(kind, TokenKind::Open(_)));
    }
    (tokens, at)
}

/// The token that a text begins with and its length; `None` for white space.
fn token(rest: &str, letter: char) -> (Option<TokenKind>, usize) {
    let one = letter.len_utf8();
    let kind = match letter {
        '"' | '\'' => return (Some(TokenKind::Literal), quoted(rest, letter)),
        '(' | '[' | '{' => TokenKind::Open(letter),
        ')' | ']' | '}' => TokenKind::Close,
        '.' => TokenKind::Dot,
        '|' => TokenKind::Pipe,
        ':' => TokenKind::Colon,
        '+' => TokenKind::Plus,
        '~' => TokenKind::Tilde,
        '=' | '!' | '<' | '>' if rest.get(one..).is_some_and(|rest| rest.starts_with('=')) => {
            return (Some(TokenKind::Other), 2);
        }
        '=' => TokenKind::Equals,
        '*' if rest.starts_with("**") => return (Some(TokenKind::Other), 2),
        '*' => TokenKind::Times,
        letter if letter.is_whitespace() => return (None, one),
        letter if letter.is_ascii_digit() => {
            let point = |at: usize| {
                rest.get(at + 1..)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            };
            let part =
                |(at, c): (usize, char)| c.is_alphanumeric() || c == '_' || (c == '.' && point(at));
            let end =
                rest.char_indices().find(|found| !part(*found)).map_or(rest.len(), |(at, _)| at);
            return (Some(TokenKind::Number), end);
        }
        letter if letter.is_alphabetic() || letter == '_' => {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = rest.get(..end).is_some_and(|word| WORDS.contains(&word));
            return (Some(if word { TokenKind::Word } else { TokenKind::Name }), end);
        }
        _ => TokenKind::Other,
    };
    (Some(kind), one)
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            letter if letter == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Writes an expression without its slices.
fn unslice(text: &str, tokens: &[Token], out: &mut String) {
    let mut copied = 0;
    for (index, open) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        let is_subscript =
            open.kind == TokenKind::Open('[') && before.is_some_and(|b| b.ends_operand());
        if !is_subscript || open.from < copied {
            continue;
        }
        let rest = tokens.get(index + 1..).unwrap_or_default();
        let close = rest.iter().position(|t| t.kind == TokenKind::Close && t.level == open.level);
        let Some((inside, close)) = close.and_then(|at| Some((rest.get(..at)?, rest.get(at)?)))
        else {
            continue;
        };
        if inside.iter().any(|t| t.kind == TokenKind::Colon && t.level == open.level + 1) {
            out.push_str(text.get(copied..open.from).unwrap_or_default());
            copied = close.to;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
}

/// One level of brackets, while an expression is rewritten.
#[derive(Default, Clone, Copy)]
struct BracketLevel {
    /// The operator before the operand that is being read.
    before: Option<TokenKind>,
    /// It is a list, or a slice once there is a colon.
    counted: bool,
    subscript: bool,
}

/// Writes an expression with a filter after each value that is counted.
fn rewrite(text: &str, tokens: &[Token], out: &mut String) {
    let mut levels = vec![BracketLevel::default()];
    let mut copied = 0;
    let mut last: Option<Token> = None;
    for (index, token) in tokens.iter().enumerate() {
        let counted = bracket(&mut levels, *token, last);
        last = Some(*token);
        let next = tokens.get(index + 1).map(|next| next.kind);
        let Some(level) = levels.last_mut() else { continue };
        if !token.ends_operand() {
            if !matches!(token.kind, TokenKind::Dot | TokenKind::Pipe | TokenKind::Open(_)) {
                let grows =
                    matches!(token.kind, TokenKind::Plus | TokenKind::Tilde | TokenKind::Times);
                // A sign belongs to the operand.
                let sign = index > 0 && text.get(token.from..token.to) == Some("-");
                if grows {
                    level.before = Some(token.kind);
                } else if !sign {
                    level.before = None;
                }
            }
            continue;
        }
        if matches!(next, Some(TokenKind::Dot | TokenKind::Open('[' | '('))) {
            continue;
        }
        let after = next
            .filter(|next| matches!(next, TokenKind::Plus | TokenKind::Tilde | TokenKind::Times));
        let piped = next == Some(TokenKind::Pipe);
        let operator = if piped {
            None
        } else {
            level.before.into_iter().chain(after).max_by_key(|k| *k == TokenKind::Times)
        };
        out.push_str(text.get(copied..token.to).unwrap_or_default());
        copied = token.to;
        if counted {
            out.push_str("|__counted");
        }
        match operator {
            Some(TokenKind::Times) => out.push_str("|__number"),
            Some(_) if token.kind != TokenKind::Number => out.push_str("|__counted"),
            Some(_) | None => {}
        }
        if !piped {
            level.before = None;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
}

/// Opens or closes a level; returns whether it closed one that is counted.
fn bracket(levels: &mut Vec<BracketLevel>, token: Token, last: Option<Token>) -> bool {
    if let TokenKind::Open(letter) = token.kind {
        let subscript = letter == '[' && last.is_some_and(Token::ends_operand);
        let list = letter == '{' || (letter == '[' && !subscript);
        levels.push(BracketLevel { before: None, counted: list, subscript });
    } else if token.kind == TokenKind::Close {
        return levels.len() > 1 && levels.pop().is_some_and(|level| level.counted);
    } else if token.kind == TokenKind::Colon
        && let Some(level) = levels.last_mut()
    {
        level.counted |= level.subscript;
    }
    false
}
