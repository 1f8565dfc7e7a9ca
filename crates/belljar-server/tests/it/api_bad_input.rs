//! E3: bad input gets a clear answer, and the server goes on as if nothing had been.

use std::{net::SocketAddr, time::Duration};

use belljar_server::HttpLimits;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{
    api_support::{FakeServer, refusal},
    http::{HttpAnswer, TOKEN, bearer, request, send},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Everything but health, each with a body that would be good.
const ROUTES: &[(&str, &str)] = &[
    ("POST /v1/runs", r#"{"code": "return 1"}"#),
    ("GET /v1/runs", ""),
    ("GET /v1/runs/run_1", ""),
    ("DELETE /v1/runs/run_1", ""),
    ("POST /v1/sessions", "{}"),
    ("GET /v1/sessions", ""),
    ("GET /v1/sessions/s", ""),
    ("DELETE /v1/sessions/s", ""),
    ("POST /v1/sessions/s/runs", r#"{"code": "get"}"#),
    ("POST /v1/sessions/s/checkpoints", ""),
    ("GET /v1/sessions/s/checkpoints", ""),
    ("POST /v1/sessions/s/rollback", r#"{"checkpoint_id": "c"}"#),
    ("POST /v1/sessions/s/fork", "{}"),
    ("GET /v1/sessions/s/files", ""),
    ("PUT /v1/sessions/s/files/a", "x"),
    ("GET /v1/sessions/s/files/a", ""),
    ("DELETE /v1/sessions/s/files/a", ""),
    ("GET /v1/approvals", ""),
    ("POST /v1/approvals/a", r#"{"decision": "approve"}"#),
    ("GET /v1/events", ""),
    ("POST /v1/tools/search", r#"{"intent": "x"}"#),
    ("GET /v1/blobs/blob_x", ""),
    ("GET /metrics", ""),
    ("GET /openapi.json", ""),
    ("GET /v1/nothing", ""),
];

#[tokio::test]
async fn e3_nothing_is_done_without_the_token_or_for_other_pages() {
    let served = FakeServer::start().await;
    let (at, bearer) = (served.at(), bearer());
    for (head, body) in ROUTES {
        let json = ("Content-Type", "application/json");
        let answer = request(at, head, &[json], body).await;
        refusal(&answer, head, 401, "auth.no_token");
        assert!(answer.headers.contains("www-authenticate: bearer"), "{answer:?}");
        let wrong = ("Authorization", "Bearer 0000000000000000000000000000000000");
        refusal(&request(at, head, &[json, wrong], body).await, head, 401, "auth.wrong_token");
        let right = ("Authorization", bearer.as_str());
        let host = ("Host", "evil.example");
        refusal(&request(at, head, &[json, right, host], body).await, head, 403, "auth.host");
        let origin = ("Origin", "https://evil.example");
        refusal(&request(at, head, &[json, right, origin], body).await, head, 403, "auth.origin");
        // Control: with the token it is answered otherwise.
        let answer = request(at, head, &[json, right], body).await;
        assert!(!matches!(answer.status, 401 | 403), "{head}: {answer:?}");
    }
    assert_eq!(served.fake.requests.lock().unwrap().len(), 1, "only the control has run");
    assert!(request(at, "GET /healthz", &[], "").await.body.contains("\"ok\""));
}

#[tokio::test]
async fn s2_a_key_that_is_written_twice_is_refused_over_http() {
    let served = FakeServer::start().await;
    let twice = r#"{"code": "1", "context": {"a": [{"path": "x", "p\u0061th": "y"}]}}"#;
    let answer = served.ask("POST /v1/runs", twice).await;
    refusal(&answer, twice, 400, "request.invalid");
    assert!(answer.body.contains(r#"the key \"path\" is written twice"#), "{answer:?}");
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"execute_code","arguments":{arguments}}}}}"#
        )
    };
    let bearer = bearer();
    let heads = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let twice = call(r#"{"code":"return 1","context":{"a":1,"a":2}}"#);
    let answer = request(served.at(), "POST /mcp", &heads, &twice).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let said: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(7), &json!(-32602)));
    // Controls: each with the key once is understood; over MCP it only lacks a session.
    let once = r#"{"code": "1", "context": {"a": [{"path": "x"}]}}"#;
    assert_eq!(served.ask("POST /v1/runs", once).await.status, 200);
    let once = call(r#"{"code":"return 1","context":{"a":1}}"#);
    let answer = request(served.at(), "POST /mcp", &heads, &once).await;
    assert!(!answer.body.contains("written twice"), "{answer:?}");
}

#[tokio::test]
async fn e3_what_is_not_understood_is_refused_by_name() {
    let served = FakeServer::start().await;
    let run = "POST /v1/runs";
    for (body, code, named) in [
        ("{", "request.malformed", "EOF"),
        ("{\"code\": 1}", "request.invalid", "code: "),
        ("{}", "request.invalid", "`code`"),
        ("[\"return 1\"]", "request.invalid", "an object"),
        (r#"{"code": "1", "limits": [5]}"#, "request.invalid", "an object"),
        ("{\"code\": \"1\"} x", "request.malformed", "trailing"),
        ("{\"code\": \"\u{0}\"}", "request.malformed", "control character"),
        (r#"{"code": "1", "cod": 1}"#, "request.invalid", "`cod`"),
        (r#"{"code": "1", "code": "2"}"#, "request.invalid", "the key \"code\" is written twice"),
        (r#"{"code": "1", "limits": {"timeout": 1}}"#, "request.invalid", "limits.timeout: "),
        (r#"{"code": "1", "limits": {"timeout_ms": -1}}"#, "request.invalid", "limits.timeout_ms"),
        (r#"{"code": "1", "grants": {"reed": []}}"#, "request.invalid", "grants.reed: "),
        (r#"{"code": "1", "approve": true}"#, "request.invalid", "`approve`"),
        (r#"{"code": "1", "language": "cobol"}"#, "request.invalid", "language: "),
    ] {
        let error = served.refused(run, body, 400, code).await;
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(named), "{body}: {message}");
    }
    let deep =
        format!("{{\"code\": \"1\", \"context\": {}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let error = served.refused(run, &deep, 400, "request.invalid").await;
    assert!(error["message"].as_str().unwrap().contains("context: "), "{error}");
    for head in [
        "GET /v1/runs?limit=0",
        "GET /v1/runs?limit=x",
        "GET /v1/runs?limt=1",
        "GET /v1/runs/run_1?wait_ms=-1",
        "GET /v1/events?after=x",
        "GET /v1/events?limit=1001",
    ] {
        served.refused(head, "", 400, "request.invalid").await;
    }
    served.refused("GET /v2", "", 404, "request.path").await;
    let answer = served.ask("PATCH /v1/runs", "").await;
    refusal(&answer, "PATCH", 405, "request.method");
    assert!(answer.headers.contains("allow: "), "{answer:?}");
    let bearer = bearer();
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", kind)];
        let answer = request(served.at(), run, &headers, r#"{"code": "return 1"}"#).await;
        refusal(&answer, kind, 415, "request.media_type");
    }
    assert!(served.fake.requests.lock().unwrap().is_empty(), "something ran");
}

#[tokio::test]
async fn e3_a_request_has_a_name_of_its_clients_or_of_ours() {
    let served = FakeServer::start().await;
    let named = [("X-Request-Id", "mine-1.2")];
    let answer = request(served.at(), "GET /healthz", &named, "").await;
    assert!(answer.headers.contains("x-request-id: mine-1.2"), "{answer:?}");
    for bad in ["a b", "x\"y", &"x".repeat(65)] {
        let answer = request(served.at(), "GET /healthz", &[("X-Request-Id", bad)], "").await;
        assert!(answer.headers.contains("x-request-id: req_"), "{bad}: {answer:?}");
    }
}

/// All that comes back on a connection that has sent this.
async fn raw(at: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

fn head_of(path: &str, more: &str) -> String {
    format!(
        "{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn e3_a_body_that_is_too_large_is_413_whatever_it_says_of_itself() {
    let served = FakeServer::start().await;
    let claimed = head_of("POST /v1/runs", "Content-Length: 99999999999\r\n");
    let answer = raw(served.at(), &claimed).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    // In pieces, without saying how many there will be.
    let mut body = head_of("POST /v1/runs", "Transfer-Encoding: chunked\r\n");
    for _ in 0..20 {
        body += &format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    }
    let answer = raw(served.at(), &body).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("request.too_large"), "{answer}");
    let large = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let answer = raw(served.at(), &large).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert_eq!(served.get("GET /v1/sessions", "").await, json!({"sessions": []}));
}

#[tokio::test]
async fn e3_who_sends_slowly_is_told_and_does_not_stay() {
    let limits = HttpLimits {
        head: Duration::from_millis(300),
        body_grace: Duration::from_millis(300),
        ..HttpLimits::default()
    };
    let served = FakeServer::with(limits).await;
    // Half a head, and nothing more.
    let answer = raw(served.at(), "POST /v1/runs HTTP/1.1\r\nHost: loc").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    // Not even that: closed without a word.
    assert_eq!(raw(served.at(), "").await, "");
    // Half a body.
    for path in ["POST /v1/runs", "POST /mcp"] {
        let accept = "Accept: application/json, text/event-stream\r\n";
        let head = head_of(path, &format!("{accept}Content-Length: 100\r\n"));
        let answer = raw(served.at(), &format!("{head}{{\"co")).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{path}: {answer}");
    }
    // Control: the same in one piece is quick enough.
    served.get("POST /v1/runs", &json!({"code": "return 1"}).to_string()).await;
}

#[tokio::test]
async fn e3_connections_runs_and_requests_are_bounded() {
    let limits = HttpLimits { connections: 2, runs: 1, ..HttpLimits::default() };
    let served = FakeServer::with(limits).await;
    let bearer = bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let sleeping = send(served.at(), "POST /v1/runs", &headers, r#"{"code": "sleep"}"#).await;
    timeout(PATIENCE, served.fake.asleep.notified()).await.unwrap();
    let answer = served.ask("POST /v1/runs", r#"{"code": "return 1"}"#).await;
    refusal(&answer, "one run too many", 429, "server.busy");
    assert!(answer.headers.contains("retry-after: 1"), "{answer:?}");
    let idle = TcpStream::connect(served.at()).await.unwrap();
    let answer = one_more(&served).await;
    refusal(&answer, "one connection too many", 503, "server.connections");
    drop((sleeping, idle));
    timeout(PATIENCE, served.fake.dropped.notified()).await.unwrap();
    // Both places are free again.
    let again = async {
        while served.ask("POST /v1/runs", r#"{"code": "return 1"}"#).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();

    let served = FakeServer::with(HttpLimits { requests_per_second: 3, ..limits }).await;
    let mut refused = 0;
    for _ in 0..20 {
        let answer = served.ask("GET /v1/sessions", "").await;
        if answer.status == 429 {
            refusal(&answer, "too fast", 429, "server.rate");
            refused += 1;
        }
    }
    assert!(refused > 0, "no limit was reached");
    // Health is not counted.
    assert_eq!(request(served.at(), "GET /healthz", &[], "").await.status, 200);
}

/// The server may take its time to notice a connection.
async fn one_more(served: &FakeServer) -> HttpAnswer {
    let again = async {
        loop {
            let answer = served.ask("GET /v1/sessions", "").await;
            if answer.status == 503 {
                return answer;
            }
        }
    };
    timeout(PATIENCE, again).await.unwrap()
}

#[tokio::test]
async fn e3_an_upload_that_breaks_off_leaves_nothing() {
    let served = FakeServer::start().await;
    let session = served.get("POST /v1/sessions", "{}").await;
    let session = session["session_id"].as_str().unwrap();
    let path = format!("PUT /v1/sessions/{session}/files/a");
    let mut stream = TcpStream::connect(served.at()).await.unwrap();
    let head = head_of(&path, "Content-Length: 1000\r\n");
    stream.write_all(format!("{head}half").as_bytes()).await.unwrap();
    drop(stream);
    let list = served.get(&format!("GET /v1/sessions/{session}/files"), "").await;
    assert_eq!(list["files"], json!([]));
}
