//! The state that all connections of one run share: its context, its bytes, the places of its hosts, its records.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use tokio::{sync::Semaphore, time::timeout};

use crate::{
    approval::RequestSummary,
    connect::{ConnectFailure, connect},
    host::RemoteHost,
    log::{ConnectionEvent, ConnectionOutcome, Destination},
    meter::{ByteCount, MeteredStream, RunTraffic},
    places::HostPlaces,
    policy::NetRefusal,
    proxy::{NetLimits, ProxyContext},
    rules::NetRule,
};

/// The connections of one run: those of its programs to the proxy, and those that the host makes for its
/// code. All share the rules, the bounds and the log.
#[derive(Debug, Clone)]
pub struct RunConnections(pub(crate) Arc<ProxyState>);

/// The state that all connections of a run share.
#[derive(Debug)]
pub(crate) struct ProxyState {
    context: ProxyContext,
    traffic: Arc<RunTraffic>,
    places: Arc<Semaphore>,
    host_places: HostPlaces,
    /// The connections so far.
    connections: AtomicU32,
    /// Whether it is recorded that the run has moved all the bytes it may.
    is_end_recorded: AtomicBool,
    next: AtomicU64,
}

/// Where a connection leads, and how many bytes it has moved.
#[derive(Debug, Clone)]
pub(crate) struct ServerEnd {
    pub(crate) address: SocketAddr,
    count: Arc<ByteCount>,
}

/// A connection to a server, as it is recorded when it, or the request on it, ends.
#[derive(Debug, Clone)]
pub(crate) struct OpenedRecord {
    pub(crate) event: ConnectionEvent,
    end: ServerEnd,
    /// The bytes that earlier requests on the same connection have sent and received.
    before: (u64, u64),
}

impl OpenedRecord {
    pub(crate) fn new(event: ConnectionEvent, end: ServerEnd) -> Self {
        let before = (end.count.sent(), end.count.received());
        Self { event, end, before }
    }
}

impl RunConnections {
    /// No connections yet.
    pub fn new(context: ProxyContext) -> Self {
        Self(Arc::new(ProxyState::new(context)))
    }
}

impl ProxyState {
    fn new(context: ProxyContext) -> Self {
        let NetLimits { bytes, connections, connections_per_host, .. } = context.limits;
        Self {
            context,
            traffic: Arc::new(RunTraffic::new(bytes)),
            places: Arc::new(Semaphore::new(connections)),
            host_places: HostPlaces::new(connections_per_host),
            connections: AtomicU32::new(0),
            is_end_recorded: AtomicBool::new(false),
            next: AtomicU64::new(1),
        }
    }

    /// Counts another connection of the run.
    pub(crate) fn count_connection(&self) -> Result<(), NetRefusal> {
        let most = self.context.limits.total;
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        if before < most { Ok(()) } else { Err(NetRefusal::Connections { most }) }
    }

    pub(crate) fn context(&self) -> &ProxyContext {
        &self.context
    }

    /// Whether the run may move more bytes.
    pub(crate) fn check_bytes(&self) -> Result<(), NetRefusal> {
        let most = self.traffic.most();
        if self.traffic.is_used_up() { Err(NetRefusal::Bytes { most }) } else { Ok(()) }
    }

    /// The places of all connections, of programs and of code.
    pub(crate) fn places(&self) -> &Arc<Semaphore> {
        &self.places
    }

    /// A report about a connection or request that has no number yet.
    pub(crate) fn event(
        &self,
        destination: Destination,
        request: Option<RequestSummary>,
        fetch: Option<u32>,
    ) -> ConnectionEvent {
        let connection = self.next.fetch_add(1, Ordering::Relaxed);
        let outcome = ConnectionOutcome::Allowed;
        ConnectionEvent {
            connection,
            fetch,
            destination,
            request,
            rule: None,
            is_approved: false,
            note: None,
            outcome,
        }
    }

    /// Writes a report down; returns whether that succeeded.
    pub(crate) async fn record(&self, event: &ConnectionEvent) -> bool {
        let recorded = self.context.log.record(event).await;
        recorded.inspect_err(|error| tracing::error!(%error, "a connection")).is_ok()
    }

    /// Records the end of a connection to a server, or of a request on it.
    pub(crate) async fn record_closed(&self, opened: OpenedRecord) {
        let OpenedRecord { mut event, end, before } = opened;
        let (sent, received) = (end.count.sent() - before.0, end.count.received() - before.1);
        let address = end.address;
        event.outcome = ConnectionOutcome::Closed { address, sent, received };
        self.record(&event).await;
        if let Err(refusal) = self.check_bytes()
            && !self.is_end_recorded.swap(true, Ordering::Relaxed)
        {
            let ConnectionEvent { fetch, destination, request, rule, .. } = event;
            let outcome = ConnectionOutcome::Refused(refusal);
            let cut = ConnectionEvent { outcome, rule, ..self.event(destination, request, fetch) };
            self.record(&cut).await;
        }
    }

    /// Waits for a place among the connections of a host that a rule has allowed, resolves its name, checks
    /// the addresses, and connects to one of them.
    pub(crate) async fn dial(
        &self,
        rule: &NetRule,
        host: &RemoteHost,
        port: u16,
    ) -> Result<(MeteredStream, ServerEnd), ConnectFailure> {
        let context = &self.context;
        let limit = context.limits.connect;
        let place = self.host_places.take(host, limit).await;
        let most = context.limits.connections_per_host;
        let place = place.ok_or(ConnectFailure::Refused(NetRefusal::HostConnections { most }))?;
        let connecting = connect(&*context.resolver, &*context.ports, rule, host, port);
        let timed_out = || Err(ConnectFailure::Io(io::ErrorKind::TimedOut.into()));
        let connected = timeout(limit, connecting).await.unwrap_or_else(|_| timed_out());
        let (stream, address) = connected?;
        let count = Arc::new(ByteCount::default());
        let end = ServerEnd { address, count: count.clone() };
        let run = self.traffic.clone();
        Ok((MeteredStream { stream, count, run, _place: place }, end))
    }
}
