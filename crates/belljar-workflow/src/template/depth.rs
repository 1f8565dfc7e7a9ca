//! How deep an expression is, before minijinja recurses into it.
//!
//! Chains (`a or a or …`, `x if c else y if d else …`, `a.b.c`) are trees as deep as they are long,
//! and minijinja's own bound is on brackets alone. The estimate here is never too low.

/// How long one expression may be.
const LONGEST: usize = 256 * 1024;
/// How deep one may be: a thread with 2 MiB of stack takes twice as much in a debug build.
const DEEPEST: usize = 560;
/// How many `{% %}` a text may have.
const BLOCKS: usize = 300;

/// Whether an expression can be given to minijinja.
pub(super) fn bounded(expression: &str) -> Result<(), String> {
    if expression.len() > LONGEST {
        return Err(format!("the expression has more than {LONGEST} bytes"));
    }
    // Every part has at least one character.
    if expression.len() > DEEPEST && DepthScan::over(expression, None).0 > DEEPEST {
        return Err(format!("the expression chains more than {DEEPEST} parts"));
    }
    Ok(())
}

/// Whether a text can be given to minijinja, with all expressions in it.
pub(super) fn bounded_text(text: &str) -> Result<(), String> {
    if text.len() <= DEEPEST {
        return Ok(());
    }
    if text.matches("{%").count() > BLOCKS {
        return Err(format!("the text has more than {BLOCKS} `{{% %}}`"));
    }
    let mut rest = text;
    while let Some((_, inside)) = rest.split_once('{') {
        let close = match inside.chars().next() {
            Some('{') => "}}",
            Some('%') => "%}",
            Some('#') => {
                rest = inside.split_once("#}").map(|(_, after)| after).unwrap_or_default();
                continue;
            }
            Some(_) | None => {
                rest = inside;
                continue;
            }
        };
        let inside = inside.get(1..).unwrap_or_default();
        if close == "%}" && is_raw(inside) {
            // Raw text is not parsed, and its end is not worth finding.
            return Err("the text is too long to contain `raw`".to_owned());
        }
        let (depth, length) = DepthScan::over(inside, Some(close));
        if depth > DEEPEST || length > LONGEST {
            return Err(format!("the expression chains more than {DEEPEST} parts"));
        }
        rest = inside.get(length..).unwrap_or_default();
    }
    Ok(())
}

fn is_raw(inside: &str) -> bool {
    inside.trim_start_matches(['-', '+']).trim_start().starts_with("raw")
}

/// One level of brackets.
#[derive(Default)]
struct BracketLevel {
    /// Links of chains: `or`, `and`, `if`.
    chain: usize,
    /// The deepest part between two links.
    deepest: usize,
    /// The part that is being read: its own links, and its deepest brackets.
    links: usize,
    inner: usize,
    /// The deepest part before a comma.
    before: usize,
}

impl BracketLevel {
    fn link(&mut self) {
        self.deepest = self.deepest.max(self.links + self.inner);
        (self.links, self.inner) = (0, 0);
    }

    fn comma(&mut self) {
        self.link();
        self.before = self.before.max(self.chain + self.deepest);
        (self.chain, self.deepest) = (0, 0);
    }

    fn depth(mut self) -> usize {
        self.comma();
        self.before
    }
}

#[derive(Default)]
struct DepthScan {
    outer: Vec<BracketLevel>,
    level: BracketLevel,
}

impl DepthScan {
    /// The depth of an expression and its length: up to where it is closed, or all of it.
    fn over(text: &str, close: Option<&str>) -> (usize, usize) {
        let mut scan = Self::default();
        let mut letters = text.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let rest = text.get(at..).unwrap_or_default();
            if let Some(close) = close
                && scan.outer.is_empty()
                && rest.starts_with(close)
            {
                return (scan.end(), at + close.len());
            }
            match letter {
                '"' | '\'' => {
                    while let Some((_, inner)) = letters.next() {
                        match inner {
                            '\\' => drop(letters.next()),
                            inner if inner == letter => break,
                            _ => {}
                        }
                    }
                }
                '(' | '[' | '{' => scan.open(),
                ')' | ']' | '}' => scan.close(),
                ',' => scan.level.comma(),
                letter if letter.is_alphabetic() || letter == '_' => {
                    let more = |c: char| c.is_alphanumeric() || c == '_';
                    let end = rest.find(|c| !more(c)).unwrap_or(rest.len());
                    while letters.next_if(|(_, c)| more(*c)).is_some() {}
                    scan.word(rest.get(..end).unwrap_or_default());
                }
                letter if letter.is_whitespace() || letter.is_alphanumeric() => {}
                _ => scan.level.links += 1,
            }
        }
        (scan.end(), text.len())
    }

    fn word(&mut self, word: &str) {
        match word {
            "or" | "and" | "if" => {
                self.level.chain += 1;
                self.level.link();
            }
            "else" => self.level.link(),
            "not" | "is" | "in" => self.level.links += 1,
            _ => {}
        }
    }

    fn open(&mut self) {
        self.level.links += 1;
        self.outer.push(std::mem::take(&mut self.level));
    }

    fn close(&mut self) {
        let Some(outer) = self.outer.pop() else { return };
        let inside = std::mem::replace(&mut self.level, outer).depth();
        self.level.inner = self.level.inner.max(inside);
    }

    /// Ends the scan; open brackets count as closed here.
    fn end(mut self) -> usize {
        while !self.outer.is_empty() {
            self.close();
        }
        self.level.depth()
    }
}
