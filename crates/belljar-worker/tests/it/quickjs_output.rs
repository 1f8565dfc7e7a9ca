//! The input by `context`, and the output beside the value (A11).

use belljar_contract::{ErrorCode, Stream};
use belljar_wire::RunCommand;
use serde_json::json;

use crate::harness::{command, run, run_command, value};

/// A11: `context` is the caller's data, to do with as one likes.
#[test]
fn context_is_plain_data() {
    let run_with = |context: &str, code: &str| {
        run_command(RunCommand { context: context.into(), ..command(code) }).value
    };
    assert_eq!(run_with("", "context"), json!({}));
    assert_eq!(run_with("[1,2]", "context.length"), json!(2));
    let context = r#"{"rows":[{"n":1},{"n":2}],"__proto__":{"x":1},"é":"😀\ud83d\ude00"}"#;
    assert_eq!(run_with(context, "context.rows.push({ n: 3 }); context.rows.length"), json!(3));
    assert_eq!(run_with(context, "[context['é'], ({} as any).x]"), json!(["😀😀", null]));
    assert_eq!(run_with("5", "context = context + 1; context"), json!(6));
    assert_eq!(run_with("{}", "const context = 'shadowed'; context"), json!("shadowed"));
}

/// A11: context that is no JSON is the caller's mistake, not the code's.
#[test]
fn broken_context_is_told() {
    for (context, message) in [
        ("{nope", "context is not valid JSON: SyntaxError: "),
        ("[1,", "context is not valid JSON: SyntaxError: "),
        ("\"a\0b\"", "context is not valid JSON: it contains a NUL byte"),
    ] {
        let outcome = run_command(RunCommand { context: context.into(), ..command("1") });
        let (code, told, line, column) = outcome.place();
        assert_eq!((code, line, column), (ErrorCode::RequestInvalid, None, None), "{context}");
        assert!(told.starts_with(message), "{told}");
    }
}

/// A11: `output` prints text as it is and everything else as JSON, and gives the value back.
#[test]
fn output_prints_and_returns() {
    for (code, printed) in [
        ("output('plain')", "plain\n"),
        ("output({ a: [1] })", "{\n  \"a\": [\n    1\n  ]\n}\n"),
        ("output(1) + 1", "1\n"),
        ("output(null)", "null\n"),
        ("output(undefined)", "undefined\n"),
        ("output(5n); 1", "5n\n"),
        ("output('lone \\ud800'); 1", "lone \u{fffd}\n"),
        ("const a: any = {}; a.a = a; output(a); 1", "<ref *1> { a: [Circular *1] }\n"),
    ] {
        let outcome = run(code);
        assert_eq!(outcome.error, None, "{code}");
        assert_eq!(outcome.prints, [(Stream::Stdout, printed.to_owned())], "{code}");
    }
    assert_eq!(value("output(output(2) + 1)"), json!(3));
}

/// A11: `debug` goes to the log alone, one line a call, and gives the value back.
#[test]
fn debug_logs_and_returns() {
    let outcome = run("debug({ a: 1 }); debug([1], 'list').length");
    assert_eq!(outcome.value, json!(1));
    let lines = ["{ a: 1 }", "list: [ 1 ]"].map(|line| (Stream::Log, line.to_owned()));
    assert_eq!(outcome.prints, lines);
}

/// A9: what is printed is out before the code ends, in order, however long it is.
#[test]
fn prints_come_in_order_and_whole() {
    let outcome = run("console.log('a'); output('b'); console.error('c'); throw new Error('d')");
    let expected = [(Stream::Stdout, "a\n"), (Stream::Stdout, "b\n"), (Stream::Stderr, "c\n")];
    assert_eq!(outcome.prints, expected.map(|(to, text)| (to, text.to_owned())));
    assert_eq!(outcome.place().1, "Error: d");
    let outcome = run("output('é'.repeat(300_000)); 1");
    assert_eq!(outcome.stdout(), "é".repeat(300_000) + "\n");
}
