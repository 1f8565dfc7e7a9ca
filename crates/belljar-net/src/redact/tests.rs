//! Secrets in answers, whole and in pieces.

use proptest::prelude::*;

use super::*;
use crate::rules::Secret;

fn redactor(value: &str) -> Option<Redactor> {
    let value = Secret::new(value.to_owned());
    Redactor::of(&[HeaderRule { name: "authorization".to_owned(), value }])
}

/// The whole text, in pieces that end at the given places.
fn in_pieces(redactor: &mut Redactor, text: &str, ends: &[usize]) -> String {
    let mut out = Vec::new();
    let mut start = 0;
    for end in ends.iter().copied().chain([text.len()]) {
        let end = end.clamp(start, text.len());
        out.extend_from_slice(&redactor.piece(&text.as_bytes()[start..end]));
        start = end;
    }
    out.extend_from_slice(&redactor.rest());
    String::from_utf8(out).unwrap()
}

#[test]
fn every_word_of_eight_bytes_is_masked_and_shorter_ones_are_not() {
    let mut redactor = redactor("Bearer s3cret-token").unwrap();
    let text = "Bearer s3cret-token, s3cret-toke, s3cret-tokens3cret-token";
    let masked = "Bearer ************, s3cret-toke, ************************";
    assert_eq!(in_pieces(&mut redactor, text, &[]), masked);
    assert!(super::Redactor::of(&[]).is_none());
    assert!(self::redactor("v3").is_none());
}

#[test]
fn nothing_is_held_back_that_cannot_begin_a_secret() {
    let mut redactor = redactor("s3cret-token").unwrap();
    assert_eq!(redactor.piece(b"data: 1\n\n"), "data: 1\n\n");
    assert_eq!(redactor.piece(b"data: s3cr"), "data: ");
    assert_eq!(redactor.held(), 4);
    assert_eq!(redactor.piece(b"ew\n"), "s3crew\n");
}

#[test]
fn headers_are_masked() {
    let mut headers = HeaderMap::new();
    headers.insert("x-echo", HeaderValue::from_static("was s3cret-token"));
    headers.insert("x-other", HeaderValue::from_static("kept"));
    redactor("Bearer s3cret-token").unwrap().headers(&mut headers);
    assert_eq!(headers["x-echo"], "was ************");
    assert_eq!(headers["x-other"], "kept");
}

proptest! {
    #[test]
    fn pieces_make_no_difference(text in "(s3cret-token|s3cret|-|x){0,12}", ends in prop::collection::vec(0_usize..100, 0..8)) {
        let mut ends = ends;
        ends.sort_unstable();
        let whole = in_pieces(&mut redactor("s3cret-token").unwrap(), &text, &[]);
        let pieces = in_pieces(&mut redactor("s3cret-token").unwrap(), &text, &ends);
        prop_assert_eq!(&whole, &pieces);
        prop_assert_eq!(whole.len(), text.len());
        prop_assert!(!whole.contains("s3cret-token"));
        prop_assert_eq!(whole, text.replace("s3cret-token", "************"));
    }
}
