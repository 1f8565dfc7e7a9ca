//! Attempts to reach out of the cell are refused with a hint, and logged (A4).

use belljar_contract::ErrorCode;
use serde_json::json;

use crate::harness::{run, value};

#[track_caller]
fn assert_refused(kind: ErrorCode, cases: &[(&str, &str, &str)]) {
    for (code, message, attempt) in cases {
        let outcome = run(code);
        let message = format!("PermissionError: {message}");
        assert_eq!((outcome.place().0, outcome.place().1), (kind, &*message), "{code}");
        assert_eq!(outcome.denied, [*attempt], "{code}");
        assert!(outcome.failure().hint.is_some(), "{code}");
    }
}

/// A4: the network is refused; each attempt is named and logged.
#[test]
fn the_network_is_refused() {
    let cases = [
        (
            "fetch('https://a.b')",
            "fetch(\"https://a.b\") needs the network",
            "fetch(\"https://a.b\")",
        ),
        (
            "await fetch({ url: 'http://a.b' } as any)",
            "fetch(\"http://a.b\") needs the network",
            "fetch(\"http://a.b\")",
        ),
        ("new XMLHttpRequest()", "XMLHttpRequest needs the network", "new XMLHttpRequest()"),
        ("new WebSocket('wss://x')", "WebSocket needs the network", "new WebSocket(\"wss://x\")"),
        ("new EventSource('/x')", "EventSource needs the network", "new EventSource(\"/x\")"),
        ("axios.get('http://x')", "axios is not available", "axios"),
    ];
    assert_refused(ErrorCode::PermissionNetwork, &cases);
}

/// A4: process, environment and other runtimes are refused; each attempt is named and logged.
#[test]
fn the_host_is_refused() {
    let cases = [
        ("new Worker('w.js')", "Worker needs a thread of its own", "new Worker(\"w.js\")"),
        ("process.kill(1)", "process.kill is not available", "process.kill"),
        ("process.abort()", "process.abort is not available", "process.abort"),
        ("process.chdir('/')", "process.chdir is not available", "process.chdir"),
        ("process.dlopen({}, 'x')", "process.dlopen is not available", "process.dlopen"),
        ("process.binding('fs')", "process.binding is not available", "process.binding"),
        ("process.setuid(0)", "process.setuid is not available", "process.setuid"),
        ("process.stdin", "process.stdin is not available", "process.stdin"),
        ("Bun.file('x')", "Bun is not available", "Bun"),
        ("WebAssembly.compile(new Uint8Array())", "WebAssembly is not available", "WebAssembly"),
        ("child_process.execSync('ls')", "child_process is not available", "child_process"),
    ];
    assert_refused(ErrorCode::PermissionHost, &cases);
}

/// A4: modules are refused, however they are asked for; each attempt is named and logged.
#[test]
fn modules_are_refused() {
    let cases = [
        ("require('m')", "require(\"m\")"),
        ("await import('m')", "import(\"m\")"),
        ("const name = 'm'; await import(name)", "import(\"m\")"),
        ("await eval('import(\"m\")')", "import(\"m\")"),
        ("await new Function('return import(\"m\")')()", "import(\"m\")"),
        ("import m from 'm'; m", "import \"m\""),
        ("import 'm'", "import \"m\""),
        ("import * as m from 'm'; m.a", "import \"m\""),
        ("import { type A, b } from 'm'; b()", "import \"m\""),
        ("import m = require('m')", "import \"m\""),
        ("export * from 'm'", "import \"m\""),
        ("export { a } from 'm'", "import \"m\""),
    ];
    let cases = cases.map(|(code, attempt)| (code, "module \"m\" cannot be imported", attempt));
    assert_refused(ErrorCode::PermissionModule, &cases);
}

/// A4: the hint says what to do instead, and names only what exists.
#[test]
fn hints_say_what_to_do_instead() {
    for (code, hint) in [
        (
            "fetch('x')",
            "Network access is not available in this run; pass the data in with `context`.",
        ),
        (
            "new WebSocket('wss://x')",
            "Use `fetch`, which reaches granted hosts, or pass the data in with `context`.",
        ),
        (
            "if (!process.env.API_KEY) throw new Error('API_KEY is missing')",
            "process.env has no API_KEY: code sees a variable of the host only if it is granted; \
             `context` can pass the value instead.",
        ),
        (
            "process.stdin.on('data', () => {})",
            "There is no standard input. Input is in `context`.",
        ),
        ("module.children", "Nothing can import from this code. Use `return value`."),
        (
            "alert('hi')",
            "This is not a browser: there is no page, no storage and no user to ask. Input is in \
                `context`, output is console.log and `return`.",
        ),
    ] {
        assert_eq!(run(code).failure().hint.as_deref(), Some(hint), "{code}");
    }
}

/// A4: code may ask what there is, and catch a refusal.
#[test]
fn refusals_are_ordinary_errors() {
    for (code, expected) in [
        (
            "[typeof fetch, typeof require, typeof process, typeof WebSocket]",
            json!(["function", "function", "object", "function"]),
        ),
        (
            "[typeof exports, typeof Bun, typeof module, typeof window, typeof WebAssembly]",
            json!(["undefined", "undefined", "undefined", "undefined", "undefined"]),
        ),
        (
            "try { require('net') } catch (e) { [e.name, e.code, e instanceof PermissionError, e \
                instanceof Error, e.message] }",
            json!([
                "PermissionError",
                "permission.module",
                true,
                true,
                "module \"net\" cannot be imported"
            ]),
        ),
        ("await fetch('x').catch((e) => e.code)", json!("permission.network")),
        ("await import('x').catch((e) => e.name)", json!("PermissionError")),
        (
            "await Promise.allSettled([fetch('a'), fetch('b')]).then((all) => all.map((one) => \
                one.status))",
            json!(["rejected", "rejected"]),
        ),
        ("const fetch = () => 'mine'; fetch()", json!("mine")),
        ("globalThis.process = { env: { A: 'b' } }; process.env.A", json!("b")),
        ("Object.keys(new PermissionError('x'))", json!([])),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// A4: a refusal has the agent's own line.
#[test]
fn refusals_have_places() {
    let outcome =
        run("const load = async () => {\n  return await fetch('http://x')\n}\nawait load()");
    assert_eq!(
        outcome.failure().stack.as_deref(),
        Some("    at load (main.ts:2:16)\n    at main.ts:4:7")
    );
    let outcome = run("const a = 1;\nimport net from 'net';\nnet.connect();");
    assert_eq!((outcome.place().2, outcome.place().3), (Some(2), Some(1)));
}
