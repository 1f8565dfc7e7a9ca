//! B1 to B4, C2 over HTTP: each route of sessions, with a backend that keeps one value and files.

use serde_json::{Value, json};

use crate::{
    api_support::{FakeServer, json as body},
    http::{bearer, request},
};

async fn open(served: &FakeServer) -> String {
    let made = served.get("POST /v1/sessions", &json!({"language": "python"}).to_string()).await;
    assert_eq!(made["language"], "python");
    made["session_id"].as_str().unwrap().to_owned()
}

async fn run(served: &FakeServer, session: &str, code: &str) -> Value {
    let head = format!("POST /v1/sessions/{session}/runs");
    served.get(&head, &json!({ "code": code }).to_string()).await
}

#[tokio::test]
async fn b1_a_session_is_made_used_listed_and_ended() {
    let served = FakeServer::start().await;
    let (one, two) = (open(&served).await, open(&served).await);
    assert_eq!(run(&served, &one, "set 1").await["session_id"], json!(one));
    assert_eq!(run(&served, &one, "get").await["result"], "1");
    assert_eq!(run(&served, &two, "get").await["result"], "");
    // The same, by the field of a run.
    let named = json!({"code": "get", "session_id": one}).to_string();
    assert_eq!(served.get("POST /v1/runs", &named).await["result"], "1");
    let other = format!("POST /v1/sessions/{two}/runs");
    served.refused(&other, &named, 409, "request.session").await;
    let all = served.get("GET /v1/sessions", "").await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 2, "{all}");
    assert_eq!(served.get(&format!("GET /v1/sessions/{one}"), "").await["runs"], 3);
    assert_eq!(served.ask(&format!("DELETE /v1/sessions/{one}"), "").await.status, 204);
    let gone = served.refused(&format!("GET /v1/sessions/{one}"), "", 410, "session.ended").await;
    assert!(gone["message"].as_str().unwrap().contains("it was destroyed"), "{gone}");
    assert_eq!(run(&served, &two, "get").await["result"], "");
}

#[tokio::test]
async fn b1_a_session_that_is_not_there_takes_nothing() {
    let served = FakeServer::start().await;
    let code = json!({"code": "get"}).to_string();
    let back = json!({"checkpoint_id": "x"}).to_string();
    for (head, body) in [
        ("GET /v1/sessions/ses_x", ""),
        ("DELETE /v1/sessions/ses_x", ""),
        ("POST /v1/sessions/ses_x/runs", code.as_str()),
        ("POST /v1/sessions/ses_x/checkpoints", ""),
        ("GET /v1/sessions/ses_x/checkpoints", ""),
        ("POST /v1/sessions/ses_x/rollback", back.as_str()),
        ("POST /v1/sessions/ses_x/fork", ""),
        ("GET /v1/sessions/ses_x/files", ""),
        ("GET /v1/sessions/ses_x/files/a", ""),
        ("PUT /v1/sessions/ses_x/files/a", "content"),
        ("DELETE /v1/sessions/ses_x/files/a", ""),
    ] {
        served.refused(head, body, 404, "session.unknown").await;
    }
    // Also where the answer would be a stream.
    let bearer = bearer();
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "text/event-stream"),
    ];
    let answer = request(served.at(), "POST /v1/sessions/ses_x/runs", &headers, &code).await;
    assert_eq!((answer.status, &body(&answer)["error"]["code"]), (404, &json!("session.unknown")));
}

#[tokio::test]
async fn b1_what_a_session_says_reaches_who_follows() {
    let served = FakeServer::start().await;
    let session = open(&served).await;
    let head = format!("POST /v1/sessions/{session}/runs");
    let events = served.follow(&head, &[], &json!({"code": "say hi"}).to_string()).await;
    let events = events.all().await;
    assert_eq!(events[1].data, json!({"text": "hi out\n"}));
    assert_eq!(events.last().unwrap().data["session_id"], json!(session));
}

#[tokio::test]
async fn b2_a_crash_is_told_and_stays_with_its_session() {
    let served = FakeServer::start().await;
    let (one, two) = (open(&served).await, open(&served).await);
    run(&served, &one, "crash").await;
    let head = format!("POST /v1/sessions/{one}/runs");
    let code = json!({"code": "get"}).to_string();
    let gone = served.refused(&head, &code, 410, "session.ended").await;
    assert!(gone["message"].as_str().unwrap().contains("crashed"), "{gone}");
    assert_eq!(run(&served, &two, "get").await["result"], "");
}

#[tokio::test]
async fn b4_checkpoint_rollback_fork() {
    let served = FakeServer::start().await;
    let session = open(&served).await;
    run(&served, &session, "set before").await;
    let taken = served.get(&format!("POST /v1/sessions/{session}/checkpoints"), "").await;
    let checkpoint = taken["checkpoint_id"].as_str().unwrap();
    assert_eq!(taken["dropped"], json!([]));
    run(&served, &session, "set after").await;
    let all = served.get(&format!("GET /v1/sessions/{session}/checkpoints"), "").await;
    assert_eq!(all["checkpoints"][0]["checkpoint_id"], json!(checkpoint));

    let from = json!({"count": 3, "checkpoint_id": checkpoint}).to_string();
    let fork = format!("POST /v1/sessions/{session}/fork");
    let forked = served.get(&fork, &from).await;
    let forked = forked["session_ids"].as_array().unwrap().clone();
    assert_eq!(forked.len(), 3);
    let first = forked[0].as_str().unwrap();
    assert_eq!(run(&served, first, "get").await["result"], "before");
    let about = served.get(&format!("GET /v1/sessions/{first}"), "").await;
    assert_eq!(about["forked_from"], json!(session));
    // Without a body: one, as it is now.
    let now = served.get(&fork, "").await;
    let now = now["session_ids"][0].as_str().unwrap();
    assert_eq!(run(&served, now, "get").await["result"], "after");

    let rollback = format!("POST /v1/sessions/{session}/rollback");
    let body = json!({"checkpoint_id": checkpoint}).to_string();
    served.get(&rollback, &body).await;
    assert_eq!(run(&served, &session, "get").await["result"], "before");
    let unknown = json!({"checkpoint_id": "cp_x"}).to_string();
    served.refused(&rollback, &unknown, 409, "checkpoint.unknown").await;
    served.refused(&fork, &unknown, 409, "checkpoint.unknown").await;
    for count in [0, 513] {
        let body = json!({ "count": count }).to_string();
        served.refused(&fork, &body, 400, "request.invalid").await;
    }
    let many = json!({"count": 500}).to_string();
    let answer = served.ask(&fork, &many).await;
    crate::api_support::refusal(&answer, "too many", 429, "session.too_many");
    assert!(answer.headers.contains("retry-after: "), "{answer:?}");
}

#[tokio::test]
async fn c2_files_go_in_and_come_out_as_they_are() {
    let served = FakeServer::start().await;
    let session = open(&served).await;
    let files = format!("/v1/sessions/{session}/files");
    let content = "a\r\nb é\u{1F600} \u{0}".to_owned();
    let put = served.get(&format!("PUT {files}/dir/%C3%BC%20x.bin"), &content).await;
    assert_eq!(put, json!({"path": "dir/ü x.bin", "bytes": content.len(), "kind": "file"}));
    let got = served.ask(&format!("GET {files}/dir/%C3%BC%20x.bin"), "").await;
    assert_eq!(got.body, content);
    for header in [
        "content-type: application/octet-stream",
        "x-content-type-options: nosniff",
        "content-disposition: attachment",
    ] {
        assert!(got.headers.contains(header), "{header}: {got:?}");
    }
    let list = served.get(&format!("GET {files}"), "").await;
    assert_eq!(list["files"][0]["path"], "dir/ü x.bin");
    assert_eq!(list["truncated"], false);
    assert_eq!(served.ask(&format!("DELETE {files}/dir/%C3%BC%20x.bin"), "").await.status, 204);
    served.refused(&format!("GET {files}/dir/%C3%BC%20x.bin"), "", 404, "file.unknown").await;
    served.refused(&format!("DELETE {files}/nothing"), "", 404, "file.unknown").await;
    let large = "x".repeat((1 << 20) + 1);
    served.refused(&format!("PUT {files}/large"), &large, 413, "file.too_large").await;
    assert_eq!(served.get(&format!("GET {files}"), "").await["files"], json!([]));
}

#[tokio::test]
async fn c2_no_path_leads_out() {
    let served = FakeServer::start().await;
    let session = open(&served).await;
    for path in [
        "../x",
        "a/../../x",
        "%2e%2e/x",
        "a/%2e%2e%2fx",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "a//b",
        "./a",
        "a%00b",
        "a%0ab",
        "%2e",
        "a/",
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let body = if method == "PUT" { "x" } else { "" };
            let head = format!("{method} /v1/sessions/{session}/files/{path}");
            served.refused(&head, body, 400, "file.path").await;
        }
    }
    // Not even text.
    let head = format!("GET /v1/sessions/{session}/files/%ff%fe");
    served.refused(&head, "", 400, "request.invalid").await;
    assert_eq!(
        served.get(&format!("GET /v1/sessions/{session}/files"), "").await["files"],
        json!([])
    );
}
