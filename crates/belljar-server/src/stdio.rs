//! The gateway over standard input and output. Nothing else may write to standard output.

use rmcp::{ServerHandler, service::serve_server_with_ct, transport::async_rw::AsyncRwTransport};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::Backend, exact_json::RestoringWriter, gateway::Gateway,
    unambiguous::UnambiguousTransport,
};

/// Longer lines are dropped by the transport; code and context may be large.
const MAX_LINE_BYTES: usize = 256 << 20;

/// Why serving a client over streams ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The client's first message does not start a session.
    #[error("the client did not start an MCP session")]
    Handshake(#[source] Box<rmcp::service::ServerInitializeError>),
    /// The task that served it panicked.
    #[error("the task that serves the MCP session failed")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves one client over this process's standard streams, until it disconnects or `stop` is
/// cancelled. Then ends the runs it left.
///
/// # Errors
/// If the client did not start a session, or the session's task failed.
pub async fn serve_stdio<B: Backend>(
    gateway: Gateway<B>,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let (runs, close) = (gateway.clone(), CancellationToken::new());
    let closes = close.clone();
    // Runs end before the session does, so that their requests can still be answered.
    let watch = tokio::spawn(async move {
        stop.cancelled().await;
        runs.stop_runs().await;
        closes.cancel();
    });
    let served = serve_streams(gateway.clone(), input, output, close).await;
    watch.abort();
    gateway.stop_runs().await;
    served
}

/// Serves one client over any pair of streams.
///
/// # Errors
/// If the client did not start a session, or the session's task failed.
pub async fn serve_streams<H: ServerHandler>(
    server: H,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let transport = UnambiguousTransport::new(input, MAX_LINE_BYTES, |lines| {
        let output = RestoringWriter::new(output);
        AsyncRwTransport::new_server(lines, output).with_max_line_length(MAX_LINE_BYTES)
    });
    let session = match serve_server_with_ct(server, transport, stop.clone()).await {
        Ok(session) => session,
        // The client disconnected before its first message, or we stopped: not an error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(_) if stop.is_cancelled() => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(Box::new(error))),
    };
    session.waiting().await.map(drop).map_err(StdioError::Broken)
}
