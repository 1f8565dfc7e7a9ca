//! The last line is the value if it is JSON, whatever pieces it came in (A3).

use super::{JsonLine, LastLine};

fn last(max: usize, chunks: &[&str]) -> LastLine {
    let mut line = JsonLine::new(max);
    chunks.iter().for_each(|chunk| line.push(chunk.as_bytes()));
    line.finish()
}

#[test]
fn json_is_a_value() {
    for (chunks, value) in [
        (&["one\n{\"a\"", ": 1}\n"][..], "{\"a\": 1}"),
        (&["[1]\n\n  \n"], "[1]"),
        (&["7"], "7"),
        (&["x\n\"text\"\n"], "\"text\""),
        (&["true\r\n"], "true"),
        (&["null\n"], "null"),
    ] {
        assert_eq!(last(100, chunks), LastLine::Json(value.into()), "{chunks:?}");
    }
}

#[test]
fn the_whole_output_may_be_one_text() {
    for (chunks, value) in [
        (&["[\n  1,\n  2\n]\n"][..], "[1,2]"),
        (
            &["{\n  \"a b\": \"c \\\" d\\\\\",\n", "  \"e\": [ ]\n}"],
            "{\"a b\":\"c \\\" d\\\\\",\"e\":[]}",
        ),
        (&["{\"a\": 1}\n{\"b\": 2}\n"], "{\"b\": 2}"),
        (&["[\n1\n]\n7\n"], "7"),
    ] {
        assert_eq!(last(100, chunks), LastLine::Json(value.into()), "{chunks:?}");
    }
    assert_eq!(last(100, &["working\n[\n1\n]\n"]), LastLine::Text);
    assert_eq!(last(5, &["[\n1,\n2\n]\n"]), LastLine::Text);
}

#[test]
fn other_text_is_not() {
    for text in ["", "\n", "hello\n", "{a: 1}\n", "007\n", "NaN\n", "1 2\n", "[1]\ndone\n", "1e999"]
    {
        assert_eq!(last(100, &[text]), LastLine::Text, "{text}");
    }
    assert_eq!(last(100, &[&"[".repeat(90), "\n"]), LastLine::Text);
}

#[test]
fn a_large_line_is_not_kept() {
    assert_eq!(last(5, &["[1,2]\n"]), LastLine::Json(b"[1,2]".to_vec()));
    assert_eq!(last(5, &["[1,", "23]\n"]), LastLine::TooLarge);
    assert_eq!(last(5, &["plain text\n"]), LastLine::Text);
    assert_eq!(last(5, &["[1, 2, 3, 4]\n1\n"]), LastLine::Json(b"1".to_vec()));
}
