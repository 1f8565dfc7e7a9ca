//! Runs that this process has under way, and what is known of each.
//!
//! A run lives in a task of its own, so that it can outlast the request that started it: when a
//! person has to decide, or when it takes longer than a client waits. Requests only look on.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{sync::watch, task::AbortHandle};

use crate::backend::{ApprovalRequest, Observer, RunReport};

/// How long an answer nobody fetched is kept.
const KEEP_FINISHED: Duration = Duration::from_mins(10);
/// A line of progress is cut to this many characters.
const MAX_LINE_CHARS: usize = 200;

/// What is known of a run.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) run_id: Option<String>,
    /// The latest thing it said.
    pub(crate) line: Option<String>,
    /// How many things it said.
    pub(crate) lines: u64,
    pub(crate) waiting: Vec<ApprovalRequest>,
    pub(crate) finished: Option<(Finished, Instant)>,
}

impl State {
    pub(crate) fn say(&mut self, text: &str) {
        self.lines += 1;
        self.line = Some(text.trim_end().chars().take(MAX_LINE_CHARS).collect());
    }
}

/// How it ended.
#[derive(Debug, Clone)]
pub(crate) enum Finished {
    /// With the report of a run.
    Run(Arc<RunReport>),
    /// With the `CallToolResult` of one tool.
    Tool(Arc<Value>),
    /// It was aborted.
    Aborted,
    /// The backend fell over.
    Lost,
}

/// A run under way, or just ended.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    state: Arc<watch::Sender<State>>,
    task: AbortHandle,
}

impl Live {
    /// Starts what `work` makes of an observer.
    fn start<F>(work: impl FnOnce(Observer) -> F) -> Self
    where
        F: Future<Output = Finished> + Send + 'static,
    {
        let state = Arc::new(watch::Sender::new(State::default()));
        let running = tokio::spawn(work(Observer::new(state.clone())));
        let task = running.abort_handle();
        let told = state.clone();
        tokio::spawn(async move {
            let finished = match running.await {
                Ok(finished) => finished,
                Err(error) if error.is_cancelled() => Finished::Aborted,
                Err(error) => {
                    tracing::error!(%error, "a run took its task down");
                    Finished::Lost
                }
            };
            told.send_modify(|state| {
                state.waiting.clear();
                state.finished = Some((finished, Instant::now()));
            });
        });
        Self { state, task }
    }

    /// What is known, now and as it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Ends the run.
    pub(crate) fn abort(&self) {
        self.task.abort();
    }

    /// Nobody needs to be asked for this any more.
    pub(crate) fn settled(&self, approval_id: &str) {
        Observer::new(self.state.clone()).settled(approval_id);
    }

    fn is_stale(&self) -> bool {
        self.state
            .borrow()
            .finished
            .as_ref()
            .is_some_and(|(_, since)| since.elapsed() > KEEP_FINISHED)
    }
}

/// All runs under way, and by id those that outlasted the request that started them.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_id: Mutex<HashMap<String, Live>>,
    all: Mutex<Vec<AbortHandle>>,
}

impl Runs {
    /// Starts a run that ends with the server, at the latest.
    pub(crate) fn start<F>(&self, work: impl FnOnce(Observer) -> F) -> Live
    where
        F: Future<Output = Finished> + Send + 'static,
    {
        let live = Live::start(work);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|task| !task.is_finished());
        all.push(live.task.clone());
        live
    }

    /// Keeps a run so that its id is enough to find it.
    pub(crate) fn keep(&self, run_id: &str, live: &Live) {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        by_id.retain(|_, live| !live.is_stale());
        by_id.insert(run_id.to_owned(), live.clone());
    }

    /// The run with this id, if it is here.
    pub(crate) fn find(&self, run_id: &str) -> Option<Live> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner).get(run_id).cloned()
    }

    /// Ends every run.
    pub(crate) fn abort_all(&self) {
        for task in self.all.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}
