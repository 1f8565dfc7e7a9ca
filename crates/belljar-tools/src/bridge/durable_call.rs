//! One call of a durable run: recorded before it leaves, and resolved if it is in doubt.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use belljar_contract::{ApprovalId, ApprovalQuestion, ErrorCode, RunId};
use belljar_store::{
    Approval, ApprovalState, AuditId, AuditRow, ConsentTerms, JournalRow, Lease, Store, StoreError,
};
use belljar_wire::{GuestInput, StopReason, ToolCall, ToolFault};
use tokio::sync::mpsc;

use super::{
    Bridge, RunContext,
    audit::Audit,
    built_in,
    call::{CheckedCall, Gate},
    doubts::Doubts,
    run::Sink,
    sequence::{InputArrival, not_written},
};
use crate::{
    ToolValue,
    arguments::ReadArguments,
    crash::crash_point,
    record::{CallEntry, JournalEntry},
    replay::ReplayStep,
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
    /// Makes the call and sends on its outcome, unless the run is being ended.
    pub(super) async fn make(
        self,
        call: ToolCall,
        arguments: ReadArguments,
        step: ReplayStep,
        arrivals: mpsc::UnboundedSender<InputArrival>,
    ) {
        crash_point("asked");
        let outcome = match step {
            _ if call.server.as_deref() == Some(built_in::SERVER) => {
                self.bridge.built_in(&self.run, &call, arguments).await
            }
            ReplayStep::InDoubt { times_sent } => {
                match self.resolve_doubt(&call, arguments, times_sent).await {
                    Some(outcome) => outcome,
                    None => return,
                }
            }
            ReplayStep::Fresh | ReplayStep::NotSent | ReplayStep::Recorded => {
                self.doubts.are_over().await;
                self.bridge.perform(&self.run, &call, arguments, &self.gate).await
            }
        };
        if self.gate.has_failed() {
            return;
        }
        let called = self.gate.take_called();
        let outcome = outcome.map(ToolValue::into_json).map_err(|fault| fault.to_json());
        let _ = arrivals.send(InputArrival::Ended { call: call.call, called, outcome });
    }

    /// Resolves a call that was sent before the host died: repeats it if that is harmless or a person
    /// said so, or ends it with the result that a person entered.
    async fn resolve_doubt(
        &self,
        call: &ToolCall,
        arguments: ReadArguments,
        times_sent: u32,
    ) -> Option<Result<ToolValue, ToolFault>> {
        let (checked, doubt) = match self.decide_doubt(call, arguments, times_sent).await {
            Ok(decided) => {
                self.close(None);
                decided
            }
            Err(undecided) => {
                self.close(Some(undecided));
                return None;
            }
        };
        let name = checked.tool.qualified_name();
        let hint = match doubt {
            Doubt::Retry => {
                self.doubts.are_over().await;
                let performed = self.bridge.perform_checked(&self.run, call, checked, &self.gate);
                return Some(performed.await);
            }
            Doubt::Happened(result) if is_json(&result) => {
                let audit = Audit::of_happened(&self.bridge, &self.run, call, &checked.tool);
                let outcome = Ok(ToolValue::Json(result));
                audit.end(&self.bridge, &outcome).await;
                return Some(outcome);
            }
            Doubt::Happened(_) => "the result that a person entered is not valid JSON",
            Doubt::Fail => "a person decided not to repeat the call",
        };
        let message = format!("{name} may have happened before the host ended");
        let fault = ToolFault::new(ErrorCode::ToolInDoubt, message).of_tool(&*name);
        Some(Err(fault.with_hint(hint)))
    }

    /// Decides what to do about a call in doubt; the error says why the run has to stop.
    async fn decide_doubt(
        &self,
        call: &ToolCall,
        arguments: ReadArguments,
        times_sent: u32,
    ) -> Result<(CheckedCall, Doubt), ToolFault> {
        let run = &self.run;
        // The code must not see this as a failed call: it may have happened.
        let checked = self.bridge.check(run, call, arguments).await.map_err(|fault| {
            let message = format!(
                "it is unknown whether call {} happened before the host ended, and now {}",
                call.call, fault.message
            );
            let hint = format!("when that is fixed, run `belljar resume {}`", run.run_id);
            ToolFault { code: ErrorCode::ToolInDoubt, message, hint: Some(hint), ..fault }
        })?;
        if self.bridge.is_repeatable(&checked.tool) {
            return Ok((checked, Doubt::Retry));
        }
        let name = checked.tool.qualified_name();
        let question = ApprovalQuestion::MayRepeat { times_sent };
        // A yes to repeat one call is a yes to nothing else.
        let asked = (question, ConsentTerms::default());
        let approval =
            self.bridge.request_approval(&self.gate.store, run, call, &name, asked).await?;
        Ok((checked, Doubt::of(approval, &name, &run.run_id)?))
    }

    /// Closes this doubt; after the last one, the run stops if a person has to decide about one.
    fn close(&self, undecided: Option<ToolFault>) {
        if let Some(fault) = self.doubts.close(undecided) {
            (self.out)(GuestInput::Stop(StopReason::InDoubt(fault)));
        }
    }
}

/// Why a run has to stop: a person has to decide about a call, or a fetch, in doubt.
fn undecided(name: &str, id: &ApprovalId, run: &RunId) -> ToolFault {
    let message = format!("it is unknown whether {name} happened before the host ended");
    let hint = format!(
        "check whether it happened, then `belljar approvals retry {id}` to repeat the call, `use {id} \
         --result JSON` if it happened, or `deny {id}` to let it fail in the code; if no server resumes \
         the run, use `belljar resume {run}`"
    );
    ToolFault::new(ErrorCode::ToolInDoubt, message).of_tool(name).with_hint(hint)
}

/// The next step for a call, or a fetch, in doubt.
pub(super) enum Doubt {
    /// It is repeated.
    Retry,
    /// It happened, with this result as JSON.
    Happened(Vec<u8>),
    /// It fails in the code, as a person decided.
    Fail,
}

impl Doubt {
    /// The person's decision; the error says that there is none, so that the run has to stop.
    pub(super) fn of(approval: Approval, name: &str, run: &RunId) -> Result<Self, ToolFault> {
        match approval.state {
            ApprovalState::Approved => Ok(Self::Retry),
            ApprovalState::Happened => {
                Ok(Self::Happened(approval.result.unwrap_or_default().into_bytes()))
            }
            ApprovalState::Denied | ApprovalState::Expired => Ok(Self::Fail),
            ApprovalState::Pending => Err(undecided(name, &approval.asked.id, run)),
        }
    }
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Writes each step of a call to the journal before it happens.
pub(super) struct JournalGate {
    call: u32,
    pub(super) store: Store,
    lease: Lease,
    now_ms: fn() -> i64,
    /// The `called` entry, until it is written.
    called: Mutex<Option<CallEntry>>,
    has_failed: AtomicBool,
    out: Sink,
    waits: Box<dyn Fn(bool) + Send + Sync>,
}

impl JournalGate {
    pub(super) fn new(
        call: &ToolCall,
        step: ReplayStep,
        (store, lease): (Store, Lease),
        now_ms: fn() -> i64,
        out: Sink,
        waits: impl Fn(bool) + Send + Sync + 'static,
    ) -> Self {
        let number = call.call;
        let called = (step == ReplayStep::Fresh).then(|| {
            let ToolCall { call, server, tool, arguments, .. } = call.clone();
            CallEntry { call, server, tool, arguments }
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

    /// Whether writing the journal failed, so that the run is being ended.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// The `called` entry, if it is not written yet.
    pub(super) fn take_called(&self) -> Option<CallEntry> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The entries that are not written yet, as rows of the journal.
    fn rows(&self, last: Option<JournalEntry>) -> Vec<JournalRow> {
        let entries = self.take_called().map(JournalEntry::Called).into_iter().chain(last);
        entries.map(JournalEntry::into_row).collect()
    }

    /// Ends the run: if the code continued, it could not be replayed.
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
        let rows = self.rows(Some(JournalEntry::Sent { call: self.call }));
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
