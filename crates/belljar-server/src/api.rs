//! The plain HTTP API (E3), beside `/mcp`: the same runs, sessions, workflows, approvals
//! and tools, as JSON.
//!
//! Handlers translate: a request's body into the port's types, the port's answer into JSON. Bodies
//! are decoded strictly, and `/openapi.json` is generated from the same types.

mod approvals;
mod body;
pub(crate) mod error;
mod events;
mod files;
mod input;
mod openapi;
mod path;
mod runs;
mod sessions;
mod shapes;
mod sse;
mod stream;
mod workflows;

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::{get, post},
};

use tokio_util::sync::CancellationToken;

use crate::{
    backend::Backend,
    gateway::Gateway,
    http::{ConcurrencyLimit, HttpLimits},
    storage,
};
use error::ApiError;

/// State that all handlers share; clones share it too.
#[derive(Debug)]
pub(crate) struct Api<B> {
    gateway: Gateway<B>,
    /// Bounds the runs that requests of this API have under way.
    run_limit: ConcurrencyLimit,
    /// Bounds the clients that follow event streams.
    stream_limit: ConcurrencyLimit,
    /// Cancelled when the server shuts down; ends streams that would otherwise never end.
    stop: CancellationToken,
}

impl<B> Clone for Api<B> {
    fn clone(&self) -> Self {
        let (run_limit, stream_limit) = (self.run_limit.clone(), self.stream_limit.clone());
        Self { gateway: self.gateway.clone(), run_limit, stream_limit, stop: self.stop.clone() }
    }
}

impl<B: Backend> Api<B> {
    pub(crate) fn new(gateway: Gateway<B>, limits: &HttpLimits, stop: CancellationToken) -> Self {
        Self {
            gateway,
            stop,
            run_limit: ConcurrencyLimit::new(limits.runs, "runs"),
            stream_limit: ConcurrencyLimit::new(limits.event_streams, "event streams"),
        }
    }

    fn backend(&self) -> &B {
        &self.gateway.shared.backend
    }
}

/// All routes except `/healthz` and those whose bodies are files.
pub(crate) fn routes<B: Backend>(api: Api<B>) -> Router {
    Router::new()
        .route("/v1/runs", post(runs::create).get(runs::list))
        .route("/v1/runs/{id}", get(runs::get).delete(runs::abort))
        .route("/v1/sessions", post(sessions::create).get(sessions::list))
        .route("/v1/sessions/{id}", get(sessions::get).delete(sessions::destroy))
        .route("/v1/sessions/{id}/runs", post(runs::create_in_session))
        .route(
            "/v1/sessions/{id}/checkpoints",
            post(sessions::checkpoint).get(sessions::checkpoints),
        )
        .route("/v1/sessions/{id}/rollback", post(sessions::rollback))
        .route("/v1/sessions/{id}/fork", post(sessions::fork))
        .route("/v1/sessions/{id}/files", get(files::list))
        .route("/v1/workflows", post(workflows::create).get(workflows::list))
        .route("/v1/workflows/{id}", get(workflows::get).delete(workflows::forget))
        .route("/v1/workflows/{id}/events", get(workflows::events))
        .route("/v1/workflows/{id}/commands", post(workflows::command))
        .route("/v1/workflows/{id}/fork", post(workflows::fork))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", post(approvals::decide))
        .route("/v1/events", get(events::events))
        .route("/v1/tools/search", post(approvals::search))
        .route("/v1/blobs/{handle}", get(files::blob))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi_document))
        .with_state(api)
        .fallback(unknown_path)
        .method_not_allowed_fallback(method_not_allowed)
}

/// The routes whose bodies are files, which may be larger than other bodies.
pub(crate) fn file_routes<B: Backend>(api: Api<B>) -> Router {
    let one = get(files::get).put(files::put).delete(files::delete);
    Router::new()
        .route("/v1/sessions/{id}/files/{*path}", one)
        .with_state(api)
        .method_not_allowed_fallback(method_not_allowed)
}

/// Health of the server, for monitors, without a token. It is unhealthy when it cannot store what
/// it would acknowledge.
pub(crate) async fn healthz<B: Backend>(State(api): State<Api<B>>) -> impl IntoResponse {
    let trouble = api.backend().storage_trouble();
    let (code, status) = match trouble {
        None => (StatusCode::OK, "ok"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    (code, Json(shapes::Health { status, version: env!("CARGO_PKG_VERSION"), trouble }))
}

async fn metrics<B: Backend>(State(api): State<Api<B>>) -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let sizes = api.backend().storage_sizes().await;
    let sizes = sizes.as_ref().map(storage::metrics).unwrap_or_default();
    (kind, api.gateway.shared.metrics.text() + &sizes)
}

async fn openapi_document() -> impl IntoResponse {
    Json(openapi::document())
}

async fn unknown_path() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "request.path", "no route has this path")
        .with_hint("GET /openapi.json lists all paths and their methods")
}

async fn method_not_allowed() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "request.method",
        "this path does not take this method",
    )
    .with_hint("GET /openapi.json lists all paths and their methods")
}
