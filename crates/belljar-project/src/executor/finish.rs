//! The single exit for results: every result of a run passes [`Executor::finish`], whether it comes
//! from a fresh cell, a session, a resumed journal, a task of a workflow, or the cache.
//!
//! It runs these steps in this order: fit the result to the caller's budget, write it to the run's
//! record, save it whole in the cache, post the event. A step that must see every result belongs in this
//! file and nowhere else.

use belljar_contract::{ErrorCode, Metrics, RunError, RunResult, RunStatus, ToolReport};
use belljar_store::Approvals;

use super::{Executor, budget, cache::CacheSlot, durable::JournalEnd, now_ms};

/// The event of a run that ended without a value, for any reason.
pub(super) const FAILED: &str = "code_execution_failed";
/// The event of a run that waits for a person or for the next host.
const PAUSED: &str = "code_execution_paused";

/// The data of a paused run's event.
#[derive(Debug, serde::Serialize)]
struct PauseEvent<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    status: RunStatus,
    #[serde(rename = "toolName")]
    tool: Option<&'a str>,
    /// The approvals that a person has to decide.
    approvals: Vec<String>,
}

/// How to finish a run whose start was posted.
pub(super) struct RunCompletion {
    pub(super) announced: AnnouncedRun,
    /// The tools that the run was offered.
    pub(super) tools: ToolReport,
    /// A value larger than this many tokens is stored, and a summary takes its place.
    pub(super) max_output_tokens: Option<u32>,
    /// The place of the result in the cache, if it may be reused.
    pub(super) cache: Option<CacheSlot>,
}

impl Executor {
    /// Finishes a result on its way to the caller.
    pub(super) async fn finish(
        &self,
        completion: RunCompletion,
        journal: Option<JournalEnd>,
        result: RunResult,
    ) -> RunResult {
        let RunCompletion { announced, tools, max_output_tokens, cache } = completion;
        let mut result = RunResult { tools, ..result };
        if journal.is_some() {
            result = self.interrupted_if_stopping(result);
        }
        // The cache has the whole result: each caller has a budget of its own.
        let whole = cache.map(|slot| (slot, result.clone()));
        if let Some(tokens) = max_output_tokens {
            budget::fit(&mut result, tokens, self.store.as_ref()).await;
        }
        if let Some(journal) = journal {
            journal.write_end(&result).await;
        }
        if let (Some((slot, whole)), Some(store)) = (whole, &self.store) {
            slot.save(store, &whole).await;
        }
        self.post_end(&result).await;
        announced.disarm();
        result
    }

    /// A durable run that ends because its host stops is not abandoned: the next host resumes it.
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

    /// The decisions a paused run waits for, for clients that follow its events.
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

    /// A guard for a run whose start was posted: it posts the end if the run is dropped.
    pub(super) fn announced(&self, id: &str) -> AnnouncedRun {
        AnnouncedRun { run: Some((self.clone(), id.to_owned())) }
    }
}

/// Posts the end of a run if its caller drops it, so that every start has an end in the events.
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
