//! One connection of a guest to the proxy, and the connections to servers that it leads to.
//!
//! Everything a guest asks for passes [`ProxyConnection::open`]: decide, record, resolve, check, connect.

use std::{
    io, mem,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    approval::{ConnectionAnswer, ConnectionQuestion},
    connect::{ConnectFailure, connect},
    host::{RemoteHost, RemoteHostError},
    log::{ConnectionEvent, ConnectionOutcome, Destination},
    meter::{ByteCount, MeteredStream, RunTraffic},
    policy::{HostDecision, NetRefusal},
    proxy::{NetLimits, ProxyContext},
    rules::NetRule,
};

/// The state that all connections of a run share.
#[derive(Debug)]
pub(crate) struct ProxyState {
    context: ProxyContext,
    traffic: Arc<RunTraffic>,
    next: AtomicU64,
}

/// One connection of a guest.
#[derive(Debug)]
pub(crate) struct ProxyConnection {
    state: Arc<ProxyState>,
    opened: Mutex<Vec<OpenedRecord>>,
}

/// A connection to a server, as it is recorded when it ends.
#[derive(Debug, Clone)]
pub(crate) struct OpenedRecord {
    event: ConnectionEvent,
    address: SocketAddr,
    count: Arc<ByteCount>,
}

/// A connection to a server that a rule has allowed.
#[derive(Debug)]
pub(crate) struct OpenedConnection {
    pub(crate) stream: MeteredStream,
    pub(crate) host: RemoteHost,
    pub(crate) port: u16,
    pub(crate) rule: NetRule,
    pub(crate) record: OpenedRecord,
}

/// Why there is no connection to a server. It is recorded already.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    Refused(Destination, NetRefusal),
    Failed(Destination, io::Error),
}

impl ProxyState {
    pub(crate) fn new(context: ProxyContext) -> Self {
        let NetLimits { max_sent, max_received, .. } = context.limits;
        let traffic = RunTraffic { count: ByteCount::default(), max_sent, max_received };
        Self { context, traffic: Arc::new(traffic), next: AtomicU64::new(1) }
    }

    /// Writes a report down; returns whether that succeeded.
    async fn record(&self, event: &ConnectionEvent) -> bool {
        let recorded = self.context.log.record(event).await;
        recorded.inspect_err(|error| tracing::error!(%error, "a connection")).is_ok()
    }
}

impl ProxyConnection {
    pub(crate) fn new(state: Arc<ProxyState>) -> Self {
        Self { state, opened: Mutex::default() }
    }

    pub(crate) fn limits(&self) -> &NetLimits {
        &self.state.context.limits
    }

    /// Connects to a host that the guest named, if a rule allows it. `check` sees the rule before
    /// anything is resolved.
    pub(crate) async fn open(
        &self,
        host: &str,
        port: u16,
        check: impl FnOnce(&RemoteHost) -> Result<(), NetRefusal>,
    ) -> Result<OpenedConnection, OpenFailure> {
        match RemoteHost::parse(host) {
            Ok(host) => self.open_host(host, port, check).await,
            Err(error) => Err(self.refuse_malformed(host.as_bytes(), port, error).await),
        }
    }

    /// The same for a host that is an address or a valid name.
    pub(crate) async fn open_host(
        &self,
        host: RemoteHost,
        port: u16,
        check: impl FnOnce(&RemoteHost) -> Result<(), NetRefusal>,
    ) -> Result<OpenedConnection, OpenFailure> {
        let destination = Destination::new(&host, port);
        let context = &self.state.context;
        let mut event = self.event(destination.clone(), ConnectionOutcome::Allowed);
        let rule = match self.decide(&host, port, &mut event, check).await {
            Ok(rule) => rule,
            Err(refusal) => return Err(self.refuse_event(event, refusal).await),
        };
        if !self.state.record(&event).await {
            return Err(OpenFailure::Refused(destination, NetRefusal::NotRecorded));
        }
        let limit = context.limits.connect;
        match connect(&*context.resolver, &rule, &host, port, limit).await {
            Ok((stream, address)) => {
                let count = Arc::new(ByteCount::default());
                let record = OpenedRecord { event, address, count: count.clone() };
                self.opened().push(record.clone());
                let stream = MeteredStream { stream, count, run: self.state.traffic.clone() };
                Ok(OpenedConnection { stream, host, port, rule, record })
            }
            Err(ConnectFailure::Refused(refusal)) => Err(self.refuse_event(event, refusal).await),
            Err(ConnectFailure::Io(error)) => {
                event.outcome = ConnectionOutcome::Failed { message: error.to_string() };
                self.state.record(&event).await;
                Err(OpenFailure::Failed(destination, error))
            }
        }
    }

    /// The rule that allows a connection, after a person was asked if it says so.
    async fn decide(
        &self,
        host: &RemoteHost,
        port: u16,
        event: &mut ConnectionEvent,
        check: impl FnOnce(&RemoteHost) -> Result<(), NetRefusal>,
    ) -> Result<NetRule, NetRefusal> {
        let context = &self.state.context;
        let decision = context.policy.decide_host(host, port)?;
        let (HostDecision::Allow(rule) | HostDecision::Ask(rule) | HostDecision::EachRequest(rule)) =
            decision;
        event.rule = Some(rule.to_string());
        check(host)?;
        if self.state.traffic.is_used_up() {
            return Err(NetRefusal::Bytes);
        }
        match decision {
            HostDecision::Allow(rule) => Ok(rule.clone()),
            HostDecision::Ask(rule) => {
                let destination = event.destination.clone();
                let question =
                    ConnectionQuestion { destination, rule: rule.clone(), request: None };
                match context.approver.ask(&question).await {
                    ConnectionAnswer::Approved => Ok(question.rule),
                    ConnectionAnswer::Denied => Err(NetRefusal::NotApproved),
                    ConnectionAnswer::Unanswered => Err(NetRefusal::Unanswered),
                }
            }
            // The proxy cannot see the requests yet.
            HostDecision::EachRequest(_) => Err(NetRefusal::Request),
        }
    }

    /// Records that the guest named no host.
    pub(crate) async fn refuse_malformed(
        &self,
        text: &[u8],
        port: u16,
        error: RemoteHostError,
    ) -> OpenFailure {
        let event = self.event(Destination::malformed(text, port), ConnectionOutcome::Allowed);
        self.refuse_event(event, NetRefusal::Malformed(error)).await
    }

    /// Records that an open connection is refused after all.
    pub(crate) async fn refuse(&self, record: &OpenedRecord, refusal: NetRefusal) {
        self.opened().retain(|other| other.event.connection != record.event.connection);
        self.refuse_event(record.event.clone(), refusal).await;
    }

    /// Records the end of all connections to servers.
    pub(crate) async fn close_all(&self) {
        let opened = mem::take(&mut *self.opened());
        for OpenedRecord { mut event, address, count } in opened {
            let (sent, received) = (count.sent(), count.received());
            event.outcome = ConnectionOutcome::Closed { address, sent, received };
            self.state.record(&event).await;
        }
    }

    fn event(&self, destination: Destination, outcome: ConnectionOutcome) -> ConnectionEvent {
        let connection = self.state.next.fetch_add(1, Ordering::Relaxed);
        ConnectionEvent { connection, destination, rule: None, outcome }
    }

    async fn refuse_event(&self, mut event: ConnectionEvent, refusal: NetRefusal) -> OpenFailure {
        event.outcome = ConnectionOutcome::Refused(refusal.clone());
        self.state.record(&event).await;
        OpenFailure::Refused(event.destination, refusal)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, Vec<OpenedRecord>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenFailure {
    /// What the guest is told; it names no address of the host's network.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Refused(destination, refusal) => {
                let hint = match refusal.is_for_lack_of_rule() {
                    true => format!("; to allow it: --net {destination}"),
                    false => String::new(),
                };
                format!("blocked by belljar: {destination}: {refusal}{hint}\n")
            }
            Self::Failed(destination, error) => {
                format!("belljar could not reach {destination}: {error}\n")
            }
        }
    }
}
