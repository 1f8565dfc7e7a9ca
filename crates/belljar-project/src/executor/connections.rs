//! The audit rows of connections: one for each, with host, port, decision, rule and bytes.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use belljar_contract::{ErrorCode, RunId};
use belljar_net::NetRefusal;
use belljar_runtime::{ConnectionEvent, ConnectionLog, ConnectionOutcome, LogFailure};
use belljar_server::{BackgroundMeter, ConnectionMeasurement};
use belljar_store::{AuditId, AuditRow, Lease, SENT, Store, StoreError};
use belljar_tools::{connection_row, sent_row};

use super::now_ms;

/// Writes the connections of one run to the audit log of its project. If the run keeps a journal, the
/// journal says so before the first one that is not a fetch: the run cannot be replayed after that.
#[derive(Debug)]
pub(super) struct AuditedConnections {
    store: Store,
    run_id: RunId,
    caller: String,
    lease: Option<Lease>,
    /// Whether the journal has it.
    is_journalled: AtomicBool,
    meter: Arc<OnceLock<BackgroundMeter>>,
    /// Rows without an outcome, by the number of the connection.
    open: Mutex<HashMap<u64, (AuditId, Instant)>>,
}

impl AuditedConnections {
    pub(super) fn new(
        store: Store,
        run_id: RunId,
        caller: String,
        lease: Option<Lease>,
        meter: Arc<OnceLock<BackgroundMeter>>,
    ) -> Self {
        let is_journalled = AtomicBool::new(false);
        Self { store, run_id, caller, lease, is_journalled, meter, open: Mutex::default() }
    }

    async fn write(&self, event: &ConnectionEvent) -> Result<(), StoreError> {
        self.measure(event);
        let outcome = match &event.outcome {
            ConnectionOutcome::Allowed => {
                let id = self.begin(self.row(event, SENT.to_owned()), event.fetch).await?;
                self.open().insert(event.connection, (id, Instant::now()));
                return Ok(());
            }
            ConnectionOutcome::Refused(refusal) => code_of(refusal).as_str().to_owned(),
            ConnectionOutcome::Failed { message } => format!("unreachable: {message}"),
            ConnectionOutcome::Closed { sent, received, .. } => {
                format!("ok: {sent} bytes sent, {received} received")
            }
        };
        let opened = self.open().remove(&event.connection);
        match opened {
            Some((id, began)) => {
                let duration_ms = began.elapsed().as_secs_f64() * 1000.0;
                self.store.end_audit(id, duration_ms, outcome).await
            }
            None => self.store.audit(self.row(event, outcome)).await,
        }
    }

    /// Writes the row of a connection that is about to be made; it is on disk before the name is resolved.
    async fn begin(&self, row: AuditRow, fetch: Option<u32>) -> Result<AuditId, StoreError> {
        let Some(lease) = &self.lease else { return self.store.begin_audit(row).await };
        if let Some(fetch) = fetch {
            // It is replayed from the journal, which has to say that it may have happened.
            return self.store.append_sent(lease, vec![sent_row(fetch)], row, now_ms()).await;
        }
        let rows = match self.is_journalled.load(Ordering::SeqCst) {
            true => Vec::new(),
            false => vec![connection_row()],
        };
        let id = self.store.append_sent(lease, rows, row, now_ms()).await?;
        self.is_journalled.store(true, Ordering::SeqCst);
        Ok(id)
    }

    fn measure(&self, event: &ConnectionEvent) {
        let Some(meter) = self.meter.get() else { return };
        meter.connected(match &event.outcome {
            ConnectionOutcome::Allowed => ConnectionMeasurement::Allowed,
            ConnectionOutcome::Refused(_) => ConnectionMeasurement::Refused,
            ConnectionOutcome::Failed { .. } => ConnectionMeasurement::Failed,
            ConnectionOutcome::Closed { sent, received, .. } => {
                ConnectionMeasurement::Closed { sent: *sent, received: *received }
            }
        });
    }

    fn row(&self, event: &ConnectionEvent, outcome: String) -> AuditRow {
        let (decision, reason) = match (&event.outcome, &event.rule) {
            (ConnectionOutcome::Refused(refusal), _) => ("deny", refusal.to_string()),
            (_, Some(rule)) if event.is_approved => ("approved", format!("the rule {rule}")),
            (_, Some(rule)) => ("allow", format!("the rule {rule}")),
            (_, None) => ("allow", String::new()),
        };
        let reason = match &event.note {
            Some(note) => format!("{reason}; {note}"),
            None => reason,
        };
        AuditRow {
            run_id: self.run_id.clone(),
            call: u32::try_from(event.connection).unwrap_or(u32::MAX),
            tool: format!("net {}", event.subject()),
            decision: decision.to_owned(),
            reason,
            caller: self.caller.clone(),
            argument_hash: String::new(),
            started_ms: now_ms(),
            duration_ms: 0.0,
            outcome,
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (AuditId, Instant)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The code of a refusal in the audit log.
const fn code_of(refusal: &NetRefusal) -> ErrorCode {
    if matches!(refusal, NetRefusal::Connections { .. }) {
        ErrorCode::LimitNetConnections
    } else if matches!(refusal, NetRefusal::Bytes { .. }) {
        ErrorCode::LimitNetBytes
    } else {
        ErrorCode::PermissionNetwork
    }
}

impl ConnectionLog for AuditedConnections {
    fn record<'a>(
        &'a self,
        event: &'a ConnectionEvent,
    ) -> Pin<Box<dyn Future<Output = Result<(), LogFailure>> + Send + 'a>> {
        Box::pin(async { self.write(event).await.map_err(|error| LogFailure(error.to_string())) })
    }
}
