//! The output of Python code, and the helpers that print (A9, A11).

use belljar_contract::{ErrorCode, Stream};
use serde_json::json;

use crate::cpython_harness::{Python, granted, run, run_command};

fn out(text: &str) -> (Stream, String) {
    (Stream::Stdout, text.into())
}

fn err(text: &str) -> (Stream, String) {
    (Stream::Stderr, text.into())
}

fn log(text: &str) -> (Stream, String) {
    (Stream::Log, text.into())
}

/// A9: one print is one frame; streams keep their order.
#[test]
fn prints_arrive_in_order() {
    let cases: &[(&str, Vec<(Stream, String)>)] = &[
        ("print('a', 1, sep='-')\nprint()", vec![out("a-1\n"), out("\n")]),
        ("print('two\\nlines')", vec![out("two\nlines\n")]),
        (
            "import sys\nprint('a', end=' ')\nprint('b')\nprint('e', file=sys.stderr)\nprint('c', end='')",
            vec![out("a b\n"), err("e\n"), out("c")],
        ),
        ("print('a', end='', flush=True)\nprint('b')", vec![out("a"), out("b\n")]),
        (
            "import sys\nsys.stdout.buffer.write(b'raw\\n')\nsys.stdout.write('x')\nsys.stdout.writelines(['y', '\\n'])",
            vec![out("raw\n"), out("xy\n")],
        ),
        (
            "import logging\nlogging.warning('careful')\nlogging.info('unseen')",
            vec![err("WARNING:root:careful\n")],
        ),
        (
            "import logging\nlogging.basicConfig(level='INFO', format='%(message)s')\nlogging.info('seen')",
            vec![err("seen\n")],
        ),
        ("print('\\ud800é')", vec![out("\\ud800é\n")]),
        ("print('before')\n1/0", vec![out("before\n")]),
        (
            "import atexit\natexit.register(print, 'bye')\nprint('hi')",
            vec![out("hi\n"), out("bye\n")],
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(run(code).prints, *expected, "{code}");
    }
}

/// A9: warnings name the agent's line.
#[test]
fn warnings_name_the_line() {
    let outcome = run("import warnings\nwarnings.warn('old')");
    let text = "main.py:2: UserWarning: old\n  warnings.warn('old')\n";
    assert_eq!(outcome.printed(Stream::Stderr), text);
}

/// A9: log records a handler holds back are flushed at the end, as Python does.
#[test]
fn held_log_records_are_flushed() {
    let code = "import logging, logging.handlers\nh = logging.handlers.MemoryHandler(100, target=logging.StreamHandler())\nlogging.getLogger().addHandler(h)\nlogging.warning('kept')";
    assert_eq!(run(code).prints, vec![err("kept\n")]);
}

/// A9: a long text comes in pieces that split no character.
#[test]
fn long_texts_come_in_pieces() {
    let outcome = run("print('é' * 100_000)");
    assert_eq!(outcome.printed(Stream::Stdout), "é".repeat(100_000) + "\n");
    assert_eq!(outcome.prints.len(), 4);
}

/// A9: many small prints are many frames, soon enough.
#[test]
fn many_prints() {
    let outcome = run("for i in range(20_000): print(i)");
    assert_eq!(outcome.prints.len(), 20_000);
}

/// A2: the streams look like those of any Python.
#[test]
fn streams_look_real() {
    let code = "import sys, io\ns = sys.stdout\n[s.encoding, s.isatty(), s.writable(), s.readable(), s.fileno(), s.line_buffering, isinstance(s, io.TextIOBase), s.reconfigure(encoding='utf-8'), s.errors, sys.stdin.read(), s.closed]";
    let expected =
        json!(["utf-8", false, true, false, 1, true, true, null, "backslashreplace", "", false]);
    assert_eq!(run(code).value, expected);
    let outcome = run(
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f:\n    print('kept')\nf.getvalue()",
    );
    assert_eq!((outcome.value, outcome.prints), (json!("kept\n"), vec![]));
}

/// A11: `output` and `debug` show a value and go on with it.
#[test]
fn helpers_show_and_go_on() {
    let outcome = run("output({'a': [1]})\noutput('text')\ndebug('text', 'label')\ndebug([1])");
    assert_eq!(outcome.value, json!([1]));
    let expected = vec![
        out("{\n  \"a\": [\n    1\n  ]\n}\n"),
        out("text\n"),
        log("label: 'text'"),
        log("[1]"),
    ];
    assert_eq!(outcome.prints, expected);
    assert_eq!(run("output(print)\nNone").prints, vec![out("<built-in function print>\n")]);
}

/// A9: files the code names come back beside the value.
#[test]
fn artifacts() {
    let outcome = run(
        "import os\nopen('a.txt', 'w').write('x')\nartifact('a.txt') == os.path.realpath('a.txt')",
    );
    assert_eq!(outcome.value, json!(true));
    assert!(outcome.artifacts.iter().all(|path| path.ends_with("/a.txt")), "{outcome:?}");
    assert_eq!(outcome.artifacts.len(), 1);
    let missing = "FileNotFoundError: [Errno 2] No such file or directory: 'b.txt'";
    assert_eq!(run("artifact('b.txt')").told(), (ErrorCode::RuntimeThrown, missing));
    let outside = run("artifact('/etc/passwd')");
    assert!(outside.failure().message.contains(", not /etc/passwd"), "{outside:?}");
}

/// A9: what child processes write is captured where processes were granted.
#[test]
fn children_are_heard() {
    let code = "import os, subprocess\nsubprocess.run(['sh', '-c', 'echo child; echo oops >&2'])\nos.write(1, b'direct\\n')\nsubprocess.check_output(['echo', 'piped']).decode()";
    let outcome = run_command(Python::Plain, &granted(&["subprocess"], code));
    assert_eq!(outcome.value, json!("piped\n"));
    assert_eq!(outcome.printed(Stream::Stdout), "child\ndirect\n");
    assert_eq!(outcome.printed(Stream::Stderr), "oops\n");
}

/// A9: a forked child cannot answer for the cell, but is heard.
#[test]
fn forked_children_do_not_answer() {
    let code = "import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n    os.waitpid(pid, 0)\n'parent' if pid else 'child'";
    let outcome = run(code);
    assert_eq!(outcome.value, json!("parent"));
    assert_eq!(outcome.printed(Stream::Stdout), "child\n");
}
