//! Failing tool calls of Python code, caught and not (D3, A7).

use serde_json::{Value, json};

use crate::cpython_tools::Cell;

const CODES: [(&str, &str); 10] = [
    ("tool.failed", "ToolError"),
    ("tool.arguments", "ToolError"),
    ("tool.unknown", "ToolError"),
    ("tool.timeout", "ToolError"),
    ("tool.unavailable", "ToolError"),
    ("tool.in_doubt", "ToolError"),
    ("permission.tool", "PermissionError"),
    ("approval.denied", "PermissionError"),
    ("approval.expired", "PermissionError"),
    ("limit.tool_calls", "LimitError"),
];
const MESSAGE: &str = "[Errno 7] it said: “no”\nand more";

fn fail(code: &str, fault: &str) -> Cell {
    let mut cell = Cell::start(code);
    let (call, _) = cell.call();
    cell.fault(call, fault, MESSAGE);
    cell
}

/// D3: code that catches the exception finds everything the host said.
#[test]
fn caught_errors_tell_all() {
    for (code, kind) in CODES {
        let program = format!(
            "try:
    mcp.mail.send(to='x')
except {kind} as e:
    caught = [type(e).__name__, str(e), e.code, e.hint, e.tool_name, e.toolName, isinstance(e, Exception)]
caught"
        );
        assert_eq!(
            fail(&program, code).value(),
            json!([kind, MESSAGE, code, "what to do", "mail__send", "mail__send", true]),
            "{code}"
        );
    }
}

/// D3: an exception nobody catches ends the run with its code, tool and line.
#[test]
fn uncaught_errors_keep_code_tool_and_line() {
    for (code, kind) in CODES {
        let error = fail("x = 1\ndef f():\n    return mcp.mail.send()\nf()", code).error();
        let told = ["code", "message", "line", "hint", "tool_name"].map(|name| error[name].clone());
        let message = format!("{kind}: {MESSAGE}");
        let expected =
            [json!(code), json!(message), json!(3), json!("what to do"), json!("mail__send")];
        assert_eq!(told, expected, "{code}");
        let stack = error["stack"].as_str().expect("a stack");
        assert!(stack.contains("line 4, in <module>"), "{stack}");
    }
    // Control: an error of the code's own names no tool.
    let error =
        fail("try:\n    mcp.a.b()\nexcept ToolError:\n    raise ValueError('x')", "tool.failed")
            .error();
    assert_eq!((&error["code"], &error["tool_name"]), (&json!("runtime.thrown"), &Value::Null));
}

/// D3: the same through `await`, a task, a group of tasks, and a value that is never awaited.
#[test]
fn errors_of_awaited_calls() {
    let cases = [
        ("import asyncio\nawait mcp.mail.send()", 2),
        ("import asyncio\nt = [mcp.mail.send()]\nawait asyncio.sleep(0)\nt[0]['x']", 4),
        ("import asyncio\nt = mcp.mail.send()\nawait asyncio.sleep(0)\nt['x']", 2),
        ("import asyncio\nt = mcp.mail.send()\nawait asyncio.sleep(0)\n1", 2),
        ("import asyncio\nawait asyncio.sleep(0)\nreturn mcp.mail.send()", 3),
        ("import asyncio\nawait asyncio.gather(mcp.mail.send(), asyncio.sleep(0))", 2),
    ];
    for (code, line) in cases {
        let error = fail(code, "approval.denied").error();
        let told = ["code", "message", "line", "tool_name"].map(|name| error[name].clone());
        let message = format!("PermissionError: {MESSAGE}");
        let expected = [json!("approval.denied"), json!(message), json!(line), json!("mail__send")];
        assert_eq!(told, expected, "{code}");
    }
}

/// D3: exceptions can be made, changed and pickled by code without confusing its end.
#[test]
fn hostile_errors_have_an_end() {
    let cases = [
        ("raise ToolError('mine')", "tool.failed", "ToolError: mine"),
        (
            "e = ToolError('mine')\ne.code = 5\ne.hint = []\ne.tool_name = {}\nraise e",
            "tool.failed",
            "ToolError: mine",
        ),
        ("raise ToolError('mine', code='sandbox.failed')", "tool.failed", "ToolError: mine"),
        ("raise ToolError", "tool.failed", "ToolError"),
        ("raise LimitError('mine')", "limit.tool_calls", "LimitError: mine"),
        ("class Mine(ToolError): pass\nraise Mine('x', 1)", "tool.failed", "Mine: x"),
        (
            "import copy\nraise copy.copy(ToolError('x', code='tool.timeout'))",
            "tool.timeout",
            "ToolError: x",
        ),
    ];
    for (code, told, message) in cases {
        let error = Cell::start(code).error();
        assert_eq!((&error["code"], &error["message"]), (&json!(told), &json!(message)), "{code}");
    }
}
