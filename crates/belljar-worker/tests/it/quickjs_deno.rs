//! Code written for Deno is refused in Deno's words, and may catch that as it would there (A4).

use belljar_contract::{ErrorCode, Grant, MissingGrant};
use serde_json::json;

use crate::harness::{Outcome, command, run, run_command, value};

/// The attempt, Deno's message, the code of the run's error, and the line in the log.
const REFUSED: &[(&str, &str, ErrorCode, &str)] = &[
    (
        "await Deno.readTextFile('/etc/belljar-none')",
        "read access to \"/etc/belljar-none\"",
        ErrorCode::PermissionFile,
        "open '/etc/belljar-none'",
    ),
    (
        "Deno.readFileSync('/etc/belljar-none')",
        "read access to \"/etc/belljar-none\"",
        ErrorCode::PermissionFile,
        "open '/etc/belljar-none'",
    ),
    (
        "await Deno.open('/etc/passwd')",
        "read access to \"/etc/passwd\"",
        ErrorCode::PermissionFile,
        "Deno.open(\"/etc/passwd\")",
    ),
    (
        "await Deno.writeTextFile('/belljar-none/x', 'y')",
        "write access to \"/belljar-none/x\"",
        ErrorCode::PermissionFile,
        "open '/belljar-none/x'",
    ),
    (
        "await new Deno.Command('rm', { args: ['-rf', '/'] }).output()",
        "run access to \"rm\"",
        ErrorCode::PermissionCommand,
        "Deno.Command(\"rm\")",
    ),
    (
        "Deno.env.get('HOME')",
        "env access to \"HOME\"",
        ErrorCode::PermissionHost,
        "Deno.env.get(\"HOME\")",
    ),
    ("Deno.env.toObject()", "env access", ErrorCode::PermissionHost, "Deno.env.toObject()"),
    (
        "await Deno.connect({ hostname: 'example.com', port: 80 })",
        "net access to \"example.com:80\"",
        ErrorCode::PermissionNetwork,
        "Deno.connect(\"example.com:80\")",
    ),
    (
        "Deno.dlopen('libc.so.6', {})",
        "ffi access to \"libc.so.6\"",
        ErrorCode::PermissionHost,
        "Deno.dlopen(\"libc.so.6\")",
    ),
    ("Deno.hostname()", "sys access to \"hostname\"", ErrorCode::PermissionHost, "Deno.hostname()"),
];

fn told(outcome: &Outcome) -> (ErrorCode, &str, &[String]) {
    (outcome.place().0, outcome.place().1, &outcome.denied)
}

#[test]
fn a4_deno_refusals_name_what_was_attempted() {
    for (code, requires, kind, attempt) in REFUSED {
        let outcome = run(code);
        let message = format!("NotCapable: Requires {requires}");
        assert_eq!(told(&outcome), (*kind, &*message, &[(*attempt).to_owned()][..]), "{code}");
        assert!(outcome.failure().hint.is_some(), "{code}");
    }
    for (code, kind, name) in [
        ("Deno.readTextFileSync('/etc/belljar-none')", Grant::Read, "/etc/belljar-none"),
        ("Deno.mkdirSync('/sys/belljar')", Grant::Write, "/sys/belljar"),
        ("Deno.env.get('KEY')", Grant::Env, "KEY"),
    ] {
        let missing = MissingGrant { kind, name: name.to_owned() };
        assert_eq!(run(code).failure().missing.as_deref(), Some(&missing), "{code}");
    }
    let network = run("Deno.listen({ port: 80 })");
    assert_eq!(network.failure().missing, None, "control: no grant would help");
}

#[test]
fn a4_deno_refusals_are_caught_as_in_either_version_of_deno() {
    for (code, _, kind, _) in REFUSED {
        let caught = format!(
            "try {{ {code}; }} catch (e) {{
                return [
                    e instanceof Deno.errors.NotCapable, e instanceof Deno.errors.PermissionDenied,
                    e instanceof PermissionError, e instanceof Error, e.name, e.code,
                ];
            }}"
        );
        let expected = json!([true, true, true, true, "NotCapable", kind.as_str()]);
        assert_eq!(value(&caught), expected, "{code}");
    }
}

#[test]
fn deno_offers_what_the_run_has() {
    let mut granted = command(
        "const path = '/tmp/belljar-deno.txt';
        await Deno.writeTextFile(path, 'a');
        Deno.writeTextFileSync(path, 'b', { append: true });
        const text = await Deno.readTextFile(path);
        const bytes = (await Deno.readFile(path)).length;
        const { size, isFile } = Deno.statSync(path);
        await Deno.remove(path);
        let missing;
        try { Deno.readTextFileSync(path) } catch (e) { missing = e instanceof Deno.errors.NotFound }
        return [text, bytes, size, isFile, missing, Deno.env.get('KEY'), Deno.cwd(), Deno.args];",
    );
    granted.grants.env = [("KEY".to_owned(), "v".to_owned())].into();
    let outcome = run_command(granted);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.value, json!(["ab", 2, 2, true, true, "v", "/work", []]));
    assert_eq!(outcome.denied, [""; 0]);
}

#[test]
fn deno_refuses_what_nobody_knows() {
    let outcome = run("Deno.exit(1)");
    let message = "PermissionError: Deno.exit is not available";
    assert_eq!(told(&outcome), (ErrorCode::PermissionHost, message, &["Deno.exit".to_owned()][..]));
}
