//! Sessions over the plain HTTP API of a real server: what they are granted, and their files.

use serde_json::{Value, json};

use crate::{
    command::{Place, no_sandbox},
    mcp_support::{Serving, serve_in},
};

fn open(server: &Serving, language: &str, commands: &[&str]) -> String {
    let request = json!({ "language": language, "grants": { "commands": commands } });
    let made = server.ask("POST /v1/sessions", &request);
    made["session_id"].as_str().unwrap_or_else(|| panic!("no id: {made:#}")).to_owned()
}

fn run(server: &Serving, id: &str, code: &str) -> Value {
    server.ask(&format!("POST /v1/sessions/{id}/runs"), &json!({ "code": code }))
}

/// The same command is refused to a session that is not granted it.
#[test]
fn s18_a_session_has_the_commands_it_is_granted() {
    if no_sandbox() {
        return;
    }
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let code = "touch a b; rm a; ls";
    let with = open(&server, "bash", &["rm"]);
    let ran = run(&server, &with, code);
    assert_eq!((&ran["status"], &ran["stdout"]), (&json!("completed"), &json!("b\n")), "{ran:#}");
    let without = open(&server, "bash", &[]);
    let ran = run(&server, &without, code);
    assert_eq!(ran["stdout"], "a\nb\n", "{ran:#}");
    assert!(ran["stderr"].as_str().is_some_and(|said| said.contains("rm: not granted")), "{ran:#}");
    let python = open(&server, "python", &["rm"]);
    let ran = run(&server, &python, "1 + 1");
    assert_eq!(ran["result"], 2, "{ran:#}");
}

#[test]
fn s18_a_directory_with_something_in_it_is_not_deleted() {
    if no_sandbox() {
        return;
    }
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
