//! A4: nothing a guest prints acts on the reader's terminal.

use super::{candid_json, for_stream, visible};
use crate::cli::terminal::style::TextStyle;

#[test]
fn a4_control_sequences_are_shown_not_obeyed() {
    assert_eq!(visible("a\x1b[2Jb"), "a\\x1b[2Jb");
    assert_eq!(visible("\u{9b}31m"), "\\x9b31m");
    assert_eq!(visible("\x07\x08\x7f\0"), "\\x07\\x08\\x7f\\x00");
    assert_eq!(visible("over\rwritten"), "over\\x0dwritten");
    assert_eq!(visible("\u{202e}evil"), "\\u{202e}evil");
}

#[test]
fn ordinary_text_is_left_alone() {
    let text = "a\tb\nπ 日本 👩‍🚀";
    assert_eq!(visible(text), text);
    assert_eq!(visible("line\r\nline\r\n"), "line\nline\n");
}

#[test]
fn a_pipe_gets_the_bytes_as_they_are() {
    assert_eq!(for_stream("\x1b[0m", TextStyle::PLAIN), "\x1b[0m");
}

#[test]
fn json_keeps_its_meaning_when_nothing_is_hidden_in_it() {
    let hidden = "{\"a\":\r\n\"\u{7f}\u{200b}\u{e0041}\u{202e}é\"}";
    let candid = candid_json(hidden);
    assert_eq!(candid, "{\"a\":\r\n\"\\u007f\\u200b\\udb40\\udc41\\u202eé\"}");
    let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
    assert_eq!(read(hidden), read(&candid));
}
