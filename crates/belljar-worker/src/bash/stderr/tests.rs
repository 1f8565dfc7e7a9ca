//! Lines of standard error, as bash writes them.

use super::{Complaint, StderrRewriter, complaint};

#[test]
fn complaints_have_lines() {
    let what = "foo: command not found";
    assert_eq!(
        complaint("main.sh: line 12: foo: command not found", "main.sh"),
        Some(Complaint { line: 12, what })
    );
    for text in ["main.sh: foo", "main.sh: line x: foo", "other: line 1: foo", ""] {
        assert_eq!(complaint(text, "main.sh"), None, "{text}");
    }
}

#[test]
fn syntax_errors_read_as_of_a_file() {
    for (line, expected) in [
        ("m.sh: -c: line 2: syntax error\n", Some("m.sh: line 2: syntax error\n")),
        ("m.sh: eval: line 2: `fi'\n", Some("m.sh: line 2: `fi'\n")),
        (
            "m.sh: -c: line 1: `export -nf command_not_found_handle;unset -v REPLY;)'\n",
            Some("m.sh: line 1: `)'\n"),
        ),
        ("environment: line 3: x: unbound\n", Some("m.sh: line 3: x: unbound\n")),
        ("environment: fork: retry\n", Some("m.sh: fork: retry\n")),
        ("environment: green\n", None),
        ("m.sh: line 2: x\n", None),
        ("other\n", None),
    ] {
        let text = StderrRewriter { file_name: "m.sh", earlier: None, granted: &[] }
            .as_if_a_file(line.as_bytes());
        assert_eq!(text.as_deref(), expected.map(str::as_bytes), "{line}");
    }
}

/// B1: lines of what earlier runs have left are not told.
#[test]
fn b1_lines_of_earlier_runs_are_left_out() {
    let words = StderrRewriter { file_name: "m.sh", earlier: Some(100), granted: &[] };
    for (line, expected) in [
        ("environment: line 103: x: unbound\n", Some("m.sh: x: unbound\n")),
        ("environment: line 3: x: unbound\n", Some("m.sh: line 3: x: unbound\n")),
        ("m.sh: line 103: x\n", Some("m.sh: x\n")),
        ("m.sh: line 3: x\n", None),
    ] {
        let text = words.as_if_a_file(line.as_bytes());
        assert_eq!(text.as_deref(), expected.map(str::as_bytes), "{line}");
    }
}
