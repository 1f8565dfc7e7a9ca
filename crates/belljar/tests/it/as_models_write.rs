//! Code as models send it, in real cells: without a language, with libraries that read `/proc`, long lines, and a
//! server whose program was replaced.

use std::fs;

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{BELLJAR, Place},
    mcp_support::{serve_by, serve_in},
};

fn run(arguments: &[&str]) -> Value {
    Place::new().belljar(&[&["run", "--json"], arguments].concat()).json()
}

/// A first line decides, then what the code parses as; the answer says so.
#[sandboxed]
#[test]
fn code_without_a_language_runs_as_what_it_is() {
    for (code, value, language) in [
        ("import math\nmath.sqrt(16)", json!(4.0), "python"),
        ("def f(x):\n    return x + 1\nf(1)", json!(2), "python"),
        ("from __future__ import annotations\n[x for x in range(2)]", json!([0, 1]), "python"),
        ("#!/usr/bin/env bash\necho 7", json!(7), "bash"),
        ("#!/usr/bin/env python3\n6 * 7", json!(42), "python"),
    ] {
        let result = run(&["-c", code]);
        assert_eq!((&result["error"], &result["result"]), (&Value::Null, &value), "{result:#}");
        let note = format!("[language] no language was stated; the code ran as {language}");
        assert_eq!(result["logs"][0], note, "{code}");
    }
    // Code that parses as TypeScript is TypeScript, whatever else it is.
    for (code, value) in
        [("return [1, 2].map((x) => x * 2)", json!([2, 4])), ("// True or None\n5", json!(5))]
    {
        let result = run(&["-c", code]);
        assert_eq!((&result["result"], &result["logs"]), (&value, &json!([])), "{result:#}");
    }
    for (code, error, stated) in [
        ("const x = ;", "syntax.invalid", false),
        ("def f(:\n  pass", "syntax.invalid", false),
        ("def f(:\n  pass", "syntax.invalid", true),
        ("echo hi | tr a-z A-Z", "syntax.invalid", false),
        ("ls -la", "runtime.thrown", false),
        ("ls -la", "runtime.thrown", true),
        ("throw new Error('x')", "runtime.thrown", true),
    ] {
        let flags: &[&str] = if stated { &["-l", "ts", "-c", code] } else { &["-c", code] };
        let result = run(flags);
        assert_eq!(result["error"]["code"], error, "{result:#}");
        let hint = result["error"]["hint"].as_str().unwrap_or_default();
        assert_eq!(hint.contains("state `language`"), !stated, "{hint}");
    }
}

/// Nothing of the code runs while its language is looked for: it prints once.
/// Models put code into the fence of their answer.
#[sandboxed]
#[test]
fn a7_code_in_a_markdown_fence_is_named_as_such() {
    let fenced = "```python\nprint(1)\n```";
    for flags in [&[][..], &["-l", "python"], &["-l", "typescript"], &["-l", "bash"]] {
        let result = run(&[flags, &["-c", fenced]].concat());
        let hint = result["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.starts_with("The code is in a Markdown fence:"), "{flags:?}: {result:#}");
    }
    // Control: the same code without its fence, and a fence that is text.
    assert_eq!(run(&["-l", "python", "-c", "print(1)"])["stdout"], "1\n");
    assert_eq!(run(&["-c", "return '```'"])["result"], "```");
}

#[sandboxed]
#[test]
fn code_without_a_language_runs_once() {
    let result = run(&["-c", "print('effect')\nfor i in [1]:\n    print(i)"]);
    assert_eq!(result["stdout"], "effect\n1\n", "{result:#}");
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let asked = json!({ "code": "import math\nprint(math.floor(2.5))", "durable": true });
    let ran = server.ask("POST /v1/runs", &asked);
    assert_eq!((&ran["status"], &ran["stdout"]), (&json!("completed"), &json!("2\n")), "{ran:#}");
    let short = server.ask("POST /v1/runs", &json!({ "language": "py", "code": "1 + 1" }));
    assert_eq!(short["result"], 2, "{short:#}");
}

/// `open` answers for the files of `/proc` that libraries read, and the kernel refuses them as before.
#[sandboxed]
#[test]
fn files_of_proc_are_made_up_and_the_kernels_stay_refused() {
    let code = r#"
import os, ctypes
made = {path: open(path).read() for path in ("/proc/self/maps", "/proc/self/status", "/proc/meminfo")}
refused = []
libc = ctypes.CDLL(None, use_errno=True)
for path in ("/proc/self/maps", "/proc/self/status", "/proc/self/environ", "/proc/self/mem", "/proc/1/cmdline",
             "/proc/1/maps", "/proc/meminfo", "/proc/self/mountinfo"):
    for attempt in (lambda: os.open(path, os.O_RDONLY), lambda: libc.open(path.encode(), 0)):
        try:
            refused.append(attempt() >= 0)
        except OSError:
            refused.append(False)
for path in ("/proc/self/environ", "/proc/1/maps", "/proc/self/mountinfo", "/proc/self/../1/maps"):
    try:
        open(path).close()
        refused.append(True)
    except OSError:
        refused.append(False)
def total(): return next(line for line in made["/proc/meminfo"].splitlines() if line.startswith("MemTotal"))
{"opened": sum(refused), "libraries": ".so" in made["/proc/self/maps"], "total": int(total().split()[1]),
 "host": any(word in text for text in made.values() for word in ("belljar_secret", "/proc", os.uname().release))}
"#;
    let result = run(&["-l", "python", "--permissive", "--memory", "256MiB", "-c", code]);
    // The control: `open` does answer.
    let expected = json!({ "opened": 0, "libraries": true, "total": 256 << 10, "host": false });
    assert_eq!((&result["error"], &result["result"]), (&Value::Null, &expected), "{result:#}");
    let told = run(&["-l", "python", "-c", "open('/proc/self/environ')"]);
    let hint = told["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("No grant gives it") && !hint.contains("--write"), "{hint}");
}

/// Errors say whether it was a read, and where a granted file is.
#[sandboxed]
#[test]
fn hints_about_files_fit_what_was_tried() {
    let place = Place::new();
    let path = place.file("rows.csv", "a\n1\n");
    let path = path.to_str().unwrap();
    let code = ["run", "--json", "-l", "python", "--read", path, "-c"];
    let relative = place.belljar(&[&code[..], &["open('rows.csv')"]].concat()).json();
    assert_eq!(relative["error"]["hint"], format!("It is granted under its host path: {path}"));
    let write = place.belljar(&[&code[..], &[&format!("open({path:?}, 'w')")]].concat()).json();
    let hint = write["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains(&format!("--write {path}")), "{write:#}");
}

/// One long line is cut in the middle; what comes after it is there.
#[sandboxed]
#[test]
fn a_long_line_is_cut_for_a_model() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let code = "print('begin' + 'x' * 40_000 + 'end')\nprint('after')";
    let asked = json!({ "language": "python", "code": code, "max_output_tokens": 1000 });
    let ran = server.ask("POST /v1/runs", &asked);
    let logs: Vec<_> =
        ran["logs"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    let [head, cut, tail, after] = logs[..] else { panic!("{ran:#}") };
    assert!(
        head.starts_with("beginxxx") && tail.ends_with("xxxend") && after == "after",
        "{ran:#}"
    );
    assert!(head.len() + tail.len() < 3000 && cut.contains("bytes left out"), "{ran:#}");
    assert_eq!(ran["truncated"]["logs"], json!(true));
    // The whole is kept, for code and for clients.
    let handle = cut.split('"').nth(1).unwrap();
    let code = format!("whole = load('{handle}')\n[len(whole), whole[-5:]]");
    let loaded = server.ask("POST /v1/runs", &json!({ "language": "python", "code": code }));
    assert_eq!(loaded["result"], json!([5 + 40_000 + 3 + 1 + 5, "after"]), "{loaded:#}");
}

/// An upgrade replaces the file of a program that is running; its cells of all languages still start.
#[sandboxed]
#[test]
fn bash_starts_after_the_program_was_replaced() {
    let place = Place::new();
    let (program, newer) = (place.path().join("belljar"), place.path().join("newer"));
    fs::copy(BELLJAR, &program).unwrap();
    let server = serve_by(program.to_str().unwrap(), &place, &[]);
    fs::write(&newer, "another version").unwrap();
    fs::rename(&newer, &program).unwrap();
    for language in ["bash", "python", "typescript"] {
        let code = if language == "bash" { "echo 5; rm -f x" } else { "5" };
        let ran = server.ask("POST /v1/runs", &json!({ "language": language, "code": code }));
        assert_eq!(
            (&ran["error"], &ran["result"]),
            (&Value::Null, &json!(5)),
            "{language}: {ran:#}"
        );
    }
}
