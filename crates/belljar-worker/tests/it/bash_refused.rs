//! Commands that were not granted are refused, told and logged (A3, A4).

use belljar_contract::{ErrorCode, Stream};
use serde_json::json;

use crate::bash_cell::{ShellCell, run};

/// A3: a refused command that fails the script is a PermissionError, however it was started.
#[test]
fn a_refused_command_is_a_permission_error() {
    for (code, name, attempt, status) in [
        ("rm -rf x", "rm", "rm -rf x", 126),
        ("echo 1\nset -e\nrm x\necho 2", "rm", "rm x", 126),
        ("curl http://a.b", "curl", "curl http://a.b", 126),
        ("x=$(python3 -c 1)", "python3", "python3 -c 1", 126),
        ("ls | sudo cat", "sudo", "sudo cat", 126),
        ("exec rm x", "rm", "rm", 127),
        ("echo x | xargs rm", "rm", "rm", 127),
        ("env rm x", "rm", "rm", 127),
        ("timeout 5 rm x", "rm", "rm", 127),
        ("bash -c 'rm x'", "rm", "rm", 127),
        ("sh -c 'rm x'", "rm", "rm", 127),
        ("command rm x", "rm", "rm x", 126),
        ("rm x 2>/dev/null", "rm", "rm x", 126),
        ("IFS=,; set -u; rm a b", "rm", "rm a b", 126),
    ] {
        let outcome = run(code);
        let error = outcome.failure();
        assert_eq!(
            (error.code, error.exit_code),
            (ErrorCode::PermissionCommand, Some(status)),
            "{code}"
        );
        assert_eq!(
            error.message,
            format!("PermissionError: command {name} is not granted"),
            "{code}"
        );
        assert_eq!(outcome.denied, [attempt], "{code}");
    }
}

/// A4: the script itself is told why, on the line.
#[test]
fn the_refusal_says_why() {
    for (code, said) in [
        ("\nrm x", "main.sh: line 2: rm: not granted. Grant it with --command rm\n"),
        ("sudo ls", "main.sh: line 1: sudo: not granted: there is no other user here\n"),
        (
            "pip install x",
            "main.sh: line 1: pip: not granted: packages cannot be installed in a cell\n",
        ),
        ("curl x", "main.sh: line 1: curl: not granted: there is no network here\n"),
        ("foo_bar", "main.sh: line 1: foo_bar: command not found\n"),
    ] {
        assert_eq!(run(code).printed(Stream::Stderr), said, "{code}");
    }
    let outcome = run("rm x");
    assert_eq!(outcome.failure().line, Some(1));
    let hint = "Grant it with --command rm, or do without it: bash builtins and the common commands \
        for reading and transforming text are available.";
    assert_eq!(outcome.failure().hint.as_deref(), Some(hint));
}

/// A3: only the end of a script counts; each refusal is logged all the same.
#[test]
fn a_refusal_in_the_middle_is_logged() {
    let outcome = run("rm a; curl b; echo '{\"ok\": true}'");
    assert_eq!((outcome.value, outcome.error), (json!({"ok": true}), None));
    assert_eq!(outcome.denied, ["rm a", "curl b"]);
    let outcome = run("rm a || exit 5");
    let error = outcome.failure();
    assert_eq!((error.code, error.exit_code), (ErrorCode::RuntimeExit, Some(5)));
    assert!(error.hint.as_deref().unwrap_or_default().starts_with("rm was refused earlier."));
}

/// A3: a name nobody knows is an ordinary error, and nothing to log.
#[test]
fn an_unknown_command_is_not_found() {
    let outcome = run("foo_bar");
    let error = outcome.failure();
    assert_eq!((error.code, error.exit_code), (ErrorCode::RuntimeExit, Some(127)));
    assert_eq!(outcome.denied, [""; 0]);
    assert_eq!(run("command -v rm || echo none; type -t rm || echo none").stdout(), "none\nnone\n");
}

/// A3: neither is a command by its path, nor a file that is no command.
#[test]
fn paths_are_refused() {
    let outcome = run("echo 'echo 1' > go.sh; ./go.sh");
    let error = outcome.failure();
    assert_eq!((error.code, error.exit_code), (ErrorCode::PermissionCommand, Some(126)));
    let hint = "Files cannot be executed directly. Run a script with: bash ./go.sh";
    assert_eq!(error.hint.as_deref(), Some(hint));
    assert_eq!(outcome.denied, ["./go.sh"]);
    let outcome = run("/usr/bin/no_such_program_here x");
    assert_eq!(outcome.failure().code, ErrorCode::PermissionCommand);
}

/// A5: a granted command is simply there.
#[test]
fn a_granted_command_runs() {
    let cell = ShellCell::new();
    cell.grant("rm");
    let outcome = cell.run("echo 1 > x; rm x; ls");
    assert_eq!((outcome.error.as_ref(), &*outcome.stdout()), (None, ""));
    assert_eq!(outcome.denied, [""; 0]);
}

/// A3: what makes this work stays out of the script's sight and reach.
#[test]
fn the_handler_is_out_of_the_way() {
    assert_eq!(run("env | grep -c FUNC || true").stdout(), "0\n");
    let outcome = run("command_not_found_handle() { echo mine; }; rm x");
    assert_eq!((&*outcome.stdout(), outcome.error), ("mine\n", None));
    let outcome = run("exec 3>&1 4>&2; echo hi >&3; rm x 2>/dev/null; exec 100>&-; rm y; true");
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.denied, ["rm x"]);
}
