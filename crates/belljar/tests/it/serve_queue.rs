//! F1, E1: so many workflows are driven at once; the others wait in order, and say so.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    ledger_support::{LedgerProject, Transport},
    mcp_support::{RunningServer, serve_in, within},
};

const ONE_AT_ONCE: &str =
    "allow = [\"ledger__*\"]\n\n[workflows]\nmax_running = 1\nmax_queued = 1\n";

/// An effect, a person, an effect.
fn asking(name: &str) -> Value {
    json!({"tasks": [
        {"id": "first", "tool": "ledger:effect", "arguments": {"key": name}},
        {"id": "ok", "type": "approval", "message": "go on?", "depends_on": ["first"]},
        {"id": "then", "tool": "ledger:effect", "arguments": {"key": format!("{name}-then")},
            "depends_on": ["ok"]},
    ]})
}

fn plain(name: &str) -> Value {
    json!({"tasks": [{"id": "only", "tool": "ledger:effect", "arguments": {"key": name}}]})
}

fn run(server: &RunningServer, id: &str, workflow: &Value) -> Value {
    server.ask("POST /v1/workflows", &json!({"workflow": workflow, "id": id}))
}

/// A server whose only place is taken by this workflow, `a`, until its first effect is let go.
fn busy_with(workflow: &Value) -> (LedgerProject, RunningServer) {
    let project = LedgerProject::with(Transport::Http, ONE_AT_ONCE);
    let server = serve_in(&project.place, &[]);
    project.hold("before", "a");
    run(&server, "a", workflow);
    project.until_line("asked effect a");
    (project, server)
}

fn look(server: &RunningServer, id: &str) -> Value {
    server.ask(&format!("GET /v1/workflows/{id}"), &Value::Null)
}

#[sandboxed]
#[test]
fn f1_more_workflows_than_run_at_once_wait_in_order_and_say_so() {
    let (project, server) = busy_with(&asking("a"));
    let waits = run(&server, "b", &plain("b"));
    assert_eq!((&waits["status"], &waits["queue"]), (&json!("queued"), &json!(1)), "{waits:#}");

    // Those who look elsewhere see it as well.
    let listed = server.ask("GET /v1/workflows", &Value::Null);
    assert_eq!(listed["workflows"][0]["status"], "queued", "{listed:#}");
    let shown = project.place.belljar(&["workflow", "show", "b", "--json"]).json();
    assert_eq!(shown["status"], "queued", "{shown:#}");
    let told = server.call("get_workflow", &json!({"id": "b", "wait_ms": 0}));
    let told = &told["structuredContent"];
    assert!(told["message"].as_str().unwrap().contains("number 1 in the queue"), "{told:#}");

    // There is an end to waiting as well: nothing is made.
    let body = json!({"workflow": plain("c"), "id": "c"});
    let full = server.api("POST /v1/workflows", &body.to_string());
    assert_eq!(full.status, 429, "{full:#?}");
    assert!(full.body.contains("\"code\":\"workflow.busy\""), "{full:#?}");
    assert!(full.head.to_lowercase().contains("retry-after: 1"), "{full:#?}");
    let answer = server.call("run_workflow", &body);
    assert_eq!(answer["structuredContent"]["error"]["code"], "workflow.busy", "{answer:#}");
    let fork = server.api("POST /v1/workflows/a/fork", r#"{"id": "c"}"#);
    assert_eq!(fork.status, 429, "{fork:#?}");
    assert_eq!(server.api("GET /v1/workflows/c", "").status, 404);

    // One that waits for a person keeps nobody from their turn.
    project.release("before", "a");
    let ended = server.ask("GET /v1/workflows/b?wait_ms=60000", &Value::Null);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let asks = within("a decision", || {
        let state = look(&server, "a");
        state["decisions"][0]["id"].as_str().map(str::to_owned)
    });
    // It rests here: whoever answers elsewhere is heard, and told so.
    let answered = project.place.belljar(&["workflow", "command", "a", "approve", &asks]);
    assert_eq!((answered.status, &*answered.stderr), (Some(0), "accepted\n"));
    let ended = server.ask("GET /v1/workflows/a?wait_ms=60000", &Value::Null);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    for key in ["a", "b", "a-then"] {
        assert_eq!(project.count(&format!("did effect {key}")), 1, "{key}");
    }
}

/// A waiting workflow is stored: the next host begins it.
#[sandboxed]
#[test]
fn f3_what_waited_when_its_host_died_begins_with_the_next() {
    let (project, server) = busy_with(&plain("a"));
    run(&server, "b", &plain("b"));
    server.kill();
    project.release("before", "a");
    project.until_quiet();
    let server = serve_in(&project.place, &[]);
    let ended = server.ask("GET /v1/workflows/b?wait_ms=60000", &Value::Null);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(project.count("did effect b"), 1);
}
