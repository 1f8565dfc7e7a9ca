//! A server that is reached over HTTP.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use belljar_tools::{RawServer, UpstreamError};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::harness::{Host, installed, none, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("http::everything_over_http", everything),
        trial("http::a_server_that_is_not_there_is_not_started", nobody_there),
        trial("http::a_server_that_is_started_again_is_used_again", restarted),
    ]
}

/// The reference server in its HTTP mode; ended when dropped.
struct Everything(Child);

impl Everything {
    async fn start(port: u16) -> Result<Self, Failed> {
        #[expect(clippy::disallowed_methods, reason = "a server the host does not start itself")]
        let child = Command::new(installed("npm/node_modules/.bin/mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self(child);
        for _ in 0..1000 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Ok(server);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err("the server does not listen".into())
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port nobody uses now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn at(port: u16) -> RawServer {
    RawServer {
        kind: Some("http".into()),
        url: Some(format!("http://127.0.0.1:{port}/mcp")),
        headers: [("X-Key".to_owned(), "value".to_owned())].into(),
        ..RawServer::default()
    }
}

async fn everything() -> Result<(), Failed> {
    let port = free_port();
    let _server = Everything::start(port).await?;
    let host = Host::with(at(port));
    let tools = host.upstreams.tools("s").await?;
    assert!(tools.iter().any(|tool| tool.name == "echo"), "{tools:?}");
    for n in 0..20 {
        let message = format!("hi {n}");
        assert_eq!(
            host.text("echo", json!({"message": message})).await,
            format!("Echo: {message}")
        );
    }
    host.upstreams.shutdown().await;
    Ok(())
}

async fn nobody_there() -> Result<(), Failed> {
    let host = Host::with(at(free_port()));
    let error = host.call("echo", none()).await.unwrap_err();
    let UpstreamError::NotStarted { why, hint, .. } = &error else {
        return Err(format!("{error:?}").into());
    };
    assert!(why.contains("refused"), "{why}");
    assert!(!why.contains("127.0.0.1"), "an address may have a secret in it: {why}");
    assert_eq!(
        hint.as_deref(),
        Some("check that the server is running and that `url` is its endpoint")
    );
    Ok(())
}

async fn restarted() -> Result<(), Failed> {
    let port = free_port();
    let server = Everything::start(port).await?;
    let host = Host::with(at(port));
    assert_eq!(host.text("echo", json!({"message": "a"})).await, "Echo: a");
    drop(server);
    let error = host.call("echo", json!({"message": "b"})).await.unwrap_err();
    assert!(!error.may_have_happened(), "{error:?}");
    let _server = Everything::start(port).await?;
    for _ in 0..100 {
        match host.call("echo", json!({"message": "c"})).await {
            Ok(answer) => {
                assert_eq!(crate::harness::only_text(answer), "Echo: c");
                return Ok(());
            }
            Err(error) => assert!(!error.may_have_happened(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("never used again".into())
}
