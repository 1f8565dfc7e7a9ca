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
    time::SystemTime,
};

use belljar_contract::{EngineName, ErrorCode, RunError};
use belljar_jail::{NetworkAccess, PROXY_PORT};
use belljar_net::{
    BelljarPorts, ConnectionApprover, ConnectionEvent, ConnectionLog, ConnectionOutcome,
    FetchClient, HostPattern, LogFailure, NetLimits, NetPolicy, NetRules, NoApprover, ProxyContext,
    RunAuthority, RunConnections, SystemResolver, TlsClient, serve,
};
use belljar_wire::GuestNetwork;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::certificates;

/// The variables by which programs find their proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Without it, Node ignores the others.
const NODE_VARIABLE: &str = "NODE_USE_ENV_PROXY";
/// The size of each queue at the host's end of a connection. It is kernel memory that no limit of the
/// cell counts.
const QUEUE_BYTES: usize = 64 * 1024;
/// Further refusals of one run leave no line.
const MAX_BLOCKED_LINES: usize = 100;

/// The proxy of one run. Dropping it ends all connections.
#[derive(Debug)]
pub(crate) struct RunNetwork {
    lines: Option<mpsc::UnboundedReceiver<String>>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<io::Result<()>>>,
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
    /// The rules of the host. Without them, exactly the hosts of the request may be reached.
    pub rules: Option<Arc<NetRules>>,
    /// Receives a report of each connection.
    pub log: Option<Arc<dyn ConnectionLog>>,
    /// Asks a person about what the rules do not allow by themselves. Without one, it is refused.
    pub approver: Option<Arc<dyn ConnectionApprover>>,
    /// Whether there are sockets, beside `fetch`.
    pub sockets: SocketAccess,
}

/// Sends lines to the run's own log, and passes reports on.
#[derive(Debug)]
struct RunLog {
    lines: mpsc::UnboundedSender<String>,
    sent: AtomicUsize,
    next: Option<Arc<dyn ConnectionLog>>,
}

/// What a run may reach.
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

/// What a request may reach, with an authority if there are rules about requests.
pub(crate) fn reach(
    hosts: &[String],
    engine: EngineName,
    options: &NetworkOptions,
) -> Result<RunReach, RunError> {
    let policy = policy(hosts, options)?;
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

/// The hosts of a request, as far as the rules of the host go.
fn policy(hosts: &[String], options: &NetworkOptions) -> Result<NetPolicy, RunError> {
    let patterns = hosts.iter().map(|text| {
        text.parse::<HostPattern>().map_err(|error| {
            RunError::new(ErrorCode::RequestInvalid, format!("--net {error}"))
                .with_hint("name hosts as example.org, *.example.org, 192.0.2.1 or [2001:db8::1], each with or without :PORT")
        })
    });
    let granted = patterns.collect::<Result<Vec<_>, _>>()?;
    Ok(match &options.rules {
        Some(rules) => NetPolicy::new(granted, rules.clone()),
        None => NetPolicy::of_patterns(granted),
    })
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

impl RunNetwork {
    /// Starts the proxy on a cell's listener, if the cell has one.
    pub(crate) fn start(
        listener: Option<OwnedFd>,
        RunReach { policy, authority, .. }: RunReach,
        options: NetworkOptions,
    ) -> io::Result<Self> {
        let listener = listener.map(listener_of).transpose()?;
        let (sender, lines) = mpsc::unbounded_channel();
        let log = Arc::new(RunLog { lines: sender, sent: AtomicUsize::new(0), next: options.log });
        let context = ProxyContext {
            policy,
            limits: NetLimits::default(),
            resolver: Arc::new(SystemResolver),
            log,
            approver: options.approver.unwrap_or_else(|| Arc::new(NoApprover)),
            tls: TlsClient::of_machine(),
            authority,
            ports: Arc::new(BelljarPorts),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let connections = RunConnections::new(context);
        let fetches = Arc::new(FetchClient::new(&connections));
        let serving = listener.map(|listener| {
            tokio::spawn(serve(listener, connections, async {
                let _ = stopped.await;
            }))
        });
        Ok(Self { lines: Some(lines), stop: Some(stop), serving, fetches })
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

/// The listener of a cell, with bounds on the memory of its connections.
fn listener_of(listener: OwnedFd) -> io::Result<TcpListener> {
    // Connections inherit the sizes.
    set_socket_recv_buffer_size(&listener, QUEUE_BYTES)?;
    set_socket_send_buffer_size(&listener, QUEUE_BYTES)?;
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

impl Drop for RunNetwork {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

impl ConnectionLog for RunLog {
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>> {
        if let ConnectionOutcome::Refused(refusal) = &event.outcome {
            let destination = &event.destination;
            let hint = match refusal.is_for_lack_of_rule() {
                true => format!("; to allow it: --net {destination}"),
                false => String::new(),
            };
            if self.sent.fetch_add(1, Ordering::Relaxed) < MAX_BLOCKED_LINES {
                let line = format!("[blocked] network: {}: {refusal}{hint}", event.subject());
                // The run may have ended.
                let _ = self.lines.send(line);
            }
        }
        match &self.next {
            Some(next) => next.record(event),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }
}

#[cfg(test)]
mod tests;
