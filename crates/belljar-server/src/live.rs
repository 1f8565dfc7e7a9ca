//! Runs that this process has under way, and the state of each.
//!
//! A run has a task of its own, so that it can outlast the request that started it: when a person
//! has to decide, or when it takes longer than a client waits. Requests only follow it.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use belljar_contract::{
    ApprovalId, ErrorCode, RecordedWork, RunError, RunId, RunResult, RunStatus,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::{ApprovalRequest, RunReport, RunReporter},
    feed::Feed,
    records::RunInfo,
    sessions::SessionError,
    start::now_ms,
};

/// How long the outcome of a run that a client may ask for again is kept.
const KEEP_FINISHED: Duration = Duration::from_mins(10);
/// The time that a run has for its last report once it is asked to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The messages for runs that ended without a report.
pub(crate) const ABORTED: &str = "the run was aborted";
pub(crate) const LOST: &str = "the run ended without a report; the server's log says why";
/// A line of progress is cut to this many characters.
const MAX_LINE_CHARS: usize = 200;

/// The state of an active run that clients can see.
#[derive(Debug, Default)]
pub(crate) struct LiveRunState {
    pub(crate) run_id: Option<RunId>,
    /// The latest line that it printed or reported.
    pub(crate) line: Option<String>,
    /// How many lines it has reported, so that followers notice a new one.
    pub(crate) lines: u64,
    pub(crate) waiting: Vec<ApprovalRequest>,
    pub(crate) finished: Option<(RunOutcome, Instant)>,
}

impl LiveRunState {
    pub(crate) fn say(&mut self, text: &str) {
        self.lines += 1;
        self.line = Some(text.trim_end().chars().take(MAX_LINE_CHARS).collect());
    }
}

/// How a run ended.
#[derive(Debug, Clone)]
pub(crate) enum RunOutcome {
    /// With a report, and the canonical result as text.
    Run(Arc<RunReport>, Bytes),
    /// It was one call of an upstream tool, and this is its `CallToolResult`.
    Tool(Arc<Value>),
    /// Its session refused it; no code ran.
    Refused(SessionError),
    /// It was ended before it could report.
    Aborted,
    /// Its task failed; the log says why.
    Lost,
}

impl RunOutcome {
    /// Whether the run only stopped: it resumes by itself unless it is ended.
    pub(crate) fn can_resume(&self) -> bool {
        self.status().is_some_and(RunStatus::is_paused)
    }

    /// Whether a call of the run may or may not have happened.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.status() == Some(RunStatus::InDoubt)
    }

    fn status(&self) -> Option<RunStatus> {
        match self {
            Self::Run(report, _) => Some(report.status()),
            Self::Tool(_) | Self::Refused(_) | Self::Aborted | Self::Lost => None,
        }
    }
}

/// The canonical result of a run that was ended before it could report anything.
pub(crate) fn aborted_result(id: RunId) -> RunResult {
    RunResult::not_run(id, RunStatus::Aborted, RunError::new(ErrorCode::RunAborted, ABORTED))
}

/// A handle on a run that is under way or has just ended.
#[derive(Debug, Clone)]
pub(crate) struct LiveRun {
    state: Arc<watch::Sender<LiveRunState>>,
    end: CancellationToken,
    task: Arc<OnceLock<AbortHandle>>,
    /// Whether a client receives its output line by line.
    updates: ProgressUpdates,
}

/// Whether a client receives the output of a run while it is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProgressUpdates {
    /// A client asked for progress.
    On,
    /// No client did, so lines need not be kept.
    #[default]
    Off,
}

/// Lists a run under its id as soon as it has one.
#[derive(Debug, Clone)]
pub(crate) struct RunRegistration {
    by_id: Arc<ById>,
    details: RunDetails,
}

impl RunRegistration {
    /// Lists the run, so that clients that learn the id can ask for it at once.
    pub(crate) fn announce(&self, run_id: &RunId, live: LiveRun) {
        lock(&self.by_id).insert(run_id.clone(), (live, Some(self.details.clone())));
    }
}

/// The row of an active run in a list.
#[derive(Debug, Clone)]
pub(crate) struct RunDetails {
    pub(crate) work: RecordedWork,
    pub(crate) durable: bool,
    pub(crate) started_ms: u64,
}

impl RunDetails {
    /// The entry for a list, if the run ends now.
    pub(crate) fn ended(self, id: RunId, status: RunStatus) -> RunInfo {
        let Self { work, durable, started_ms } = self;
        let finished_ms = Some(now_ms());
        RunInfo { id, status, work, durable, started_ms, finished_ms }
    }
}

impl LiveRun {
    /// Starts the future that `work` makes with a reporter.
    fn start<F>(
        feed: Option<Feed>,
        updates: ProgressUpdates,
        registration: Option<RunRegistration>,
        work: impl FnOnce(RunReporter) -> F,
    ) -> (Self, JoinHandle<RunOutcome>)
    where
        F: Future<Output = RunOutcome> + Send + 'static,
    {
        let live = Self {
            state: Arc::new(watch::Sender::new(LiveRunState::default())),
            end: CancellationToken::new(),
            task: Arc::default(),
            updates,
        };
        let running = tokio::spawn(work(RunReporter::new(live.clone(), feed, registration)));
        // Only this line sets it.
        let _ = live.task.set(running.abort_handle());
        (live, running)
    }

    /// Waits for the end of the run, and publishes its outcome.
    async fn publish_end(&self, running: &mut JoinHandle<RunOutcome>) {
        let finished = match running.await {
            Ok(finished) => finished,
            Err(error) if error.is_cancelled() => RunOutcome::Aborted,
            Err(error) => {
                tracing::error!(%error, "the task of a run failed");
                RunOutcome::Lost
            }
        };
        self.state.send_modify(|state| {
            state.waiting.clear();
            state.finished = Some((finished, Instant::now()));
        });
    }

    /// Changes the state that followers see.
    pub(crate) fn update(&self, change: impl FnOnce(&mut LiveRunState)) {
        self.state.send_modify(change);
    }

    /// Whether a client receives its output line by line.
    pub(crate) fn is_followed(&self) -> bool {
        self.updates == ProgressUpdates::On
    }

    /// Completes when the run should end.
    pub(crate) fn end_requested(&self) -> impl Future<Output = ()> + Send + 'static {
        self.end.clone().cancelled_owned()
    }

    /// The state, now and whenever it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<LiveRunState> {
        self.state.subscribe()
    }

    /// Waits for the outcome.
    pub(crate) async fn finished(&self) -> RunOutcome {
        let mut state = self.watch();
        let ended = state.wait_for(|state| state.finished.is_some()).await;
        let finished = ended.ok().and_then(|state| Some(state.finished.as_ref()?.0.clone()));
        finished.unwrap_or(RunOutcome::Lost)
    }

    /// Asks the backend to end the run and to report how far it came.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// The same for a run that no client waits for. It is recorded like any other, and aborted if
    /// it does not report in time.
    pub(crate) fn give_up(&self) {
        self.end();
        let live = self.clone();
        tokio::spawn(async move { live.wait_or_abort().await });
    }

    /// Waits until the run has ended; aborts it if that takes too long.
    async fn wait_or_abort(&self) {
        if timeout(END_TIMEOUT, self.finished()).await.is_err() {
            self.abort();
            self.finished().await;
        }
    }

    /// Asks the backend to end the run, and waits for its outcome.
    pub(crate) async fn end_now(&self) -> RunOutcome {
        self.end();
        self.wait_or_abort().await;
        self.finished().await
    }

    fn has_finished(&self) -> bool {
        self.state.borrow().finished.is_some()
    }

    /// Ends the run at once, without a report.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Removes an approval that is settled.
    pub(crate) fn settled(&self, approval_id: &ApprovalId) {
        self.state.send_modify(|state| state.waiting.retain(|known| known.id != *approval_id));
    }

    fn is_stale(&self) -> bool {
        self.state
            .borrow()
            .finished
            .as_ref()
            .is_some_and(|(_, since)| since.elapsed() > KEEP_FINISHED)
    }
}

/// All runs under way, and by id those that clients can ask for.
#[derive(Debug, Default)]
pub(crate) struct LiveRuns {
    by_id: Arc<ById>,
    all: Mutex<Vec<LiveRun>>,
}

type ById = Mutex<HashMap<RunId, (LiveRun, Option<RunDetails>)>>;

impl LiveRuns {
    /// Starts a run that ends with the server at the latest.
    pub(crate) fn start<F>(&self, work: impl FnOnce(RunReporter) -> F) -> LiveRun
    where
        F: Future<Output = RunOutcome> + Send + 'static,
    {
        let (live, mut running) = LiveRun::start(None, ProgressUpdates::Off, None, work);
        self.add(&live);
        let run = live.clone();
        tokio::spawn(async move { run.publish_end(&mut running).await });
        live
    }

    /// The same for a run that clients can find by its id while it is under way. `cut_off` is
    /// called if the run was aborted without a report.
    pub(crate) fn start_listed<F>(
        &self,
        details: RunDetails,
        feed: Option<Feed>,
        updates: ProgressUpdates,
        work: impl FnOnce(RunReporter) -> F,
        cut_off: impl FnOnce(&RunId) + Send + 'static,
    ) -> LiveRun
    where
        F: Future<Output = RunOutcome> + Send + 'static,
    {
        let registration = RunRegistration { by_id: self.by_id.clone(), details };
        let (live, mut running) = LiveRun::start(feed, updates, Some(registration), work);
        self.add(&live);
        let (run, by_id) = (live.clone(), self.by_id.clone());
        tokio::spawn(async move {
            run.publish_end(&mut running).await;
            let Some(id) = run.state.borrow().run_id.clone() else { return };
            if matches!(run.finished().await, RunOutcome::Aborted) {
                cut_off(&id);
            }
            // A run whose id a client knows is kept a while longer.
            let mut by_id = lock(&by_id);
            if by_id.get(&id).is_some_and(|(_, details)| details.is_some()) {
                by_id.remove(&id);
            }
        });
        live
    }

    fn add(&self, live: &LiveRun) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|live| !live.has_finished());
        all.push(live.clone());
    }

    /// Keeps a run findable by its id, also for a while after it has ended.
    pub(crate) fn keep_findable(&self, run_id: &RunId, live: &LiveRun) {
        let mut by_id = lock(&self.by_id);
        by_id.retain(|_, (live, _)| !live.is_stale());
        by_id.insert(run_id.clone(), (live.clone(), None));
    }

    /// The run with this id, if this process has it.
    pub(crate) fn find(&self, run_id: &RunId) -> Option<LiveRun> {
        lock(&self.by_id).get(run_id).map(|(live, _)| live.clone())
    }

    /// The runs under way, as a list shows them.
    pub(crate) fn under_way(&self) -> Vec<RunInfo> {
        let by_id = lock(&self.by_id);
        let known =
            by_id.iter().filter_map(|(id, (live, details))| Some((id, live, details.clone()?)));
        known
            .map(|(id, live, details)| {
                let waits = !live.state.borrow().waiting.is_empty();
                RunInfo {
                    id: id.clone(),
                    status: if waits { RunStatus::ApprovalRequired } else { RunStatus::Running },
                    work: details.work,
                    durable: details.durable,
                    started_ms: details.started_ms,
                    finished_ms: None,
                }
            })
            .collect()
    }

    /// Ends every run at once, without reports.
    pub(crate) fn abort_all(&self) {
        for live in self.take_all() {
            live.abort();
        }
    }

    /// Asks every run to end, waits for all of them, and says how many there were.
    pub(crate) async fn end_all(&self) -> usize {
        let mut all = self.take_all();
        all.retain(|live| !live.has_finished());
        all.iter().for_each(LiveRun::end);
        for live in &all {
            live.wait_or_abort().await;
        }
        all.len()
    }

    fn take_all(&self) -> Vec<LiveRun> {
        std::mem::take(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn lock(by_id: &ById) -> std::sync::MutexGuard<'_, HashMap<RunId, (LiveRun, Option<RunDetails>)>> {
    by_id.lock().unwrap_or_else(PoisonError::into_inner)
}
