//! How failures of Python code are told (A7).

use belljar_contract::{ErrorCode, Grant, MissingGrant};

use crate::cpython_harness::{Python, command, granted, run, run_command};

/// A7: message, line and column of what was raised.
#[test]
fn errors_have_message_and_place() {
    let cases: &[(&str, &str, u32)] = &[
        ("raise ValueError('bad')", "ValueError: bad", 1),
        ("x = 1\n\nraise KeyboardInterrupt", "KeyboardInterrupt", 3),
        ("class Mine(Exception): pass\nraise Mine('m')", "Mine: m", 2),
        (
            "import json\njson.loads('{')",
            "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            2,
        ),
        ("def f():\n    return [][0]\nf()", "IndexError: list index out of range", 2),
        ("raise Exception('é' * 10_000)", &format!("Exception: {}…", "é".repeat(4090)), 1),
        (
            "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
            "E: <exception str() failed>",
            3,
        ),
    ];
    for (code, message, line) in cases {
        let outcome = run(code);
        let (code_told, told, at, _) = outcome.place();
        assert_eq!(
            (code_told, told, at),
            (ErrorCode::RuntimeThrown, *message, Some(*line)),
            "{code}"
        );
    }
}

/// A7: the traceback is Python's, with the agent's lines only.
#[test]
fn stacks_show_the_agents_lines() {
    let code = "import json\ndef load(text):\n    try:\n        return json.loads(text)\n    except ValueError as e:\n        raise RuntimeError('no data') from e\nreturn load('')";
    let stack = run(code).failure().stack.clone().expect("a stack");
    let lines: Vec<_> =
        stack.lines().filter(|line| !line.trim_start().starts_with(['^', '~'])).collect();
    assert_eq!(
        lines,
        [
            "Traceback (most recent call last):",
            "  File \"main.py\", line 4, in load",
            "    return json.loads(text)",
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            "Traceback (most recent call last):",
            "  File \"main.py\", line 7, in <module>",
            "    return load('')",
            "  File \"main.py\", line 6, in load",
            "    raise RuntimeError('no data') from e",
            "RuntimeError: no data",
        ]
    );
    let group = run("raise ExceptionGroup('two', [ValueError(1), TypeError(2)])");
    let stack = group.failure().stack.clone().expect("a stack");
    assert_eq!(group.failure().message, "ExceptionGroup: two (2 sub-exceptions)");
    assert!(stack.contains("| ValueError: 1") && stack.contains("| TypeError: 2"), "{stack}");
}

/// Code, error code, how the message starts.
const ENDS: &[(&str, ErrorCode, &str)] = &[
    (
        "def f(): return f()\nf()",
        ErrorCode::RuntimeStackOverflow,
        "RecursionError: maximum recursion depth exceeded",
    ),
    (
        "import sys\nsys.setrecursionlimit(10**6)\nclass A:\n    def __add__(self, o): return self + o\nA() + A()",
        ErrorCode::RuntimeStackOverflow,
        "RecursionError: maximum recursion depth exceeded",
    ),
    (
        "import sys\nsys.setrecursionlimit(10**6)\nimport functools\n@functools.lru_cache(None)\ndef f(n): return f(n + 1)\nf(0)",
        ErrorCode::RuntimeStackOverflow,
        "RecursionError: maximum recursion depth exceeded",
    ),
    (
        "import sys\nsys.exit(3)",
        ErrorCode::RuntimeExit,
        "SystemExit: the code ended itself with status 3",
    ),
    ("exit('no input')", ErrorCode::RuntimeExit, "SystemExit: no input"),
    (
        "import os\nos._exit(4)",
        ErrorCode::RuntimeExit,
        "os._exit: the code ended itself with status 4",
    ),
    (
        "import asyncio\nasync def f(): raise ValueError('lost')\nt = asyncio.create_task(f())\nawait asyncio.sleep(0.01)\n1",
        ErrorCode::RuntimeUnhandledRejection,
        "ValueError: lost",
    ),
    (
        "import asyncio\nasync def f(): raise ValueError('lost')\nasync def main():\n    asyncio.create_task(f())\n    await asyncio.sleep(0.01)\nasyncio.run(main())",
        ErrorCode::RuntimeUnhandledRejection,
        "ValueError: lost",
    ),
    (
        "raise OSError(28, 'No space left on device')",
        ErrorCode::LimitDisk,
        "OSError: [Errno 28] No space left on device",
    ),
    (
        "raise RuntimeError(\"can't start new thread\")",
        ErrorCode::LimitProcesses,
        "RuntimeError: can't start new thread",
    ),
    (
        "raise PermissionError(13, 'Permission denied', '/etc/shadow')",
        ErrorCode::PermissionFile,
        "PermissionError: [Errno 13] Permission denied: '/etc/shadow'",
    ),
    (
        "raise PermissionError(1, 'Operation not permitted')",
        ErrorCode::PermissionHost,
        "PermissionError: [Errno 1] Operation not permitted",
    ),
];

/// A7: each kind of end has its code.
#[test]
fn codes() {
    for (code, expected, message) in ENDS {
        let outcome = run(code);
        let (told, said) = outcome.told();
        assert_eq!(told, *expected, "{code}: {outcome:?}");
        assert!(said.starts_with(message), "{code}: {said}");
    }
    assert_eq!(run("import sys\nsys.exit(3)").failure().exit_code, Some(3));
    assert_eq!(run("exit('no')").failure().exit_code, Some(1));
}

/// A4: network that is refused is told as such, whatever library asked for it.
#[test]
fn refused_network_is_a_permission_error() {
    let refusing = "import urllib.request\nm = __import__('urllib.request').request.socket\ndef no(*a, **k): raise PermissionError(1, 'Operation not permitted')\nm.socket.__init__ = no\nm.getaddrinfo = lambda *a, **k: [(2, 1, 6, '', ('1.1.1.1', 80))]\n";
    let outcome = run(&format!("{refusing}urllib.request.urlopen('http://example.org')"));
    assert_eq!(outcome.failure().code, ErrorCode::PermissionNetwork, "{outcome:?}");
    assert_eq!(outcome.denied, ["urllib.request.urlopen('http://example.org')"]);
}

/// A7: hints an agent can act on.
#[test]
fn hints() {
    let cases: &[(&str, &str)] = &[
        (
            "import nosuchmodule",
            "`nosuchmodule` is not installed here, and nothing can be installed during a run.",
        ),
        ("open('/nowhere/x.csv')", "Only /work, /tmp and granted paths exist here."),
        ("open('data.csv', 'w').close()\nopen('dat.csv')", "Files in "),
        (
            "total = 1\ntotl",
            "Did you mean `total`? Define it first, or check its spelling. Input is in `context`.",
        ),
        ("json.dumps(1)", "Add `import json` first."),
        ("x = null", "In Python it is `None`."),
        (
            "d = {'name': 1, 'age': 2}\nd['nam']",
            "The keys are: 'name', 'age'. Did you mean `name`?",
        ),
        ("d = {'a': {'b': 1}}\ndef f(d): return d['a']['c']\nf(d)", "The keys are: 'b'."),
        ("import os\nos.environ['TOKEN']", "Only granted environment variables are set."),
        (
            "x = None\nx.name",
            "The value before the dot is None: check where it comes from, and that the call returns something.",
        ),
        ("'a'.uper()", "Did you mean `upper`?"),
        (
            "import asyncio\nasync def main(): pass\nawait asyncio.sleep(0)\nasyncio.run(main())",
            "The code already runs in an event loop: write `await main()` at the top level.",
        ),
        (
            "raise PermissionError(13, 'no', '/secret/x')",
            "/secret/x may not be read. Use files in /work.",
        ),
    ];
    for (code, hint) in cases {
        let outcome = run(code);
        assert!(outcome.hint().starts_with(hint), "{code}: {}", outcome.hint());
    }
}

/// A7: a command that is not there is told as a command, not as a file.
#[test]
fn missing_commands_are_told() {
    let code = "import subprocess\nsubprocess.run(['nosuchcommand'])";
    let outcome = run_command(Python::Plain, &granted(&["subprocess"], code));
    assert_eq!(outcome.hint(), "The command `nosuchcommand` is not available. Do it in Python.");
    let missing = MissingGrant { kind: Grant::Commands, name: "nosuchcommand".into() };
    assert_eq!(outcome.failure().missing.as_deref(), Some(&missing));
}

/// A7: code that needs the network is told which host to ask for.
#[test]
fn a7_a_host_that_was_not_granted_is_named() {
    let outcome = run("import urllib.request\nurllib.request.urlopen('http://nowhere.invalid/x')");
    let failure = outcome.failure();
    assert_eq!(failure.code, ErrorCode::PermissionNetwork);
    let missing = MissingGrant { kind: Grant::Net, name: "nowhere.invalid".into() };
    assert_eq!(failure.missing.as_deref(), Some(&missing));
}

/// A6: time that runs out is told with the line that was running.
#[test]
fn timeouts_name_the_line() {
    let cases: &[(&str, u32)] = &[
        ("x = 1\nwhile True:\n    pass", 0),
        ("import time\ntry:\n    time.sleep(60)\nexcept BaseException:\n    pass", 3),
        (
            "def f():\n    while True:\n        try:\n            x = len('a')\n        except: pass\nf()",
            0,
        ),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(60)\nawait f()", 3),
        (
            "import threading\nt = threading.Thread(target=lambda: threading.Event().wait())\nt.start()\nt.join()",
            4,
        ),
        ("while True: print('x', end='')", 1),
        ("import re\nre.match('(a+)+b', 'a' * 60)", 2),
    ];
    for (code, line) in cases {
        let mut command = command(code);
        command.limits.wall_ms = 300;
        let outcome = run_command(Python::Plain, &command);
        let error = outcome.failure();
        assert_eq!(error.code, ErrorCode::LimitTimeout, "{code}");
        let start = "timed out: the run went over its 300 ms of wall time, at line ";
        assert!(error.message.starts_with(start), "{code}: {}", error.message);
        assert!(*line == 0 || error.line == Some(*line), "{code}: {error:?}");
    }
}

/// A6: memory that runs out is told, even with none left.
#[test]
fn memory_that_runs_out_is_told() {
    for code in [
        "x = []\nwhile True:\n    x.append('x' * 1000 + str(len(x)))",
        "x = bytearray(1 << 40)",
        "x = {}\ni = 0\nwhile True:\n    x[i] = [i]\n    i += 1",
        "x = 'x' * (100 << 20)\nreturn [x] * 50",
    ] {
        let mut command = command(code);
        command.limits.memory_bytes = 256 << 20;
        command.limits.result_bytes = u32::MAX;
        let outcome = run_command(Python::Plain, &command);
        let told = (ErrorCode::LimitMemory, "out of memory: the limit is 256 MiB");
        assert_eq!(outcome.told(), told, "{code}");
    }
}

/// A6: limits that cannot be lowered end the run before it starts.
#[test]
fn limits_that_do_not_hold_end_the_run() {
    let mut command = command("1");
    command.limits.open_files = 0;
    assert_eq!(
        run_command(Python::Plain, &command).told(),
        (
            ErrorCode::SandboxEngine,
            "could not lower the limits of the run: [Errno 22] Invalid argument"
        )
    );
}
