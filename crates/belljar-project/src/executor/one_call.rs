//! One tool call without code and without a cell (D7, D8): a workflow task, or a tool that a client
//! calls by its own name.
//!
//! A call that may have to wait for a person is durable: its record is stored among the runs, its result
//! passes [`Executor::finish`] like that of a run, and a repeated request uses the same id. Any other call
//! has no record.

use std::{sync::Arc, time::Duration};

use belljar_contract::{ErrorCode, RecordedWork, RunError, RunId, RunResult, RunStatus};
use belljar_runtime::StopReason;
use belljar_store::{ClaimReason, Lease, NewRun, RunRecord, Store, StoreError};
use belljar_tools::{CallArguments, CallObserver, RunContext, ToolGrants, ToolValue};
use serde_json::value::RawValue;

use super::{
    Executor,
    durable::{RESUMED, RunJournal},
    finish::{STARTED, leave},
    is_owner_alive, now_ms, this_process,
};

/// How often the owner of a call is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A durable tool call.
#[derive(Debug)]
pub(crate) struct OneCall {
    /// Id of its record among the runs.
    pub(crate) id: RunId,
    /// Recorded in audit rows and approvals.
    pub(crate) caller: String,
    /// The tool, as `server__tool`.
    pub(crate) tool: String,
    /// The arguments by name.
    pub(crate) arguments: CallArguments,
    /// Allows this tool only.
    pub(crate) grants: ToolGrants,
    /// Longest time of the call once it is sent.
    pub(crate) tool_timeout: Duration,
    /// Notified of approvals and of the call.
    pub(crate) observer: Arc<dyn CallObserver>,
}

/// The outcome of a durable call.
#[derive(Debug)]
pub(crate) enum OneCallEnd {
    /// The call returned a value or failed, now or before.
    Answered(Box<RunResult>),
    /// The call was sent, and its effect is unknown.
    InDoubt,
    /// The outcome cannot be written or read; holds the reason.
    Lost(String),
}

impl Executor {
    /// Whether a stored run is such a call.
    pub(crate) fn is_one_call(record: &RunRecord) -> bool {
        record.summary.work == RecordedWork::ToolCall
    }

    /// Makes a call or continues it. A dropped future can be continued later.
    pub(crate) async fn call_once(&self, call: OneCall) -> OneCallEnd {
        let (Some(bridge), Some(store)) = (&self.bridge, &self.store) else {
            return OneCallEnd::Lost("there is no tool bridge to record in a journal".to_owned());
        };
        let lease = match self.lease_of(store, &call).await {
            Ok(ClaimedCall::Fresh(lease)) => lease,
            Ok(ClaimedCall::Ended(json)) => {
                let ended = serde_json::from_str(&json);
                return ended.map_or_else(
                    |error| OneCallEnd::Lost(format!("its result cannot be read: {error}")),
                    OneCallEnd::Answered,
                );
            }
            Err(error) => return OneCallEnd::Lost(error.to_string()),
        };
        let OneCall { id, caller, tool, arguments, grants, tool_timeout, observer } = call;
        let active = self.active_runs.enter(&id);
        let code = String::new();
        let session = None;
        let run = RunContext {
            run_id: id.clone(),
            session,
            caller,
            grants,
            tool_timeout,
            code,
            observer,
        };
        let journal = (store.clone(), lease.clone());
        let result = match bridge.call_durable(run, journal, &tool, arguments).await {
            Ok(Ok(json)) => completed(id, json),
            Ok(Err(fault)) => RunResult::not_run(id, RunStatus::Failed, fault.into()),
            Err(StopReason::InDoubt(fault)) => {
                RunResult::not_run(id, RunStatus::InDoubt, fault.into())
            }
            Err(StopReason::Diverged(fault) | StopReason::Failed(fault)) => {
                return OneCallEnd::Lost(fault.message);
            }
        };
        // Not before: a call whose future is dropped has not ended.
        let mut open = self.opened(&result.id);
        open.journal = Some(RunJournal { lease, active });
        let result = self.finish(open, result).await;
        match result.status {
            RunStatus::InDoubt => OneCallEnd::InDoubt,
            RunStatus::Running
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Aborted
            | RunStatus::Interrupted
            | RunStatus::ApprovalRequired => OneCallEnd::Answered(Box::new(result)),
        }
    }

    /// Makes a call that has no record.
    pub(crate) async fn call(
        &self,
        run: &RunContext,
        tool: &str,
        arguments: CallArguments,
    ) -> Result<ToolValue, RunError> {
        let Some(bridge) = &self.bridge else {
            return Err(RunError::new(ErrorCode::ToolUnknown, "this project has no tools"));
        };
        let called = bridge.call(run, tool, arguments).await;
        let outcome = called.map_err(RunError::from);
        leave(&run.run_id, outcome.as_ref().err());
        outcome
    }

    /// The lease for a call, or its result if it had ended before.
    async fn lease_of(&self, store: &Store, call: &OneCall) -> Result<ClaimedCall, StoreError> {
        loop {
            let Some(record) = store.run(&call.id).await? else {
                let lease = store.begin_run(new_record(call)).await?;
                self.post(&call.id, STARTED, &RecordedWork::ToolCall).await;
                return Ok(ClaimedCall::Fresh(lease));
            };
            let RunRecord { summary, result_json, .. } = record;
            if let Some(result) = result_json {
                return Ok(ClaimedCall::Ended(result));
            }
            let seen = Lease { run_id: call.id.clone(), fence: summary.fence };
            let is_running = summary.status == RunStatus::Running && is_owner_alive(&summary.owner);
            if !is_running && !self.active_runs.has(&call.id) {
                match store.claim_run(seen, &this_process(), ClaimReason::Asked, now_ms()).await {
                    Ok(lease) => {
                        self.post(&call.id, RESUMED, &lease.fence).await;
                        return Ok(ClaimedCall::Fresh(lease));
                    }
                    // Another process claimed it first.
                    Err(StoreError::Fenced { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// A call that this process may make, or need not make.
enum ClaimedCall {
    Fresh(Lease),
    /// It had ended, with this result as JSON.
    Ended(String),
}

fn new_record(call: &OneCall) -> NewRun {
    NewRun {
        id: call.id.clone(),
        caller: call.caller.clone(),
        work: RecordedWork::ToolCall,
        code: call.tool.clone(),
        request_json: "{}".to_owned(),
        // There is no code to resume: the workflow repeats the call with this id.
        durable: false,
        seed: String::new(),
        owner: this_process(),
        started_ms: now_ms(),
    }
}

/// The result of a call that gave this JSON.
fn completed(id: RunId, json: Vec<u8>) -> RunResult {
    let text = String::from_utf8_lossy(&json).into_owned();
    RunResult {
        id,
        status: RunStatus::Completed,
        success: true,
        result: RawValue::from_string(text).unwrap_or_default(),
        exit_code: 0,
        ..RunResult::default()
    }
}
