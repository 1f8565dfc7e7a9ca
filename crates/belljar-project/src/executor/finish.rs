//! The one way out: every result of a run passes [`Executor::finish`], be it of a fresh cell, a session,
//! a journal that was resumed, a task of a workflow, or the cache.
//!
//! What must happen to a result happens here, in one order: save it in the cache, fit it to the
//! caller's budget, write it to the run's record, post the event. A stage that must see every result
//! belongs into this file and nowhere else.

use belljar_contract::{ErrorCode, Metrics, RunError, RunResult, RunStatus, ToolReport};
use belljar_store::Approvals;

use super::{Executor, budget, cache::CacheSlot, durable::JournalEnd, now_ms};

/// The event that a run has ended without a value, for whatever reason.
pub(super) const FAILED: &str = "code_execution_failed";
/// The event that a run waits: for a person, or for the next host.
const PAUSED: &str = "code_execution_paused";

/// What the event of a paused run says.
#[derive(Debug, serde::Serialize)]
struct PauseEvent<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    status: RunStatus,
    #[serde(rename = "toolName")]
    tool: Option<&'a str>,
    /// The questions a person has to answer.
    approvals: Vec<String>,
}

/// What is done with the result of a run that was announced.
pub(super) struct WayOut {
    pub(super) announced: AnnouncedRun,
    /// The tools it was offered.
    pub(super) tools: ToolReport,
    /// A value larger than this many tokens is stored, and a summary takes its place.
    pub(super) max_output_tokens: Option<u32>,
    /// Where the answer goes if it may be given again.
    pub(super) cache: Option<CacheSlot>,
}

impl Executor {
    /// Brings a result to its caller.
    pub(super) async fn finish(
        &self,
        way_out: WayOut,
        journal: Option<JournalEnd>,
        result: RunResult,
    ) -> RunResult {
        let WayOut { announced, tools, max_output_tokens, cache } = way_out;
        let mut result = RunResult { tools, ..result };
        if journal.is_some() {
            result = self.interrupted_if_stopping(result);
        }
        if let (Some(slot), Some(store)) = (cache, &self.store) {
            slot.save(store, &result).await;
        }
        if let Some(tokens) = max_output_tokens {
            budget::fit(&mut result, tokens, self.store.as_ref()).await;
        }
        if let Some(journal) = journal {
            journal.settle(&result).await;
        }
        self.post_end(&result).await;
        announced.disarm();
        result
    }

    /// A durable run that ends because its host stops is not given up: the next host resumes it.
    fn interrupted_if_stopping(&self, result: RunResult) -> RunResult {
        if result.status != RunStatus::Aborted || !self.is_stopping() {
            return result;
        }
        let error = RunError::new(ErrorCode::RunInterrupted, "the host stopped")
            .with_hint("nothing is lost: the next host resumes the run, under the same id");
        RunResult { status: RunStatus::Interrupted, error: Some(error), ..result }
    }

    async fn post_end(&self, result: &RunResult) {
        match result.status {
            RunStatus::Completed => {
                self.post(&result.id, "code_execution_completed", &result.metrics).await;
            }
            RunStatus::Failed | RunStatus::Aborted => {
                self.post(&result.id, FAILED, &result.metrics).await;
            }
            RunStatus::Running
            | RunStatus::Interrupted
            | RunStatus::ApprovalRequired
            | RunStatus::InDoubt => {
                self.post(&result.id, PAUSED, &self.pause_event(result).await).await;
            }
        }
    }

    /// What a paused run waits for, for those who follow its events.
    async fn pause_event<'a>(&self, result: &'a RunResult) -> PauseEvent<'a> {
        let pending = match &self.store {
            Some(store) => store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let of_run = pending.into_iter().filter(|approval| approval.asked.run_id == result.id);
        PauseEvent {
            metrics: &result.metrics,
            status: result.status,
            tool: result.error.as_ref().and_then(|error| error.tool_name.as_deref()),
            approvals: of_run.map(|approval| approval.asked.id).collect(),
        }
    }

    /// A run whose start was posted: its end will be, too.
    pub(super) fn announced(&self, id: &str) -> AnnouncedRun {
        AnnouncedRun { run: Some((self.clone(), id.to_owned())) }
    }
}

/// Posts that a run has ended if its caller drops it: whatever began ends in the events, too.
pub(super) struct AnnouncedRun {
    run: Option<(Executor, String)>,
}

impl AnnouncedRun {
    fn disarm(mut self) {
        self.run = None;
    }
}

impl Drop for AnnouncedRun {
    fn drop(&mut self) {
        let (Some((executor, id)), Ok(runtime)) =
            (self.run.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            executor.post(&id, FAILED, &serde_json::json!({ "status": "aborted" })).await;
        });
    }
}
