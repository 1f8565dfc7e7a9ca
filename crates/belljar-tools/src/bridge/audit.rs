//! The audit row of a call (D6): written before it leaves if it may have an effect, else behind it.

use std::time::Instant;

use belljar_catalogue::visible::line;
use belljar_contract::{ErrorCode, hex};
use belljar_store::{AuditId, AuditRow, SENT};
use belljar_wire::{ToolCall, ToolFault};
use sha2::{Digest, Sha256};

use super::{
    AuditTiming, Bridge, RunContext, ToolReach,
    approval::{Consent, store_failed},
    call::written_name,
};
use crate::{PolicyDecision, PolicyVerdict, Tool, crash::crash_point};

/// The audit row of a call, until it is written.
#[derive(Debug)]
pub(super) struct Audit {
    /// `None` without a store.
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
        decision: &PolicyDecision,
    ) -> Self {
        let name = tool.qualified_name();
        let decided = verdict_name(decision.verdict);
        Self::new(bridge, run, call, (name, decision.reason.clone(), decided))
    }

    /// For a call that was refused before policy: the tool is unknown, or its arguments do not fit.
    pub(super) fn of_refused(
        bridge: &Bridge,
        run: &RunContext,
        call: &ToolCall,
        fault: &ToolFault,
    ) -> Self {
        let name = fault.tool_name.clone().unwrap_or_else(|| written_name(call));
        Self::new(bridge, run, call, (line(&name, 120), line(&fault.message, 400), "refused"))
    }

    /// For a call in doubt that a person says has happened.
    pub(super) fn of_happened(
        bridge: &Bridge,
        run: &RunContext,
        call: &ToolCall,
        tool: &Tool,
    ) -> Self {
        let reason = "a person said that it had happened, and entered its result".to_owned();
        Self::new(bridge, run, call, (tool.qualified_name(), reason, "happened"))
    }

    /// The row that has to be on disk before the call leaves; `None` if the tool only reads, or if
    /// the operator accepts that rows can be lost.
    pub(super) fn before_sending(&self, bridge: &Bridge, tool: &Tool) -> Option<AuditRow> {
        let is_first = bridge.config.audit == AuditTiming::BeforeEffects
            && bridge.reach(tool) == ToolReach::Unknown;
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
            argument_hash: hex::encode(&Sha256::digest(&call.arguments)),
            started_ms: (bridge.config.now_ms)(),
            duration_ms: 0.0,
            outcome: String::new(),
        });
        Self { row, decision, written: None, began: Instant::now() }
    }

    /// A rule that a person approved earlier covers the call.
    pub(super) fn allowed_by(&mut self, reason: String) {
        self.decision = "allowed";
        if let Some(row) = &mut self.row {
            row.reason = reason;
        }
    }

    /// Records what a person decided about the call; the error refuses it.
    pub(super) fn heed(&mut self, consent: Consent, name: &str) -> Result<(), ToolFault> {
        let (decision, refused) = match consent {
            Consent::Given => {
                crash_point("approved");
                self.decision = "approved";
                return Ok(());
            }
            Consent::Denied => {
                let message = format!("a person denied the call of {name}");
                ("denied", ToolFault::new(ErrorCode::ApprovalDenied, message))
            }
            Consent::Expired => {
                let message = format!("the call of {name} was not approved in time");
                ("expired", ToolFault::new(ErrorCode::ApprovalExpired, message))
            }
        };
        self.decision = decision;
        Err(refused.of_tool(name))
    }

    pub(super) async fn end<T>(self, bridge: &Bridge, outcome: &Result<T, ToolFault>) {
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
            // The call is over, so a missing row can only be logged.
            let _ = store_failed(&error);
        }
    }
}

fn verdict_name(verdict: PolicyVerdict) -> &'static str {
    match verdict {
        PolicyVerdict::Allow => "allowed",
        PolicyVerdict::Ask => "asked",
        PolicyVerdict::Deny => "denied by policy",
    }
}
