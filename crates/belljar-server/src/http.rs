//! The gateway over streamable HTTP: `/mcp`, and `/healthz` for whoever watches over it.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

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
    backend::Backend,
    gateway::Gateway,
    guard::{Allowed, Auth, Guard},
};

/// Larger requests are refused with 413.
const MAX_BODY_BYTES: usize = 64 << 20;
/// A session of an older client is dropped when nothing was said for so long. It has to be longer
/// than a run may take, and than a person takes to decide.
const SESSION_IDLE: Duration = Duration::from_hours(6);
/// How long connections may take to end once the server is told to.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// Where the server listens and to whom.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The address; port 0 takes any that is free.
    pub address: SocketAddr,
    /// What clients have to show.
    pub auth: Auth,
    /// Names and origins let in besides loopback.
    pub allowed: Allowed,
    /// The largest request.
    pub max_body_bytes: usize,
}

impl HttpConfig {
    /// The defaults at an address.
    pub fn new(address: SocketAddr, auth: Auth) -> Self {
        Self { address, auth, allowed: Allowed::default(), max_body_bytes: MAX_BODY_BYTES }
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anyone who reaches the address could run code.
    #[error("{address} can be reached from other machines, so clients must bring a token")]
    PublicWithoutToken {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A server that runs. Dropping it stops it.
pub struct HttpServer {
    address: SocketAddr,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    /// Ends what its requests have under way.
    end_runs: Box<dyn Fn() + Send + Sync>,
}

impl HttpServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it: no new connections, runs and streams are ended, and what is left after a few
    /// seconds is dropped.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        (self.end_runs)();
        if let Some(mut task) = self.task.take()
            && tokio::time::timeout(SHUTDOWN_PATIENCE, &mut task).await.is_err()
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
        (self.end_runs)();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Starts serving.
///
/// # Errors
/// If the address is public and there is no token, or if it cannot be had.
pub async fn serve_http<B: Backend>(
    gateway: Gateway<B>,
    config: HttpConfig,
) -> Result<HttpServer, ServeError> {
    let runs = gateway.clone();
    serve(gateway, config, Box::new(move || runs.abort_runs())).await
}

/// Starts serving any MCP server, which is cloned for each client.
pub(crate) async fn serve<H>(
    server: H,
    config: HttpConfig,
    end_runs: Box<dyn Fn() + Send + Sync>,
) -> Result<HttpServer, ServeError>
where
    H: ServerHandler + Clone,
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
    // Clients on other machines name the address they reach it by.
    if !address.ip().is_loopback() && !address.ip().is_unspecified() {
        config.allowed.hosts.push(address.to_string());
    }
    let router = router(server, config, stop.clone());
    let stopped = stop.clone().cancelled_owned();
    let task = tokio::spawn(async move {
        let served = axum::serve(listener, router).with_graceful_shutdown(stopped).await;
        if let Err(error) = served {
            tracing::error!(%error, "the HTTP server ended");
        }
    });
    Ok(HttpServer { address, stop, task: Some(task), end_runs })
}

fn router<H>(server: H, config: HttpConfig, stop: CancellationToken) -> Router
where
    H: ServerHandler + Clone,
{
    let mut sessions = SessionConfig::default();
    sessions.keep_alive = Some(SESSION_IDLE);
    let mut manager = LocalSessionManager::default();
    manager.session_config = sessions;
    // Hosts and origins are the guard's to check, for all paths alike.
    let transport = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(config.max_body_bytes)
        .with_cancellation_token(stop);
    let mcp = StreamableHttpService::new(move || Ok(server.clone()), Arc::new(manager), transport);
    let guard = Arc::new(Guard { auth: config.auth, allowed: config.allowed });
    Router::new()
        .nest_service("/mcp", mcp)
        .layer(middleware::from_fn(say_ended))
        .layer(middleware::from_fn_with_state(guard.clone(), want_token))
        .route("/healthz", get(healthz))
        .layer(middleware::from_fn_with_state(guard, want_source))
}

async fn want_source(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_source(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(turned) => turned.into_response(),
    }
}

async fn want_token(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_token(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(turned) => turned.into_response(),
    }
}

/// A session that its client ends is gone at once; clients warn of an answer that leaves it open.
async fn say_ended(request: Request, next: Next) -> Response {
    let ends = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

async fn healthz() -> impl IntoResponse {
    axum::Json(serde_json::json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}
