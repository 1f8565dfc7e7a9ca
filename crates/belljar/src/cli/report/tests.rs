//! A9, A7: what a person sees of a run, on a terminal and in a pipe.

use belljar_contract::{
    ErrorCode, Isolation, MemoryBound, Metrics, RunError, RunResult, RunStatus, Tier,
};
use serde_json::value::RawValue;

use super::{FrameSource, PrintedParts, about, write_output};
use crate::cli::terminal::style::{Colours, Device, TextStyle};

const TERMINAL: TextStyle =
    TextStyle { device: Device::Terminal, colours: Colours::Off, width: 80 };
const CODE: FrameSource<'_> =
    FrameSource { code: "const x: number = 1;\n\nthrow new Error(\"boom\")", name: "main.ts" };

fn completed(json: &str) -> RunResult {
    let mut result =
        RunResult::not_run("run_1", RunStatus::Completed, RunError::new(ErrorCode::RunAborted, ""));
    result.success = true;
    result.error = None;
    result.result = RawValue::from_string(json.to_owned()).expect("the test's value is JSON");
    result.isolation =
        Isolation { tier: Tier::Full, memory: MemoryBound::Rlimit, ..Isolation::default() };
    result.metrics = Metrics {
        startup_ms: 0.2,
        execution_ms: 0.25,
        cpu_ms: 0.1,
        memory_mb: 4.12,
        tool_calls: 0,
    };
    result
}

fn streams(result: &RunResult, style: TextStyle) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    write_output(result, PrintedParts::NONE, &mut out, &mut err, (style, style))
        .expect("a vector takes every byte");
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn a9_a_pipe_gets_the_output_and_the_value_only() {
    let mut result = completed("6");
    assert_eq!(streams(&result, TextStyle::PLAIN), ("6\n".to_owned(), String::new()));
    assert_eq!(about(&result, CODE, PrintedParts::NONE, TextStyle::PLAIN), "");
    result.stdout = "no line end".to_owned();
    result.stderr = "careful\n".to_owned();
    let expected = ("no line end\n6\n".to_owned(), "careful\n".to_owned());
    assert_eq!(streams(&result, TextStyle::PLAIN), expected);
}

#[test]
fn a9_strings_are_shown_as_they_are_and_null_not_at_all() {
    assert_eq!(streams(&completed(r#""a\nb""#), TextStyle::PLAIN).0, "a\nb\n");
    assert_eq!(streams(&completed("null"), TextStyle::PLAIN).0, "");
    assert_eq!(
        streams(&completed(r#"{"b":1,"a":[]}"#), TextStyle::PLAIN).0,
        "{\"b\": 1, \"a\": []}\n"
    );
    // A lone surrogate is valid JSON but not text: shown as JSON.
    assert_eq!(streams(&completed(r#""\ud800""#), TextStyle::PLAIN).0, "\"\\ud800\"\n");
}

#[test]
fn a4_a_terminal_never_obeys_the_guest() {
    let mut result = completed(r#""\u001b]0;title\u0007""#);
    result.stdout = "\u{1b}[2J".to_owned();
    result.stderr = "\u{1b}[3J".to_owned();
    let (out, err) = streams(&result, TERMINAL);
    assert_eq!((out.as_str(), err.as_str()), ("\\x1b[2J\n\\x1b]0;title\\x07\n", "\\x1b[3J"));
    // Control: a pipe gets the raw bytes.
    assert_eq!(streams(&result, TextStyle::PLAIN).1, "\u{1b}[3J");
}

#[test]
fn a9_a_terminal_gets_one_line_of_metrics() {
    insta::assert_snapshot!(about(&completed("2"), CODE, PrintedParts::NONE, TERMINAL), @"completed in 0.45 ms · start 0.20 ms · cpu 0.10 ms · 4.1 MB · full isolation (quickjs)");
}

#[test]
fn a7_an_error_is_shown_with_its_place_stack_and_hint() {
    let mut error = RunError::new(ErrorCode::RuntimeThrown, "boom \u{1b}[31m");
    error.line = Some(3);
    error.column = Some(7);
    error.stack = Some("    at inner (main.ts:3:7)\n    at main.ts:3:1".to_owned());
    error.hint = Some("catch it".to_owned());
    let mut result = completed("null");
    result.status = RunStatus::Failed;
    result.success = false;
    result.error = Some(error);
    result.truncated.stdout = true;
    insta::assert_snapshot!(about(&result, CODE, PrintedParts::NONE, TERMINAL), @r#"
    RuntimeError: boom \x1b[31m
      at main.ts:3:7

     1 | const x: number = 1;
     2 |
     3 | throw new Error("boom")
       |       ^

      at inner (main.ts:3:7)
      at main.ts:3:1
    hint: catch it
    note: standard output was cut; --max-output keeps more of it
    failed after 0.45 ms · start 0.20 ms · cpu 0.10 ms · 4.1 MB · full isolation (quickjs)
    "#);
}

#[test]
fn a10_an_aborted_run_says_so() {
    let result = RunResult::not_run(
        "run_1",
        RunStatus::Aborted,
        RunError::new(ErrorCode::RunAborted, "interrupted"),
    );
    insta::assert_snapshot!(about(&result, CODE, PrintedParts::NONE, TERMINAL), @r"
    aborted: interrupted
    nothing ran
    ");
}
