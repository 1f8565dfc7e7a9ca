//! One tool call that survives its host, made without code and without a cell (D7, D8): a task of a
//! workflow that may have to wait for a person. Its record stands among the runs, under a name that who
//! asks again uses again.

use std::{sync::Arc, time::Duration};

use belljar_contract::{RunResult, RunStatus};
use belljar_runtime::{StopReason, ToolFault};
use belljar_store::{ClaimReason, Lease, NewRun, RunRecord, Store, StoreError};
use belljar_tools::{Observer, RunContext, ToolGrants};
use serde_json::value::RawValue;

use super::{Executor, RUNNING, is_owner_alive, now_ms, this_process};

/// What the language of a record is that has no code.
const LANGUAGE: &str = "tool";
/// How often it is looked whether who has the call is done with it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A call to be made.
#[derive(Debug)]
pub(crate) struct OneCall {
    /// What its record is called.
    pub(crate) id: String,
    /// Who asks for it.
    pub(crate) caller: String,
    /// The tool, as `server__tool`.
    pub(crate) tool: String,
    /// Its arguments, as JSON.
    pub(crate) arguments: Vec<u8>,
    /// What it may use: this tool.
    pub(crate) grants: ToolGrants,
    /// The longest it may take once it has left.
    pub(crate) tool_timeout: Duration,
    /// Who hears of what happens.
    pub(crate) observer: Arc<dyn Observer>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) enum OneCallEnd {
    /// It gave a value, or failed.
    Answered(Result<Vec<u8>, ToolFault>),
    /// It left, and nobody knows whether it happened.
    InDoubt,
    /// What became of it cannot be written or read.
    Lost(String),
}

impl Executor {
    /// Whether something is kept under this name that is such a call.
    pub(crate) fn is_one_call(record: &RunRecord) -> bool {
        record.summary.language == LANGUAGE
    }

    /// Makes a call, or goes on with it. Who loses interest drops this: the call can be gone on with.
    pub(crate) async fn call_once(&self, call: OneCall) -> OneCallEnd {
        let (Some(bridge), Some(store)) = (&self.bridge, &self.store) else {
            return OneCallEnd::Lost("there is no bridge to keep a journal of".to_owned());
        };
        let (lease, has_ended) = match self.lease_of(store, &call).await {
            Ok(lease) => lease,
            Err(error) => return OneCallEnd::Lost(error.to_string()),
        };
        let OneCall { id, caller, tool, arguments, grants, tool_timeout, observer } = call;
        let _under_way = self.under_way.enter(&id);
        let code = String::new();
        let run = RunContext { run_id: id.clone(), caller, grants, tool_timeout, code, observer };
        let journal = (store.clone(), lease.clone());
        let answered = match bridge.call_durable(run, journal, &tool, arguments).await {
            Ok(answered) => answered,
            Err(StopReason::InDoubt(_)) => {
                let _ = store.set_run_status(&lease, RunStatus::InDoubt.as_str(), now_ms()).await;
                return OneCallEnd::InDoubt;
            }
            Err(StopReason::Diverged(fault) | StopReason::Failed(fault)) => {
                return OneCallEnd::Lost(fault.message);
            }
        };
        if !has_ended {
            let result = result(id, &answered);
            let json = serde_json::to_string(&result).unwrap_or_default();
            // Its outcome is in the journal; only the record does not say so.
            let _ = store.finish_run(&lease, result.status.as_str(), json, now_ms()).await;
        }
        OneCallEnd::Answered(answered)
    }

    /// The right to write about a call, and whether it had ended before.
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
            let is_running = summary.status == RUNNING && is_owner_alive(&summary.owner);
            if !is_running && !self.under_way.has(&call.id) {
                match store.claim_run(seen, &this_process(), ClaimReason::Asked, now_ms()).await {
                    Ok(lease) => return Ok((lease, false)),
                    // Somebody else was faster.
                    Err(StoreError::Fenced { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
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
        // There is no code that could be run again: its workflow goes on with it.
        durable: false,
        seed: String::new(),
        owner: this_process(),
        started_ms: now_ms(),
    }
}

/// What came of a call, as of any run.
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
