//! Removes a rule's secrets from an answer that repeats them. A courtesy: a server can repeat a secret in
//! any other form, and nobody would notice.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use hyper::{HeaderMap, header::HeaderValue};
use memchr::memmem;

use crate::rules::HeaderRule;

/// Shorter parts of a value occur by chance, and are hardly secret: `Bearer`, `v3`.
const MIN_SECRET_BYTES: usize = 8;
/// Stands for each byte, so that the length of the answer does not change.
const MASK: u8 = b'*';

/// Finds and masks secrets, also when they are spread over several pieces of a body.
pub(crate) struct Redactor {
    finders: Vec<memmem::Finder<'static>>,
    /// The end of the last piece, if a secret may begin there.
    held: BytesMut,
}

impl Redactor {
    /// Masks the words of the values that a rule has set; `None` if there is nothing to mask.
    pub(crate) fn of(rules: &[HeaderRule]) -> Option<Self> {
        let words = rules.iter().flat_map(|rule| rule.value.reveal().split_ascii_whitespace());
        let words = words.filter(|word| word.len() >= MIN_SECRET_BYTES);
        let finders: Vec<_> = words.map(|word| memmem::Finder::new(word).into_owned()).collect();
        if finders.is_empty() { None } else { Some(Self { finders, held: BytesMut::new() }) }
    }

    /// Masks the secrets in the values of headers.
    pub(crate) fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            if self.mask(&mut bytes)
                && let Ok(masked) = HeaderValue::from_bytes(&bytes)
            {
                *value = masked;
            }
        }
    }

    /// Masks the secrets in the next piece of a body, and returns as much as can be passed on.
    pub(crate) fn piece(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        let mut bytes = self.held.split();
        self.mask(&mut bytes);
        let begun = self.finders.iter().map(|finder| begun(&bytes, finder.needle())).max();
        self.held = bytes.split_off(bytes.len() - begun.unwrap_or_default());
        bytes.freeze()
    }

    /// The bytes that are still held back when the body has ended.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.held.split().freeze()
    }

    /// How many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    fn mask(&self, bytes: &mut [u8]) -> bool {
        let mut found: Vec<Range<usize>> = Vec::new();
        for finder in &self.finders {
            let length = finder.needle().len();
            found.extend(finder.find_iter(bytes).map(|start| start..start + length));
        }
        for range in &found {
            if let Some(secret) = bytes.get_mut(range.clone()) {
                secret.fill(MASK);
            }
        }
        !found.is_empty()
    }
}

/// How many bytes at the end are the beginning of a secret.
fn begun(bytes: &[u8], secret: &[u8]) -> usize {
    let longest = bytes.len().min(secret.len() - 1);
    let is_begun = |length: &usize| secret.get(..*length).is_some_and(|it| bytes.ends_with(it));
    (1..=longest).rev().find(is_begun).unwrap_or_default()
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Redactor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
