//! The same over a real socket, and who is let in.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use belljar_server::{
    Auth, BearerToken, Gateway, HttpConfig, HttpServer, ServeError, ServerOptions, conformance,
    serve_http,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::fake::FakeBackend;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

async fn start(fake: Arc<FakeBackend>) -> HttpServer {
    let gateway = Gateway::new(fake, ServerOptions::default());
    let auth = Auth::Token(BearerToken::new(TOKEN).unwrap());
    let mut config = HttpConfig::new(([127, 0, 0, 1], 0).into(), auth);
    config.max_body_bytes = 1 << 20;
    serve_http(gateway, config).await.unwrap()
}

#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// One request on a connection of its own, with exactly these headers.
pub(crate) async fn request(
    address: SocketAddr,
    head: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    let mut stream = send(address, head, headers, body).await;
    let mut text = Vec::new();
    timeout(Duration::from_secs(20), stream.read_to_end(&mut text)).await.unwrap().unwrap();
    let text = String::from_utf8(text).unwrap();
    let (headers, body) = text.split_once("\r\n\r\n").unwrap();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    HttpAnswer { status, headers: headers.to_lowercase(), body: body.to_owned() }
}

pub(crate) async fn send(
    address: SocketAddr,
    head: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut text = format!("{head} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

pub(crate) fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

fn stateless(method: &str, mut params: Value, capabilities: &Value) -> String {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tester", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// The headers of a stateless request for a tool.
fn headers<'a>(bearer: &'a str, method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("Authorization", bearer),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
        ("Mcp-Name", name),
    ]
}

/// The JSON-RPC answer in a body, be it JSON or a stream of events.
fn message(answer: &HttpAnswer) -> Value {
    let line = answer.body.lines().rev().find(|line| line.contains("\"jsonrpc\"")).unwrap();
    serde_json::from_str(line.strip_prefix("data:").unwrap_or(line).trim()).unwrap()
}

#[tokio::test]
async fn e1_everything_but_health_wants_the_token() {
    let server = start(Arc::default()).await;
    let at = server.address();
    let answer = request(at, "GET /healthz", &[], "").await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("\"ok\""), "{}", answer.body);
    for path in ["POST /mcp", "GET /mcp", "DELETE /mcp", "GET /", "POST /mcp/", "GET /healthz/x"] {
        let answer = request(at, path, &[], "{}").await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.headers.contains("www-authenticate: bearer"), "{}", answer.headers);
        let answer = request(at, path, &[("Authorization", "Bearer wrong")], "{}").await;
        assert_eq!(answer.status, 401, "{path}");
        let answer = request(at, path, &[("Authorization", &bearer())], "{}").await;
        assert!(![200, 401, 403].contains(&answer.status), "{path}: {}", answer.status);
    }
}

#[tokio::test]
async fn e1_pages_of_others_are_turned_away() {
    let server = start(Arc::default()).await;
    let at = server.address();
    let bearer = bearer();
    for (name, value) in [("Host", "evil.example"), ("Origin", "https://evil.example")] {
        for path in ["POST /mcp", "GET /healthz"] {
            let given = [("Authorization", bearer.as_str()), (name, value)];
            assert_eq!(request(at, path, &given, "{}").await.status, 403, "{path} {value}");
        }
    }
    let given = [("Origin", "http://localhost:6274")];
    assert_eq!(request(at, "GET /healthz", &given, "").await.status, 200);
}

#[tokio::test]
async fn e1_a_public_address_needs_a_token() {
    let gateway = || Gateway::new(Arc::new(FakeBackend::default()), ServerOptions::default());
    let open = HttpConfig::new(([0, 0, 0, 0], 0).into(), Auth::Open);
    let refused = serve_http(gateway(), open).await.unwrap_err();
    assert!(matches!(refused, ServeError::PublicWithoutToken { .. }), "{refused}");
    let auth = Auth::Token(BearerToken::new(TOKEN).unwrap());
    let guarded = serve_http(gateway(), HttpConfig::new(([0, 0, 0, 0], 0).into(), auth)).await;
    guarded.unwrap().shutdown().await;
    let loopback = HttpConfig::new(([127, 0, 0, 1], 0).into(), Auth::Open);
    serve_http(gateway(), loopback).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_request_over_the_limit_is_413() {
    let server = start(Arc::default()).await;
    let bearer = bearer();
    let headers = headers(&bearer, "tools/call", "execute_code");
    let arguments = json!({"code": format!("return \"{}\"", "x".repeat(2 << 20))});
    let params = json!({"name": "execute_code", "arguments": arguments});
    let body = stateless("tools/call", params, &json!({}));
    let mut text = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".to_owned();
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n", body.len());
    let (mut input, mut output) = TcpStream::connect(server.address()).await.unwrap().into_split();
    // The server may answer, and stop reading, before all of it is sent.
    let sending = tokio::spawn(async move {
        let _ = output.write_all(text.as_bytes()).await;
        let _ = output.write_all(body.as_bytes()).await;
        output
    });
    let mut head = [0; 12];
    timeout(Duration::from_secs(20), input.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    drop(sending.await);
}

#[tokio::test]
async fn e1_stateless_calls_over_http() {
    let server = start(Arc::default()).await;
    let bearer = bearer();
    let params = json!({"name": "execute_code", "arguments": {"code": "return 42"}});
    let body = stateless("tools/call", params, &json!({}));
    let headers = headers(&bearer, "tools/call", "execute_code");
    let answer = request(server.address(), "POST /mcp", &headers, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(message(&answer)["result"]["structuredContent"]["result"], 42);
    server.shutdown().await;
}

#[tokio::test]
async fn a_stateless_client_that_hangs_up_ends_its_run() {
    let fake = Arc::new(FakeBackend::default());
    let server = start(fake.clone()).await;
    let bearer = bearer();
    let params = json!({"name": "execute_code", "arguments": {"code": "sleep"}});
    let body = stateless("tools/call", params, &json!({}));
    let headers = headers(&bearer, "tools/call", "execute_code");
    let stream = send(server.address(), "POST /mcp", &headers, &body).await;
    timeout(Duration::from_secs(10), fake.asleep.notified()).await.unwrap();
    drop(stream);
    timeout(Duration::from_secs(30), fake.dropped.notified()).await.unwrap();
}

/// A client of the older revision: a session, and a stream for each request.
struct McpSession {
    address: SocketAddr,
    id: Option<String>,
}

impl McpSession {
    async fn open(address: SocketAddr, capabilities: Value) -> Self {
        let mut session = Self { address, id: None };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "tester", "version": "1"},
        });
        let answer = session
            .post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        assert_eq!(message(&answer)["result"]["serverInfo"]["name"], "belljar");
        let id = answer.headers.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        session.id = Some(id.unwrap().to_owned());
        let answer =
            session.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(answer.status, 202);
        session
    }

    fn headers<'a>(&'a self, bearer: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut headers = vec![
            ("Authorization", bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if let Some(id) = &self.id {
            headers
                .extend([("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", "2025-11-25")]);
        }
        headers
    }

    async fn post(&self, body: Value) -> HttpAnswer {
        let bearer = bearer();
        request(self.address, "POST /mcp", &self.headers(&bearer), &body.to_string()).await
    }

    /// Sends a request and reads its events one by one.
    async fn stream(&self, body: Value) -> BufReader<TcpStream> {
        let bearer = bearer();
        let headers = self.headers(&bearer);
        BufReader::new(send(self.address, "POST /mcp", &headers, &body.to_string()).await)
    }
}

async fn event(stream: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        let read = timeout(Duration::from_secs(20), stream.read_line(&mut line)).await.unwrap();
        assert!(read.unwrap() > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data:").filter(|data| data.contains("jsonrpc")) {
            return serde_json::from_str(data.trim()).unwrap();
        }
    }
}

fn call(code: &str) -> Value {
    json!({"name": "execute_code", "arguments": {"code": code}})
}

#[tokio::test]
async fn e1_sessions_of_the_older_revision_and_elicitation_in_them() {
    let fake = Arc::new(FakeBackend::default());
    let server = start(fake.clone()).await;
    let session = McpSession::open(server.address(), json!({"elicitation": {}})).await;
    let answer = session
        .post(
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("return 42")}),
        )
        .await;
    assert_eq!(message(&answer)["result"]["structuredContent"]["result"], 42);
    let mut stream = session
        .stream(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("ask")}))
        .await;
    let question = event(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let answer = session.post(json!({"jsonrpc": "2.0", "id": question["id"], "result": yes})).await;
    assert_eq!(answer.status, 202);
    let answer = event(&mut stream).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], "deleted", "{answer}");
}

/// A client that goes away without a word leaves its session; there is room for so many.
#[tokio::test]
async fn e1_abandoned_sessions_make_room_for_new_ones() {
    let gateway = Gateway::new(Arc::new(FakeBackend::default()), ServerOptions::default());
    let auth = Auth::Token(BearerToken::new(TOKEN).unwrap());
    let mut config = HttpConfig::new(([127, 0, 0, 1], 0).into(), auth);
    config.limits.mcp_sessions = 2;
    let server = serve_http(gateway, config).await.unwrap();
    let run = |id: u32| {
        let params = call("return 42");
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let quiet = McpSession::open(server.address(), json!({})).await;
    let used = McpSession::open(server.address(), json!({})).await;
    assert_eq!(quiet.post(run(1)).await.status, 200);
    assert_eq!(used.post(run(1)).await.status, 200);
    let new = McpSession::open(server.address(), json!({})).await;
    assert_eq!(quiet.post(run(2)).await.status, 404, "the quietest has ended");
    for session in [used, new] {
        let answer = session.post(run(3)).await;
        assert_eq!(message(&answer)["result"]["structuredContent"]["result"], 42);
    }
}

/// The older revisions say that a lost connection is no cancellation; the notification is.
#[tokio::test]
async fn sessions_are_cancelled_by_notification() {
    let fake = Arc::new(FakeBackend::default());
    let server = start(fake.clone()).await;
    let session = McpSession::open(server.address(), json!({})).await;
    let stream = session
        .stream(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call("sleep")}))
        .await;
    timeout(Duration::from_secs(10), fake.asleep.notified()).await.unwrap();
    drop(stream);
    let gone = timeout(Duration::from_millis(500), fake.dropped.notified()).await;
    assert!(gone.is_err(), "a lost connection ended the run");
    let params = json!({"requestId": 7});
    session
        .post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    timeout(Duration::from_secs(10), fake.dropped.notified()).await.unwrap();
}

#[tokio::test]
async fn shutting_down_ends_streams_and_runs() {
    let fake = Arc::new(FakeBackend::default());
    let server = start(fake.clone()).await;
    let session = McpSession::open(server.address(), json!({})).await;
    let _stream = session
        .stream(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("sleep")}))
        .await;
    fake.asleep.notified().await;
    timeout(Duration::from_secs(10), server.shutdown()).await.unwrap();
    timeout(Duration::from_secs(10), fake.dropped.notified()).await.unwrap();
}

/// The suite's fixtures stand beside the gateway's tools where they are asked for, and only there.
#[tokio::test]
async fn fixtures_are_only_in_the_conformance_mode() {
    let bearer = bearer();
    let body = stateless("tools/list", json!({}), &json!({}));
    let mut headers = headers(&bearer, "tools/list", "");
    headers.pop();
    let gateway = Gateway::new(Arc::new(FakeBackend::default()), ServerOptions::default());
    let config = HttpConfig::new(([127, 0, 0, 1], 0).into(), Auth::Open);
    let fixtures = conformance::serve_http(gateway, config).await.unwrap();
    let normal = start(Arc::default()).await;
    for (address, wanted) in [(fixtures.address(), true), (normal.address(), false)] {
        let answer = request(address, "POST /mcp", &headers, &body).await;
        let text = message(&answer)["result"]["tools"].to_string();
        assert!(text.contains("execute_code"), "{}", answer.body);
        assert_eq!(text.contains("test_simple_text"), wanted, "{text}");
    }
}
