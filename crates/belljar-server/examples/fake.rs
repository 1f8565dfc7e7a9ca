//! Serves a backend that runs nothing, for trying out clients: `--stdio`, or `--http ADDR TOKEN`.

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

use belljar_server::{
    Auth, BearerToken, Gateway, HttpConfig, ServerOptions, serve_http, serve_stdio,
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let passed = vec![fake::passed("files__read")];
    let gateway = Gateway::new(
        fake::FakeBackend { passed, ..Default::default() }.into(),
        ServerOptions::default(),
    );
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio"] => Ok(serve_stdio(gateway, CancellationToken::new()).await?),
        ["--http", address, token] => {
            let auth = Auth::Token(BearerToken::new(token).ok_or("the token is too short")?);
            let _server = serve_http(gateway, HttpConfig::new(address.parse()?, auth)).await?;
            std::future::pending().await
        }
        _ => Err("usage: fake --stdio | --http ADDR TOKEN".into()),
    }
}
