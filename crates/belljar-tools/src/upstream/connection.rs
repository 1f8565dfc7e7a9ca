//! One connection to a server: handshake, requests, end.

mod health;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
        Implementation, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestHandle,
        RunningService, ServiceError, serve_client_with_lifecycle,
    },
    transport::Transport,
};
use serde_json::{Map, Value};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{
    answer::{NoAnswer, ToolAnswer},
    deadline::Deadline,
    error::{StartError, UpstreamError, WaitStage, WasSent, shorten},
    http::{self, HttpTransport},
    intake::Intake,
    listing::Listing,
    liveness::Liveness,
    pipe::PipeTransport,
    process::{Process, ServerCommand},
    ticket::{RawResult, Ticket},
};
use crate::{ServerSpec, Tool, TransportSpec};

/// How long the library may take to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long sending a cancellation may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer answers are parsed on a blocking thread.
const BIG: usize = 1 << 20;

/// Called when a server announces that its tools have changed.
pub(super) type ToolsChanged = Arc<dyn Fn() + Send + Sync>;

/// How a connection is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// As the current revision does, falling back to `initialize`.
    Current,
    /// By `initialize`, as revisions before the current one do.
    Initialize,
}

impl Handshake {
    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Current => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Initialize => ClientLifecycleMode::Initialize,
        }
    }
}

/// The name and version that a server reports.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerVersion {
    /// Its name, as it calls itself.
    pub name: String,
    /// Its version, as it says it.
    pub version: String,
    /// The revision of the protocol that was agreed on.
    pub protocol: String,
}

/// A connection to a server. Dropping it ends the server without waiting.
pub(super) struct UpstreamConnection {
    server: String,
    peer: Peer<RoleClient>,
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, McpClient>>>,
    process: Mutex<Option<Process>>,
    liveness: Arc<Liveness>,
    listener: Option<AbortHandle>,
    users: Mutex<Users>,
    /// Whether it ever answered.
    was_good: AtomicBool,
    /// Whether a health check is running.
    suspected: watch::Sender<bool>,
}

/// The users of a connection, by number.
#[derive(Debug)]
struct Users {
    next: u64,
    active: BTreeSet<u64>,
    last_used: Instant,
}

impl std::fmt::Debug for UpstreamConnection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Connection")
            .field("server", &self.server)
            .field("stopped", &self.liveness.stopped())
            .finish_non_exhaustive()
    }
}

/// The client side of the protocol, without capabilities. Notifications are handled by the transport.
struct McpClient;

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new("belljar", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

impl UpstreamConnection {
    /// Starts the server or connects to it, and does the handshake.
    pub(super) async fn open(
        spec: &ServerSpec,
        launcher: &std::path::Path,
        handshake: Handshake,
        tools_changed: ToolsChanged,
    ) -> Result<Self, StartError> {
        let liveness = Arc::new(Liveness::default());
        let intake = Intake::new(spec.name(), tools_changed);
        match spec.transport() {
            TransportSpec::Stdio { command, arguments, environment, inherited, directory } => {
                let mut all = inherited.clone();
                all.extend(environment.clone());
                let start = ServerCommand {
                    launcher,
                    server: spec.name(),
                    command,
                    arguments,
                    environment: all,
                    directory,
                };
                let (process, pipes) = Process::start(start, liveness.clone()).await?;
                let transport = PipeTransport::new(pipes, intake, liveness.clone());
                let opened = Self::begin(spec, transport, handshake, liveness);
                match opened.await {
                    Ok(connection) => {
                        *lock(&connection.process) = Some(process);
                        Ok(connection)
                    }
                    Err(error) => {
                        // Its last lines of output explain the failure.
                        let log = process.last_lines();
                        process.end().await;
                        Err(StartError { log, ..error })
                    }
                }
            }
            TransportSpec::Http { url, headers } => {
                let (most, beat) = (spec.max_concurrent, liveness.clone());
                let transport = HttpTransport::new(url, headers, most, intake, beat)?;
                Self::begin(spec, transport, handshake, liveness).await
            }
        }
    }

    async fn begin<T: Transport<RoleClient> + 'static>(
        spec: &ServerSpec,
        transport: T,
        handshake: Handshake,
        liveness: Arc<Liveness>,
    ) -> Result<Self, StartError> {
        let service =
            serve_client_with_lifecycle(McpClient, transport, handshake.lifecycle()).await;
        let service = service.map_err(|error| not_begun(&error, &liveness))?;
        let peer = service.peer().clone();
        let listener = listen(&peer);
        Ok(Self {
            server: spec.name().to_owned(),
            peer,
            service: tokio::sync::Mutex::new(Some(service)),
            process: Mutex::new(None),
            liveness,
            listener,
            users: Mutex::new(Users {
                next: 0,
                active: BTreeSet::new(),
                last_used: Instant::now(),
            }),
            was_good: AtomicBool::new(false),
            suspected: watch::Sender::new(false),
        })
    }

    /// Why it can no longer be used; `None` while it can.
    pub(super) fn stopped(&self) -> Option<String> {
        match self.liveness.stopped() {
            Some(why) => Some(why.to_owned()),
            None => self.peer.is_transport_closed().then(|| "the connection was closed".to_owned()),
        }
    }

    /// It is not to be used again. A reason that was known before stays.
    pub(super) fn give_up(&self, why: String) {
        self.liveness.stop(why);
    }

    /// Whether it ever answered, and was not disconnected for misbehaviour.
    pub(super) fn was_good(&self) -> bool {
        self.was_good.load(Ordering::Relaxed) && self.liveness.disconnected().is_none()
    }

    /// Begins to use it. The number is for [`let_go`](Self::let_go).
    pub(super) fn take(&self) -> u64 {
        let mut users = lock(&self.users);
        users.next += 1;
        let number = users.next;
        users.active.insert(number);
        number
    }

    pub(super) fn let_go(&self, number: u64) {
        let mut users = lock(&self.users);
        users.active.remove(&number);
        users.last_used = Instant::now();
    }

    /// Since when it is idle; `None` while it is in use.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let users = lock(&self.users);
        users.active.is_empty().then_some(users.last_used)
    }

    /// The name and version that the server claims.
    pub(super) fn version(&self) -> ServerVersion {
        let info = self.peer.peer_info();
        let own = info.as_ref().and_then(|info| info.server_info.as_ref());
        ServerVersion {
            name: shorten(own.map_or("", |own| &own.name)),
            version: shorten(own.map_or("", |own| &own.version)),
            protocol: info.map(|info| info.protocol_version.to_string()).unwrap_or_default(),
        }
    }

    /// Calls a tool. Dropping the future sends the server a cancellation.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        deadline: Deadline,
    ) -> Result<ToolAnswer, UpstreamError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let ticket = Arc::new(Ticket::default());
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(ticket.clone());
        let request = ClientRequest::CallToolRequest(request);
        let answer = match self.ask(request, ticket, deadline).await? {
            ServerReply::Raw(raw) => {
                let unread = || Err(NoAnswer::Malformed("it could not be read".to_owned()));
                let bytes = raw.json().len();
                on_blocking_thread_if_big(bytes, move || ToolAnswer::from_json(raw.json()))
                    .await
                    .unwrap_or_else(unread)
            }
            ServerReply::Read(result) => ToolAnswer::from_protocol(*result),
        };
        self.was_good.store(true, Ordering::Relaxed);
        answer.map_err(|error| match error {
            NoAnswer::WantsInput => UpstreamError::Refused {
                server: self.server.clone(),
                code: 0,
                message: "it asked for input from a person, which is not supported here".to_owned(),
            },
            NoAnswer::Malformed(why) => self.protocol(why),
        })
    }

    /// All tools of the server.
    pub(super) async fn tools(&self, deadline: Deadline) -> Result<Vec<Tool>, UpstreamError> {
        let mut listing = Listing::new(&self.server);
        loop {
            let page = self.page(listing.cursor(), deadline).await?;
            let added;
            (listing, added) = match page {
                ServerReply::Raw(raw) => {
                    let bytes = raw.json().len();
                    let add = move || {
                        let added = listing.add(raw.json());
                        (listing, added)
                    };
                    let read = on_blocking_thread_if_big(bytes, add).await;
                    read.ok_or_else(|| self.protocol("its list of tools could not be read"))?
                }
                ServerReply::Read(result) => {
                    let added = listing.add(&serde_json::to_vec(&result).unwrap_or_default());
                    (listing, added)
                }
            };
            if added.map_err(|why| self.protocol(why))?.is_last() {
                self.was_good.store(true, Ordering::Relaxed);
                return Ok(listing.into_tools());
            }
        }
    }

    async fn page(
        &self,
        cursor: Option<String>,
        deadline: Deadline,
    ) -> Result<ServerReply, UpstreamError> {
        let ticket = Arc::new(Ticket::default());
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let mut request = ListToolsRequest { params, ..ListToolsRequest::default() };
        request.extensions.insert(ticket.clone());
        self.ask(ClientRequest::ListToolsRequest(request), ticket, deadline).await
    }

    async fn ask(
        &self,
        request: ClientRequest,
        ticket: Arc<Ticket>,
        deadline: Deadline,
    ) -> Result<ServerReply, UpstreamError> {
        let sending = self.peer.send_request_with_option(request, PeerRequestOptions::default());
        let handle = match timeout_at(deadline.at, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Err(self.failed(error, &ticket)),
            Err(_) => return Err(self.timed_out(deadline, &ticket)),
        };
        let mut asked = PendingRequest { handle: Some(handle), ticket: ticket.clone() };
        let answer = timeout_at(deadline.at, asked.answer()).await;
        let Ok(answer) = answer else { return Err(self.timed_out(deadline, &ticket)) };
        asked.handle = None;
        match answer {
            Some(Ok(ServerResult::EmptyResult(_))) => match ticket.take_answer() {
                Some(raw) => Ok(ServerReply::Raw(raw)),
                None => Err(self.protocol("an empty answer")),
            },
            Some(Ok(result)) => Ok(ServerReply::Read(Box::new(result))),
            Some(Err(error)) => Err(self.failed(error, &ticket)),
            None => Err(self.failed(ServiceError::TransportClosed, &ticket)),
        }
    }

    fn timed_out(&self, deadline: Deadline, ticket: &Ticket) -> UpstreamError {
        deadline.missed(&self.server, WaitStage::Answer, ticket.give_up())
    }

    fn failed(&self, error: ServiceError, ticket: &Ticket) -> UpstreamError {
        let sent: WasSent = ticket.give_up();
        let server = self.server.clone();
        #[expect(clippy::wildcard_enum_match_arm, reason = "all the rest lost the connection")]
        match error {
            ServiceError::McpError(error) => UpstreamError::Refused {
                server,
                code: error.code.0.into(),
                message: shorten(&error.message),
            },
            ServiceError::UnexpectedResponse => self.protocol("an answer of the wrong kind"),
            ServiceError::TransportSend(error) => {
                let why = http::explain(error.error.as_ref()).map(|error| error.why);
                let why = why.unwrap_or_else(|| self.why(&error.error.to_string()));
                UpstreamError::Lost { server, why, sent }
            }
            other => UpstreamError::Lost { server, why: self.why(&other.to_string()), sent },
        }
    }

    fn why(&self, otherwise: &str) -> String {
        self.liveness.stopped().map_or_else(|| shorten(otherwise), str::to_owned)
    }

    fn protocol(&self, why: impl Into<String>) -> UpstreamError {
        UpstreamError::Protocol { server: self.server.clone(), why: shorten(&why.into()) }
    }

    /// Closes the connection and waits until the server has ended, for a few seconds at most.
    pub(super) async fn close(&self) {
        self.liveness.stop("the connection was closed");
        self.listener.as_ref().inspect(|listener| listener.abort());
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
        }
        let process = lock(&self.process).take();
        if let Some(process) = process {
            process.end().await;
        }
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        self.listener.as_ref().inspect(|listener| listener.abort());
    }
}

/// Runs `work` on so many bytes of a server's; on a blocking thread if they are many. `None` if it
/// panicked.
async fn on_blocking_thread_if_big<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if bytes <= BIG {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}

enum ServerReply {
    Raw(RawResult),
    Read(Box<ServerResult>),
}

/// A request that was sent. Dropping it sends the server a cancellation.
struct PendingRequest {
    handle: Option<RequestHandle<RoleClient>>,
    ticket: Arc<Ticket>,
}

impl PendingRequest {
    /// Waits for the answer; `None` when the connection has ended.
    async fn answer(&mut self) -> Option<Result<ServerResult, ServiceError>> {
        (&mut self.handle.as_mut()?.rx).await.ok()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.ticket.give_up();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cancel = handle.cancel(Some("the caller stopped waiting".to_owned()));
            runtime.spawn(timeout(CANCEL_TIMEOUT, cancel));
        }
    }
}

/// Servers of the current revision announce changed tools only to subscribers.
fn listen(peer: &Peer<RoleClient>) -> Option<AbortHandle> {
    let info = peer.peer_info()?;
    let changes = info.capabilities.tools.as_ref()?.list_changed.unwrap_or_default();
    if !changes || info.protocol_version.has_initialize() {
        return None;
    }
    let peer = peer.clone();
    let listener = tokio::spawn(async move {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            // The transport handles the notifications themselves.
            Ok(mut subscription) => while let Ok(Some(_)) = subscription.next().await {},
            Err(error) => tracing::debug!(%error, "cannot subscribe to changes of the tools"),
        }
    });
    Some(listener.abort_handle())
}

fn not_begun(error: &ClientInitializeError, liveness: &Liveness) -> StartError {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest explains itself")]
    let why = match error {
        // A server of either kind should have understood the second handshake.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return not_begun(fallback, liveness);
        }
        ClientInitializeError::TransportError { error, .. } => {
            if let Some(explained) = http::explain(error.error.as_ref()) {
                return explained;
            }
            shorten(&error.error.to_string())
        }
        ClientInitializeError::ConnectionClosed(_) => match liveness.disconnected() {
            // The other handshake would not change that.
            Some(why) => return StartError::new(why),
            None => {
                let error = StartError::new("it exited before it sent anything").with_hint(
                    "start its command in a terminal: an MCP server waits there for input",
                );
                return StartError { is_handshake: true, ..error };
            }
        },
        other => shorten(&other.to_string()),
    };
    StartError { is_handshake: true, ..StartError::new(why) }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
