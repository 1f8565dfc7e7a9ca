//! Asking a person, and what comes of it.

use std::time::Duration;

use belljar_store::{Approval, ApprovalState, NewApproval, Store, StoreError};
use belljar_wire::{ErrorCode, ToolCall, ToolFault};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Bridge, RunContext};
use crate::arguments::is_recorded_as;

/// Somebody has to decide about this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalNotice {
    /// Its id, by which it is decided.
    pub id: String,
    /// The run that waits.
    pub run_id: String,
    /// The tool, as `server__tool`.
    pub tool: String,
    /// The arguments, as JSON.
    pub arguments: String,
    /// Why it is asked.
    pub reason: String,
    /// The line of the code that makes the call.
    pub line: Option<u32>,
    /// What is on that line.
    pub code_line: Option<String>,
    /// When it counts as denied, in milliseconds since 1970.
    pub expires_ms: i64,
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    Denied,
    Expired,
}

/// What is asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// May it be made?
    MayCall,
    /// It may have happened; may it be made again? A call that was made again, and is in doubt
    /// again, is another question: who said yes to the first has not seen it.
    MayRepeat { times_sent: u32 },
}

impl Question {
    fn kind(self) -> String {
        match self {
            Self::MayCall => "ask".to_owned(),
            Self::MayRepeat { times_sent: 0 | 1 } => "in_doubt".to_owned(),
            Self::MayRepeat { times_sent } => format!("in_doubt_{times_sent}"),
        }
    }
}

/// A doubt waits for as long as it takes.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86400);

impl Bridge {
    /// Puts the question, or finds that it was put before.
    pub(super) async fn put(
        &self,
        store: &Store,
        run: &RunContext,
        call: &ToolCall,
        tool: &str,
        question: Question,
    ) -> Result<Approval, ToolFault> {
        let now_ms = (self.config.now_ms)();
        let time = match question {
            Question::MayCall => self.config.approval_timeout,
            Question::MayRepeat { .. } => FOR_EVER,
        };
        let arguments = String::from_utf8_lossy(&call.arguments).into_owned();
        let asked = NewApproval {
            id: approval_id(&run.run_id, call.call, question),
            run_id: run.run_id.clone(),
            call: call.call,
            kind: question.kind(),
            tool: tool.to_owned(),
            arguments,
            caller: run.caller.clone(),
            line: call.line,
            code_line: code_line(&run.code, call.line),
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
        };
        let approval =
            store.request_approval(asked.clone()).await.map_err(|error| store_failed(&error))?;
        let is_same = approval.asked.tool == asked.tool
            && is_recorded_as(approval.asked.arguments.as_bytes(), asked.arguments.as_bytes());
        if !is_same {
            // Consent is for one call with one set of arguments, never for another.
            let message = format!("{tool} was approved with other arguments");
            return Err(ToolFault::new(ErrorCode::ApprovalDenied, message).of_tool(tool));
        }
        Ok(approval)
    }

    /// Waits until a person decides, or time runs out.
    pub(super) async fn consent(
        &self,
        store: &Store,
        run: &RunContext,
        approval: Approval,
        reason: &str,
    ) -> Result<Consent, ToolFault> {
        let mut state = approval.state;
        if state == ApprovalState::Pending {
            let notice = notice(&approval.asked, reason);
            run.observer.approval_waits(&notice);
            let mut waits = Waits { store, id: Some(&notice.id), now_ms: self.config.now_ms };
            let decided = store.wait_decision(&notice.id, self.config.now_ms).await;
            waits.id = None;
            run.observer.approval_over(&notice.id);
            state = decided.map_err(|error| store_failed(&error))?.state;
        }
        Ok(match state {
            ApprovalState::Approved => Consent::Given,
            ApprovalState::Denied => Consent::Denied,
            // What was not made cannot have happened: that is no answer to this question.
            ApprovalState::Expired | ApprovalState::Pending | ApprovalState::Happened => {
                Consent::Expired
            }
        })
    }
}

/// A call that waits for a person. When its run ends first, and left no record by which it could go on,
/// nobody is asked any more.
struct Waits<'a> {
    store: &'a Store,
    id: Option<&'a str>,
    now_ms: fn() -> i64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id, tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (store, id, now_ms) = (self.store.clone(), id.to_owned(), self.now_ms);
        runtime.spawn(async move {
            if let Err(error) = store.close_orphaned_approval(&id, now_ms()).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, id, "an approval nobody waits for was not closed");
            }
        });
    }
}

fn notice(asked: &NewApproval, reason: &str) -> ApprovalNotice {
    ApprovalNotice {
        id: asked.id.clone(),
        run_id: asked.run_id.clone(),
        tool: asked.tool.clone(),
        arguments: asked.arguments.clone(),
        reason: reason.to_owned(),
        line: asked.line,
        code_line: asked.code_line.clone(),
        expires_ms: asked.expires_ms,
    }
}

/// The same for the same call, so that a replay finds what was asked before.
fn approval_id(run_id: &str, call: u32, question: Question) -> String {
    let text = format!("{run_id}/{call}/{}", question.kind());
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).fold("apr_".to_owned(), |id, byte| id + &format!("{byte:02x}"))
}

fn code_line(code: &str, line: Option<u32>) -> Option<String> {
    const MOST: usize = 200;
    let mut text = code.lines().nth(line?.checked_sub(1)? as usize)?.trim().to_owned();
    text.truncate(text.floor_char_boundary(MOST));
    Some(text)
}

pub(super) fn store_failed(error: &StoreError) -> ToolFault {
    tracing::error!(error = error as &dyn std::error::Error, "the store failed");
    ToolFault::new(ErrorCode::ToolUnavailable, "the call could not be recorded, so it was not made")
        .with_hint("see the host's log; the disk may be full")
}
