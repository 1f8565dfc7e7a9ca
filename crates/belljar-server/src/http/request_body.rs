//! Limits on request bodies: their size, and how slowly they may arrive.
//!
//! A client that sends one byte a minute would keep a connection, and the request's memory, as long
//! as it likes. So a body has to arrive at a steady average rate, after a grace period. Handlers
//! see a body that ended early; [`limit_body`] tells the client why, whatever the handler answered.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream},
    extract::Request,
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::api::error::ApiError;

/// How large a body may be, and how slow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBounds {
    pub(crate) most_bytes: u64,
    pub(crate) grace: Duration,
    pub(crate) bytes_per_second: u64,
}

const NONE: u8 = 0;
const TOO_LARGE: u8 = 1;
const TOO_SLOW: u8 = 2;

/// Why a body was cut off, shared between the body and the code that answers.
#[derive(Debug, Clone, Default)]
struct BodyFailure(Arc<AtomicU8>);

impl BodyFailure {
    fn set(&self, failure: u8) -> io::Error {
        self.0.store(failure, Ordering::Relaxed);
        let why =
            if failure == TOO_LARGE { "the body is too large" } else { "the body is too slow" };
        io::Error::other(why)
    }

    fn error(&self, bounds: BodyBounds) -> Option<ApiError> {
        match self.0.load(Ordering::Relaxed) {
            NONE => None,
            TOO_LARGE => Some(too_large(bounds)),
            _ => Some(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "request.slow",
                format!(
                    "the body arrived at less than {} bytes per second",
                    bounds.bytes_per_second
                ),
            )),
        }
    }
}

fn too_large(bounds: BodyBounds) -> ApiError {
    let message = format!("the body is larger than {} bytes", bounds.most_bytes);
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "request.too_large", message)
}

/// Passes a request on, and cuts its body off where it exceeds the bounds.
pub(crate) async fn limit_body(bounds: BodyBounds, request: Request, next: Next) -> Response {
    let claimed = request.headers().get(header::CONTENT_LENGTH);
    let claimed = claimed.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if claimed.is_some_and(|bytes| bytes > bounds.most_bytes) {
        return too_large(bounds).into_response();
    }
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let failure = BodyFailure::default();
    let request =
        request.map(|body| Body::from_stream(BoundedBody::new(body, bounds, failure.clone())));
    let response = next.run(request).await;
    failure.error(bounds).map_or(response, IntoResponse::into_response)
}

struct BoundedBody {
    body: BodyDataStream,
    bounds: BodyBounds,
    failure: BodyFailure,
    received: u64,
    since: Option<Instant>,
    /// Fires when the next bytes are late.
    due: Option<Pin<Box<Sleep>>>,
}

impl BoundedBody {
    fn new(body: Body, bounds: BodyBounds, failure: BodyFailure) -> Self {
        Self { body: body.into_data_stream(), bounds, failure, received: 0, since: None, due: None }
    }

    /// The time until which the bytes received so far are enough.
    fn deadline(&mut self) -> Instant {
        let since = *self.since.get_or_insert_with(Instant::now);
        let earned =
            Duration::from_millis(self.received * 1000 / self.bounds.bytes_per_second.max(1));
        since + self.bounds.grace + earned
    }
}

impl Stream for BoundedBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let deadline = this.deadline();
        match Pin::new(&mut this.body).poll_next(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                this.received += bytes.len() as u64;
                this.due = None;
                if this.received > this.bounds.most_bytes {
                    return Poll::Ready(Some(Err(this.failure.set(TOO_LARGE))));
                }
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(io::Error::other(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let due = this.due.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
                ready!(due.as_mut().poll(cx));
                Poll::Ready(Some(Err(this.failure.set(TOO_SLOW))))
            }
        }
    }
}
