//! Restricted mode: what Python code may not import or call unless it was granted (A2).

use belljar_contract::{ErrorCode, Grant, MissingGrant};
use belljar_wire::GuestGrants;
use serde_json::json;

use crate::cpython_harness::{Python, command, granted, run, run_command};

/// A2: each refused module and call, by every plain way to it.
#[test]
fn refusals_name_the_grant() {
    let cases: &[(&str, &str, &str)] = &[
        ("import subprocess", "import subprocess", "subprocess"),
        ("import socket", "import socket", "socket"),
        ("import ctypes.util", "import ctypes.util", "ctypes"),
        ("from multiprocessing import Pool", "import multiprocessing", "multiprocessing"),
        ("import importlib", "import importlib", "importlib"),
        ("from pickle import loads", "import pickle", "pickle"),
        ("import _socket", "import _socket", "socket"),
        ("__import__('subprocess')", "import subprocess", "subprocess"),
        ("from subprocess import *\nreturn 1", "import subprocess", "subprocess"),
        ("exec('1')", "exec()", "exec"),
        ("eval('1')", "eval()", "eval"),
        ("compile('1', 'x', 'eval')", "compile()", "compile"),
        ("input()", "input()", "input"),
        (
            "open('mine.py', 'w').write('import subprocess')\nimport mine",
            "import subprocess",
            "subprocess",
        ),
    ];
    for (code, what, grant) in cases {
        let outcome = run(code);
        let message = format!(
            "PermissionError: {what} is refused in restricted mode: {grant} is not granted"
        );
        assert_eq!(outcome.told(), (ErrorCode::PermissionModule, message.as_str()), "{code}");
        assert_eq!(outcome.denied, [*what], "{code}");
        let missing = MissingGrant { kind: Grant::Modules, name: (*grant).to_owned() };
        assert_eq!(outcome.failure().missing.as_deref(), Some(&missing), "{code}");
    }
}

/// A2: names that the code gives a meaning of its own are its own, and so are attributes.
#[test]
fn names_of_the_codes_own_are_not_refused() {
    for (code, expected) in [
        ("def compile(x): return x + 1\ncompile(1)", json!(2)),
        ("def f(input): return input * 2\nf(2)", json!(4)),
        ("import re\nre.compile('a').pattern", json!("a")),
        ("from json import loads as eval\neval('[1]')", json!([1])),
        ("class Model:\n    def eval(self): return 3\nModel().eval()", json!(3)),
    ] {
        let outcome = run(code);
        assert_eq!(
            (outcome.error, outcome.value, outcome.denied),
            (None, expected, vec![]),
            "{code}"
        );
    }
}

/// A2: the builtins of the code are those of the module `builtins`.
#[test]
fn builtins_are_pythons_own() {
    for (code, expected) in [
        ("import builtins\nbuiltins.foo = 5\nfoo", json!(5)),
        (
            "from unittest.mock import mock_open, patch\n\
             with patch('builtins.open', mock_open(read_data='a,b')):\n    text = open('no').read()\ntext",
            json!("a,b"),
        ),
        (
            "from unittest.mock import patch\n\
             with patch('builtins.print') as p:\n    print('x')\np.call_args[0][0]",
            json!("x"),
        ),
        (
            "from unittest.mock import patch\n\
             with patch('builtins.input', return_value='7'):\n    n = int(input('n? '))\nn",
            json!(7),
        ),
        (
            "import builtins\n[__builtins__ is builtins, __import__('io').open is open]",
            json!([true, true]),
        ),
        (
            "import builtins\nbuiltins.len = builtins.isinstance = None\n{'a': [1]}",
            json!({"a": [1]}),
        ),
    ] {
        let outcome = run(code);
        assert_eq!((outcome.error, outcome.value), (None, expected), "{code}");
    }
    let outcome = run("import builtins\nbuiltins.repr = builtins.str = None\n1 / 0");
    assert_eq!(outcome.told(), (ErrorCode::RuntimeThrown, "ZeroDivisionError: division by zero"));
}

/// A2: a grant brings back what it names, and no more.
#[test]
fn grants_restore() {
    let cases = [
        ("subprocess", "import subprocess\nsubprocess.run(['true']).returncode", json!(0)),
        (
            "pickle",
            "import pickle\nclass P: pass\ntype(pickle.loads(pickle.dumps(P()))).__name__",
            json!("P"),
        ),
        (
            "importlib",
            "import importlib.util\nimportlib.util.find_spec('json') is not None",
            json!(true),
        ),
        ("ctypes", "import ctypes\nctypes.sizeof(ctypes.c_int)", json!(4)),
        ("socket", "import socket\nsocket.AF_INET == 2", json!(true)),
        ("eval", "x = 20\neval('x + 1')", json!(21)),
        ("exec", "exec('y = 3')\ny", json!(3)),
    ];
    for (module, code, value) in cases {
        let outcome = run_command(Python::Plain, &granted(&[module], code));
        assert_eq!((outcome.error, outcome.value), (None, value), "{code}");
    }
    let outcome = run_command(Python::Plain, &granted(&["pickle"], "import subprocess"));
    assert_eq!(outcome.failure().code, ErrorCode::PermissionModule);
}

/// A2: permissive mode refuses nothing at this level.
#[test]
fn permissive_refuses_nothing() {
    let mut command =
        command("import subprocess, socket, ctypes, pickle, importlib\neval('1 + 1')");
    command.grants = GuestGrants { permissive: true, ..GuestGrants::default() };
    let outcome = run_command(Python::Plain, &command);
    assert_eq!((outcome.error, outcome.value, outcome.denied), (None, json!(2), vec![]));
}

/// A2: libraries import what they need, and a refusal can be handled like any error.
#[test]
fn libraries_are_not_restricted() {
    for code in [
        "import concurrent.futures, logging.handlers, http.client, asyncio.subprocess\nTrue",
        "import os, sys\ngetattr(os, 'getpid')() > 0 and callable(open)",
        "from collections import namedtuple\nP = namedtuple('P', 'x')\nP(1).x == 1",
        "try:\n    import socket\nexcept PermissionError:\n    caught = True\ncaught",
    ] {
        assert_eq!(run(code).value, json!(true), "{code}");
    }
}
