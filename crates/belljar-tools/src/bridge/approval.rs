//! Asking a person about a call, and waiting for the decision.

use std::time::Duration;

use belljar_contract::{ApprovalId, ApprovalQuestion, ConsentScope, ErrorCode, RunId, hex};
use belljar_store::{Approval, ApprovalState, ConsentTerms, NewApproval, Store, StoreError};
use belljar_wire::{ToolCall, ToolFault};
use sha2::{Digest, Sha256};

use super::{Bridge, CallObserver, RunContext};
use crate::arguments::is_recorded_as;

/// A call that waits for a person, as it is shown to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalNotice {
    /// The question, as the store has it.
    pub asked: NewApproval,
    /// The rule or default that made policy ask.
    pub reason: String,
    /// The scopes that a yes may have, the shortest first.
    pub scopes: Vec<ConsentScope>,
    /// The root of the project, for a command that works from any directory.
    pub project: Option<String>,
    /// The project's state directory, if it is not in its default place.
    pub state_dir: Option<String>,
}

impl Bridge {
    /// The scopes that a yes to a call may have, the shortest first.
    pub fn scopes(&self, asked: &NewApproval) -> Vec<ConsentScope> {
        let terms = &asked.terms;
        let is_possible = |scope: &ConsentScope| match scope {
            ConsentScope::Once | ConsentScope::Run => true,
            ConsentScope::Session => terms.session.is_some(),
            ConsentScope::Always => self.config.kept.is_some(),
        };
        let all = ConsentScope::ALL.into_iter().filter(|scope| *scope <= terms.widest);
        if asked.is_in_doubt() { Vec::new() } else { all.filter(is_possible).collect() }
    }

    /// The root of the project, as commands name it.
    pub fn project(&self) -> Option<String> {
        Some(self.config.kept.as_ref()?.project().to_str()?.to_owned())
    }

    /// The state directory of the project, if commands have to name it.
    pub fn state_dir(&self) -> Option<String> {
        Some(self.config.kept.as_ref()?.state()?.to_str()?.to_owned())
    }

    /// A call that waits, as it is shown to a person.
    pub fn notice(&self, asked: NewApproval, reason: &str) -> ApprovalNotice {
        let (scopes, project) = (self.scopes(&asked), self.project());
        let state_dir = self.state_dir();
        ApprovalNotice { asked, reason: reason.to_owned(), scopes, project, state_dir }
    }
}

/// Something else than a call of a tool that a person is asked about, as it is shown to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedAction {
    /// The subject of the question, in the place of a tool's name.
    pub name: String,
    /// The details, as JSON.
    pub details: String,
    /// Tells it from an equal action of the same run.
    pub time: u32,
    /// The rule that made policy ask.
    pub reason: String,
}

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    Denied,
    Expired,
}

/// A question about a call in doubt never expires in practice: ten years.
const DOUBT_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 86400);
/// Digits of the hash in the id of an approval.
const ID_DIGITS: usize = 16;

impl Bridge {
    /// Asks the question, or finds the earlier approval for it.
    pub(super) async fn request_approval(
        &self,
        store: &Store,
        run: &RunContext,
        call: &ToolCall,
        tool: &str,
        (question, terms): (ApprovalQuestion, ConsentTerms),
    ) -> Result<Approval, ToolFault> {
        let now_ms = (self.config.now_ms)();
        let time = match question {
            ApprovalQuestion::MayCall => self.config.approval_timeout,
            ApprovalQuestion::MayRepeat { .. } => DOUBT_TIMEOUT,
        };
        let arguments = String::from_utf8_lossy(&call.arguments).into_owned();
        let asked = NewApproval {
            id: approval_id(&run.run_id, call.call, question),
            run_id: run.run_id.clone(),
            call: call.call,
            question,
            tool: tool.to_owned(),
            arguments,
            caller: run.caller.clone(),
            line: call.line,
            code_line: code_line(&run.code, call.line),
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
            terms,
        };
        if let Some(kept) = &self.config.kept
            && let Err(error) = kept.remember_project()
        {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "this project's approvals are not found from elsewhere");
        }
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

    /// Whether a person was asked about this call before.
    pub(super) async fn is_asked_already(
        &self,
        run: &RunContext,
        call: &ToolCall,
    ) -> Result<bool, ToolFault> {
        let Some(store) = &self.config.store else { return Ok(false) };
        let id = approval_id(&run.run_id, call.call, ApprovalQuestion::MayCall);
        let found = store.approval(&id, (self.config.now_ms)()).await;
        found.map(|found| found.is_some()).map_err(|error| store_failed(&error))
    }

    /// Waits until a person decides, or time runs out.
    pub(super) async fn wait_for_consent(
        &self,
        store: &Store,
        run: &RunContext,
        approval: Approval,
        reason: &str,
    ) -> Result<Consent, ToolFault> {
        let mut state = approval.state;
        if state == ApprovalState::Pending {
            let notice = self.notice(approval.asked, reason);
            run.observer.approval_waits(&notice);
            let id = &notice.asked.id;
            let (observer, now_ms) = (&*run.observer, self.config.now_ms);
            let mut waits = PendingApproval { store, id: Some(id), observer, now_ms };
            let decided = store.wait_decision(id, self.config.now_ms).await;
            waits.id = None;
            run.observer.approval_over(id);
            state = decided.map_err(|error| store_failed(&error))?.state;
        }
        Ok(match state {
            ApprovalState::Approved => Consent::Given,
            ApprovalState::Denied => Consent::Denied,
            // A call that was not made cannot have happened, so that is no answer to this question.
            ApprovalState::Expired | ApprovalState::Pending | ApprovalState::Happened => {
                Consent::Expired
            }
        })
    }
}

impl Bridge {
    /// Asks a person about an action of a run; whether it may be done. A yes covers this action only. `waits`
    /// hears when the run begins to wait and when it stops.
    ///
    /// # Errors
    /// Nobody can be asked, or nobody answered in time.
    pub async fn ask_about(
        &self,
        run: &RunContext,
        action: AskedAction,
        waits: impl Fn(bool) + Send + Sync,
    ) -> Result<bool, ToolFault> {
        let AskedAction { name, details, time, reason } = action;
        let fault = |code, message: &str| ToolFault::new(code, format!("{name}: {message}"));
        if !run.observer.may_wait() {
            let message = "it needs the approval of a person, and the run does not wait for one";
            return Err(fault(ErrorCode::ApprovalDenied, message));
        }
        let Some(store) = &self.config.store else {
            let message = "it needs approval, but there is no project to record it in";
            return Err(fault(ErrorCode::ApprovalDenied, message));
        };
        let terms = ConsentTerms { session: run.session.clone(), ..ConsentTerms::default() };
        let call = ToolCall {
            call: action_number(&name, &details, time),
            server: None,
            tool: name.clone(),
            line: None,
            arguments: details.into_bytes(),
        };
        let asked = (ApprovalQuestion::MayCall, terms);
        let approval = self.request_approval(store, run, &call, &name, asked).await?;
        waits(true);
        let consent = self.wait_for_consent(store, run, approval, &reason).await;
        waits(false);
        match consent? {
            Consent::Given => Ok(true),
            Consent::Denied => Ok(false),
            Consent::Expired => {
                Err(fault(ErrorCode::ApprovalExpired, "nobody approved it in time"))
            }
        }
    }
}

/// A number for an action that no call of the run has: the first bit is set. It is the same after the run
/// was resumed.
fn action_number(name: &str, details: &str, time: u32) -> u32 {
    let digest = Sha256::digest(format!("{name}\n{details}\n{time}").as_bytes());
    let first = digest.iter().take(4).fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    first | (1 << 31)
}

/// A call that waits for a person. If its run ends first and has no record to be resumed from, the
/// approval is closed.
struct PendingApproval<'a> {
    store: &'a Store,
    id: Option<&'a ApprovalId>,
    observer: &'a dyn CallObserver,
    now_ms: fn() -> i64,
}

impl Drop for PendingApproval<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        self.observer.approval_over(id);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (store, id, now_ms) = (self.store.clone(), id.clone(), self.now_ms);
        runtime.spawn(async move {
            if let Err(error) = store.close_orphaned_approval(&id, now_ms()).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    id = id.as_str(),
                    "an approval without a waiting call was not closed"
                );
            }
        });
    }
}

/// Equal for equal calls, so that a replay finds the earlier approval.
fn approval_id(run_id: &RunId, call: u32, question: ApprovalQuestion) -> ApprovalId {
    let text = format!("{run_id}/{call}/{question}");
    let mut id = hex::encode(&Sha256::digest(text.as_bytes()));
    id.truncate(ID_DIGITS);
    format!("{}{id}", ApprovalId::PREFIX).into()
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
