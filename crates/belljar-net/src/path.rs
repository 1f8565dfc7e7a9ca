//! Patterns of paths in rules, and the paths of requests that can be read in one way only.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A pattern of paths: `*` stands for one part of a path, `**` at the end for the rest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern(String);

/// Why a path pattern is malformed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathPatternError {
    /// It does not begin with a slash.
    #[error("`{0}`: a path must begin with /")]
    Relative(String),
    /// It has a query or a fragment.
    #[error("`{0}`: a path must not have a query or a fragment")]
    Query(String),
    /// It could be read in two ways.
    #[error("`{0}`: a path must not have `..`, `.`, `//`, `\\` or encoded slashes")]
    Ambiguous(String),
    /// A star beside other characters, or two stars before the end.
    #[error("`{0}`: `*` must be a whole part of the path, and `**` the last one")]
    Star(String),
}

impl PathPattern {
    /// Whether it matches a path, which is without its query and can be read in one way only.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        for wanted in self.0.split('/') {
            if wanted == "**" {
                return parts.next().is_some();
            }
            match parts.next() {
                Some(part) if part == wanted || (wanted == "*" && !part.is_empty()) => {}
                Some(_) | None => return false,
            }
        }
        parts.next().is_none()
    }
}

impl PathPattern {
    /// The paths that both patterns match; `None` if there are none.
    pub fn both(&self, other: &Self) -> Option<Self> {
        let (mut own, mut other) = (self.0.split('/').peekable(), other.0.split('/').peekable());
        let mut parts = Vec::new();
        loop {
            let part = match (own.peek(), other.peek()) {
                (None, None) => return Some(Self(parts.join("/"))),
                // It stands for the rest, which has at least one part.
                (Some(&"**"), Some(_)) => {
                    parts.extend(other);
                    return Some(Self(parts.join("/")));
                }
                (Some(_), Some(&"**")) => {
                    parts.extend(own);
                    return Some(Self(parts.join("/")));
                }
                (Some(part), Some(same)) if part == same => *part,
                (Some(&"*"), Some(part)) | (Some(part), Some(&"*")) if !part.is_empty() => *part,
                _ => return None,
            };
            parts.push(part);
            own.next();
            other.next();
        }
    }
}

/// Whether servers could read a path in different ways: parts `.` and `..`, empty parts, backslashes,
/// control characters, and encoded forms of all these.
pub(crate) fn is_ambiguous(path: &str) -> bool {
    let is_odd = |byte: u8| byte <= b' ' || byte == b'\\' || byte == 0x7f || !byte.is_ascii();
    if path.bytes().any(is_odd) || path.contains("//") {
        return true;
    }
    let Some(decoded) = decoded(path) else { return true };
    decoded.iter().any(|byte| *byte == b'\\' || *byte < b' ' || *byte == 0x7f)
        || decoded.iter().filter(|byte| **byte == b'/').count()
            != path.bytes().filter(|byte| *byte == b'/').count()
        // A percent sign that was encoded may be decoded a second time.
        || decoded.contains(&b'%')
        || decoded.split(|byte| *byte == b'/').any(is_dots)
}

/// `.` or `..`, also before a `;`, from which some servers ignore the rest of a part.
fn is_dots(part: &[u8]) -> bool {
    let name = part.split(|byte| *byte == b';').next().unwrap_or_default();
    matches!(name, b"." | b"..")
}

/// The bytes behind the percent signs; `None` if one is not followed by two digits.
fn decoded(path: &str) -> Option<Vec<u8>> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        decoded.push(u8::try_from(value).ok()?);
    }
    Some(decoded)
}

impl FromStr for PathPattern {
    type Err = PathPatternError;

    fn from_str(text: &str) -> Result<Self, PathPatternError> {
        let own = || text.to_owned();
        if !text.starts_with('/') {
            return Err(PathPatternError::Relative(own()));
        }
        if text.contains(['?', '#']) {
            return Err(PathPatternError::Query(own()));
        }
        if is_ambiguous(text) {
            return Err(PathPatternError::Ambiguous(own()));
        }
        let parts: Vec<_> = text.split('/').collect();
        let is_star_misplaced = |(index, part): (usize, &&str)| match *part {
            "*" => false,
            "**" => index + 1 != parts.len(),
            part => part.contains('*'),
        };
        if parts.iter().enumerate().any(is_star_misplaced) {
            return Err(PathPatternError::Star(own()));
        }
        Ok(Self(own()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
