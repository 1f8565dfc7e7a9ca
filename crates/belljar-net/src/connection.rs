//! One connection of a guest to the proxy, and the connections to servers that it leads to.
//!
//! Everything a guest asks for is decided about and recorded here, before anything is resolved:
//! connections by [`ProxyConnection::admit`], requests by [`ProxyConnection::allow_request`].

use std::{
    io, mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use crate::{
    approval::{ConnectionAnswer, ConnectionQuestion, RequestSummary},
    connect::{ConnectFailure, check_rule},
    host::{RemoteHost, RemoteHostError},
    log::{ConnectionEvent, ConnectionOutcome, Destination},
    meter::MeteredStream,
    policy::{HostDecision, NetRefusal, RequestDecision},
    proxy::{NetLimits, ProxyContext},
    request::{RequestFault, RequestTarget, Scheme},
    rules::NetRule,
    state::{OpenedRecord, ProxyState, ServerEnd},
};

/// One connection of a guest.
#[derive(Debug)]
pub(crate) struct ProxyConnection {
    state: Arc<ProxyState>,
    opened: Mutex<Vec<OpenedRecord>>,
    /// Whether the run may have this connection at all.
    counted: Result<(), NetRefusal>,
    /// Whether it has led to a server. Another one is another connection of the run.
    has_led: AtomicBool,
    /// The fetch that it serves; 0 if it is a program's.
    fetch: AtomicU32,
}

/// The uses of a host that a guest has named.
#[derive(Debug)]
pub(crate) enum TunnelAdmission {
    /// Send anything: a rule allows the whole connection, and it is made.
    Whole(Box<OpenedConnection>),
    /// Send requests, each of which is decided about. Nothing is resolved yet.
    Requests(RemoteHost),
}

/// A connection or a request that a rule has allowed, and that is recorded.
#[derive(Debug)]
pub(crate) struct AllowedConnection {
    pub(crate) host: RemoteHost,
    pub(crate) port: u16,
    pub(crate) rule: NetRule,
    event: ConnectionEvent,
}

/// A connection to a server that a rule has allowed.
#[derive(Debug)]
pub(crate) struct OpenedConnection {
    pub(crate) stream: MeteredStream,
    pub(crate) host: RemoteHost,
    pub(crate) port: u16,
    pub(crate) rule: NetRule,
    pub(crate) end: ServerEnd,
    pub(crate) record: OpenedRecord,
}

/// Whether the proxy decides about each request to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IsSeen(pub(crate) bool);

/// Why there is no connection to a server. It is recorded already.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    Refused(Destination, NetRefusal),
    Failed(Destination, io::Error),
}

impl ProxyConnection {
    pub(crate) fn new(state: Arc<ProxyState>) -> Self {
        let counted = state.count_connection();
        let (opened, has_led, fetch) = Default::default();
        Self { state, opened, counted, has_led, fetch }
    }

    /// The next request is that of a fetch.
    pub(crate) fn serve_fetch(&self, number: u32) {
        self.fetch.store(number, Ordering::Relaxed);
    }

    fn event(&self, destination: Destination, request: Option<RequestSummary>) -> ConnectionEvent {
        let fetch = self.fetch.load(Ordering::Relaxed);
        self.state.event(destination, request, (fetch != 0).then_some(fetch))
    }

    pub(crate) fn limits(&self) -> &NetLimits {
        &self.state.context().limits
    }

    pub(crate) fn context(&self) -> &ProxyContext {
        self.state.context()
    }

    /// Decides about a connection to a host that the guest named, and makes it if a rule allows all of it.
    /// `check` sees the host before anything is resolved.
    pub(crate) async fn admit(
        &self,
        host: &str,
        port: u16,
        check: impl FnOnce(&RemoteHost) -> Result<(), NetRefusal>,
    ) -> Result<TunnelAdmission, OpenFailure> {
        match RemoteHost::parse(host) {
            Ok(host) => self.admit_host(host, port, check).await,
            Err(error) => Err(self.refuse_malformed(host.as_bytes(), port, error).await),
        }
    }

    /// The same for a host that is an address or a valid name.
    pub(crate) async fn admit_host(
        &self,
        host: RemoteHost,
        port: u16,
        check: impl FnOnce(&RemoteHost) -> Result<(), NetRefusal>,
    ) -> Result<TunnelAdmission, OpenFailure> {
        let mut event = self.event(Destination::new(&host, port), None);
        let policy = &self.state.context().policy;
        let decision = self.counted.clone().and_then(|()| policy.decide_host(&host, port));
        event.rule = decision.as_ref().ok().map(|decision| decision.rule().to_string());
        let decision = match decision.and_then(|decision| check(&host).map(|()| decision)) {
            Err(refusal) => return Err(self.refuse_event(event, refusal).await),
            Ok(HostDecision::EachRequest(_)) => return Ok(TunnelAdmission::Requests(host)),
            Ok(HostDecision::Allow(rule)) => RequestDecision::Allow(rule),
            Ok(HostDecision::Ask(rule)) => RequestDecision::Ask(rule),
        };
        let rule = match self.settle(decision, &mut event).await {
            Ok(rule) => rule,
            Err(refusal) => return Err(self.refuse_event(event, refusal).await),
        };
        let allowed = self.record_allowed(AllowedConnection { host, port, rule, event }).await?;
        let opened = self.connect(&allowed).await?;
        Ok(TunnelAdmission::Whole(Box::new(opened)))
    }

    /// Decides about one request. `check` sees whether each request to the host is decided about.
    pub(crate) async fn allow_request(
        &self,
        target: &RequestTarget,
        request: RequestSummary,
        check: impl FnOnce(IsSeen) -> Result<(), NetRefusal>,
    ) -> Result<AllowedConnection, OpenFailure> {
        let (host, port) = (&target.host, target.port);
        let decision = self.decide_request(target, &request, check);
        let mut event = self.event(Destination::new(host, port), Some(request));
        let settled = match decision {
            Ok(decision) => self.settle(decision, &mut event).await,
            Err(refusal) => Err(refusal),
        };
        match settled {
            Ok(rule) => {
                let host = host.clone();
                self.record_allowed(AllowedConnection { host, port, rule, event }).await
            }
            Err(refusal) => Err(self.refuse_event(event, refusal).await),
        }
    }

    fn decide_request(
        &self,
        target: &RequestTarget,
        request: &RequestSummary,
        check: impl FnOnce(IsSeen) -> Result<(), NetRefusal>,
    ) -> Result<RequestDecision<'_>, NetRefusal> {
        self.counted.clone()?;
        let RequestTarget { scheme, host, port } = target;
        let policy = &self.state.context().policy;
        let decision = policy.decide_host(host, *port)?;
        check(IsSeen(matches!(decision, HostDecision::EachRequest(_))))?;
        let decision = match decision {
            HostDecision::Allow(rule) => RequestDecision::Allow(rule),
            HostDecision::Ask(rule) => RequestDecision::Ask(rule),
            HostDecision::EachRequest(_) => {
                policy.decide_request(host, *port, &request.method, &request.path)?
            }
        };
        let rule = decision.rule();
        if *scheme == Scheme::Http && !rule.headers.is_empty() {
            return Err(NetRefusal::Fault(RequestFault::InClear));
        }
        Ok(decision)
    }

    /// The rule that allows it, after a person was asked if it says so.
    async fn settle(
        &self,
        decision: RequestDecision<'_>,
        event: &mut ConnectionEvent,
    ) -> Result<NetRule, NetRefusal> {
        let rule = decision.rule();
        event.rule = Some(rule.to_string());
        self.state.check_bytes()?;
        if matches!(decision, RequestDecision::Allow(_)) {
            return Ok(rule.clone());
        }
        let (destination, request) = (event.destination.clone(), event.request.clone());
        let question = ConnectionQuestion { destination, rule: rule.clone(), request };
        match self.state.context().approver.ask(&question).await {
            ConnectionAnswer::Approved => {
                event.is_approved = true;
                Ok(question.rule)
            }
            ConnectionAnswer::Denied => Err(NetRefusal::NotApproved),
            ConnectionAnswer::Unanswered => Err(NetRefusal::Unanswered),
        }
    }

    async fn record_allowed(
        &self,
        allowed: AllowedConnection,
    ) -> Result<AllowedConnection, OpenFailure> {
        if self.state.record(&allowed.event).await {
            return Ok(allowed);
        }
        Err(OpenFailure::Refused(allowed.event.destination, NetRefusal::NotRecorded))
    }

    /// Resolves the name, checks the addresses, and connects to one of them.
    pub(crate) async fn connect(
        &self,
        allowed: &AllowedConnection,
    ) -> Result<OpenedConnection, OpenFailure> {
        let AllowedConnection { host, port, rule, event } = allowed;
        if self.has_led.swap(true, Ordering::Relaxed)
            && let Err(refusal) = self.state.count_connection()
        {
            return Err(self.refuse_event(event.clone(), refusal).await);
        }
        match self.state.dial(rule, host, *port).await {
            Ok((stream, end)) => {
                let record = self.open_record(event, end.clone());
                let (host, rule) = (host.clone(), rule.clone());
                Ok(OpenedConnection { stream, host, port: *port, rule, end, record })
            }
            Err(ConnectFailure::Refused(refusal)) => {
                Err(self.refuse_event(event.clone(), refusal).await)
            }
            Err(ConnectFailure::Io(error)) => Err(self.fail(allowed, error).await),
        }
    }

    /// Records that another request is sent on a connection that is open already. The rule of an earlier
    /// request may have allowed an address that this one's does not.
    pub(crate) async fn reuse(
        &self,
        allowed: &AllowedConnection,
        end: ServerEnd,
    ) -> Result<(), OpenFailure> {
        match check_rule(&allowed.rule, end.address.ip()) {
            Ok(_) => {
                self.open_record(&allowed.event, end);
                Ok(())
            }
            Err(refusal) => Err(self.refuse_event(allowed.event.clone(), refusal).await),
        }
    }

    fn open_record(&self, event: &ConnectionEvent, end: ServerEnd) -> OpenedRecord {
        let record = OpenedRecord::new(event.clone(), end);
        let mut opened = self.opened();
        opened.retain(|other| other.event.connection != event.connection);
        opened.push(record.clone());
        record
    }

    /// Records that a server could not be reached.
    pub(crate) async fn fail(&self, allowed: &AllowedConnection, error: io::Error) -> OpenFailure {
        let mut event = allowed.event.clone();
        if let Err(refusal) = self.state.check_bytes() {
            // The record of its end says how many bytes it has moved, and another one why it has ended.
            self.close_all().await;
            return OpenFailure::Refused(event.destination, refusal);
        }
        self.opened().retain(|other| other.event.connection != event.connection);
        event.outcome = ConnectionOutcome::Failed { message: error.to_string() };
        self.state.record(&event).await;
        OpenFailure::Failed(event.destination, error)
    }

    /// Records that an allowed request is refused after all.
    pub(crate) async fn refuse_allowed(
        &self,
        allowed: AllowedConnection,
        refusal: NetRefusal,
    ) -> OpenFailure {
        self.refuse_event(allowed.event, refusal).await
    }

    /// Records that a guest misuses a tunnel in which it may send requests.
    pub(crate) async fn refuse_tunnel(
        &self,
        host: &RemoteHost,
        port: u16,
        refusal: NetRefusal,
    ) -> OpenFailure {
        self.refuse_event(self.event(Destination::new(host, port), None), refusal).await
    }

    /// Records that a guest and the proxy do not come to speak TLS in such a tunnel.
    pub(crate) async fn fail_tunnel(&self, host: &RemoteHost, port: u16, error: io::Error) {
        let mut event = self.event(Destination::new(host, port), None);
        let message = format!("no TLS with the program: {error}");
        event.outcome = ConnectionOutcome::Failed { message };
        self.state.record(&event).await;
    }

    /// Records that the guest named no host.
    pub(crate) async fn refuse_malformed(
        &self,
        text: &[u8],
        port: u16,
        error: RemoteHostError,
    ) -> OpenFailure {
        let event = self.event(Destination::malformed(text, port), None);
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
        for record in opened {
            self.state.record_closed(record).await;
        }
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
    /// The text for the guest; it names no address of the host's network.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Refused(destination, refusal) => {
                format!("blocked by belljar: {destination}: {refusal}\n")
            }
            Self::Failed(destination, error) => {
                format!("belljar could not reach {destination}: {error}\n")
            }
        }
    }
}
