//! `belljar run`: the code in, its output and value out.

use std::process::Stdio;

use belljar_testing::sandboxed;
use serde_json::json;

use crate::command::{BELLJAR, Outcome, Place, belljar};

/// A run that succeeds and prints this, and nothing else.
fn prints(stdout: &str) -> Outcome {
    Outcome { status: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
}

fn error_of(outcome: &Outcome) -> serde_json::Value {
    outcome.json()["error"].clone()
}

#[sandboxed]
#[test]
fn a1_a9_json_is_the_canonical_result_of_a_fully_isolated_run() {
    let outcome = belljar(&["run", "-c", "return 1+1", "--json"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""));
    let result = outcome.json();
    assert_eq!(result["status"], "completed");
    assert_eq!(result["success"], true);
    assert_eq!(result["result"], 2);
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["error"], json!(null));
    assert_eq!(result["isolation"]["tier"], "full");
    assert_eq!(result["isolation"]["engine"], "quickjs");
    let keys: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "artifacts",
        "cached",
        "changes",
        "error",
        "exit_code",
        "id",
        "isolation",
        "logs",
        "lossy",
        "metrics",
        "result",
        "session_id",
        "state",
        "status",
        "stderr",
        "stdout",
        "success",
        "tools",
        "truncated",
        "unreturned",
    ];
    assert_eq!(keys, expected);
}

#[sandboxed]
#[test]
fn a1_typescript_comes_from_a_pipe_with_or_without_a_dash() {
    let code = "interface A{n:number}; const a: A = {n: 3}; a.n * 2";
    let place = Place::new();
    assert_eq!(place.belljar_reading(&["run", "-"], code), prints("6\n"));
    assert_eq!(place.belljar_reading(&["run"], code), prints("6\n"));
}

#[sandboxed]
#[test]
fn a1_the_file_name_decides_the_language() {
    let place = Place::new();
    let typescript = place.file("a.ts", "const n: number = 4; n");
    let javascript = place.file("b.mjs", "const n = 5; n");
    let not_javascript = place.file("c.js", "const n: number = 6; n");
    let run = |path: &std::path::Path, more: &[&str]| {
        place.belljar(&[&["run", path.to_str().unwrap()], more].concat())
    };
    assert_eq!(run(&typescript, &[]), prints("4\n"));
    assert_eq!(run(&javascript, &[]), prints("5\n"));
    assert_eq!(run(&not_javascript, &[]).status, Some(1));
    assert_eq!(run(&not_javascript, &["-l", "ts"]), prints("6\n"));
}

#[sandboxed]
#[test]
fn a9_output_goes_to_its_stream_and_the_value_after_it() {
    let code = "console.log('out'); console.error('err'); ({b: 1, a: [1, 2]})";
    let expected = Outcome {
        status: Some(0),
        stdout: "out\n{\"b\": 1, \"a\": [1, 2]}\n".to_owned(),
        stderr: "err\n".to_owned(),
    };
    assert_eq!(belljar(&["run", "-c", code]), expected);
    assert_eq!(belljar(&["run", "-c", "return 'as it is'"]), prints("as it is\n"));
    assert_eq!(belljar(&["run", "-c", "return null"]), prints(""));
}

#[sandboxed]
#[test]
fn a7_an_error_has_the_line_and_column_of_the_code_as_written() {
    let code = "const x: number = 1;\n\nthrow new Error(\"boom\")";
    let error = error_of(&belljar(&["run", "-c", code, "--json"]));
    assert_eq!((&error["type"], &error["line"]), (&json!("RuntimeError"), &json!(3)));
    let outcome = belljar(&["run", "-c", "const a = 1;\nconst b = ;\n", "--json"]);
    assert_eq!(outcome.status, Some(1));
    let error = error_of(&outcome);
    assert_eq!(
        (&error["type"], &error["line"], &error["column"]),
        (&json!("SyntaxError"), &json!(2), &json!(11))
    );
}

#[sandboxed]
#[test]
fn a7_a_person_sees_the_code_around_an_error() {
    let outcome = belljar(&["run", "-c", "const x: number = 1;\n\nthrow new Error(\"boom\")"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(outcome.stderr, @r#"
    RuntimeError: Error: boom
      at main.ts:3:7

     1 | const x: number = 1;
     2 |
     3 | throw new Error("boom")
       |       ^
    "#);
}

#[sandboxed]
#[test]
fn a1_c_takes_its_text_literally() {
    assert_eq!(belljar(&["run", "-c", r"return 'a\nb'"]), prints("a\nb\n"));
    let outcome = belljar(&["run", "-c", r"return 1;\n", "--json"]);
    assert_eq!(error_of(&outcome)["type"], "SyntaxError");
}

#[sandboxed]
#[test]
fn a11_context_comes_from_the_argument_a_file_or_a_pipe() {
    let place = Place::new();
    let file = place.file("data.json", "{\"n\": 7}");
    let from_file = format!("@{}", file.display());
    let code = "context.n * 6";
    assert_eq!(place.belljar(&["run", "-c", code, "--context", "{\"n\": 7}"]), prints("42\n"));
    assert_eq!(place.belljar(&["run", "-c", code, "--context", &from_file]), prints("42\n"));
    let piped = place.belljar_reading(&["run", "-c", code, "--context", "@-"], "{\"n\": 7}");
    assert_eq!(piped, prints("42\n"));
}

#[sandboxed]
#[test]
fn a6_limits_are_enforced_and_what_was_printed_before_is_kept() {
    let code = "console.log('before'); while (true) {}";
    let outcome = belljar(&["run", "-c", code, "--timeout", "300ms", "--json"]);
    let result = outcome.json();
    assert_eq!((outcome.status, &result["error"]["type"]), (Some(1), &json!("TimeoutError")));
    assert_eq!(result["stdout"], "before\n");
    let code = "const all = []; while (true) all.push('x'.repeat(1 << 20) + all.length)";
    let outcome = belljar(&["run", "-c", code, "--memory", "64MiB", "--json"]);
    assert_eq!(error_of(&outcome)["type"], "MemoryError");
    let outcome =
        belljar(&["run", "-c", "return 'x'.repeat(3000)", "--max-result", "1KB", "--json"]);
    assert_eq!(error_of(&outcome)["code"], "limit.result");
    let outcome = belljar(&["run", "-c", "return 12345", "--max-code", "5", "--json"]);
    assert_eq!(error_of(&outcome)["code"], "limit.code");
    let hint = error_of(&outcome)["hint"].to_string();
    assert!(hint.contains("Or ask for more with --max-code."), "{hint}");
    let arguments = ["run", "-c", "1", "--context", "[1, 2, 3]", "--max-context", "4", "--json"];
    assert_eq!(error_of(&belljar(&arguments))["code"], "limit.context");
}

#[sandboxed]
#[test]
fn a6_more_than_the_maximum_is_refused_by_name() {
    let outcome = belljar(&["run", "-c", "1", "--timeout", "2h", "--json"]);
    assert_eq!((outcome.status, &error_of(&outcome)["code"]), (Some(1), &json!("limit.maximum")));
}

#[test]
fn arguments_that_make_no_sense_end_with_status_two_and_say_why() {
    let place = Place::new();
    place.file("work/bad.ts", b"return 1 // \xff");
    place.file("work/view.tsx", "1");
    let told = |arguments: &[&str]| {
        let outcome = place.belljar(&[&["run"], arguments].concat());
        assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        outcome.stderr
    };
    insta::assert_snapshot!(told(&["none.ts"]), @"error: cannot open none.ts: No such file or directory (os error 2)");
    insta::assert_snapshot!(told(&["bad.ts"]), @"error: bad.ts is not UTF-8 text (at byte 12)");
    insta::assert_snapshot!(told(&["view.tsx"]), @"error: view.tsx: cannot run .tsx files: JSX is not supported");
    insta::assert_snapshot!(told(&["-c", "1", "--context", "{\n  \"a\": 1,\n}"]), @"error: the context is not valid JSON: --context: key must be a string at line 3 column 1 (write @FILE to read a file)");
    insta::assert_snapshot!(told(&["-c", "1", "--context", "@none.json", "--json"]), @"error: cannot open none.json: No such file or directory (os error 2)");
    insta::assert_snapshot!(told(&["-", "--context", "@-"]), @"error: standard input cannot be both the code and the context");
    insta::assert_snapshot!(told(&["a.ts", "-c", "1"]), @r"
    error: the argument '[FILE]' cannot be used with '--code <CODE>'

    Usage: belljar run <FILE> [-- <ARGUMENT>...]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(told(&["-l", "cobol", "-c", "1"]), @r"
    error: invalid value 'cobol' for '--language <LANGUAGE>': use typescript (ts), javascript (js), python (py) or bash (sh)

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(told(&["-c", "1", "--memory", "12 parsecs"]), @r"
    error: invalid value '12 parsecs' for '--memory <SIZE>': `12 parsecs` has the unknown unit `parsecs`; write for example 64KiB, 512MiB or 1GB

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(told(&["-c", "1", "--timeuot", "1s"]), @r"
    error: unexpected argument '--timeuot' found

      tip: a similar argument exists: '--timeout'

    Usage: belljar run [OPTIONS] [FILE] [-- <ARGUMENT>...]

    For more information, try '--help'.
    ");
}

#[sandboxed]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let mut child = place
        .command(BELLJAR)
        .args(["run", "-c", "return 'x'.repeat(1000000)"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program under test starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program under test ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[sandboxed]
#[test]
fn verbose_logs_go_to_standard_error_only() {
    let outcome = belljar(&["-v", "run", "-c", "return 1"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(0), "1\n"));
}
