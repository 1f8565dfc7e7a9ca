//! The network of one run: the proxy on its cell's listener, and what was blocked.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use belljar_contract::{ErrorCode, Limits, RunError};
use belljar_jail::{NetworkAccess, PROXY_PORT};
use belljar_net::{
    BelljarPorts, ConnectionApprover, ConnectionEvent, ConnectionLog, ConnectionOutcome,
    HostPattern, LogFailure, NetLimits, NetPolicy, NetRefusal, NetRules, NoApprover, ProxyContext,
    RunAuthority, SystemResolver, TlsClient, serve,
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
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
    serving: JoinHandle<io::Result<()>>,
    queues: JoinHandle<()>,
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
}

/// Says when the network of a run goes over one of its limits. Without a network it never does.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkExcess(Option<watch::Receiver<Option<RunError>>>);

type ExcessSender = watch::Sender<Option<RunError>>;

/// Sends lines to the run's own log, and passes reports on.
#[derive(Debug)]
struct RunLog {
    excess: Arc<ExcessSender>,
    lines: mpsc::UnboundedSender<String>,
    sent: AtomicUsize,
    next: Option<Arc<dyn ConnectionLog>>,
}

/// What a run may reach.
#[derive(Debug, Default)]
pub(crate) struct RunReach {
    /// The hosts and the rules.
    pub(crate) policy: NetPolicy,
    /// Issues the certificates of hosts whose requests have rules. Its own certificate has to be in the
    /// bundle of the cell.
    pub(crate) authority: Option<Arc<RunAuthority>>,
}

/// What a request may reach, with an authority if there are rules about requests.
pub(crate) fn reach(hosts: &[String], options: &NetworkOptions) -> Result<RunReach, RunError> {
    let policy = policy(hosts, options)?;
    let is_needed = !policy.is_empty() && policy.sees_requests();
    let authority = is_needed.then(|| RunAuthority::new(SystemTime::now())).transpose();
    let authority = authority.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "an authority of a run");
        RunError::new(ErrorCode::SandboxFailed, error.to_string())
    })?;
    Ok(RunReach { policy, authority: authority.map(Arc::new) })
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

/// The network that a cell needs for a policy.
pub(crate) fn access(policy: &NetPolicy) -> NetworkAccess {
    if policy.is_empty() { NetworkAccess::None } else { NetworkAccess::Proxy }
}

/// The variables that lead programs to the proxy, and to the certificates they trust.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let proxies = PROXY_VARIABLES.into_iter().map(move |name| (name.to_owned(), proxy.clone()));
    proxies.chain([(NODE_VARIABLE.to_owned(), "1".to_owned())]).chain(certificates::variables())
}

impl RunNetwork {
    /// Starts the proxy on a cell's listener.
    pub(crate) fn start(
        CellSockets { listener, list }: CellSockets,
        RunReach { policy, authority }: RunReach,
        options: NetworkOptions,
        limits: &Limits,
    ) -> io::Result<Self> {
        // Connections inherit the sizes.
        set_socket_recv_buffer_size(&listener, QUEUE_BYTES)?;
        set_socket_send_buffer_size(&listener, QUEUE_BYTES)?;
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (sender, lines) = mpsc::unbounded_channel();
        let (excess, is_over) = watch::channel(None);
        let (sent, next) = (AtomicUsize::new(0), options.log);
        let excess = Arc::new(excess);
        let queues = tokio::spawn(watch_queues(list, limits.memory, excess.clone()));
        let log = Arc::new(RunLog { excess, lines: sender, sent, next });
        let context = ProxyContext {
            policy,
            limits: NetLimits {
                total: limits.net_connections,
                bytes: limits.net_bytes,
                ..NetLimits::default()
            },
            resolver: Arc::new(SystemResolver),
            log,
            approver: options.approver.unwrap_or_else(|| Arc::new(NoApprover)),
            tls: TlsClient::of_machine(),
            authority,
            ports: Arc::new(BelljarPorts),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(listener, context, async {
            let _ = stopped.await;
        }));
        let excess = NetworkExcess(Some(is_over));
        Ok(Self { excess, lines: Some(lines), stop: Some(stop), serving, queues })
    }

    /// Says when the run has to end because of its network.
    pub(crate) fn excess(&self) -> NetworkExcess {
        self.excess.clone()
    }

    /// The lines for the log of the run, while it goes on. There is one receiver of them.
    pub(crate) fn lines(&mut self) -> Option<mpsc::UnboundedReceiver<String>> {
        self.lines.take()
    }

    /// Ends all connections and waits until they are recorded.
    pub(crate) async fn stop(mut self) {
        self.stop.take();
        let _ = (&mut self.serving).await;
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
        let hint = "use connections for more than one request, or ask for more with --max-net";
        let most = format!("{most} network connections");
        return Some(over(ErrorCode::LimitNetConnections, most).with_hint(hint));
    }
    if let NetRefusal::Bytes { most } = refusal {
        let most = format!("{most} network bytes in one direction");
        let hint = "ask for more with --max-net-bytes";
        return Some(over(ErrorCode::LimitNetBytes, most).with_hint(hint));
    }
    None
}

/// Ends a run; the first reason counts.
fn exceed(excess: &ExcessSender, error: RunError) {
    excess.send_if_modified(|known| {
        let is_first = known.is_none();
        known.get_or_insert(error);
        is_first
    });
}

/// Watches the kernel's memory of all connections, which may hold as much as the run itself.
async fn watch_queues(list: SocketList, most: u64, excess: Arc<ExcessSender>) {
    let mut sample = interval(SAMPLE_EVERY);
    sample.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        sample.tick().await;
        match list.memory_bytes() {
            Ok(bytes) if bytes <= most => {}
            Ok(_) => {
                let most = most >> 20;
                let message = format!(
                    "the connections of the run hold more than {most} MiB that nobody has read"
                );
                let error = RunError::new(ErrorCode::LimitMemory, message);
                return exceed(
                    &excess,
                    error.with_hint(
                        "read from connections, close them, or ask for more with --memory",
                    ),
                );
            }
            Err(error) => {
                let message = format!("could not measure the memory of connections: {error}");
                return exceed(&excess, RunError::new(ErrorCode::SandboxFailed, message));
            }
        }
    }
}

impl Drop for RunNetwork {
    fn drop(&mut self) {
        self.queues.abort();
        self.serving.abort();
    }
}

impl ConnectionLog for RunLog {
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>> {
        if let ConnectionOutcome::Refused(refusal) = &event.outcome {
            if let Some(error) = error_of(refusal) {
                exceed(&self.excess, error);
            }
            let destination = &event.destination;
            if self.sent.fetch_add(1, Ordering::Relaxed) < MAX_BLOCKED_LINES {
                let refusal = refusal.with_remedy(destination);
                let line = format!("[blocked] network: {}: {refusal}", event.subject());
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
