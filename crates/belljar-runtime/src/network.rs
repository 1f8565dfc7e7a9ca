//! The network of one run: the requests of its code, the proxy on its cell's listener if it has one, and what
//! was blocked.

use std::{
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use belljar_contract::{Audience, EngineName, ErrorCode, Limits, RunError};
use belljar_jail::{NetworkAccess, PROXY_PORT};
use belljar_net::{
    BelljarPorts, ConnectionApprover, ConnectionEvent, ConnectionLog, ConnectionOutcome,
    FetchClient, HostPattern, LogFailure, NetLimits, NetPolicy, NetRefusal, NoApprover,
    PatternError, ProxyContext, RunAuthority, RunConnections, SystemResolver, TlsClient,
};
use belljar_wire::GuestNetwork;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::sleep,
};

use crate::{cell::CellSockets, certificates, socket_list::SocketList};

/// The variables by which programs find their proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Without it, Node ignores the others.
const NODE_VARIABLE: &str = "NODE_USE_ENV_PROXY";
/// The size of each queue at the host's end of a connection. It is kernel memory that no limit of the
/// cell counts.
const QUEUE_BYTES: usize = 64 * 1024;
/// How often the host measures the memory of connections.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// Further refusals of one run leave no line.
const MAX_BLOCKED_LINES: usize = 100;

/// The proxy of one run. Dropping it ends all connections.
#[derive(Debug)]
pub(crate) struct RunNetwork {
    excess: NetworkExcess,
    lines: Option<mpsc::UnboundedReceiver<String>>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<io::Result<()>>>,
    queues: Option<JoinHandle<()>>,
    fetches: Arc<FetchClient>,
}

/// Whether programs of a run that may reach hosts have sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SocketAccess {
    /// They do, if the engine has programs.
    #[default]
    Allowed,
    /// The run has to be one that can be replayed: it reaches hosts by `fetch` alone.
    Refused,
}

/// The network of a run, beside the hosts that its request names.
#[derive(Debug, Clone, Default)]
pub struct NetworkOptions {
    /// The host's rules about the hosts of the request. Without them, exactly those hosts may be reached.
    pub policy: Option<NetPolicy>,
    /// Receives a report of each connection.
    pub log: Option<Arc<dyn ConnectionLog>>,
    /// Asks a person about what the rules do not allow by themselves. Without one, it is refused.
    pub approver: Option<Arc<dyn ConnectionApprover>>,
    /// Whether there are sockets, beside `fetch`.
    pub sockets: SocketAccess,
    /// The reader of the run's log. Only a person at a command line is told the flag that allows a host.
    pub audience: Audience,
}

/// Says when the network of a run goes over one of its limits. Without a network it never does.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkExcess(Option<watch::Receiver<Option<RunError>>>);

/// Sends lines to a run's own log, ends it if it goes over a limit, and passes reports on.
#[derive(Debug)]
pub(crate) struct RunLog {
    excess: watch::Sender<Option<RunError>>,
    lines: mpsc::UnboundedSender<String>,
    sent: AtomicUsize,
    audience: Audience,
    next: Option<Arc<dyn ConnectionLog>>,
}

/// The hosts that a run may reach, and the way to them.
#[derive(Debug, Default)]
pub(crate) struct RunReach {
    /// The hosts and the rules.
    pub(crate) policy: NetPolicy,
    /// How the code reaches them.
    pub(crate) network: GuestNetwork,
    /// Issues the certificates of hosts whose requests have rules. Its own certificate has to be in the
    /// bundle of the cell.
    pub(crate) authority: Option<Arc<RunAuthority>>,
}

/// The reach of a request, with an authority if there are rules about requests.
pub(crate) fn reach(
    hosts: &[String],
    engine: EngineName,
    options: &NetworkOptions,
) -> Result<RunReach, RunError> {
    let policy = match &options.policy {
        Some(policy) => policy.clone(),
        None => NetPolicy::of_patterns(host_patterns(hosts)?),
    };
    let has_sockets = engine.row().opens_connections && options.sockets == SocketAccess::Allowed;
    let network = match (policy.is_empty(), has_sockets) {
        (true, _) => GuestNetwork::None,
        (false, false) => GuestNetwork::Fetch,
        (false, true) => GuestNetwork::Sockets,
    };
    let is_needed = network == GuestNetwork::Sockets && policy.sees_requests();
    let authority = is_needed.then(|| RunAuthority::new(SystemTime::now())).transpose();
    let authority = authority.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "an authority of a run");
        RunError::new(ErrorCode::SandboxFailed, error.to_string())
    })?;
    Ok(RunReach { policy, network, authority: authority.map(Arc::new) })
}

/// How to write hosts, for messages.
pub const PATTERNS: &str = "name hosts as example.org, *.example.org, 192.0.2.1 or [2001:db8::1], each with or without :PORT";

/// The patterns of hosts that were given as text.
///
/// # Errors
/// One of them is none.
pub fn host_patterns(texts: &[String]) -> Result<Vec<HostPattern>, RunError> {
    let read = |text: &String| {
        text.parse().map_err(|error: PatternError| {
            RunError::new(ErrorCode::RequestInvalid, format!("the host {error}"))
                .with_hint(PATTERNS)
        })
    };
    texts.iter().map(read).collect()
}

/// The network that a cell needs. For what its host does, it needs none.
pub(crate) fn access(network: GuestNetwork) -> NetworkAccess {
    match network {
        GuestNetwork::None | GuestNetwork::Fetch => NetworkAccess::None,
        GuestNetwork::Sockets => NetworkAccess::Proxy,
    }
}

/// The variables that lead programs to the proxy, and to the certificates they trust.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let proxies = PROXY_VARIABLES.into_iter().map(move |name| (name.to_owned(), proxy.clone()));
    proxies.chain([(NODE_VARIABLE.to_owned(), "1".to_owned())]).chain(certificates::variables())
}

/// The listener of a cell, with queues of a size that the host sets.
pub(crate) fn cell_listener(listener: OwnedFd) -> io::Result<TcpListener> {
    // Connections inherit the sizes.
    set_socket_recv_buffer_size(&listener, QUEUE_BYTES)?;
    set_socket_send_buffer_size(&listener, QUEUE_BYTES)?;
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// The context of the connections of a cell.
pub(crate) fn proxy_context(
    reach: &RunReach,
    limits: NetLimits,
    log: Arc<dyn ConnectionLog>,
    approver: Arc<dyn ConnectionApprover>,
) -> ProxyContext {
    ProxyContext {
        policy: reach.policy.clone(),
        limits,
        resolver: Arc::new(SystemResolver),
        log,
        approver,
        tls: TlsClient::of_machine(),
        authority: reach.authority.clone(),
        ports: Arc::new(BelljarPorts),
    }
}

/// The bounds of the connections of a run.
pub(crate) fn net_limits(limits: &Limits) -> NetLimits {
    NetLimits { total: limits.net_connections, bytes: limits.net_bytes, ..NetLimits::default() }
}

/// The error of a cell whose proxy does not start.
pub(crate) fn not_started(error: &io::Error) -> RunError {
    RunError::new(ErrorCode::SandboxFailed, format!("could not start the proxy: {error}"))
}

impl RunNetwork {
    /// Starts the proxy on a cell's listener, if the cell has one.
    pub(crate) fn start(
        sockets: Option<CellSockets>,
        reach: &RunReach,
        options: NetworkOptions,
        limits: Limits,
    ) -> io::Result<Self> {
        let (log, lines) = RunLog::new(options.log, options.audience);
        let log = Arc::new(log);
        let excess = log.excess();
        let approver = options.approver.unwrap_or_else(|| Arc::new(NoApprover));
        let context = proxy_context(reach, net_limits(&limits), log.clone(), approver);
        let connections = RunConnections::new(context);
        let fetches = Arc::new(FetchClient::new(&connections));
        let (stop, stopped) = oneshot::channel::<()>();
        let (mut serving, mut queues) = (None, None);
        if let Some(CellSockets { listener, list }) = sockets {
            let listener = cell_listener(listener)?;
            serving = Some(tokio::spawn(async move {
                let stopped = async {
                    let _ = stopped.await;
                };
                connections.serve(&listener, stopped).await
            }));
            queues = Some(tokio::spawn(async move {
                log.exceed(queues_over(&list, || Some(limits.memory)).await);
            }));
        }
        Ok(Self { excess, lines: Some(lines), stop: Some(stop), serving, queues, fetches })
    }

    /// Says when the run has to end because of its network.
    pub(crate) fn excess(&self) -> NetworkExcess {
        self.excess.clone()
    }

    /// Makes the requests of the code.
    pub(crate) fn fetches(&self) -> Arc<FetchClient> {
        self.fetches.clone()
    }

    /// The lines for the log of the run, while it goes on. There is one receiver of them.
    pub(crate) fn lines(&mut self) -> Option<mpsc::UnboundedReceiver<String>> {
        self.lines.take()
    }

    /// Ends all connections and waits until they are recorded.
    pub(crate) async fn stop(mut self) {
        self.stop.take();
        self.fetches.close().await;
        if let Some(serving) = &mut self.serving {
            let _ = serving.await;
        }
    }
}

impl NetworkExcess {
    /// The error of the run, if a limit was exceeded.
    pub(crate) fn error(&self) -> Option<RunError> {
        self.0.as_ref().and_then(|error| error.borrow().clone())
    }

    /// Waits until a limit is exceeded.
    pub(crate) async fn reached(mut self) -> RunError {
        if let Some(error) = &mut self.0
            && let Ok(error) = error.wait_for(Option::is_some).await
            && let Some(error) = error.clone()
        {
            return error;
        }
        std::future::pending().await
    }
}

/// The error of a run that a refusal ends; `None` if it may go on.
fn error_of(refusal: &NetRefusal) -> Option<RunError> {
    let over = |code, most: String| RunError::new(code, format!("the run went over its {most}"));
    if let NetRefusal::Connections { most } = refusal {
        let most = format!("{most} network connections");
        let error = over(ErrorCode::LimitNetConnections, most);
        return Some(error.with_hint("Make several requests on one connection.").with_advice());
    }
    if let NetRefusal::Bytes { most } = refusal {
        let most = format!("{most} network bytes in one direction");
        let error = over(ErrorCode::LimitNetBytes, most);
        return Some(error.with_hint("Send and request less data.").with_advice());
    }
    None
}

/// Waits until the kernel's memory of all connections of a cell is over what they may hold, which is asked
/// for each time; `None` is no limit. Returns the error of the runs that go on.
pub(crate) async fn queues_over(list: &SocketList, most: impl Fn() -> Option<u64>) -> RunError {
    loop {
        sleep(SAMPLE_EVERY).await;
        let Some(most) = most() else { continue };
        match list.memory_bytes() {
            Ok(bytes) if bytes <= most => {}
            Ok(_) => {
                let most = most >> 20;
                let message = format!("unread data of the run's connections went over {most} MiB");
                return RunError::new(ErrorCode::LimitMemory, message)
                    .with_hint("Read from open connections, or close them.")
                    .with_advice();
            }
            Err(error) => {
                let message = format!("could not measure the memory of connections: {error}");
                return RunError::new(ErrorCode::SandboxFailed, message);
            }
        }
    }
}

impl Drop for RunNetwork {
    fn drop(&mut self) {
        if let Some(queues) = &self.queues {
            queues.abort();
        }
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

impl RunLog {
    /// A log, and its lines for the run. Reports go on to the next one.
    pub(crate) fn new(
        next: Option<Arc<dyn ConnectionLog>>,
        audience: Audience,
    ) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (lines, received) = mpsc::unbounded_channel();
        let excess = watch::Sender::new(None);
        (Self { excess, lines, sent: AtomicUsize::new(0), audience, next }, received)
    }

    /// Says when the run has to end because of its network.
    pub(crate) fn excess(&self) -> NetworkExcess {
        NetworkExcess(Some(self.excess.subscribe()))
    }

    /// Ends the run; the first reason counts.
    pub(crate) fn exceed(&self, error: RunError) {
        self.excess.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(error);
            is_first
        });
    }

    /// Tells the run if a report is a refusal, and ends it if that is about a limit.
    pub(crate) fn tell(&self, event: &ConnectionEvent) {
        let ConnectionOutcome::Refused(refusal) = &event.outcome else { return };
        if let Some(error) = error_of(refusal) {
            self.exceed(error);
        }
        if self.sent.fetch_add(1, Ordering::Relaxed) < MAX_BLOCKED_LINES {
            let mut line = format!("[blocked] network: {}: {refusal}", event.subject());
            if self.audience == Audience::CommandLine && refusal.is_for_lack_of_rule() {
                line.push_str(&format!("; to allow it: --net {}", event.destination));
            }
            // The run may have ended.
            let _ = self.lines.send(line);
        }
    }

    /// Passes a report on.
    pub(crate) async fn pass_on(&self, event: &ConnectionEvent) -> Result<(), LogFailure> {
        match &self.next {
            Some(next) => next.record(event).await,
            None => Ok(()),
        }
    }
}

impl ConnectionLog for RunLog {
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>> {
        self.tell(event);
        Box::pin(self.pass_on(event))
    }
}

#[cfg(test)]
mod tests;
