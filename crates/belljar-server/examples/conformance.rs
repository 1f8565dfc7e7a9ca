//! Serves the conformance suite's fixtures around a backend that runs nothing, on a loopback port.
//!
//! `cargo run -p belljar-server --example conformance -- 127.0.0.1:7900`

#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "it is the fake of the tests"
)]
#[path = "../tests/it/fake.rs"]
mod fake;
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is the fake of the tests")]
#[path = "../tests/it/fake_sessions.rs"]
mod fake_sessions;
#[expect(clippy::unwrap_used, reason = "it is the fake of the tests")]
#[path = "../tests/it/fake_workflows.rs"]
mod fake_workflows;

use belljar_server::{Auth, Gateway, HttpConfig, ServerOptions, conformance};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7900".to_owned());
    let passed = vec![fake::passed("files__read")];
    let gateway = Gateway::new(
        fake::FakeBackend { passed, ..Default::default() }.into(),
        ServerOptions::default(),
    );
    let config = HttpConfig::new(address.parse()?, Auth::Open);
    let server = conformance::serve_http(gateway, config).await?;
    tracing::info!("serving {}", server.address());
    std::future::pending().await
}
