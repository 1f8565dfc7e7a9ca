//! The single exit for results: every result passes [`Executor::finish`], whether it comes from a fresh
//! cell, a session, a resumed journal, the cache or a task of a workflow, and also that of a request
//! which was refused, or of a run whose caller dropped it.
//!
//! It runs these steps in this order: say whether the run was aborted, keep the files that came back, fit
//! the result to the caller's budget, write it to the run's record, save it whole in the cache, post the
//! event. Record, event and caller get the same status and error. A step that must see every result belongs
//! in this file and nowhere else. [`leave`] is the last one; single tool calls without a record pass it, too.
//!
//! Results without an executor hold no value of guest code, so they do not pass it: flags that `belljar run`
//! refuses, a sandbox that does not start, a run that the server aborts before it reports.

use belljar_contract::{
    ApprovalId, ErrorCode, Language, Metrics, RunError, RunId, RunResult, RunStatus, ToolReport,
};
use belljar_store::Approvals;

use super::{
    Executor, budget, cache::CacheSlot, clock_note::ClockNote, durable::RunJournal, kept_artifacts,
    language::LanguageNote, now_ms,
};

/// The event of a run that begins.
pub(super) const STARTED: &str = "code_execution_started";
/// The event of a run that ended without a value, for any reason.
const FAILED: &str = "code_execution_failed";
/// The event of a run that waits for a person or for the next host.
const PAUSED: &str = "code_execution_paused";

/// The data of the event of a run that failed.
#[derive(Debug, serde::Serialize)]
struct FailureEvent<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    status: RunStatus,
    error: Option<ErrorCode>,
}

/// The data of a paused run's event.
#[derive(Debug, serde::Serialize)]
struct PauseEvent<'a> {
    #[serde(flatten)]
    failure: FailureEvent<'a>,
    #[serde(rename = "toolName")]
    tool: Option<&'a str>,
    /// The approvals that a person has to decide.
    approvals: Vec<ApprovalId>,
}

/// A run whose start was posted and whose end was not. If its caller drops it, it is finished as
/// aborted, so that every start has an end.
#[derive(Debug)]
pub(super) struct OpenRun {
    executor: Executor,
    id: RunId,
    /// The tools that the run was offered.
    pub(super) tools: ToolReport,
    /// The note about the language of a request that left it out.
    pub(super) language: LanguageNote,
    /// The note about the clock of a durable run.
    pub(super) clock: ClockNote,
    /// A value larger than this many tokens is stored, and a summary takes its place.
    pub(super) max_output_tokens: Option<u32>,
    /// The place of the result in the cache, if it may be reused.
    pub(super) cache: Option<CacheSlot>,
    /// The record of the run, if it has one.
    pub(super) journal: Option<RunJournal>,
    is_finished: bool,
}

impl Executor {
    /// Posts that a run begins.
    pub(super) async fn open(&self, id: &RunId, language: Language) -> OpenRun {
        self.post(id, STARTED, &language).await;
        self.opened(id)
    }

    /// A run whose beginning was posted.
    pub(super) fn opened(&self, id: &RunId) -> OpenRun {
        OpenRun {
            executor: self.clone(),
            id: id.clone(),
            tools: ToolReport::default(),
            language: LanguageNote::default(),
            clock: ClockNote::default(),
            max_output_tokens: None,
            cache: None,
            journal: None,
            is_finished: false,
        }
    }

    /// Finishes a result on its way to the caller.
    pub(super) async fn finish(&self, mut run: OpenRun, result: RunResult) -> RunResult {
        let result = RunResult { tools: std::mem::take(&mut run.tools), ..result };
        let mut result = self.aborted_if_so(result, run.journal.is_some());
        // The cache has the whole result: each caller has a budget of its own.
        let whole = run.cache.take().map(|slot| (slot, result.clone()));
        run.clock.tell(&mut result);
        run.language.tell(&mut result);
        if let Some(store) = &self.store {
            kept_artifacts::keep(&mut result, store).await;
        }
        if let Some(tokens) = run.max_output_tokens {
            budget::fit(&mut result, tokens, self.store.as_ref()).await;
        }
        if let (Some(journal), Some(store)) = (run.journal.take(), &self.store) {
            journal.write_end(store, &result).await;
        }
        if let (Some((slot, whole)), Some(store)) = (whole, &self.store) {
            slot.save(store, &whole).await;
        }
        self.post_end(&result).await;
        leave(&result.id, result.error.as_ref());
        run.is_finished = true;
        result
    }

    /// If this process aborts its runs, that is why a run failed. A durable run that ends because its
    /// host stops is not abandoned: the next host resumes it.
    fn aborted_if_so(&self, mut result: RunResult, is_durable: bool) -> RunResult {
        let has_failed = matches!(result.status, RunStatus::Failed | RunStatus::Aborted);
        if let (true, Some(reason)) = (has_failed, self.abort_reason.get()) {
            result.status = RunStatus::Aborted;
            result.error = Some(RunError::new(ErrorCode::RunAborted, *reason));
        }
        if is_durable && result.status == RunStatus::Aborted && self.is_stopping() {
            let error = RunError::new(ErrorCode::RunInterrupted, "the host stopped")
                .with_hint("nothing is lost: the next host resumes the run, under the same id");
            (result.status, result.error) = (RunStatus::Interrupted, Some(error));
        }
        result
    }

    async fn post_end(&self, result: &RunResult) {
        let failure = FailureEvent {
            metrics: &result.metrics,
            status: result.status,
            error: result.error.as_ref().map(|error| error.code),
        };
        match result.status {
            RunStatus::Completed => {
                self.post(&result.id, "code_execution_completed", &result.metrics).await;
            }
            RunStatus::Failed | RunStatus::Aborted => {
                self.post(&result.id, FAILED, &failure).await;
            }
            RunStatus::Running
            | RunStatus::Interrupted
            | RunStatus::ApprovalRequired
            | RunStatus::InDoubt => {
                let tool = result.error.as_ref().and_then(|error| error.tool_name.as_deref());
                let approvals = self.pending_approvals(&result.id).await;
                self.post(&result.id, PAUSED, &PauseEvent { failure, tool, approvals }).await;
            }
        }
    }

    /// The decisions a paused run waits for, for clients that follow its events.
    async fn pending_approvals(&self, run_id: &RunId) -> Vec<ApprovalId> {
        let Some(store) = &self.store else { return Vec::new() };
        let pending = store.approvals(Approvals::Pending, now_ms()).await.unwrap_or_default();
        let of_run = pending.into_iter().filter(|approval| approval.asked.run_id == *run_id);
        of_run.map(|approval| approval.asked.id).collect()
    }
}

impl OpenRun {
    pub(super) fn id(&self) -> &RunId {
        &self.id
    }
}

/// The last step of everything that leaves the executor: the result of a run, or what a single tool call
/// without a record gave. Logs how it ended.
pub(super) fn leave(id: &RunId, error: Option<&RunError>) {
    let error = error.map(|error| error.code.as_str());
    tracing::debug!(%id, error, "a run or a call has ended");
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        let (false, Ok(runtime)) = (self.is_finished, tokio::runtime::Handle::try_current()) else {
            return;
        };
        let error = RunError::new(ErrorCode::RunAborted, "the run was dropped by its caller");
        let result = RunResult::not_run(self.id.clone(), RunStatus::Aborted, error);
        let executor = self.executor.clone();
        let mut run = executor.opened(&self.id);
        (run.tools, run.journal) = (std::mem::take(&mut self.tools), self.journal.take());
        runtime.spawn(async move { executor.finish(run, result).await });
    }
}
