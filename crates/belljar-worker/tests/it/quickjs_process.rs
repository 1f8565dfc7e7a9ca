//! `process` as the cell sees it, and how code ends itself (A1, A4).

use belljar_contract::{ErrorCode, Stream};
use belljar_wire::GuestGrants;
use belljar_worker::quickjs::QuickJs;
use serde_json::json;

use crate::harness::{Outcome, command, run, run_command, run_session, value};

fn granted(code: &str) -> Outcome {
    let mut grants = GuestGrants::default();
    grants.env.insert("TOKEN".into(), "t0k".into());
    let mut command = command(code);
    command.grants = grants;
    run_command(command)
}

/// A4: granted variables are there, others are undefined, and none of them is the host's.
#[test]
fn only_granted_variables_are_seen() {
    let code = "[process.env.TOKEN, process.env.PATH ?? 'none', 'HOME' in process.env, Object.keys(process.env), {...process.env}]";
    let outcome = granted(code);
    assert_eq!(outcome.value, json!(["t0k", "none", false, ["TOKEN"], {"TOKEN": "t0k"}]));
    assert_eq!(outcome.denied, [""; 0]);
    // Control: this process has variables the code must not see.
    assert!(std::env::var_os("PATH").is_some());
}

/// A4: what code sets is its own.
#[test]
fn variables_can_be_set_within_the_run() {
    let code = "process.env.MODE = 1; delete process.env.TOKEN; [process.env.MODE, process.env.TOKEN ?? null, Object.keys(process.env)]";
    assert_eq!(granted(code).value, json!(["1", null, ["MODE"]]));
}

/// A1: nothing of the machine is told.
#[test]
fn the_machine_is_not_told() {
    let code = "const os = require('os');
        [process.platform, process.cwd(), process.pid, process.ppid, process.argv.length, os.hostname(), os.homedir(), os.networkInterfaces(),
         os.cpus().length, os.release(), os.totalmem()]";
    let expected = json!(["linux", "/work", 2, 1, 2, "belljar", "/work", {}, 1, "", 256 << 20]);
    assert_eq!(value(code), expected);
}

/// A1: both streams take text as it is, without a line break.
#[test]
fn streams_are_written_as_they_are() {
    let outcome = run("process.stdout.write('a'); process.stdout.write(Buffer.from('b\\n'));
        process.stderr.write('c'); await new Promise((done) => process.stdout.write('', done)); 'd'");
    assert_eq!(outcome.stdout(), "ab\n");
    assert_eq!(outcome.printed(Stream::Stderr), "c");
    assert_eq!(outcome.value, json!("d"));
    let outcome = run("process.stdout.write(5 as any)");
    assert_eq!(
        outcome.told().1,
        "TypeError: The \"chunk\" argument must be of type string or an instance of Buffer or Uint8Array. \
         Received type number (5)"
    );
}

/// A1: status 0 completes the run, wherever it is said; what was printed and left in `state` stays.
#[test]
fn exit_with_zero_completes() {
    for code in [
        "console.log('one'); state.n = 1; process.exit(0); console.log('two')",
        "console.log('one'); state.n = 1; process.exit(); 5",
        "console.log('one'); state.n = 1; setTimeout(() => process.exit(0), 1); setInterval(() => {}, 1000)",
        "console.log('one'); state.n = 1; try { process.exit(0) } catch { console.log('two') } finally { console.log('three') }",
        "async function main() { console.log('one'); state.n = 1; process.exit(0) } main(); console.log('two')",
        "await Promise.resolve().then(() => { console.log('one'); state.n = 1; process.exit(0) }).catch(() => console.log('two'))",
        "import { exit } from 'node:process'; console.log('one'); state.n = 1; [1].forEach(() => exit(0)); console.log('two')",
    ] {
        let outcome = run(code);
        assert_eq!(outcome.error, None, "{code}");
        assert_eq!(outcome.stdout(), "one\n", "{code}");
        assert_eq!((&outcome.value, &outcome.state), (&json!(null), &json!({"n": 1})), "{code}");
    }
}

/// A1: any other status fails the run with it, and what was printed is kept.
#[test]
fn exit_with_a_status_fails() {
    for (code, status) in [
        ("console.log('one'); process.exit(3)", 3),
        ("console.log('one'); try { process.exit(1) } catch {} console.log('two')", 1),
        ("console.log('one'); process.exitCode = 7; 'value'", 7),
        ("console.log('one'); process.exitCode = 8; process.exit()", 8),
        (
            "console.log('one'); const f = async () => { await 1; process.exit(2) }; f(); await new Promise(() => {})",
            2,
        ),
        ("process.on('exit', () => console.log('one')); process.exit(4)", 4),
        ("process.on('exit', () => { console.log('one'); process.exitCode = 5 })", 5),
    ] {
        let outcome = run(code);
        let error = outcome.failure();
        assert_eq!((error.code, error.exit_code), (ErrorCode::RuntimeExit, Some(status)), "{code}");
        assert_eq!(
            error.message,
            format!("process.exit: the code ended itself with status {status}"),
            "{code}"
        );
        assert_eq!(outcome.stdout(), "one\n", "{code}");
    }
}

/// A1: code that has ended itself is stopped, though it refuses to notice.
#[test]
fn exit_cannot_be_outlived() {
    let outcome = run("const again = () => { try { process.exit(6) } finally { again() } };
        try { again() } catch {} for (;;) { try { process.exit(0) } catch {} }");
    assert_eq!(outcome.failure().exit_code, Some(6));
}

/// B1: a session goes on after a run that ended itself, and its status is not the next run's.
#[test]
fn a_session_survives_an_exit() {
    let codes = [
        "let n = 1; process.on('exit', () => console.log('bye')); process.exit(9)",
        "n += 1; n",
        "process.exitCode ?? 'none'",
    ];
    let warm = || QuickJs::warm().expect("the engine warms");
    let commands = codes.iter().map(|code| command(code)).collect();
    let outcomes = run_session(warm, commands, |ask| unreachable!("nobody answers {ask:?}"));
    let [first, second, third] = &outcomes[..] else { panic!("three runs") };
    assert_eq!((first.failure().exit_code, first.stdout()), (Some(9), "bye\n".to_owned()));
    assert_eq!((&second.error, &second.value, second.stdout()), (&None, &json!(2), String::new()));
    assert_eq!(third.value, json!("none"));
}
