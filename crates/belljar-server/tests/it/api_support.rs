//! A client of the plain API.

use std::{net::SocketAddr, sync::Arc};

use belljar_server::{
    Auth, BearerToken, Gateway, HttpConfig, HttpLimits, HttpServer, ServerOptions, serve_http,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    time::{Duration, timeout},
};

use crate::{
    fake::FakeBackend,
    http::{HttpAnswer, TOKEN, bearer, request, send},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A server, and what its clients do.
pub(crate) struct FakeServer {
    pub(crate) fake: Arc<FakeBackend>,
    pub(crate) server: HttpServer,
}

impl FakeServer {
    pub(crate) async fn start() -> Self {
        Self::with(HttpLimits::default()).await
    }

    pub(crate) async fn with(limits: HttpLimits) -> Self {
        Self::serving(limits, ServerOptions::default()).await
    }

    pub(crate) async fn serving(limits: HttpLimits, options: ServerOptions) -> Self {
        let fake = Arc::new(FakeBackend::default());
        let gateway = Gateway::new(fake.clone(), options);
        let auth = Auth::Token(BearerToken::new(TOKEN).unwrap());
        let mut config = HttpConfig::new(([127, 0, 0, 1], 0).into(), auth);
        (config.max_body_bytes, config.limits) = (1 << 20, limits);
        Self { fake, server: serve_http(gateway, config).await.unwrap() }
    }

    pub(crate) fn at(&self) -> SocketAddr {
        self.server.address()
    }

    /// An answer to a request with the token and, if there is a body, JSON.
    pub(crate) async fn ask(&self, head: &str, body: &str) -> HttpAnswer {
        let bearer = bearer();
        let mut headers = vec![("Authorization", bearer.as_str())];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        request(self.at(), head, &headers, body).await
    }

    /// The same, which has to succeed, as JSON.
    pub(crate) async fn get(&self, head: &str, body: &str) -> Value {
        let answer = self.ask(head, body).await;
        assert!(matches!(answer.status, 200 | 201), "{head}: {answer:?}");
        json(&answer)
    }

    /// The same, which has to fail with this.
    pub(crate) async fn refused(&self, head: &str, body: &str, status: u16, code: &str) -> Value {
        let answer = self.ask(head, body).await;
        refusal(&answer, head, status, code)
    }

    /// The events of a request.
    pub(crate) async fn follow(
        &self,
        head: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> SseEvents {
        let bearer = bearer();
        let mut all = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream"),
        ];
        all.extend(headers);
        let stream = send(self.at(), head, &all, body).await;
        SseEvents { lines: BufReader::new(stream) }
    }
}

/// The body as JSON; panics if it is not JSON.
pub(crate) fn json(answer: &HttpAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// An answer that says what is wrong, in the one shape there is for that.
pub(crate) fn refusal(answer: &HttpAnswer, what: &str, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    let error = json(answer)["error"].clone();
    assert_eq!(error["code"], code, "{what}: {answer:?}");
    for name in ["type", "message"] {
        assert!(error[name].as_str().is_some_and(|text| !text.is_empty()), "{what}: {error}");
    }
    assert!(error.get("hint").is_some(), "{what}: {error}");
    assert!(answer.headers.contains("x-request-id: "), "{what}: {answer:?}");
    error
}

/// The events of a stream.
pub(crate) struct SseEvents {
    lines: BufReader<TcpStream>,
}

/// One event, with its parts as they were sent.
#[derive(Debug)]
pub(crate) struct SseEvent {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl SseEvents {
    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        let (mut id, mut name) = (0, String::new());
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.lines.read_line(&mut line)).await.unwrap();
            if read.unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", text)) => id = text.parse().unwrap(),
                Some(("event", text)) => name = text.to_owned(),
                Some(("data", text)) => {
                    return Some(SseEvent { id, name, data: serde_json::from_str(text).unwrap() });
                }
                _ => {}
            }
        }
    }

    /// All events up to the end.
    pub(crate) async fn all(mut self) -> Vec<SseEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}
