//! One call of a durable run: written down before it leaves, and asked about if it left before.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use belljar_store::{ApprovalState, Lease, Store};
use belljar_wire::{ErrorCode, ToolCall, ToolFault};
use tokio::sync::mpsc;

use super::{
    Bridge, RunContext,
    approval::{Consent, Question},
    built_in,
    call::{Checked, Gate},
    doubts::Doubts,
    run::{Delivery, Sink, StopReason},
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
    /// so.
    async fn again(&self, call: &ToolCall, times_sent: u32) -> Option<Result<Vec<u8>, ToolFault>> {
        let (checked, consent) = match self.decided(call, times_sent).await {
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
        if consent == Consent::Given {
            self.doubts.are_over().await;
            let performed = self.bridge.perform_checked(&self.run, call, checked, &self.gate);
            return Some(performed.await);
        }
        let message = format!("{name} may have happened before the host ended");
        let fault = ToolFault::new(ErrorCode::ToolInDoubt, message).of_tool(&*name);
        Some(Err(fault.with_hint("a person decided not to make the call again")))
    }

    /// Whether the call may be made again; without anybody's word, why the run has to stop.
    async fn decided(
        &self,
        call: &ToolCall,
        times_sent: u32,
    ) -> Result<(Checked, Consent), ToolFault> {
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
            return Ok((checked, Consent::Given));
        }
        let name = checked.tool.qualified_name();
        let question = Question::MayRepeat { times_sent };
        let approval = self.bridge.put(&self.gate.store, run, call, &name, question).await?;
        let consent = match approval.state {
            ApprovalState::Approved => Consent::Given,
            ApprovalState::Denied => Consent::Denied,
            ApprovalState::Expired => Consent::Expired,
            ApprovalState::Pending => {
                let id = &approval.asked.id;
                let message = format!("nobody knows whether {name} happened before the host ended");
                let hint = format!(
                    "look, then `belljar approvals approve {id}` to make the call again or `deny` to \
                     have it fail in the code, and `belljar resume {}`",
                    run.run_id
                );
                let fault = ToolFault::new(ErrorCode::ToolInDoubt, message).of_tool(&*name);
                return Err(fault.with_hint(hint));
            }
        };
        Ok((checked, consent))
    }

    /// Nothing more is to be found out about this doubt now; after the last, the run stops if a
    /// person has to decide about one.
    fn close(&self, undecided: Option<ToolFault>) {
        if let Some(fault) = self.doubts.close(undecided) {
            (self.out)(Delivery::Stop(StopReason::InDoubt(fault)));
        }
    }
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

    async fn append(&self, last: Option<Entry>) -> Result<(), ToolFault> {
        let entries = self.take_called().map(Entry::Called).into_iter().chain(last);
        let rows: Vec<_> = entries.map(Entry::into_row).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let appended = self.store.append(&self.lease, rows, (self.now_ms)()).await;
        appended.map(|_| ()).map_err(|error| {
            // Code that went on from here could not be replayed.
            let fault = not_written(&error);
            self.has_failed.store(true, Ordering::SeqCst);
            (self.out)(Delivery::Stop(StopReason::Failed(fault.clone())));
            fault
        })
    }
}

impl Gate for JournalGate {
    async fn before_asking(&self) -> Result<(), ToolFault> {
        self.append(None).await?;
        crash_point("noted");
        Ok(())
    }

    async fn before_sending(&self) -> Result<(), ToolFault> {
        crash_point("admitted");
        self.append(Some(Entry::Sent { call: self.call })).await?;
        crash_point("sent");
        Ok(())
    }

    fn waits(&self, for_person: bool) {
        (self.waits)(for_person);
    }
}
