//! An id for each request: in its answer, and in every log line about it.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use tracing::Instrument as _;

use crate::{
    metrics::ServerMetrics,
    traces::{Span, SpanKind, TraceContext, Traces},
};

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// A client's own id is used if it is no longer than this.
const MAX_CHARS: usize = 64;

/// A new random id.
pub(crate) fn new_id() -> String {
    let mut bytes = [0; 8];
    // Without randomness the id is merely not unique.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("req_{:016x}", u64::from_ne_bytes(bytes))
}

/// Gives the request an id, counts it, and logs how it was answered.
pub(crate) async fn with_request_id(
    State((metrics, traces)): State<(Arc<ServerMetrics>, Option<Traces>)>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = client_id(request.headers()).unwrap_or_else(new_id);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let parent = TraceContext::from_headers(request.headers());
    let context = TraceContext::child_of(parent);
    let span = tracing::info_span!("request", id);
    let mut response = context.scope(next.run(request).instrument(span)).await;
    let status = response.status().as_u16();
    if let Some(traces) = &traces {
        let name = format!("{method} {route}");
        let span =
            Span::ended(name, SpanKind::Server, context, began.elapsed()).with_parent(parent);
        let span = span.ok(status < 500).with("http.response.status_code", status.into());
        traces.send(
            span.with("http.route", route.as_str().into()).with("request.id", id.as_str().into()),
        );
    }
    metrics.answered(&route, method.as_str(), status);
    let duration_ms = began.elapsed().as_secs_f64() * 1000.0;
    tracing::info!(request_id = id, %method, path, status, duration_ms, "answered");
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, id);
    }
    response
}

/// The id that the client sent, if it is well-formed.
fn client_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(HEADER)?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = !id.is_empty() && id.len() <= MAX_CHARS && id.bytes().all(is_plain);
    fits.then(|| id.to_owned())
}
