//! One durable tool call without code and without a cell (D7, D8): a workflow task that may have to
//! wait for a person. Its record is stored among the runs; a repeated request uses the same id.

use std::{sync::Arc, time::Duration};

use belljar_contract::{RunResult, RunStatus};
use belljar_runtime::{StopReason, ToolFault};
use belljar_store::{ClaimReason, Lease, NewRun, RunRecord, Store, StoreError};
use belljar_tools::{CallObserver, RunContext, ToolGrants};
use serde_json::value::RawValue;

use super::{Executor, is_owner_alive, now_ms, this_process};

/// The language in the record of a call without code.
const LANGUAGE: &str = "tool";
/// How often the owner of a call is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A durable tool call.
#[derive(Debug)]
pub(crate) struct OneCall {
    /// Id of its record among the runs.
    pub(crate) id: String,
    /// Recorded in audit rows and approvals.
    pub(crate) caller: String,
    /// The tool, as `server__tool`.
    pub(crate) tool: String,
    /// The arguments as a JSON object.
    pub(crate) arguments: Vec<u8>,
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
    /// The call returned a value or failed.
    Answered(Result<Vec<u8>, ToolFault>),
    /// The call was sent, and its effect is unknown.
    InDoubt,
    /// The outcome cannot be written or read; holds the reason.
    Lost(String),
}

impl Executor {
    /// Whether a stored run is such a call.
    pub(crate) fn is_one_call(record: &RunRecord) -> bool {
        record.summary.language == LANGUAGE
    }

    /// Makes a call or continues it. A dropped future can be continued later.
    pub(crate) async fn call_once(&self, call: OneCall) -> OneCallEnd {
        let (Some(bridge), Some(store)) = (&self.bridge, &self.store) else {
            return OneCallEnd::Lost("there is no tool bridge to record in a journal".to_owned());
        };
        let (lease, has_ended) = match self.lease_of(store, &call).await {
            Ok(lease) => lease,
            Err(error) => return OneCallEnd::Lost(error.to_string()),
        };
        let OneCall { id, caller, tool, arguments, grants, tool_timeout, observer } = call;
        let _under_way = self.active_runs.enter(&id);
        let code = String::new();
        let run = RunContext { run_id: id.clone(), caller, grants, tool_timeout, code, observer };
        let journal = (store.clone(), lease.clone());
        let answered = match bridge.call_durable(run, journal, &tool, arguments).await {
            Ok(answered) => answered,
            Err(StopReason::InDoubt(_)) => {
                let _ = store.set_run_status(&lease, RunStatus::InDoubt, now_ms()).await;
                return OneCallEnd::InDoubt;
            }
            Err(StopReason::Diverged(fault) | StopReason::Failed(fault)) => {
                return OneCallEnd::Lost(fault.message);
            }
        };
        if !has_ended {
            let result = result(id, &answered);
            let json = serde_json::to_string(&result).unwrap_or_default();
            // The outcome is in the journal; only the record does not show it.
            let _ = store.finish_run(&lease, result.status, json, now_ms()).await;
        }
        OneCallEnd::Answered(answered)
    }

    /// The lease for a call, and whether the call had ended before.
    async fn lease_of(&self, store: &Store, call: &OneCall) -> Result<(Lease, bool), StoreError> {
        loop {
            let Some(record) = store.run(&call.id).await? else {
                return Ok((store.begin_run(new_record(call)).await?, false));
            };
            let RunRecord { summary, result_json, .. } = record;
            let seen = Lease { run_id: call.id.clone(), fence: summary.fence };
            if result_json.is_some() {
                return Ok((seen, true));
            }
            let is_running = summary.status == RunStatus::Running && is_owner_alive(&summary.owner);
            if !is_running && !self.active_runs.has(&call.id) {
                match store.claim_run(seen, &this_process(), ClaimReason::Asked, now_ms()).await {
                    Ok(lease) => return Ok((lease, false)),
                    // Another process claimed it first.
                    Err(StoreError::Fenced { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn new_record(call: &OneCall) -> NewRun {
    NewRun {
        id: call.id.clone(),
        caller: call.caller.clone(),
        language: LANGUAGE.to_owned(),
        code: call.tool.clone(),
        request_json: "{}".to_owned(),
        // There is no code to resume: the workflow repeats the call with this id.
        durable: false,
        seed: String::new(),
        owner: this_process(),
        started_ms: now_ms(),
    }
}

/// The result of a call in the form of a run result.
fn result(id: String, answered: &Result<Vec<u8>, ToolFault>) -> RunResult {
    match answered {
        Err(fault) => RunResult::not_run(id, RunStatus::Failed, fault.clone().into()),
        Ok(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let value = RawValue::from_string(text).unwrap_or_default();
            RunResult {
                id,
                status: RunStatus::Completed,
                success: true,
                result: value,
                exit_code: 0,
                ..RunResult::default()
            }
        }
    }
}
