//! A client that speaks lines of JSON over a pair of streams, so that tests see what is sent.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use belljar_server::{Gateway, ServerOptions, serve_streams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::fake::FakeBackend;

/// Which revision the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// The client sends `initialize` first (2025-11-25).
    Handshake,
    /// Everything in every request (2026-07-28).
    Stateless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

pub(crate) struct LineClient {
    pub(crate) fake: Arc<FakeBackend>,
    era: Era,
    capabilities: Value,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    next: u32,
    aside: VecDeque<Value>,
    pub(crate) server: JoinHandle<()>,
    pub(crate) stop: CancellationToken,
}

impl LineClient {
    pub(crate) async fn new(era: Era, capabilities: Value) -> Self {
        Self::with(FakeBackend::default(), era, capabilities, ServerOptions::default()).await
    }

    pub(crate) async fn with(
        fake: FakeBackend,
        era: Era,
        capabilities: Value,
        options: ServerOptions,
    ) -> Self {
        let fake = Arc::new(fake);
        let gateway = Gateway::new(fake.clone(), options);
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let server = tokio::spawn(async move {
            serve_streams(gateway, input, output, stopped).await.unwrap();
        });
        let (input, output) = tokio::io::split(ours);
        let lines = BufReader::new(input).lines();
        let (next, aside) = (1, VecDeque::new());
        let mut client = Self { fake, era, capabilities, lines, output, next, aside, server, stop };
        if era == Era::Handshake {
            client.initialize().await;
        }
        client
    }

    async fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities,
            "clientInfo": {"name": "tester", "version": "1"},
        });
        let id = self.send("initialize", params).await;
        let answer = self.answer(id).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.write(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    pub(crate) async fn write(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request; the id it has.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u32 {
        let id = self.next;
        self.next += 1;
        if self.era == Era::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tester", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.write(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
        if let Some(message) = self.aside.pop_front() {
            return message;
        }
        let line = timeout(Duration::from_secs(20), self.lines.next_line()).await.expect("silence");
        serde_json::from_str(&line.unwrap().expect("the server went away")).unwrap()
    }

    /// The answer to a request; what comes before it is kept for [`next`](Self::next).
    pub(crate) async fn answer(&mut self, id: u32) -> Value {
        let mut aside = VecDeque::new();
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                self.aside = aside;
                return message;
            }
            aside.push_back(message);
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// The result of a tool call.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let mut answer =
            self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    pub(crate) async fn run(&mut self, code: &str) -> Value {
        self.call("execute_code", json!({"code": code})).await
    }
}

/// Waits for something that another task brings about.
pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to pass");
}
