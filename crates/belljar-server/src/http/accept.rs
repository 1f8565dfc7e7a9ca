//! Connections: how many there may be, how long a request head may take, how they end.
//!
//! axum's own server limits none of these. A connection that sends half a request head is answered
//! with 408 and closed; one too many is answered with 503 and closed.

use std::{convert::Infallible, future::poll_fn, io, pin::Pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, http::StatusCode, response::Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::{api::error::ApiError, request_id};

/// The largest head of a request, with all its headers.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// A peer that reads nothing for this long is disconnected.
const SEND_TIMEOUT_MS: u32 = 60_000;
/// How long to read from a connection that is being closed, so that the peer gets the answer.
const LINGER: Duration = Duration::from_millis(500);
/// The pause after an accept that failed, usually for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How many connections may be open, and how long each may take to send a request head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The most open connections.
    pub(crate) most: usize,
    /// From the first to the last byte of a request head; also how long an idle connection is kept.
    pub(crate) head_timeout: Duration,
}

/// Serves until `stop`. Then it takes no new connection, and open ones end with their current
/// answer.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(limits.most));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        // These options help, but the server works without them.
        let _ = stream.set_nodelay(true);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, SEND_TIMEOUT_MS);
        match slots.clone().try_acquire_owned() {
            Ok(slot) => {
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    serve_one(stream, router, limits.head_timeout, stop).await;
                    drop(slot);
                });
            }
            Err(_) => drop(connections.spawn(async move {
                let error = ApiError::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "server.connections",
                    "the server has too many connections",
                );
                let _ = timeout(LINGER, refuse(stream, &error)).await;
            })),
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn serve_one(stream: TcpStream, router: Router, head: Duration, stop: CancellationToken) {
    let answer = move |request: hyper::Request<Incoming>| -> ResponseFuture {
        let mut router = router.clone();
        // The router is always ready; it is cloned because each call needs its own.
        Box::pin(async move { router.call(request.map(Body::new)).await })
    };
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_header_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let ended = tokio::select! {
        ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => ended,
        () = stop.cancelled() => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        }
    };
    let parts = connection.into_parts();
    let stream = parts.io.into_inner();
    // An idle connection is closed silently. A client that has begun a request learns why.
    let timed_out = ended.is_err_and(|error| error.is_timeout());
    let ended = if timed_out && !parts.read_buf.is_empty() {
        let message =
            format!("the request head took longer than {} ms to arrive", head.as_millis());
        let error = ApiError::new(StatusCode::REQUEST_TIMEOUT, "request.slow", message);
        timeout(LINGER, refuse(stream, &error)).await
    } else {
        timeout(LINGER, close(stream)).await
    };
    drop(ended);
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Answers a connection whose request was not read.
async fn refuse(mut stream: TcpStream, error: &ApiError) -> io::Result<()> {
    let body = serde_json::to_string(&error.body()).unwrap_or_default();
    let status = error.status;
    let text = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         x-request-id: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        body.len(),
        request_id::new_id(),
    );
    stream.write_all(text.as_bytes()).await?;
    close(stream).await
}

/// Closes after reading the rest: closing while the peer still sends would discard the answer.
async fn close(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
