//! One call of a durable run: written down before it leaves, and asked about if it left before.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use belljar_store::{ApprovalState, AuditId, AuditRow, JournalRow, Lease, Store, StoreError};
use belljar_wire::{ErrorCode, GuestInput, StopReason, ToolCall, ToolFault};
use tokio::sync::mpsc;

use super::{
    Bridge, RunContext,
    approval::Question,
    audit::Audit,
    built_in,
    call::{Checked, Gate},
    doubts::Doubts,
    run::Sink,
    sequence::{Arrival, not_written},
};
use crate::{
    crash::crash_point,
    record::{Called, Entry},
    replay::Step,
};

/// One call of a durable run.
pub(super) struct DurableCall {
    pub(super) bridge: Bridge,
    pub(super) run: Arc<RunContext>,
    pub(super) out: Sink,
    pub(super) doubts: Doubts,
    pub(super) gate: JournalGate,
}

impl DurableCall {
    /// Makes it, and hands over what came of it unless the run is being ended.
    pub(super) async fn make(
        self,
        call: ToolCall,
        step: Step,
        arrivals: mpsc::UnboundedSender<Arrival>,
    ) {
        crash_point("asked");
        let outcome = match step {
            _ if call.server.as_deref() == Some(built_in::SERVER) => {
                self.bridge.built_in(&self.run, &call).await
            }
            Step::InDoubt { times_sent } => match self.again(&call, times_sent).await {
                Some(outcome) => outcome,
                None => return,
            },
            Step::Fresh | Step::NotSent | Step::Recorded => {
                self.doubts.are_over().await;
                self.bridge.perform(&self.run, &call, &self.gate).await
            }
        };
        if self.gate.has_failed() {
            return;
        }
        let called = self.gate.take_called();
        let outcome = outcome.map_err(|fault| fault.to_json());
        let _ = arrivals.send(Arrival::Ended { call: call.call, called, outcome });
    }

    /// A call that left before the host died: made again if that does no harm, or if a person says
    /// so; ended with what it gave, if a person knows that.
    async fn again(&self, call: &ToolCall, times_sent: u32) -> Option<Result<Vec<u8>, ToolFault>> {
        let (checked, settled) = match self.settled(call, times_sent).await {
            Ok(settled) => {
                self.close(None);
                settled
            }
            Err(undecided) => {
                self.close(Some(undecided));
                return None;
            }
        };
        let name = checked.tool.qualified_name();
        let hint = match settled {
            Doubt::Retry => {
                self.doubts.are_over().await;
                let performed = self.bridge.perform_checked(&self.run, call, checked, &self.gate);
                return Some(performed.await);
            }
            Doubt::Happened(result) if is_json(&result) => {
                let audit = Audit::of_happened(&self.bridge, &self.run, call, &checked.tool);
                let outcome = Ok(result);
                audit.end(&self.bridge, &outcome).await;
                return Some(outcome);
            }
            Doubt::Happened(_) => "what a person said the call gave is not JSON",
            Doubt::Fail => "a person decided not to make the call again",
        };
        let message = format!("{name} may have happened before the host ended");
        let fault = ToolFault::new(ErrorCode::ToolInDoubt, message).of_tool(&*name);
        Some(Err(fault.with_hint(hint)))
    }

    /// What becomes of the call; without anybody's word, why the run has to stop.
    async fn settled(
        &self,
        call: &ToolCall,
        times_sent: u32,
    ) -> Result<(Checked, Doubt), ToolFault> {
        let run = &self.run;
        // Not to be told to the code as a call that failed: it may well have happened.
        let checked = self.bridge.check(run, call).await.map_err(|fault| {
            let message = format!(
                "nobody knows whether call {} happened before the host ended, and now {}",
                call.call, fault.message
            );
            let hint = format!("when that is settled, `belljar resume {}`", run.run_id);
            ToolFault { code: ErrorCode::ToolInDoubt, message, hint: Some(hint), ..fault }
        })?;
        if self.bridge.is_repeatable(&checked.tool) {
            return Ok((checked, Doubt::Retry));
        }
        let name = checked.tool.qualified_name();
        let question = Question::MayRepeat { times_sent };
        let approval = self.bridge.put(&self.gate.store, run, call, &name, question).await?;
        let doubt = match approval.state {
            ApprovalState::Approved => Doubt::Retry,
            ApprovalState::Happened => {
                Doubt::Happened(approval.result.unwrap_or_default().into_bytes())
            }
            ApprovalState::Denied | ApprovalState::Expired => Doubt::Fail,
            ApprovalState::Pending => {
                let id = &approval.asked.id;
                let message = format!("nobody knows whether {name} happened before the host ended");
                let hint = format!(
                    "look, then `belljar approvals retry {id}` to make the call again, `use {id} \
                     --result JSON` if it happened, or `deny {id}` to have it fail in the code; a \
                     run that no server has goes on with `belljar resume {}`",
                    run.run_id
                );
                let fault = ToolFault::new(ErrorCode::ToolInDoubt, message).of_tool(&*name);
                return Err(fault.with_hint(hint));
            }
        };
        Ok((checked, doubt))
    }

    /// Nothing more is to be found out about this doubt now; after the last, the run stops if a
    /// person has to decide about one.
    fn close(&self, undecided: Option<ToolFault>) {
        if let Some(fault) = self.doubts.close(undecided) {
            (self.out)(GuestInput::Stop(StopReason::InDoubt(fault)));
        }
    }
}

/// What becomes of a call of which nobody knows whether it happened.
enum Doubt {
    /// It is made again.
    Retry,
    /// It happened, and gave this, as JSON.
    Happened(Vec<u8>),
    /// It fails.
    Fail,
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Writes down what a call is going to do before it does it.
pub(super) struct JournalGate {
    call: u32,
    store: Store,
    lease: Lease,
    now_ms: fn() -> i64,
    /// What was asked for, until that is written down.
    called: Mutex<Option<Called>>,
    has_failed: AtomicBool,
    out: Sink,
    waits: Box<dyn Fn(bool) + Send + Sync>,
}

impl JournalGate {
    pub(super) fn new(
        call: &ToolCall,
        step: Step,
        (store, lease): (Store, Lease),
        now_ms: fn() -> i64,
        out: Sink,
        waits: impl Fn(bool) + Send + Sync + 'static,
    ) -> Self {
        let number = call.call;
        let called = (step == Step::Fresh).then(|| {
            let ToolCall { call, server, tool, arguments, .. } = call.clone();
            Called { call, server, tool, arguments }
        });
        Self {
            call: number,
            store,
            lease,
            now_ms,
            called: Mutex::new(called),
            has_failed: AtomicBool::new(false),
            out,
            waits: Box::new(waits),
        }
    }

    /// Whether the journal could not be written, and the run is being ended for it.
    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// What was asked for, if that is not written down yet.
    fn take_called(&self) -> Option<Called> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What is not written down yet, as rows of the journal.
    fn rows(&self, last: Option<Entry>) -> Vec<JournalRow> {
        let entries = self.take_called().map(Entry::Called).into_iter().chain(last);
        entries.map(Entry::into_row).collect()
    }

    /// Ends the run: code that went on from here could not be replayed.
    fn fail(&self, error: &StoreError) -> ToolFault {
        let fault = not_written(error);
        self.has_failed.store(true, Ordering::SeqCst);
        (self.out)(GuestInput::Stop(StopReason::Failed(fault.clone())));
        fault
    }
}

impl Gate for JournalGate {
    async fn before_asking(&self) -> Result<(), ToolFault> {
        let rows = self.rows(None);
        if !rows.is_empty() {
            let appended = self.store.append(&self.lease, rows, (self.now_ms)()).await;
            appended.map_err(|error| self.fail(&error))?;
        }
        crash_point("noted");
        Ok(())
    }

    async fn before_sending(
        &self,
        audited: Option<AuditRow>,
    ) -> Result<Option<AuditId>, ToolFault> {
        crash_point("admitted");
        let rows = self.rows(Some(Entry::Sent { call: self.call }));
        let (store, lease, now_ms) = (&self.store, &self.lease, (self.now_ms)());
        let written = match audited {
            Some(row) => store.append_sent(lease, rows, row, now_ms).await.map(Some),
            None => store.append(lease, rows, now_ms).await.map(|_| None),
        };
        let written = written.map_err(|error| self.fail(&error))?;
        crash_point("sent");
        Ok(written)
    }

    fn waits(&self, for_person: bool) {
        (self.waits)(for_person);
    }
}
