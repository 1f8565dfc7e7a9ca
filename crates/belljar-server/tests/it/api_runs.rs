//! E3: runs over the plain API, as they end and as they happen; approvals, events, tools.

use std::time::Duration;

use belljar_contract::Language;
use belljar_server::EventInfo;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    api_support::FakeServer,
    http::{bearer, send},
};

const PATIENCE: Duration = Duration::from_secs(20);

fn code(code: &str) -> String {
    json!({ "code": code }).to_string()
}

#[tokio::test]
async fn e3_a_run_is_answered_with_its_canonical_result() {
    let served = FakeServer::start().await;
    let result = served.get("POST /v1/runs", &code("return [1]")).await;
    assert_eq!(result["status"], "completed");
    assert_eq!(result["result"], json!([1]));
    let id = result["id"].as_str().unwrap();
    assert_eq!(served.get(&format!("GET /v1/runs/{id}"), "").await, result);
    let failed = served.get("POST /v1/runs", &code("fail")).await;
    assert_eq!(failed["error"]["code"], "runtime.thrown");
    let runs = served.get("GET /v1/runs?limit=10", "").await;
    let ids: Vec<_> = runs["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids.len(), 2, "{runs}");
    assert!(ids.contains(&&failed["id"]), "{runs}");
}

#[tokio::test]
async fn e3_every_field_of_a_request_reaches_the_backend() {
    let served = FakeServer::start().await;
    let body = json!({
        "code": "return 1", "language": "python", "context": {"a": [1]}, "intent": "try",
        "limits": {"timeout_ms": 5, "memory_mb": 64, "tool_calls": 2, "disk_mb": 3},
        "grants": {"read": ["/a"], "write": ["/b"], "net": ["x:1"], "env": {"A": "b"},
            "modules": ["socket"], "commands": ["git"], "tools": ["git__*"]},
        "workspace": {"path": "/w", "commit": true}, "durable": true, "session_id": null,
        "max_output_tokens": 9,
    });
    served.get("POST /v1/runs", &body.to_string()).await;
    let request = served.fake.requests.lock().unwrap().pop().unwrap();
    assert_eq!(request.language, Some(Language::Python));
    assert_eq!(request.context.unwrap().as_str(), r#"{"a":[1]}"#);
    assert_eq!(request.limits.memory_mb, Some(64));
    assert_eq!(request.limits.tool_calls, Some(2));
    assert_eq!(request.grants.env.value("A"), Some("b"));
    assert_eq!(request.grants.commands, ["git"]);
    assert_eq!(request.grants.tools, Some(vec!["git__*".to_owned()]));
    assert!(request.workspace.is_some_and(|work| work.commit && work.path == "/w"));
    assert_eq!((request.durable, request.max_output_tokens), (Some(true), Some(9)));
}

#[tokio::test]
async fn e3_a_run_is_heard_as_it_happens() {
    let served = FakeServer::start().await;
    let events = served.follow("POST /v1/runs", &[], &code("say hello")).await.all().await;
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    let wanted = ["started", "stdout", "stderr", "log", "tool_call", "tool_call", "result"];
    assert_eq!(names, wanted);
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(events[1].data, json!({"text": "hello out\n"}));
    assert_eq!(events[2].data, json!({"text": "hello err\n"}));
    assert_eq!(events[5].data["ok"], true);
    assert_eq!(events[6].data["result"], "said");
}

#[tokio::test]
async fn e3_what_a_client_does_not_read_is_not_held_for_ever() {
    let served = FakeServer::start().await;
    // Nothing is read before all was told, so more was told than is held.
    let stream = served.follow("POST /v1/runs", &[], &code("flood")).await;
    let events = stream.all().await;
    let told: usize =
        events.iter().filter_map(|event| event.data["text"].as_str()).map(str::len).sum();
    assert!(told <= (6 << 20) + 100, "{told}");
    assert_eq!(events.last().unwrap().data["result"], "flooded");
}

#[tokio::test]
async fn e3_a_client_that_goes_away_ends_its_run_unless_it_is_durable() {
    let served = FakeServer::start().await;
    for accept in ["application/json", "text/event-stream"] {
        let bearer = bearer();
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", accept),
        ];
        let stream = send(served.at(), "POST /v1/runs", &headers, &code("sleep")).await;
        timeout(PATIENCE, served.fake.asleep.notified()).await.unwrap();
        drop(stream);
        timeout(PATIENCE, served.fake.dropped.notified()).await.expect(accept);

        let durable = json!({"code": "sleep", "durable": true}).to_string();
        let stream = send(served.at(), "POST /v1/runs", &headers, &durable).await;
        timeout(PATIENCE, served.fake.asleep.notified()).await.unwrap();
        drop(stream);
        let gone = timeout(Duration::from_millis(300), served.fake.dropped.notified()).await;
        assert!(gone.is_err(), "{accept}: a durable run ended with its client");
    }
}

#[tokio::test]
async fn e3_a_run_can_be_ended_and_says_how_far_it_came() {
    let served = FakeServer::start().await;
    let mut events = served.follow("POST /v1/runs", &[], &code("wait")).await;
    let id = events.next().await.unwrap().data["id"].as_str().unwrap().to_owned();
    timeout(PATIENCE, served.fake.asleep.notified()).await.unwrap();
    let running = served.get(&format!("GET /v1/runs/{id}"), "").await;
    assert_eq!(running, json!({"id": id, "status": "running", "success": false}));
    let listed = served.get("GET /v1/runs", "").await;
    assert_eq!(listed["runs"][0]["status"], "running", "{listed}");
    let ended = served.get(&format!("DELETE /v1/runs/{id}"), "").await;
    assert_eq!((&ended["status"], &ended["stdout"]), (&json!("aborted"), &json!("waiting")));
    assert_eq!(events.all().await.last().unwrap().data, ended);
    // Again: it has ended, and that is how.
    assert_eq!(served.get(&format!("DELETE /v1/runs/{id}"), "").await, ended);
    served.refused("DELETE /v1/runs/run_nobody", "", 404, "run.unknown").await;
    served.refused("GET /v1/runs/run_nobody", "", 404, "run.unknown").await;
}

#[tokio::test]
async fn d7_a_call_that_waits_is_decided_here() {
    let served = FakeServer::start().await;
    for (decision, wanted) in [("approve", json!("deleted")), ("deny", Value::Null)] {
        let answer = served.ask("POST /v1/runs", &code("ask")).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let run = crate::api_support::json(&answer);
        assert_eq!(run["status"], "approval_required");
        let approvals = served.get("GET /v1/approvals", "").await;
        let approval = &approvals["approvals"][0];
        assert_eq!(approval, &run["approvals"][0]);
        let id = approval["id"].as_str().unwrap();
        let body = json!({"decision": decision}).to_string();
        let decided = served.get(&format!("POST /v1/approvals/{id}"), &body).await;
        assert_eq!(decided, json!({"id": id, "decision": decision}));
        let path = format!("GET /v1/runs/{}?wait_ms=20000", run["id"].as_str().unwrap());
        assert_eq!(served.get(&path, "").await["result"], wanted);
        let again = format!("POST /v1/approvals/{id}");
        served.refused(&again, &body, 404, "approval.unknown").await;
    }
    let yes = json!({"decision": "yes"}).to_string();
    served.refused("POST /v1/approvals/ap_1", &yes, 400, "request.invalid").await;
    let mut events = served.follow("POST /v1/runs", &[], &code("ask")).await;
    events.next().await.unwrap();
    let waits = events.next().await.unwrap();
    assert_eq!((waits.name.as_str(), &waits.data["state"]), ("approval", &json!("waiting")));
    let path = format!("POST /v1/approvals/{}", waits.data["id"].as_str().unwrap());
    served.get(&path, &json!({"decision": "approve"}).to_string()).await;
    assert_eq!(events.all().await.last().unwrap().data["result"], "deleted");
}

#[tokio::test]
async fn e3_events_are_replayed_after_the_last_one_seen() {
    let served = FakeServer::start().await;
    let event = |seq: u64| EventInfo {
        seq,
        run_id: format!("run_{}", seq % 2).into(),
        name: "code_execution_started".into(),
        at_ms: 5,
        data: json!({"n": seq}),
    };
    served.fake.events.lock().unwrap().extend((1..=3).map(event));
    let list = served.get("GET /v1/events?after=1&limit=1", "").await;
    assert_eq!(list["events"][0]["seq"], 2, "{list}");
    let list = served.get("GET /v1/events?run_id=run_1", "").await;
    assert_eq!(list["events"].as_array().unwrap().len(), 2, "{list}");
    let mut events = served.follow("GET /v1/events", &[("Last-Event-ID", "2")], "").await;
    let third = events.next().await.unwrap();
    assert_eq!((third.id, third.name.as_str()), (3, "code_execution_started"));
    served.fake.events.lock().unwrap().push(event(4));
    assert_eq!(events.next().await.unwrap().data["data"], json!({"n": 4}));
    // A client that follows does not keep the server.
    timeout(Duration::from_secs(4), served.server.shutdown()).await.unwrap();
}

#[tokio::test]
async fn d5_tools_are_found() {
    let served = FakeServer::start().await;
    let body = json!({"intent": "read", "k": 3}).to_string();
    let found = served.get("POST /v1/tools/search", &body).await;
    assert_eq!(found["tools"][0]["description"], "read (3)");
    let nothing = json!({"intent": "fail"}).to_string();
    served.refused("POST /v1/tools/search", &nothing, 502, "tool.unavailable").await;
}

#[tokio::test]
async fn i1_metrics_count_what_was_run_and_answered() {
    let served = FakeServer::start().await;
    served.get("POST /v1/runs", &code("return 1")).await;
    served.get("POST /v1/runs", &code("fail")).await;
    served.ask("GET /nowhere", "").await;
    let metrics = served.ask("GET /metrics", "").await;
    assert!(metrics.headers.contains("content-type: text/plain"), "{metrics:?}");
    for line in [
        "code_execution_total{status=\"completed\"} 1",
        "code_execution_total{status=\"failed\"} 1",
        "code_execution_errors_total{type=\"RuntimeError\"} 1",
        "http_requests_total{route=\"/v1/runs\",method=\"POST\",status=\"200\"} 2",
        "http_requests_total{route=\"other\",method=\"GET\",status=\"404\"} 1",
    ] {
        assert!(metrics.body.lines().any(|one| one == line), "{line}: {}", metrics.body);
    }
}
