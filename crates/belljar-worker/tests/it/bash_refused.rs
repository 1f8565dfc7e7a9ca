//! Commands that were not granted are refused, told and logged (A3, A4).

use belljar_contract::{ErrorCode, Grant, MissingGrant, Stream};
use belljar_worker::bash::RESTRICTED_CALL;
use serde_json::json;

use crate::bash_cell::{ShellCell, run};

/// A3: a refused command that fails the script is a PermissionError, however it was started.
#[test]
fn a_refused_command_is_a_permission_error() {
    for (code, name, attempt, status) in [
        ("git rm -r x", "git", "git rm -r x", 126),
        ("echo 1\nset -e\ngit x\necho 2", "git", "git x", 126),
        ("curl http://a.b", "curl", "curl http://a.b", 126),
        ("x=$(python3 -c 1)", "python3", "python3 -c 1", 126),
        ("ls | sudo cat", "sudo", "sudo cat", 126),
        ("exec git x", "git", "git", 127),
        ("echo x | xargs git", "git", "git", 127),
        ("env git x", "git", "git", 127),
        ("timeout 5 git x", "git", "git", 127),
        ("bash -c 'git x'", "git", "git", 127),
        ("sh -c 'git x'", "git", "git", 127),
        // A message that is written in pieces, as some shells do.
        (
            "printf 'sh: 1: ' >&2; sleep 0.1; printf 'git: ' >&2; sleep 0.1; echo 'not found' >&2; exit 127",
            "git",
            "git",
            127,
        ),
        ("command git x", "git", "git x", 126),
        ("git x 2>/dev/null", "git", "git x", 126),
        ("IFS=,; set -u; git a b", "git", "git a b", 126),
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
        ("\ngit x", "main.sh: line 2: git: not granted to this run\n"),
        ("sudo ls", "main.sh: line 1: sudo: not granted: there is no other user here\n"),
        (
            "apt install x",
            "main.sh: line 1: apt: not granted: packages cannot be installed in a cell\n",
        ),
        (
            "curl x",
            "main.sh: line 1: curl: not granted: it needs the network, which this run may not have\n",
        ),
        (
            "ping x",
            "main.sh: line 1: ping: not granted: there is no network beyond granted hosts\n",
        ),
        ("foo_bar", "main.sh: line 1: foo_bar: command not found\n"),
    ] {
        assert_eq!(run(code).printed(Stream::Stderr), said, "{code}");
    }
    let outcome = run("git x");
    assert_eq!(outcome.failure().line, Some(1));
    let hint = "Do without it: bash builtins and the common commands for reading and transforming \
        text are available.";
    assert_eq!(outcome.failure().hint.as_deref(), Some(hint));
    let missing = MissingGrant { kind: Grant::Commands, name: "git".into() };
    assert_eq!(outcome.failure().missing.as_deref(), Some(&missing));
}

/// A3: only the end of a script counts; each refusal is logged all the same.
#[test]
fn a_refusal_in_the_middle_is_logged() {
    let outcome = run("git a; curl b; echo '{\"ok\": true}'");
    assert_eq!((outcome.value, outcome.error), (json!({"ok": true}), None));
    assert_eq!(outcome.denied, ["git a", "curl b"]);
    let outcome = run("git a || exit 5");
    let error = outcome.failure();
    assert_eq!((error.code, error.exit_code), (ErrorCode::RuntimeExit, Some(5)));
    assert!(error.hint.as_deref().unwrap_or_default().starts_with("git was refused earlier."));
}

/// A3: a name nobody knows is an ordinary error, and nothing to log.
#[test]
fn an_unknown_command_is_not_found() {
    let outcome = run("foo_bar");
    let error = outcome.failure();
    assert_eq!((error.code, error.exit_code), (ErrorCode::RuntimeExit, Some(127)));
    assert_eq!(outcome.denied, [""; 0]);
    assert_eq!(
        run("command -v git || echo none; type -t git || echo none").stdout(),
        "none\nnone\n"
    );
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

/// A3: commands that remove files are there like any other, except in restricted mode of a YAML agent,
/// which says why.
#[test]
fn restricted_mode_goes_without_commands_that_remove() {
    let code = "mkdir -p a/b; touch a/c; chmod 600 a/c; rm a/c; rmdir a/b; mv a d; ls";
    let outcome = run(code);
    assert_eq!((outcome.error.as_ref(), &*outcome.stdout()), (None, "d\n"));
    for (code, name, said) in [
        (
            "rm -rf x",
            "rm",
            "restricted mode refuses commands that remove files or change their modes",
        ),
        ("chmod 700 x", "chmod", "restricted mode refuses"),
        ("echo x | xargs rm", "rm", ""),
        ("sudo rm x", "sudo", "there is no other user here"),
    ] {
        let outcome = run(&format!("{RESTRICTED_CALL}{code}"));
        let error = outcome.failure();
        let message = format!("PermissionError: command {name} is not granted");
        assert_eq!(
            (error.code, &error.message),
            (ErrorCode::PermissionCommand, &message),
            "{code}"
        );
        assert!(outcome.printed(Stream::Stderr).contains(said), "{code}");
    }
    let outcome = run(&format!("{RESTRICTED_CALL}echo $LINENO; mkdir a && mv a b && ls"));
    assert_eq!((outcome.error.as_ref(), &*outcome.stdout()), (None, "1\nb\n"));
}

/// A5: a granted command is simply there.
#[test]
fn a_granted_command_runs() {
    let cell = ShellCell::new();
    assert_eq!(cell.run("perl -e 'print 1'").failure().code, ErrorCode::PermissionCommand);
    cell.grant("perl");
    let outcome = cell.run("perl -e 'print 1'");
    assert_eq!((outcome.error.as_ref(), &*outcome.stdout()), (None, "1"));
    assert_eq!(outcome.denied, [""; 0]);
}

/// A3: what makes this work stays out of the script's sight and reach.
#[test]
fn the_handler_is_out_of_the_way() {
    assert_eq!(run("env | grep -c FUNC || true").stdout(), "0\n");
    let outcome = run("command_not_found_handle() { echo mine; }; git x");
    assert_eq!((&*outcome.stdout(), outcome.error), ("mine\n", None));
    let outcome = run("exec 3>&1 4>&2; echo hi >&3; git x 2>/dev/null; exec 100>&-; git y; true");
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.denied, ["git x"]);
}
