//! A7: an error points at the line and column of the code as the agent wrote it.

use super::code_frame;
use crate::cli::terminal::style::TextStyle;

fn frame(source: &str, line: u32, column: u32) -> String {
    code_frame(source, line, column, TextStyle::PLAIN).expect("the source has this line")
}

#[test]
fn a7_the_caret_is_under_the_column_with_lines_around() {
    let source =
        "const a = 1;\nconst b = 2;\nconst c = 3;\nthrow new Error(\"boom\");\nend();\nmore();\n";
    insta::assert_snapshot!(frame(source, 4, 7), @r#"
    2 | const b = 2;
    3 | const c = 3;
    4 | throw new Error("boom");
      |       ^
    5 | end();
    "#);
}

#[test]
fn a7_first_line_last_line_and_line_ten() {
    insta::assert_snapshot!(frame("oops", 1, 1), @r"
    1 | oops
      | ^
    ");
    let source = (1..=10).map(|n| format!("line{n}\n")).collect::<String>();
    insta::assert_snapshot!(frame(&source, 9, 5), @r"
     7 | line7
     8 | line8
     9 | line9
       |     ^
    10 | line10
    ");
}

#[test]
fn a7_tabs_and_wide_characters_keep_the_caret_in_place() {
    insta::assert_snapshot!(frame("\tx\ty = bad", 1, 8), @r"
    1 |     x   y = bad
      |             ^
    ");
    insta::assert_snapshot!(frame("const 名前 = '👩' + bad", 1, 18), @r"
    1 | const 名前 = '👩' + bad
      |                     ^
    ");
    insta::assert_snapshot!(frame("日本語", 1, 2), @r"
    1 | 日本語
      |   ^^
    ");
}

#[test]
fn a7_a_column_past_the_end_points_past_the_end() {
    insta::assert_snapshot!(frame("f(", 1, 3), @r"
    1 | f(
      |   ^
    ");
    insta::assert_snapshot!(frame("f(", 1, 4_000_000_000), @r"
    1 | f(
      |   ^
    ");
}

#[test]
fn a7_a_long_line_is_cut_around_the_column() {
    let source = format!("{}bad{}", "a".repeat(500), "b".repeat(500));
    insta::assert_snapshot!(frame(&source, 1, 501), @r"
    1 | …aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabadbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
      |                                                    ^
    ");
}

#[test]
fn a4_controls_in_the_source_are_shown_not_obeyed() {
    insta::assert_snapshot!(frame("a = '\u{1b}[2J' + bad", 1, 14), @r"
    1 | a = '\x1b[2J' + bad
      |                 ^
    ");
}

#[test]
fn a_line_the_source_does_not_have_gives_no_frame() {
    for (source, line) in [("", 1), ("x", 0), ("x", 2), ("x", u32::MAX)] {
        assert_eq!(code_frame(source, line, 1, TextStyle::PLAIN), None, "{source:?} {line}");
    }
}
