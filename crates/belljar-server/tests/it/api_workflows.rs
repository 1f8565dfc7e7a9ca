//! F4, F5 over plain HTTP: workflows are run, looked at, followed and commanded.

use belljar_server::CommandSender;
use serde_json::{Value, json};

use crate::{
    api_support::{FakeServer, json as body},
    fake::FakeBackend,
};

fn flow(tasks: &[&str], more: Value) -> String {
    let tasks: Vec<_> = tasks.iter().map(|id| json!({"id": id})).collect();
    let mut request = json!({"workflow": {"tasks": tasks}});
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    request.to_string()
}

#[tokio::test]
async fn f5_a_workflow_runs_waits_for_a_person_and_ends() {
    let served = FakeServer::start().await;
    let asked = flow(&["a", "ask"], json!({"inputs": {"x": 1}, "id": "one", "wait_ms": 5000}));
    let answer = served.ask("POST /v1/workflows", &asked).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let waiting = body(&answer);
    assert_eq!((&waiting["id"], &waiting["status"]), (&json!("one"), &json!("running")));
    assert_eq!(waiting["decisions"][0]["id"], "d1");

    let approve = r#"{"command": "approve", "decision": "d1", "command_id": "c1"}"#;
    let first = served.get("POST /v1/workflows/one/commands", approve).await;
    assert_eq!(first, json!({"command_id": "c1", "accepted": true}));
    assert_eq!(served.get("POST /v1/workflows/one/commands", approve).await, first);
    let by = |fake: &FakeBackend| fake.workflows.lock().unwrap()["one"].commands["c1"].0.clone();
    assert_eq!(by(&served.fake), CommandSender::Person("http".to_owned()));

    let ended = served.get("GET /v1/workflows/one?wait_ms=5000", "").await;
    assert_eq!((&ended["status"], &ended["output"]), (&json!("completed"), &json!({"x": 1})));
    let late = r#"{"command": "abort"}"#;
    served.refused("POST /v1/workflows/one/commands", late, 409, "command.refused").await;
    let listed = served.get("GET /v1/workflows?limit=5", "").await;
    assert_eq!(listed["workflows"][0]["status"], "completed", "{listed:#}");
    let listed = served.get("GET /v1/workflows?before=one", "").await;
    assert_eq!(listed["workflows"], json!([]));
}

#[tokio::test]
async fn f4_events_are_listed_and_followed_from_any_number() {
    let served = FakeServer::start().await;
    served.get("POST /v1/workflows", &flow(&["a", "ask"], json!({"id": "one"}))).await;
    let listed = served.get("GET /v1/workflows/one/events?limit=2", "").await;
    let names: Vec<_> = listed["events"].as_array().unwrap().iter().map(|e| &e["name"]).collect();
    assert_eq!(names, ["workflow_started", "task_started"]);
    let none = served.get("GET /v1/workflows/one/events?after=5&wait_ms=20", "").await;
    assert_eq!(none, json!({"events": []}));

    let at = "GET /v1/workflows/one/events";
    let mut events = served.follow(at, &[("Last-Event-ID", "3")], "").await;
    for (seq, name) in [(4, "task_started"), (5, "decision_required")] {
        let event = events.next().await.unwrap();
        assert_eq!((event.id, event.name.as_str()), (seq, name));
        assert_eq!(event.data["workflow_id"], "one", "{event:?}");
    }
    let approve = r#"{"command": "approve", "decision": "d1"}"#;
    served.get("POST /v1/workflows/one/commands", approve).await;
    let last = events.all().await;
    // Events that come with the end are received, too.
    assert_eq!(last.last().unwrap().name, "checkpoint_saved", "{last:?}");
    // A client that has seen all is told that there is nothing more.
    let seen = last.last().unwrap().id.to_string();
    let events = served.follow(at, &[("Last-Event-ID", &seen)], "").await.all().await;
    assert!(events.is_empty(), "{events:?}");
}

#[tokio::test]
async fn f5_bad_requests_are_refused_by_name() {
    let served = FakeServer::start().await;
    served.get("POST /v1/workflows", &flow(&["sleep"], json!({"id": "one"}))).await;
    let commands = "POST /v1/workflows/one/commands";
    for (head, sent, status, code) in [
        ("POST /v1/workflows", r#"{"workflow": {}}"#.to_owned(), 422, "workflow.invalid"),
        ("POST /v1/workflows", r#"{"workflow": "tasks: ["}"#.to_owned(), 422, "workflow.invalid"),
        ("POST /v1/workflows", r#"{"workflow": 5}"#.to_owned(), 400, "request.invalid"),
        ("POST /v1/workflows", r#"{"tasks": []}"#.to_owned(), 400, "request.invalid"),
        ("POST /v1/workflows", flow(&[], json!({"id": "../x"})), 400, "request.invalid"),
        ("POST /v1/workflows", flow(&[], json!({"wait_ms": 60_001})), 400, "request.invalid"),
        ("POST /v1/workflows", flow(&[], json!({"id": "one"})), 409, "workflow.taken"),
        ("GET /v1/workflows/none", String::new(), 404, "workflow.unknown"),
        ("GET /v1/workflows/none/events", String::new(), 404, "workflow.unknown"),
        ("GET /v1/workflows/one/events?limit=0", String::new(), 400, "request.invalid"),
        ("GET /v1/workflows?limit=0", String::new(), 400, "request.invalid"),
        (
            "POST /v1/workflows/none/commands",
            r#"{"command": "pause"}"#.to_owned(),
            404,
            "workflow.unknown",
        ),
        (commands, r#"{"command": "explode"}"#.to_owned(), 400, "request.invalid"),
        (commands, r#"{"command": "pause", "by": "me"}"#.to_owned(), 400, "request.invalid"),
        (commands, r#"{"command": "pause", "command_id": ""}"#.to_owned(), 400, "request.invalid"),
        (
            commands,
            r#"{"command": "approve", "decision": "d9"}"#.to_owned(),
            409,
            "command.refused",
        ),
    ] {
        served.refused(head, &sent, status, code).await;
    }
    let mut events = served.follow("GET /v1/workflows/none/events", &[], "").await;
    assert!(events.next().await.is_none());
}
