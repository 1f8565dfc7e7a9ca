//! D7: calls that wait for a person, who decides in another process or at the terminal.

use belljar_testing::sandboxed;
use serde_json::json;

use crate::{
    command::{BELLJAR, outcome},
    project_support::CountingProject,
};

const ASKS: &str = "[permissions]\nask = ['count__append']\n";
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/terminal.py");
const CODE: &str = "const line = 'x';\nawait mcp.count.append({text: line})";

#[sandboxed]
#[test]
fn d7_a_call_waits_until_another_process_approves_it() {
    let project = CountingProject::trusting(ASKS);
    let mut running = project.start(CODE, &[]);
    let id = running.approval();
    let waiting = project.belljar(&["approvals", "list", "--json"]).json();
    let told = |key: &str| waiting[0][key].clone();
    assert_eq!(waiting.as_array().map(Vec::len), Some(1));
    assert_eq!((told("id"), told("tool")), (json!(id), json!("count__append")));
    assert_eq!((told("arguments"), told("state")), (json!({"text": "x"}), json!("pending")));
    assert_eq!(
        (told("line"), told("code_line")),
        (json!(2), json!("await mcp.count.append({text: line})"))
    );
    assert_eq!(project.counted(), Vec::<String>::new());
    let listed = project.belljar(&["approvals"]).stdout;
    assert!(listed.contains("line 2: await mcp.count.append({text: line})"), "{listed}");
    let approved = project.belljar(&["approvals", "approve", &id[..8]]);
    assert_eq!(approved.status, Some(0), "{approved:#?}");
    assert_eq!(approved.stdout, format!("approved {id}: count__append {{\"text\":\"x\"}}\n"));
    let ended = running.end();
    assert_eq!((ended.status, &ended.json()["result"]), (Some(0), &json!({"appended": "x"})));
    assert_eq!(project.counted(), ["x"]);
    assert_eq!(project.belljar(&["approvals", "--json"]).json(), json!([]));
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(
        (&history[0]["state"], &history[0]["decided_by"]),
        (&json!("approved"), &json!("command line"))
    );
    let again = project.belljar(&["approvals", "deny", &id]);
    assert_eq!((again.status, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("was approved by command line before"), "{again:#?}");
}

#[sandboxed]
#[test]
fn d7_a_denied_call_fails_in_the_code() {
    let project = CountingProject::trusting(ASKS);
    let mut running = project.start(CODE, &[]);
    let id = running.approval();
    assert_eq!(project.belljar(&["approvals", "deny", &id]).status, Some(0));
    let ended = running.end();
    let error = ended.json()["error"].clone();
    assert_eq!(ended.status, Some(1));
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("PermissionError"), &json!("approval.denied"))
    );
    assert_eq!(project.counted(), Vec::<String>::new());
}

#[sandboxed]
#[test]
fn d7_a_call_nobody_decides_about_is_denied_in_time() {
    let project = CountingProject::trusting(&format!("{ASKS}approval_timeout = '300ms'\n"));
    let result = project.run(CODE, &[]);
    let error = &result["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("PermissionError"), &json!("approval.expired"))
    );
    assert_eq!(project.counted(), Vec::<String>::new());
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    let id = history[0]["id"].as_str().unwrap();
    let late = project.belljar(&["approvals", "approve", id]);
    assert_eq!((late.status, late.stderr), (Some(1), format!("approval {id} has expired\n")));
}

#[test]
fn d7_an_id_that_is_none_is_said_to_be() {
    let project = CountingProject::trusting(ASKS);
    let outcome = project.belljar(&["approvals", "approve", "apr_nothing", "x"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    there is no approval apr_nothing in this project; `belljar approvals` lists them, `--project DIR` looks in another one
    there is no approval x in this project; `belljar approvals` lists them, `--project DIR` looks in another one
    ");
}

/// On a terminal of its own, answering with this.
fn at_a_terminal(project: &CountingProject, answer: &str) -> crate::command::Outcome {
    let mut command = project.place.command("python3");
    command.args([TERMINAL, answer, BELLJAR, "run", "-c", CODE]).env("TERM", "dumb");
    outcome(command.output().expect("python3 starts"))
}

#[sandboxed]
#[test]
fn d7_a_person_at_the_terminal_is_asked_there() {
    let project = CountingProject::trusting(ASKS);
    let shown = at_a_terminal(&project, "y");
    assert_eq!(shown.status, Some(0), "{shown:#?}");
    assert!(shown.stdout.contains("approval needed: count__append\r\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("    {\"text\": \"x\"}\r\n"), "{}", shown.stdout);
    assert_eq!(project.counted(), ["x"]);
    let history = project.belljar(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(history[0]["decided_by"], "terminal");
}

#[sandboxed]
#[test]
fn d7_anything_but_yes_at_the_terminal_is_no() {
    let project = CountingProject::trusting(ASKS);
    let shown = at_a_terminal(&project, "");
    assert_eq!(shown.status, Some(1), "{shown:#?}");
    assert!(shown.stdout.contains("a person denied the call of count__append"), "{shown:#?}");
    assert_eq!(project.counted(), Vec::<String>::new());
}
