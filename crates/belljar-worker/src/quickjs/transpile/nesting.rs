//! Refuses code nested so deeply that reading it would exhaust the stack.
//!
//! The parser, the transformer and the printer all recurse, and the parser has no limit of its
//! own. So a scanner bounds the depth of the tree beforehand: a node needs a token of its own in
//! every statement or bracket that is still open around it, so the open ones are counted. The
//! bound may be too high, never by much too low. A trick that gets past it costs the agent its
//! own cell and nothing else, which is why guesses (is this `/` a division?) are good enough.

mod tokens;

use belljar_contract::ErrorCode;
use belljar_wire::GuestError;

use super::{SourceCode, syntax::error_at};
use tokens::{NestingToken, NestingTokens};

/// Brackets within brackets. Each costs up to 1.5 kB of stack while parsing.
const MAX_BRACKETS: usize = 2_000;
/// Tokens in all statements that are open at one point. Each costs up to 0.7 kB.
const MAX_OPEN_TOKENS: usize = 20_000;

/// Keywords a statement may begin with and another one follow: `if (a) while (b) c`.
const HEADS: &[&str] =
    &["await", "catch", "do", "else", "finally", "for", "if", "switch", "try", "while", "with"];
/// Words that continue the expression before them, even on a new line.
const CONTINUATIONS: &[&str] = &[
    "as",
    "catch",
    "else",
    "extends",
    "finally",
    "implements",
    "in",
    "instanceof",
    "is",
    "of",
    "satisfies",
    "while",
];
/// Words that want something after them, even on a new line.
const PREFIXES: &[&str] = &[
    "async",
    "await",
    "case",
    "delete",
    "extends",
    "implements",
    "in",
    "infer",
    "instanceof",
    "is",
    "keyof",
    "new",
    "of",
    "readonly",
    "return",
    "satisfies",
    "throw",
    "typeof",
    "unique",
    "void",
    "yield",
];

/// Refuses source that is nested too deeply.
pub(super) fn check(source: &SourceCode) -> Result<(), GuestError> {
    // Nothing this short can be too deep.
    if source.text.len() <= MAX_BRACKETS {
        return Ok(());
    }
    let mut depth = Depth::default();
    for (token, offset) in NestingTokens::new(&source.text) {
        depth.take(&token);
        if depth.levels.len() > MAX_BRACKETS || depth.open > MAX_OPEN_TOKENS {
            let message = "SyntaxError: the code is nested too deeply";
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            return Err(error_at(source, ErrorCode::SyntaxInvalid, message, offset).with_hint(
                "Build deep structures in a loop, and pass large data in with `context`.",
            ));
        }
    }
    Ok(())
}

/// The brackets that are open around the current token.
#[derive(Debug, Default)]
struct Depth<'a> {
    levels: Vec<BracketLevel>,
    /// The level outside all brackets.
    outermost: BracketLevel,
    /// Tokens of all levels.
    open: usize,
    previous: Option<NestingToken<'a>>,
    /// The bracket that closed last belongs to a statement's head.
    closed_head: bool,
    after_newline: bool,
}

/// The depth within one open bracket.
#[derive(Debug, Default)]
struct BracketLevel {
    /// Words of statement heads; a comma does not end those.
    heads: usize,
    /// `<` without its `>`, which may have opened a list of type arguments.
    angles: usize,
    /// All other tokens since the last comma or statement.
    tokens: usize,
    is_head: bool,
}

impl<'a> Depth<'a> {
    fn take(&mut self, token: &NestingToken<'a>) {
        if matches!(token, NestingToken::Newline) {
            self.after_newline = true;
            return;
        }
        if self.statement_ended(token) {
            self.level(|level| (level.heads, level.angles, level.tokens) = (0, 0, 0));
        }
        match token {
            NestingToken::Open => self.levels.push(BracketLevel::default()),
            NestingToken::Paren => {
                let is_head =
                    matches!(self.previous, Some(NestingToken::Word(word)) if is_in(HEADS, word));
                self.levels.push(BracketLevel { is_head, ..BracketLevel::default() });
            }
            NestingToken::Close => {
                if let Some(closed) = self.levels.pop() {
                    self.open -= closed.heads + closed.tokens;
                    self.closed_head = closed.is_head;
                }
                self.level(|level| level.tokens += 1);
            }
            NestingToken::Comma => self.level(|level| level.tokens = level.angles),
            NestingToken::Word(word) if is_in(HEADS, word) => self.level(|level| level.heads += 1),
            NestingToken::Less => self.level(|level| {
                level.angles += 1;
                level.tokens += 1;
            }),
            NestingToken::Greater => self.level(|level| {
                level.angles = level.angles.saturating_sub(1);
                level.tokens += 1;
            }),
            NestingToken::Word(_)
            | NestingToken::Literal
            | NestingToken::Semicolon
            | NestingToken::Operator => {
                self.level(|level| level.tokens += 1);
            }
            NestingToken::Newline => {}
        }
        self.previous = Some(*token);
        self.after_newline = false;
    }

    /// Changes the innermost level and keeps the sum right.
    fn level(&mut self, change: impl FnOnce(&mut BracketLevel)) {
        let level = self.levels.last_mut().unwrap_or(&mut self.outermost);
        self.open -= level.heads + level.tokens;
        change(level);
        self.open += level.heads + level.tokens;
    }

    /// Whether this token begins a new statement or member.
    fn statement_ended(&self, next: &NestingToken<'a>) -> bool {
        let begins = matches!(next, NestingToken::Literal)
            || matches!(next, NestingToken::Word(word) if !is_in(CONTINUATIONS, word));
        match self.previous {
            Some(NestingToken::Semicolon) => !matches!(next, NestingToken::Word("else" | "while")),
            Some(NestingToken::Close) => begins && self.after_newline && !self.closed_head,
            Some(NestingToken::Word(word)) => {
                begins && self.after_newline && !is_in(PREFIXES, word) && !is_in(HEADS, word)
            }
            // After a list of type arguments, most likely.
            Some(NestingToken::Literal | NestingToken::Greater) => begins && self.after_newline,
            _ => false,
        }
    }
}

fn is_in(words: &[&str], word: &str) -> bool {
    words.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests;
