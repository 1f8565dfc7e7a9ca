//! Sessions over the plain HTTP API of a real server: what they are granted, and their files.

use std::fs;

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::Place,
    mcp_support::{RunningServer, serve_in},
};

fn open(server: &RunningServer, language: &str, commands: &[&str]) -> String {
    let request = json!({ "language": language, "grants": { "commands": commands } });
    let made = server.ask("POST /v1/sessions", &request);
    made["session_id"].as_str().unwrap_or_else(|| panic!("no id: {made:#}")).to_owned()
}

fn run(server: &RunningServer, id: &str, code: &str) -> Value {
    server.ask(&format!("POST /v1/sessions/{id}/runs"), &json!({ "code": code }))
}

/// The same command is refused to a session that is not granted it.
#[sandboxed]
#[test]
fn s18_a_session_has_the_commands_it_is_granted() {
    let place = Place::new();
    let server = serve_in(&place, &["--command", "perl"]);
    let code = "perl -e 'print 1'; echo 2; whoami; rm -f x";
    let with = open(&server, "bash", &["perl"]);
    let ran = run(&server, &with, code);
    let said = json!("12\nuser\n");
    assert_eq!((&ran["status"], &ran["stdout"]), (&json!("completed"), &said), "{ran:#}");
    let without = open(&server, "bash", &[]);
    let ran = run(&server, &without, code);
    assert_eq!(ran["stdout"], "2\nuser\n", "{ran:#}");
    let refused = "perl: not granted";
    assert!(ran["stderr"].as_str().is_some_and(|said| said.contains(refused)), "{ran:#}");
    let python = open(&server, "python", &["perl"]);
    let ran = run(&server, &python, "1 + 1");
    assert_eq!(ran["result"], 2, "{ran:#}");
}

/// B3: what a run cannot have is refused, not ignored.
#[sandboxed]
#[test]
fn b3_a_run_cannot_change_the_limits_of_its_session() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let id = open(&server, "typescript", &[]);
    let run = format!("POST /v1/sessions/{id}/runs");
    let limited = |limits: Value| json!({ "code": "return 1", "limits": limits });
    for name in ["memory_mb", "processes", "open_files", "disk_mb", "inodes"] {
        let error = server.refused_run(&run, &limited(json!({ name: 16 })), 422);
        assert_eq!(error["code"], "request.invalid", "{name}: {error:#}");
        assert!(error["message"].as_str().is_some_and(|said| said.contains(name)), "{error:#}");
    }
    for flag in ["--memory", "--processes", "--open-files", "--disk", "--inodes"] {
        let amount = if ["--memory", "--disk"].contains(&flag) { "64MiB" } else { "64" };
        let refused = place.belljar(&["run", "--session", &id, flag, amount, "-c", "return 1"]);
        assert_eq!(refused.status, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains(&format!("cannot be used with '{flag} <")), "{refused:#?}");
    }
    // Control: limits of the run itself are taken, and the session still answers.
    let ran = server.ask(&run, &limited(json!({ "timeout_ms": 5000 })));
    assert_eq!(ran["result"], 1, "{ran:#}");
    let ran = place.belljar(&["run", "--session", &id, "--timeout", "5s", "-c", "return 1"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), "1\n"), "{ran:#?}");
}

/// Bug 11: a session's memory limit is as tight as a run's, and its error names it.
#[sandboxed]
#[test]
fn bug_11_a_session_does_not_hold_more_than_its_limit() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let hold = |mebibytes: u32| {
        format!(
            "globalThis.kept = []; for (let i = 0; i < {mebibytes}; i++) \
             kept.push(new Uint8Array(1 << 20).fill(1)); \
             await new Promise((done) => setTimeout(done, 300)); return kept.length"
        )
    };
    // The last is more than a run gets that has no session.
    for (limit, too_much, fits) in [(64, 90, 40), (32, 60, 16), (640, 760, 560)] {
        let session = || {
            let request = json!({ "language": "typescript", "limits": { "memory_mb": limit } });
            let made = server.ask("POST /v1/sessions", &request);
            made["session_id"].as_str().unwrap_or_else(|| panic!("no id: {made:#}")).to_owned()
        };
        let error = &run(&server, &session(), &hold(too_much))["error"];
        assert_eq!(error["code"], "limit.memory", "{error:#}");
        let named = format!("{limit} MiB");
        assert!(error.to_string().contains(&named), "{named}: {error:#}");
        // Control: less than the limit is held.
        assert_eq!(run(&server, &session(), &hold(fits))["result"], fits);
    }
}

/// A granted directory is there; one that the session's own `/tmp` would hide is refused.
#[sandboxed]
#[test]
fn a5_a_session_reads_what_it_is_granted_or_is_refused() {
    let place = Place::new();
    let (below_tmp, elsewhere) = (tempfile::tempdir_in("/tmp"), tempfile::tempdir_in("/var/tmp"));
    let (below_tmp, elsewhere) = (below_tmp.unwrap(), elsewhere.unwrap());
    let [hidden, shown] = [&below_tmp, &elsewhere].map(|directory| {
        std::fs::write(directory.path().join("file"), "granted").unwrap();
        // The guest of a root host is another user.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        directory.path().to_str().unwrap()
    });
    let server = serve_in(&place, &["--read", hidden, "--read", shown]);
    let reading = |path: &str| json!({ "language": "bash", "grants": { "read": [path] } });
    let refused = server.api("POST /v1/sessions", &reading(hidden).to_string());
    assert_eq!(refused.status, 403, "{refused:#?}");
    assert!(refused.body.contains("its own /tmp hides it"), "{refused:#?}");
    let made = server.ask("POST /v1/sessions", &reading(shown));
    let id = made["session_id"].as_str().unwrap_or_else(|| panic!("no id: {made:#}"));
    let ran = run(&server, id, &format!("cat {shown}/file"));
    assert_eq!(ran["stdout"], "granted", "{ran:#}");
}

/// S18: the command line grants them too.
#[sandboxed]
#[test]
fn s18_the_command_line_grants_commands_to_a_session() {
    let place = Place::new();
    let _server = serve_in(&place, &["--command", "perl"]);
    let new = place.belljar(&["session", "new", "-l", "bash", "--command", "perl"]);
    let exec = |id: &str| {
        let code = "perl -e 'print 1' 2>/dev/null; echo x";
        place.belljar(&["session", "exec", id.trim(), "-c", code])
    };
    assert_eq!(exec(&new.stdout).stdout, "1x\n", "{new:#?}");
    // Control: a session without the grant.
    let without = place.belljar(&["session", "new", "-l", "bash"]);
    assert_eq!(exec(&without.stdout).stdout, "x\n", "{without:#?}");
}

/// S18, A5: every grant and limit of a session that the API takes is a flag.
#[sandboxed]
#[test]
fn s18_the_command_line_asks_for_paths_variables_and_limits_of_a_session() {
    let place = Place::new();
    // The `/tmp` of a session hides what is there.
    let data = tempfile::tempdir_in("/var/tmp").expect("a directory");
    fs::write(data.path().join("note.txt"), "there").expect("a file");
    let data = data.path().to_str().expect("UTF-8");
    let _server = serve_in(&place, &["--read", data]);
    let exec = |id: &str| {
        let write = "head -c 2000000 /dev/zero > f 2>/dev/null && echo fits || echo full";
        let code = format!("cat {data}/note.txt 2>/dev/null; echo \" $KEY\"; {write}");
        place.belljar(&["session", "exec", id.trim(), "-c", &code]).stdout
    };
    let asked = ["session", "new", "-l", "bash", "--read", data, "--env", "KEY=own"];
    let new = place.belljar(&[&asked[..], &["--disk", "1MiB"]].concat());
    assert_eq!(exec(&new.stdout), "there own\nfull\n", "{new:#?}");
    // Control: a session without them.
    let without = place.belljar(&["session", "new", "-l", "bash"]);
    assert_eq!(exec(&without.stdout), " \nfits\n", "{without:#?}");
    // A path that the operator does not allow is refused.
    let refused = place.belljar(&["session", "new", "-l", "bash", "--read", "/etc"]);
    assert!(refused.stderr.contains("reading /etc is not allowed here"), "{refused:#?}");
}

#[sandboxed]
#[test]
fn s18_a_directory_with_something_in_it_is_not_deleted() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let id = open(&server, "bash", &[]);
    run(&server, &id, "mkdir d; touch d/f");
    let delete = |path: &str| server.api(&format!("DELETE /v1/sessions/{id}/files/{path}"), "");
    let refused = delete("d");
    assert_eq!(refused.status, 409, "{refused:#?}");
    assert!(refused.body.contains("not empty"), "{refused:#?}");
    // Control: what is in it can be deleted, and then so can the directory.
    assert_eq!(delete("d/f").status, 204);
    assert_eq!(delete("d").status, 204);
}
