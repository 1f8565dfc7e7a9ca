//! Simple regular expressions: characters and classes, each with a repetition, between anchors. Other
//! patterns are left to the server.

/// Steps one match may take; beyond that the result is unknown.
const MAX_STEPS: usize = 20_000;

/// A longer text, in characters, is not matched: one step may read all of it.
const MAX_TEXT: usize = 4096;

/// Patterns with more parts are not simple.
const MAX_PARTS: usize = 200;

/// Whether the text matches; `None` if the pattern is not simple.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    let parsed = parse(pattern)?;
    let text: Vec<char> = text.chars().take(MAX_TEXT + 1).collect();
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut steps = MAX_STEPS;
    let starts = if parsed.from_start { 0..1 } else { 0..text.len() + 1 };
    for start in starts {
        let rest = text.get(start..).unwrap_or_default();
        if fits(&parsed.parts, rest, parsed.to_end, &mut steps)? {
            return Some(true);
        }
    }
    Some(false)
}

struct ParsedPattern {
    from_start: bool,
    to_end: bool,
    parts: Vec<PatternPart>,
}

struct PatternPart {
    negated: bool,
    /// The characters it stands for; both ends of a range are included.
    ranges: Vec<(char, char)>,
    least: usize,
    most: usize,
}

fn fits(parts: &[PatternPart], text: &[char], to_end: bool, steps: &mut usize) -> Option<bool> {
    *steps = steps.checked_sub(1)?;
    let Some((part, more)) = parts.split_first() else {
        return Some(!to_end || text.is_empty());
    };
    let run = text.iter().take(part.most).take_while(|found| part.has(**found)).count();
    // Longest first, as the engines do; the answer is the same, only sooner.
    for length in (part.least..=run).rev() {
        if fits(more, text.get(length..)?, to_end, steps)? {
            return Some(true);
        }
    }
    Some(false)
}

impl PatternPart {
    fn has(&self, found: char) -> bool {
        let within = self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&found));
        within != self.negated
    }
}

fn parse(pattern: &str) -> Option<ParsedPattern> {
    let (from_start, rest) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let escaped_end = rest.ends_with("\\$");
    let (to_end, rest) = match rest.strip_suffix('$') {
        Some(rest) if !escaped_end => (true, rest),
        _ => (false, rest),
    };
    let mut characters = rest.chars().peekable();
    let mut parts = Vec::new();
    while let Some(first) = characters.next() {
        let (negated, ranges) = match first {
            '[' => class(&mut characters)?,
            '.' => (true, vec![('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]),
            '\\' => (false, escape(characters.next()?)?),
            '(' | ')' | '|' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            other => (false, vec![(other, other)]),
        };
        let (least, most) = repetition(&mut characters)?;
        parts.push(PatternPart { negated, ranges, least, most });
        // Matching goes one level deeper with each.
        if parts.len() > MAX_PARTS {
            return None;
        }
    }
    Some(ParsedPattern { from_start, to_end, parts })
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn class(characters: &mut Characters<'_>) -> Option<(bool, Vec<(char, char)>)> {
    let negated = characters.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let first = match characters.next()? {
            ']' => return Some((negated, ranges)),
            '\\' => {
                let mut escaped = escape(characters.next()?)?;
                match escaped.as_slice() {
                    [(only, last)] if only == last => *only,
                    _ => {
                        ranges.append(&mut escaped);
                        continue;
                    }
                }
            }
            // Sets within sets and their operators are of other dialects.
            '[' | '&' => return None,
            other => other,
        };
        let mut ahead = characters.clone();
        let range = ahead.next() == Some('-') && ahead.peek().is_some_and(|next| *next != ']');
        if !range {
            ranges.push((first, first));
            continue;
        }
        characters.next();
        let last = match characters.next()? {
            '\\' | '[' => return None,
            last => last,
        };
        if first > last {
            return None;
        }
        ranges.push((first, last));
    }
}

fn escape(letter: char) -> Option<Vec<(char, char)>> {
    match letter {
        'd' => Some(vec![('0', '9')]),
        'w' => Some(vec![('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')]),
        'n' => Some(vec![('\n', '\n')]),
        't' => Some(vec![('\t', '\t')]),
        'r' => Some(vec![('\r', '\r')]),
        _ if letter.is_ascii_alphanumeric() => None,
        _ => Some(vec![(letter, letter)]),
    }
}

fn repetition(characters: &mut Characters<'_>) -> Option<(usize, usize)> {
    let bounds = match characters.peek() {
        Some('*') => (0, usize::MAX),
        Some('+') => (1, usize::MAX),
        Some('?') => (0, 1),
        Some('{') => {
            characters.next();
            let mut inside = String::new();
            while let Some(next) = characters.next_if(|next| *next != '}') {
                inside.push(next);
            }
            characters.peek()?;
            let (least, most) = match inside.split_once(',') {
                None => (inside.parse().ok()?, inside.parse().ok()?),
                Some((least, "")) => (least.parse().ok()?, usize::MAX),
                Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
            };
            (least, most)
        }
        _ => return Some((1, 1)),
    };
    characters.next();
    // A lazy or possessive mark.
    if matches!(characters.peek(), Some('?' | '+')) {
        return None;
    }
    Some(bounds)
}
