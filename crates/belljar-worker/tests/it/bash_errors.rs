//! A script that does not end with 0 is an error with its code and, where known, its line (A3, A7).

use belljar_contract::{ErrorCode, Grant, MissingGrant, RunError};
use belljar_wire::GuestError;

use crate::bash_cell::{ShellCell, run, script};

#[track_caller]
fn failed(code: &str) -> GuestError {
    run(code).failure().clone()
}

/// A3: `exit_code` is the script's own.
#[test]
fn exit_codes_come_back() {
    for (code, status, message) in [
        ("exit 3", 3, "bash exited with status 3"),
        ("false", 1, "bash exited with status 1"),
        ("echo oh no >&2; exit 9", 9, "bash exited with status 9: oh no"),
        ("exec false", 1, "bash exited with status 1"),
        ("set -o pipefail; false | cat", 1, "bash exited with status 1"),
        ("kill -9 $$", 137, "bash was killed by SIGKILL"),
        ("kill -SEGV $$", 139, "bash was killed by SIGSEGV"),
        ("bash -c 'kill -TERM $$'; exit $?", 143, ""),
    ] {
        let error = failed(code);
        assert_eq!((error.code, error.exit_code), (ErrorCode::RuntimeExit, Some(status)), "{code}");
        if !message.is_empty() {
            assert_eq!(error.message, message, "{code}");
        }
    }
    assert_eq!(run("false; true").error, None);
    assert_eq!(run("exit 0").error, None);
}

/// A7: bash's own messages have lines, those of the code as written.
#[test]
fn errors_have_lines() {
    for (code, line, message) in [
        (
            "set -u\n\necho $x",
            Some(3),
            "bash exited with status 1: main.sh: line 3: x: unbound variable",
        ),
        (
            "f() {\n  nonsense\n}\nf",
            Some(2),
            "bash exited with status 127: main.sh: line 2: nonsense: command not found",
        ),
        (
            "f() {\n  : ${x:?is not set}\n}\nf",
            Some(2),
            "bash exited with status 1: main.sh: line 2: x: is not set",
        ),
        ("cat missing", None, "bash exited with status 1: cat: missing: No such file or directory"),
    ] {
        let error = failed(code);
        assert_eq!((error.line, &*error.message), (line, message), "{code}");
    }
}

/// A7: code that does not parse is a SyntaxError.
#[test]
fn syntax_errors_are_told_apart() {
    for (code, line, message) in [
        ("echo 1\nif then\nfi", 2, "SyntaxError: syntax error near unexpected token `then'"),
        (")", 1, "SyntaxError: syntax error near unexpected token `)'"),
        ("echo 1\necho 'a", 2, "SyntaxError: unexpected EOF while looking for matching `''"),
        ("if true; then\n  echo 1", 2, "SyntaxError: syntax error: unexpected end of file"),
    ] {
        for code in [code.to_owned(), format!("{code}\n# {}", "x".repeat(150_000))] {
            let error = failed(&code);
            let start = code.get(..20).unwrap_or(&code);
            assert_eq!(
                (error.code, error.exit_code),
                (ErrorCode::SyntaxInvalid, Some(2)),
                "{start}"
            );
            assert!(error.message.starts_with(message), "{start}: {}", error.message);
            if code.len() < 1000 {
                assert_eq!(error.line, Some(line), "{start}");
            }
        }
    }
    let outcome = run("echo )");
    let said: String = outcome.prints.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        said,
        "main.sh: line 1: syntax error near unexpected token `)'\nmain.sh: line 1: `echo )'\n"
    );
    // Errors of a shell within the script are the script's to handle.
    assert_eq!(failed("bash -c 'if'; exit 2").code, ErrorCode::RuntimeExit);
    assert_eq!(failed("echo a\0b").code, ErrorCode::SyntaxInvalid);
}

/// A4: a path that does not exist here has a hint that names the grant.
#[test]
fn missing_paths_have_hints() {
    let error = failed("cat /nowhere/data.csv");
    let missing = MissingGrant { kind: Grant::Read, name: "/nowhere/data.csv".into() };
    assert_eq!(error.missing.as_deref(), Some(&missing));
    let expected = "Only /work, /tmp and granted paths exist here.";
    assert_eq!(error.hint.as_deref(), Some(expected));
    let told = RunError::from(error).hint.unwrap_or_default();
    assert_eq!(told, format!("{expected} Grant it with --read /nowhere/data.csv."));
    assert!(failed("wc -l < /nowhere/x").hint.is_some());
    let error = failed("cat /tmp/nothing-of-that-name");
    let missing = MissingGrant { kind: Grant::Read, name: "/tmp/nothing-of-that-name".into() };
    assert_eq!(error.missing.as_deref(), Some(&missing));
    assert_eq!(failed("cat missing").hint, None);
}

/// A6: words that tell of a limit become that limit.
#[test]
fn limits_are_recognised() {
    for (words, code) in [
        ("tee: x: No space left on device", ErrorCode::LimitDisk),
        ("main.sh: line 1: 4 File size limit exceeded head", ErrorCode::LimitDisk),
        ("bash: fork: retry: Resource temporarily unavailable", ErrorCode::LimitProcesses),
        ("main.sh: line 4: x: Too many open files", ErrorCode::LimitOpenFiles),
        ("awk: cannot allocate 100 bytes", ErrorCode::LimitMemory),
    ] {
        let error = failed(&format!("echo '{words}' >&2; exit 1"));
        assert_eq!((error.code, error.exit_code), (code, Some(1)), "{words}");
        assert!(error.hint.is_some(), "{words}");
        assert_eq!(run(&format!("echo '{words}' >&2")).error, None);
    }
}

/// A7: `$0` and messages have the name the caller gave the code.
#[test]
fn the_file_name_is_the_callers() {
    let mut command = script("echo $0\nnonsense");
    command.file_name = "job.sh".into();
    let outcome = ShellCell::new().run_command(command);
    assert_eq!(outcome.stdout(), "job.sh\n");
    assert_eq!(outcome.failure().line, Some(2));
}
