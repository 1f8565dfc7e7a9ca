//! What is written down about a call (D6): before it leaves, if it may have an effect, or behind it.

use std::{fmt::Write as _, time::Instant};

use belljar_store::{AuditId, AuditRow, SENT};
use belljar_wire::{ToolCall, ToolFault};
use sha2::{Digest, Sha256};

use super::{AuditTiming, Bridge, Reach, RunContext, approval::store_failed, call::written_name};
use crate::{Decision, Tool, Verdict, visible::line};

/// What is going to be written down about a call.
#[derive(Debug)]
pub(super) struct Audit {
    /// `None` if there is nowhere to write it to.
    row: Option<AuditRow>,
    pub(super) decision: &'static str,
    /// The row, if it was on disk before the call left.
    pub(super) written: Option<AuditId>,
    began: Instant,
}

impl Audit {
    pub(super) fn begin(
        bridge: &Bridge,
        run: &RunContext,
        call: &ToolCall,
        tool: &Tool,
        decision: &Decision,
    ) -> Self {
        let name = tool.qualified_name();
        let decided = verdict_name(decision.verdict);
        Self::new(bridge, run, call, (name, decision.reason.clone(), decided))
    }

    /// Of a call that policy was not asked about: there is no such tool, or its arguments do not fit.
    pub(super) fn of_refused(
        bridge: &Bridge,
        run: &RunContext,
        call: &ToolCall,
        fault: &ToolFault,
    ) -> Self {
        let name = fault.tool_name.clone().unwrap_or_else(|| written_name(call));
        Self::new(bridge, run, call, (line(&name, 120), line(&fault.message, 400), "refused"))
    }

    /// Of a call in doubt that a person says has happened.
    pub(super) fn of_happened(
        bridge: &Bridge,
        run: &RunContext,
        call: &ToolCall,
        tool: &Tool,
    ) -> Self {
        let reason = "a person said that it had happened, and what it gave".to_owned();
        Self::new(bridge, run, call, (tool.qualified_name(), reason, "happened"))
    }

    /// The row as it has to be on disk before the call leaves, if it has to: the call may have an
    /// effect, and nobody said that such rows may be lost.
    pub(super) fn before_sending(&self, bridge: &Bridge, tool: &Tool) -> Option<AuditRow> {
        let is_first = bridge.config.audit == AuditTiming::BeforeEffects
            && bridge.reach(tool) == Reach::Unknown;
        let row = self.row.as_ref().filter(|_| is_first)?;
        let (decision, outcome) = (self.decision.to_owned(), SENT.to_owned());
        Some(AuditRow { decision, outcome, ..row.clone() })
    }

    fn new(
        bridge: &Bridge,
        run: &RunContext,
        call: &ToolCall,
        (tool, reason, decision): (String, String, &'static str),
    ) -> Self {
        let row = bridge.config.store.is_some().then(|| AuditRow {
            run_id: run.run_id.clone(),
            call: call.call,
            tool,
            decision: String::new(),
            reason,
            caller: run.caller.clone(),
            argument_hash: hash(&call.arguments),
            started_ms: (bridge.config.now_ms)(),
            duration_ms: 0.0,
            outcome: String::new(),
        });
        Self { row, decision, written: None, began: Instant::now() }
    }

    pub(super) async fn end(self, bridge: &Bridge, outcome: &Result<Vec<u8>, ToolFault>) {
        let (Some(store), Some(mut row)) = (&bridge.config.store, self.row) else { return };
        row.decision = self.decision.to_owned();
        row.duration_ms = self.began.elapsed().as_secs_f64() * 1e3;
        row.outcome = match outcome {
            Ok(_) => "ok".to_owned(),
            Err(fault) => fault.code.as_str().to_owned(),
        };
        let written = match self.written {
            Some(id) => store.end_audit(id, row.duration_ms, row.outcome).await,
            None => store.audit(row).await,
        };
        if let Err(error) = written {
            // The call is over; all that is left is to say that its row is missing.
            let _ = store_failed(&error);
        }
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allowed",
        Verdict::Ask => "asked",
        Verdict::Deny => "denied by policy",
    }
}

fn hash(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
