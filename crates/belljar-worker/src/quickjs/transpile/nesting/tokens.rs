//! Just enough of a tokenizer: brackets, words, literals, and the extent of strings and comments.

/// A token, as far as nesting is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NestingToken<'a> {
    /// An opening parenthesis: `(`.
    Paren,
    /// `[`, `{` or `${`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// An identifier, keyword or number.
    Word(&'a str),
    /// A string, a regular expression, or a piece of a template.
    Literal,
    Comma,
    Semicolon,
    /// Less-than, or the start of type arguments: `<`.
    Less,
    /// Greater-than, or the end of type arguments: `>`.
    Greater,
    /// Any other character that is not a space.
    Operator,
    /// The end of a line.
    Newline,
}

/// The tokens of a text, each with its byte offset.
#[derive(Debug)]
pub(super) struct NestingTokens<'a> {
    text: &'a str,
    at: usize,
    /// For each open brace, whether a template continues after it.
    braces: Vec<Brace>,
    previous: Option<NestingToken<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brace {
    Block,
    Template,
}

impl<'a> NestingTokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, braces: Vec::new(), previous: None }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes all characters up to one that is not wanted.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Skips to after the next occurrence, or to the end.
    fn skip_past(&mut self, end: &str) {
        let rest = self.rest();
        self.at += rest.find(end).map_or(rest.len(), |found| found + end.len());
    }

    /// Skips a quoted text; strings and regular expressions end with their line.
    fn skip_quoted(&mut self, quote: char) {
        let mut escaped = false;
        let mut in_class = false;
        for (index, c) in self.rest().char_indices() {
            match c {
                '\n' if !escaped => return self.at += index,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '[' if quote == '/' => in_class = true,
                ']' if quote == '/' => in_class = false,
                _ if c == quote && !in_class => return self.at += index + c.len_utf8(),
                _ => {}
            }
        }
        self.at = self.text.len();
    }

    /// Skips a template, or to after the `${` that interrupts it.
    fn skip_template(&mut self) {
        let mut escaped = false;
        let mut dollar = false;
        for (index, c) in self.rest().char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '`' => return self.at += index + 1,
                '{' if dollar => {
                    self.braces.push(Brace::Template);
                    return self.at += index + 1;
                }
                _ => {}
            }
            dollar = c == '$';
        }
        self.at = self.text.len();
    }

    /// Whether a `/` here begins a regular expression rather than divides.
    fn regex_may_follow(&self) -> bool {
        match self.previous {
            Some(NestingToken::Word(word)) => {
                matches!(word, "return" | "typeof" | "case" | "in" | "of" | "await" | "void")
            }
            Some(NestingToken::Close | NestingToken::Literal) => false,
            _ => true,
        }
    }

    fn slash(&mut self) -> Option<NestingToken<'a>> {
        let rest = self.rest();
        if rest.starts_with('/') {
            self.skip_past("\n");
            return Some(NestingToken::Newline);
        }
        if rest.starts_with('*') {
            self.skip_past("*/");
            return None;
        }
        if self.regex_may_follow() {
            self.skip_quoted('/');
            return Some(NestingToken::Literal);
        }
        Some(NestingToken::Operator)
    }

    fn template(&mut self) -> NestingToken<'a> {
        let open = self.braces.len();
        self.skip_template();
        if self.braces.len() > open { NestingToken::Open } else { NestingToken::Literal }
    }

    /// The token that begins with this character, which is already taken; `None` for no token.
    fn token(&mut self, first: char, start: usize) -> Option<NestingToken<'a>> {
        Some(match first {
            '\n' => NestingToken::Newline,
            '(' => NestingToken::Paren,
            '[' => NestingToken::Open,
            ')' | ']' => NestingToken::Close,
            '{' => {
                self.braces.push(Brace::Block);
                NestingToken::Open
            }
            '}' => {
                if self.braces.pop() == Some(Brace::Template) {
                    let open = self.braces.len();
                    self.skip_template();
                    // `}…${` closes one bracket and opens the next: the depth stays.
                    if self.braces.len() > open {
                        return Some(NestingToken::Operator);
                    }
                }
                NestingToken::Close
            }
            ',' => NestingToken::Comma,
            ';' => NestingToken::Semicolon,
            '<' => NestingToken::Less,
            '>' => NestingToken::Greater,
            '=' if self.rest().starts_with('>') => {
                self.at += 1;
                NestingToken::Operator
            }
            '"' | '\'' => {
                self.skip_quoted(first);
                NestingToken::Literal
            }
            '`' => self.template(),
            '/' => return self.slash(),
            // `i++` ends like a value does.
            '+' | '-' if self.rest().starts_with(first) => {
                self.at += 1;
                NestingToken::Literal
            }
            _ if is_word(first) => {
                self.take_while(is_word);
                NestingToken::Word(self.text.get(start..self.at).unwrap_or_default())
            }
            _ if first.is_whitespace() => return None,
            _ => NestingToken::Operator,
        })
    }
}

impl<'a> Iterator for NestingTokens<'a> {
    type Item = (NestingToken<'a>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let first = self.rest().chars().next()?;
            self.at += first.len_utf8();
            if let Some(token) = self.token(first, start) {
                if token != NestingToken::Newline {
                    self.previous = Some(token);
                }
                return Some((token, start));
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
