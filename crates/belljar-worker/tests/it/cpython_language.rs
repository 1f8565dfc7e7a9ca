//! The value of Python code; the rewriting behind it shows nowhere (A2).

use belljar_contract::ErrorCode;
use serde_json::{Value, json};

use crate::cpython_harness::{Python, command, run, run_command, value};

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (code, expected) in cases {
        assert_eq!(value(code), *expected, "{code}");
    }
}

/// A2: explicit `return`, else the last expression, else `result`, else null.
#[test]
fn values_come_from_return_expression_or_result() {
    check(&[
        ("", json!(null)),
        ("# nothing", json!(null)),
        ("x = 1", json!(null)),
        ("1 + 1", json!(2)),
        ("x = 20\nx * 2;", json!(40)),
        ("'just a text'", json!("just a text")),
        ("'''a docstring'''\nx = 1", json!(null)),
        ("return 7", json!(7)),
        ("return", json!(null)),
        ("result = 5", json!(5)),
        ("result = 5\nresult + 1", json!(6)),
        ("result = 5\nprint('shown')", json!(5)),
        ("result = 5\nreturn None", json!(null)),
        ("def result(): pass", json!(null)),
        ("if True:\n    result = {'a': 1}", json!({"a": 1})),
        ("import sys\nresult = 3\nsys.exit()", json!(3)),
        ("result = 4\nexit(0)", json!(4)),
    ]);
}

/// A2: `return` leaves from anywhere, and nothing the code catches catches it.
#[test]
fn return_leaves_from_anywhere() {
    check(&[
        ("for i in range(5):\n    if i == 3:\n        return i\nreturn -1", json!(3)),
        ("try:\n    return 1\nexcept BaseException:\n    return 2", json!(1)),
        ("try:\n    return 1\nexcept:\n    pass\n5", json!(1)),
        ("x = []\ntry:\n    return x\nfinally:\n    x.append('finally')", json!(["finally"])),
        ("while True:\n    try:\n        return 1\n    finally:\n        break\n9", json!(9)),
        ("import io\nwith io.StringIO() as f:\n    return f.closed", json!(false)),
        (
            "match [1, 2]:\n    case [a, *b]:\n        return {'a': a, 'b': b}",
            json!({"a": 1, "b": [2]}),
        ),
        ("if False:\n    return 1\n'last'", json!("last")),
        ("if False:\n    return 1\nresult = 2", json!(2)),
        ("if False:\n    return 1", json!(null)),
        ("return (yes := 5) and yes", json!(5)),
    ]);
}

/// A2: with a top-level `return`, names are still those of the module.
#[test]
fn names_stay_at_module_level() {
    check(&[
        (
            "x = 1\ndef f():\n    global x\n    x += 1\n    return x\nf()\nreturn [x, globals()['x']]",
            json!([2, 2]),
        ),
        ("count: int = 3\nbare: str\nglobal count\nreturn count", json!(3)),
        ("from math import *\nreturn [ceil(pi), floor(2.5)]", json!([4, 2])),
        ("from __future__ import annotations\ndef f(x: Missing): return x\nreturn f(4)", json!(4)),
        (
            "class A:\n    x = 1\n    y = [x for _ in range(2)] if False else x\nreturn [A.__qualname__, A.__module__, A.y]",
            json!(["A", "__main__", 1]),
        ),
        (
            "def f(): pass\nreturn [f.__qualname__, f.__module__, __name__]",
            json!(["f", "__main__", "__main__"]),
        ),
        ("a = 1\ndel a\nreturn 'a' in globals()", json!(false)),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    said = str(e)\nreturn [said, 'e' in globals()]",
            json!(["division by zero", false]),
        ),
        (
            "import os.path, json as j\nreturn [os.sep, j.__name__, sorted(k for k in globals() if k in ('os', 'j'))]",
            json!(["/", "json", ["j", "os"]]),
        ),
        (
            "x = 10\nys = [x for x in range(3)]\n[last := y for y in ys]\nreturn [x, ys, last]",
            json!([10, [0, 1, 2], 2]),
        ),
        (
            "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n        return n\n    return inner()\nreturn outer()",
            json!(1),
        ),
        ("def g():\n    yield 1\n    return 2\nreturn list(g())", json!([1])),
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\nreturn P(1)",
            json!({"x": 1, "y": 2}),
        ),
        ("return __import__('sys').modules['__main__'].__dict__ is globals()", json!(true)),
    ]);
}

/// A2: top-level `await`, `async for` and `async with`.
#[test]
fn top_level_await() {
    let ticks = "import asyncio\nasync def ticks():\n    for i in range(3):\n        await asyncio.sleep(0)\n        yield i\n";
    check(&[
        ("import asyncio\nawait asyncio.sleep(0, 'done')", json!("done")),
        (
            "import asyncio\nreturn await asyncio.gather(*[asyncio.sleep(0, i) for i in range(3)])",
            json!([0, 1, 2]),
        ),
        ("import asyncio\nx = await asyncio.sleep(0, 4)\nx + 1", json!(5)),
        (
            &format!("{ticks}seen = []\nasync for i in ticks():\n    seen.append(i)\nseen"),
            json!([0, 1, 2]),
        ),
        (&format!("{ticks}return [i async for i in ticks()]"), json!([0, 1, 2])),
        (&format!("{ticks}[i async for i in ticks()]"), json!([0, 1, 2])),
        (
            "import contextlib\n@contextlib.asynccontextmanager\nasync def door():\n    yield 'open'\nasync with door() as d:\n    return d",
            json!("open"),
        ),
        ("import asyncio\nasync def main():\n    return 6\nasyncio.run(main())", json!(6)),
        ("import asyncio\nawait asyncio.to_thread(sum, [1, 2])", json!(3)),
        (
            "import asyncio\nloop = asyncio.new_event_loop()\nloop.run_until_complete(asyncio.sleep(0, 8))",
            json!(8),
        ),
    ]);
}

/// A7: code that does not compile is told with its place.
#[test]
fn syntax_errors_have_a_place() {
    let cases: &[(&str, &str, u32, u32)] = &[
        ("x = 1\nx = = 2", "SyntaxError: invalid syntax", 2, 5),
        (
            "def f():\nreturn 1",
            "IndentationError: expected an indented block after function definition on line 1",
            2,
            1,
        ),
        ("print((1, 2)", "SyntaxError: '(' was never closed", 1, 6),
        ("class A:\n    return 1", "SyntaxError: 'return' outside function", 2, 5),
        ("yield 1\nreturn 2", "SyntaxError: 'yield' outside function", 1, 1),
        ("break", "SyntaxError: 'break' outside loop", 1, 1),
    ];
    for (code, message, line, column) in cases {
        let outcome = run(code);
        let place = (ErrorCode::SyntaxInvalid, *message, Some(*line), Some(*column));
        assert_eq!(outcome.place(), place, "{code}");
    }
    for code in ["\0", &"(".repeat(5000), &format!("x = {}1", "-".repeat(20_000))] {
        assert_eq!(run(code).failure().code, ErrorCode::SyntaxInvalid);
    }
}

/// A11: `context` is what the caller passed in.
#[test]
fn context_is_a_dict_with_attributes() {
    let with = |context: &str, code: &str| {
        let mut command = command(code);
        command.context = context.into();
        run_command(Python::Plain, &command)
    };
    let users = r#"{"users": [{"name": "Ann"}], "items": 1}"#;
    let code = "[context.users[0].name, context['items'], isinstance(context, dict), context]";
    assert_eq!(
        with(users, code).value,
        json!(["Ann", 1, true, {"users": [{"name": "Ann"}], "items": 1}])
    );
    assert_eq!(with("[1, 2]", "context").value, json!([1, 2]));
    assert_eq!(with("", "context").value, json!({}));
    assert_eq!(
        with("{", "1").told(),
        (
            ErrorCode::RequestInvalid,
            "context is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        )
    );
    assert_eq!(
        with(users, "context.user").told(),
        (ErrorCode::RuntimeThrown, "AttributeError: no key 'user'; the keys are: users, items")
    );
}
