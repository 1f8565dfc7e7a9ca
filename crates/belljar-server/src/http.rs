//! The gateway over HTTP: `/mcp`, the plain API, and `/healthz` for monitors.

mod accept;
mod limits;
mod request_body;

use std::{future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::local::{LocalSessionManager, SessionConfig},
    },
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{self, Api},
    backend::Backend,
    exact_json::restore_body,
    gateway::Gateway,
    guard::{AllowedSources, Auth, Guard},
    mcp_sessions::{McpSessions, track_session},
    metrics::ServerMetrics,
    request_id::with_request_id,
    unambiguous::refuse_ambiguous,
};
use accept::{ConnectionLimits, accept};
pub(crate) use limits::ConcurrencyLimit;
use limits::RequestRate;
use request_body::{BodyBounds, limit_body};

/// The default for the largest body; larger ones are refused with 413.
const MAX_BODY_BYTES: usize = 64 << 20;
/// An MCP session of an older client is dropped when it is idle for this long. This has to be
/// longer than a run may take, and than a person takes to decide.
const SESSION_IDLE: Duration = Duration::from_hours(6);
/// How long connections may take to close when the server shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the server listens, and whom it accepts.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The address to listen on; port 0 takes any free port.
    pub address: SocketAddr,
    /// How clients prove that they may use the server.
    pub auth: Auth,
    /// Hosts and origins that are allowed besides loopback.
    pub allowed: AllowedSources,
    /// Larger bodies are refused with 413. Files of sessions have a limit of their own.
    pub max_body_bytes: usize,
    /// Limits for all clients together.
    pub limits: HttpLimits,
}

/// Limits for all clients together. A request beyond one is refused with an error that names it.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Open connections; further ones are refused with 503.
    pub connections: usize,
    /// Requests per second; further ones are refused with 429.
    pub requests_per_second: u32,
    /// Runs at once, started over the plain API.
    pub runs: usize,
    /// Clients that follow events at once.
    pub event_streams: usize,
    /// MCP sessions of older clients; beyond it, the one idle longest ends.
    pub mcp_sessions: usize,
    /// The largest file that a client may write into a session.
    pub max_file_bytes: u64,
    /// How long the head of a request may take to arrive.
    pub head: Duration,
    /// How long a body may take before its average rate counts.
    pub body_grace: Duration,
    /// The lowest average rate of a body after that time.
    pub body_bytes_per_second: u64,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            requests_per_second: 5_000,
            runs: 256,
            event_streams: 64,
            mcp_sessions: 512,
            max_file_bytes: 1 << 30,
            head: Duration::from_secs(15),
            body_grace: Duration::from_secs(15),
            body_bytes_per_second: 4 << 10,
        }
    }
}

impl HttpConfig {
    /// A configuration with default limits.
    pub fn new(address: SocketAddr, auth: Auth) -> Self {
        Self {
            address,
            auth,
            allowed: AllowedSources::default(),
            max_body_bytes: MAX_BODY_BYTES,
            limits: HttpLimits::default(),
        }
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anyone who reaches the address could run code.
    #[error("other machines can reach {address}, so clients must send a token")]
    PublicWithoutToken {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address is in use, or not an address of this machine.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A running server. Dropping it stops it.
pub struct HttpServer {
    address: SocketAddr,
    /// Cancelled first: no new connections.
    stop: CancellationToken,
    /// Cancelled next: ends the open connections.
    close: CancellationToken,
    task: Option<JoinHandle<()>>,
    /// Ends the runs of its requests, and lets the requests answer.
    stop_runs: Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>,
    /// Ends the runs at once, without answers.
    abort_runs: Box<dyn Fn() + Send + Sync>,
}

impl HttpServer {
    /// The address it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shuts down: takes no new connections, ends runs and streams, and drops what is left after a
    /// few seconds.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        (self.stop_runs)().await;
        self.close.cancel();
        if let Some(mut task) = self.task.take()
            && tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.close.cancel();
        (self.abort_runs)();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Starts to serve a gateway at the configured address.
///
/// # Errors
/// If the address is public and there is no token, or if the server cannot listen on it.
pub async fn serve_http<B: Backend>(
    gateway: Gateway<B>,
    config: HttpConfig,
) -> Result<HttpServer, ServeError> {
    serve(gateway.clone(), &gateway, config).await
}

/// Starts to serve any MCP server, which is cloned for each client, beside the API of a gateway.
pub(crate) async fn serve<H, B>(
    server: H,
    gateway: &Gateway<B>,
    config: HttpConfig,
) -> Result<HttpServer, ServeError>
where
    H: ServerHandler + Clone,
    B: Backend,
{
    let address = config.address;
    if matches!(config.auth, Auth::Open) && !address.ip().is_loopback() {
        return Err(ServeError::PublicWithoutToken { address });
    }
    let bind = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let stop = CancellationToken::new();
    let mut config = config;
    // Clients on other machines use this address as the Host.
    if !address.ip().is_loopback() && !address.ip().is_unspecified() {
        config.allowed.hosts.push(address.to_string());
    }
    let limits = config.limits;
    let connections = ConnectionLimits { most: limits.connections, head_timeout: limits.head };
    let close = CancellationToken::new();
    let router = router(server, gateway, config, &close);
    let task = tokio::spawn(accept(listener, router, connections, stop.clone()));
    let (left, aborted) = (gateway.clone(), gateway.clone());
    let stop_runs = Box::new(move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let gateway = left.clone();
        Box::pin(async move { gateway.stop_runs().await })
    });
    let abort_runs = Box::new(move || aborted.abort_runs());
    Ok(HttpServer { address, stop, close, task: Some(task), stop_runs, abort_runs })
}

fn router<H, B>(
    server: H,
    gateway: &Gateway<B>,
    config: HttpConfig,
    stop: &CancellationToken,
) -> Router
where
    H: ServerHandler + Clone,
    B: Backend,
{
    let HttpConfig { auth, allowed, max_body_bytes, limits, .. } = config;
    let body = BodyBounds {
        most_bytes: max_body_bytes as u64,
        grace: limits.body_grace,
        bytes_per_second: limits.body_bytes_per_second,
    };
    let file = BodyBounds { most_bytes: limits.max_file_bytes, ..body };
    let within =
        |bounds| middleware::from_fn(move |request, next| limit_body(bounds, request, next));
    let api = Api::new(gateway.clone(), &limits, stop.clone());
    let watched: (Arc<ServerMetrics>, _) =
        (gateway.shared.metrics.clone(), gateway.shared.traces.clone());
    let guard = Arc::new(Guard { auth, allowed });
    let rate = Arc::new(RequestRate::new(limits.requests_per_second));
    mcp(server, max_body_bytes, limits.mcp_sessions, stop)
        .merge(api::routes(api.clone()))
        .layer(within(body))
        .merge(api::file_routes(api.clone()).layer(within(file)))
        .layer(middleware::from_fn_with_state(rate, limit_rate))
        // Before the rate limit: requests without a token must not use up the rate of others.
        .layer(middleware::from_fn_with_state(guard.clone(), check_token))
        .route("/healthz", get(api::healthz).with_state(api))
        .layer(middleware::from_fn_with_state(guard, check_source))
        .layer(middleware::from_fn_with_state(watched, with_request_id))
}

fn mcp<H>(server: H, max_body_bytes: usize, most: usize, stop: &CancellationToken) -> Router
where
    H: ServerHandler + Clone,
{
    let mut sessions = SessionConfig::default();
    sessions.keep_alive = Some(SESSION_IDLE);
    let mut manager = LocalSessionManager::default();
    manager.session_config = sessions;
    let manager = Arc::new(manager);
    // The guard checks hosts and origins, for all paths.
    let transport = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(max_body_bytes)
        .with_cancellation_token(stop.clone());
    let sessions = Arc::new(McpSessions::new(manager.clone(), most));
    let mcp = StreamableHttpService::new(move || Ok(server.clone()), manager, transport);
    Router::new()
        .nest_service("/mcp", mcp)
        .layer(middleware::from_fn(restore_body))
        .layer(middleware::from_fn(refuse_ambiguous))
        .layer(middleware::from_fn(confirm_deleted))
        .layer(middleware::from_fn_with_state(sessions, track_session))
}

async fn check_source(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_source(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(denied) => denied.into_response(),
    }
}

async fn check_token(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_token(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(denied) => denied.into_response(),
    }
}

async fn limit_rate(
    State(rate): State<Arc<RequestRate>>,
    request: Request,
    next: Next,
) -> Response {
    match rate.check(std::time::Instant::now()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Answers 204 when a client has ended its MCP session: on 202, clients warn that it may still be
/// open.
async fn confirm_deleted(request: Request, next: Next) -> Response {
    let ends = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
