//! Python code that breaks things around it still gets its answer (A7, A9).

use belljar_contract::ErrorCode;
use serde_json::{Value, json};

use crate::cpython_harness::{run, value};

/// A9: what the code does to the interpreter does not reach its answer.
#[test]
fn the_answer_survives() {
    let cases: &[(&str, Value)] = &[
        ("import sys\nsys.stdout = sys.stderr = None\nprint('nowhere')\n1", json!(1)),
        ("import sys\nsys.stdout.close()\nprint('still')\n2", json!(2)),
        ("import json\njson.dumps = json.loads = None\n{'a': 3}", json!({"a": 3})),
        ("import os\nos.getpid = os.write = os.read = None\n4", json!(4)),
        ("import sys\nsys.modules.clear()\n[5]", json!([5])),
        (
            "import sys\nsys.setrecursionlimit(60)\nx = 6\nfor _ in range(40): x = [x]\nimport datetime\n[x[0][0] is not None, datetime.date(2024, 1, 2)]",
            json!([true, "2024-01-02"]),
        ),
        ("globals().clear()", json!(null)),
        ("import gc\ngc.disable()\n7", json!(7)),
        ("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n8", json!(8)),
        ("class D:\n    def __del__(self): print('deleted')\nD()\n9", json!(9)),
        (
            "class R:\n    def __repr__(self): raise ValueError\n    def __eq__(self, o): raise ValueError\n    __hash__ = object.__hash__\nx = R()\n10",
            json!(10),
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(value(code), *expected, "{code}");
    }
}

/// A7: errors that resist being shown are shown all the same.
#[test]
fn hostile_errors_are_told() {
    let cases: &[(&str, &str)] = &[
        ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", "E"),
        ("class E(Exception):\n    __module__ = 5\nraise E('x')", "E: x"),
        ("class E(BaseException): pass\nraise E('base')", "E: base"),
        ("raise ValueError('\\ud800')", "ValueError: \u{fffd}"),
        ("e = ValueError('a')\ne.__cause__ = e\nraise e", "ValueError: a"),
        ("raise ValueError('\\x01' * 100_000)", "ValueError: \u{1}"),
        ("class K(dict):\n    def keys(self): raise ValueError\nd = K()\nd['x']", "KeyError: 'x'"),
        (
            "class M(type):\n    def __getattribute__(c, n): raise ValueError\nclass X(metaclass=M): pass\nX.y",
            "ValueError",
        ),
    ];
    for (code, message) in cases {
        let outcome = run(code);
        let (told, said) = outcome.told();
        assert_eq!(told, ErrorCode::RuntimeThrown, "{code}");
        assert!(said.starts_with(message), "{code}: {said}");
    }
}
