//! How Python values travel (A8).

use belljar_contract::{ErrorCode, Stream};
use serde_json::{Value, json};

use crate::cpython_harness::{Python, command, run, run_command};

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (code, expected) in cases {
        let outcome = run(code);
        assert_eq!(outcome.error, None, "{code}");
        assert_eq!((outcome.value, outcome.lossy), (expected.clone(), false), "{code}");
    }
}

/// A8: what JSON has a word for, and the nearest thing for the rest.
#[test]
fn values_become_json() {
    check(&[
        (
            "[None, True, 1, -2.5, 'é', [], {}, (1, 2)]",
            json!([null, true, 1, -2.5, "é", [], {}, [1, 2]]),
        ),
        ("{1: 'a', None: 'b', True: 'c', 2.5: 'd'}", json!({"1": "c", "null": "b", "2.5": "d"})),
        ("{3, 1, 2}", json!([1, 2, 3])),
        ("frozenset(['b', 'a'])", json!(["a", "b"])),
        ("range(3)", json!([0, 1, 2])),
        (
            "from collections import deque, Counter, OrderedDict\n[deque([1]), Counter('aab'), OrderedDict(x=1)]",
            json!([[1], {"a": 2, "b": 1}, {"x": 1}]),
        ),
        ("{'a': 1}.keys()", json!(["a"])),
        (
            "from datetime import *\n[datetime(2024, 1, 2, 3, 4), date(2024, 1, 2), time(3, 4), timedelta(minutes=1.5), datetime(2024, 1, 1, tzinfo=timezone.utc)]",
            json!([
                "2024-01-02T03:04:00",
                "2024-01-02",
                "03:04:00",
                90.0,
                "2024-01-01T00:00:00+00:00"
            ]),
        ),
        (
            "from decimal import Decimal\nfrom fractions import Fraction\n[Decimal('1.10'), Fraction(1, 3)]",
            json!(["1.10", "1/3"]),
        ),
        (
            "import uuid, pathlib\n[uuid.UUID(int=1), pathlib.Path('/a/b')]",
            json!(["00000000-0000-0000-0000-000000000001", "/a/b"]),
        ),
        (
            "import enum\nclass C(enum.Enum):\n    RED = 'r'\nclass N(enum.IntEnum):\n    ONE = 1\n[C.RED, N.ONE, {C.RED: 1}]",
            json!(["r", 1, {"r": 1}]),
        ),
        ("[b'hi', bytearray(b'hi'), memoryview(b'hi')]", json!(["aGk=", "aGk=", "aGk="])),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\nP(1)", json!([1])),
        ("from types import SimpleNamespace\nSimpleNamespace(a=1)", json!({"a": 1})),
        ("import datetime\n{datetime.date(2024, 1, 2): 1}", json!({"2024-01-02": 1})),
        (
            "class M:\n    model_fields = {}\n    def model_dump(self): return {'a': 1}\nM()",
            json!({"a": 1}),
        ),
        ("'\\ud83d\\ude00'", json!("😀")),
        ("class S(str):\n    def __str__(self): return 'no'\nS('yes')", json!("yes")),
        ("x = [1]\n[x, x, {'x': x}]", json!([[1], [1], {"x": [1]}])),
    ]);
    let outcome = run("10**30");
    assert_eq!(outcome.value.to_string().parse::<f64>().ok(), Some(1e30));
}

/// A8: NaN and infinities are null, and the result says so.
#[test]
fn bug_12_what_json_cannot_tell_apart_is_lossy() {
    for (code, expected, lossy) in [
        ("{1: 2, '1': 3}", json!({"1": 3}), true),
        ("[{True: 1, 'true': 2}]", json!([{"true": 2}]), true),
        ("{1: 2, '2': 3}", json!({"1": 2, "2": 3}), false),
        (r"'a\ud800'", json!("a\u{fffd}"), true),
        (r"{'n': float('1'), 'k\udc00': {1: 2}}", json!({"n": 1.0, "k\u{fffd}": {"1": 2}}), true),
        (r"['\U0001f600', '\ufffd']", json!(["\u{1f600}", "\u{fffd}"]), false),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.value, outcome.lossy), (expected, lossy), "{code}");
    }
}

#[test]
fn not_finite_is_null_and_lossy() {
    let outcome = run("[float('nan'), float('inf'), -float('inf'), 1.0]");
    assert_eq!((outcome.value, outcome.lossy), (json!([null, null, null, 1.0]), true));
}

/// A8: what has no JSON is an error that names where it is.
#[test]
fn misfits_are_named_by_their_path() {
    let cases: &[(&str, &str)] = &[
        ("print", "result is a function, which JSON cannot represent"),
        (
            "{'items': [1, {'f': lambda: 1}]}",
            "result.items[1].f is a function, which JSON cannot represent",
        ),
        ("{'a b': {1: int}}", "result['a b']['1'] is a class, which JSON cannot represent"),
        ("import sys\n[sys]", "result[0] is a module, which JSON cannot represent"),
        ("open('/dev/null')", "result is an open file, which JSON cannot represent"),
        ("(i for i in [])", "result is a generator, which JSON cannot represent"),
        ("map(str, [])", "result is an iterator, which JSON cannot represent"),
        ("async def f(): pass\nf()", "result is a coroutine, which JSON cannot represent"),
        ("1j", "result is a complex number, which JSON cannot represent"),
        ("ValueError('x')", "result is an exception, which JSON cannot represent"),
        ("object()", "result is an object object, which JSON cannot represent"),
        (
            "class Thing: pass\n{'t': Thing()}",
            "result.t is a Thing object, which JSON cannot represent",
        ),
        ("{'a': {(1, 2): 3}}", "result.a has a key that is a tuple: (1, 2)"),
        ("x = []\nx.append({'x': x})\nx", "result[0].x contains itself"),
        ("[10**400]", "result[0] is an integer beyond the range of JSON readers"),
        (
            "class D(dict):\n    def items(self): raise ValueError\n[D(a=1), print]",
            "result[0] is a D object that cannot be read: ValueError",
        ),
        (
            "class G:\n    def __getattr__(self, name): raise RuntimeError\nG()",
            "result is a G object, which JSON cannot represent",
        ),
    ];
    for (code, message) in cases {
        let (before, last) = code.rsplit_once('\n').map_or(("", *code), |(a, b)| (a, b));
        let code = format!("{before}\nreturn {last}");
        assert_eq!(run(&code).told(), (ErrorCode::SerializationUnsupported, *message), "{code}");
    }
    assert_eq!(run("(i for i in [])").hint(), "Collect its items first: list(...).");
}

/// A8: a last expression that nobody returned, and that has no JSON, is shown as its repr; the log and the
/// mark say so. Work that is still to be done is an error all the same.
#[test]
fn a_last_expression_without_json_is_shown() {
    for (code, shown) in [
        ("import re\nre.match('a', 'abc')", json!("<re.Match object; span=(0, 1), match='a'>")),
        ("import logging\nlogging.getLogger('x')", json!("<Logger x (WARNING)>")),
        (
            "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t(a)')",
            json!("<sqlite3.Cursor object>"),
        ),
        ("result = object()\nprint('done')", json!("<object object>")),
        (
            "{'n': 1, 'f': print, (1, 2): 3}",
            json!({"n": 1, "f": "<built-in function print>", "(1, 2)": 3}),
        ),
        ("x = [1]\nx.append(x)\nx", json!("[1, [...]]")),
    ] {
        let outcome = run(code);
        assert_eq!(
            (&outcome.error, &outcome.value, outcome.lossy),
            (&None, &shown, true),
            "{code}"
        );
        let logs = outcome.printed(Stream::Log);
        assert!(logs.starts_with("[value] result"), "{code}: {logs}");
    }
    for code in ["(i for i in [])", "map(str, [])", "async def f(): pass\nf()", "mcp.a.b"] {
        assert_eq!(run(code).failure().code, ErrorCode::SerializationUnsupported, "{code}");
    }
    let outcome = run("[1, 'a']");
    assert_eq!((outcome.lossy, outcome.prints.len()), (false, 0));
}

/// A8: a value may be nested a hundred levels deep, and no deeper.
#[test]
fn depth_is_bounded() {
    let nested = |levels: u32| format!("x = 1\nfor _ in range({levels}):\n    x = [x]\nx");
    assert_eq!(run(&nested(100)).error, None);
    assert_eq!(run(&nested(101)).failure().code, ErrorCode::SerializationDepth);
    assert_eq!(run(&nested(100_000)).failure().code, ErrorCode::SerializationDepth);
}

/// A6: a value over its limit is refused before it is made.
#[test]
fn size_is_bounded() {
    for code in [
        "'x' * 2000",
        "['x'] * 1000",
        "range(10**12)",
        "x = 1\nfor _ in range(60):\n    x = [x, x]\nx",
        "[float('nan')] * 1000",
        "{'a': 'é' * 600}",
    ] {
        let mut command = command(code);
        command.limits.result_bytes = 1000;
        let outcome = run_command(Python::Plain, &command);
        let told = (ErrorCode::LimitResult, "the value is larger than 1000 bytes of JSON");
        assert_eq!(outcome.told(), told, "{code}");
    }
    let outcome = run("[{'id': i, 'name': 'x' * 40, 'ok': True} for i in range(150_000)]");
    assert_eq!(outcome.value.as_array().map(Vec::len), Some(150_000));
}
