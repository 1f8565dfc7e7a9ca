//! Columns are aligned.

use super::{columns, cut};
use crate::cli::terminal::style::TextStyle;

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let rows = [
        ["fs__read".to_owned(), "allow".to_owned(), "Reads a file".to_owned()],
        ["名".to_owned(), "ask".to_owned(), String::new()],
    ];
    let text = columns(["NAME", "POLICY", "DESCRIPTION"], &rows, TextStyle::PLAIN);
    let expected = "NAME      POLICY  DESCRIPTION\n\
                    fs__read  allow   Reads a file\n\
                    名        ask\n";
    assert_eq!(text, expected);
}

#[test]
fn a_cell_stays_in_its_row() {
    let rows = [["a\nb__c  allow".to_owned(), "\u{1b}[2Jx".to_owned()]];
    let text = columns(["NAME", "WHAT"], &rows, TextStyle::PLAIN);
    assert_eq!(text.lines().nth(1), Some("a b__c  allow  \\x1b[2Jx"));
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn what_is_too_long_is_cut_between_characters() {
    assert_eq!(cut("äöü", 2), "äö…");
    assert_eq!(cut("äöü", 3), "äöü");
}
