//! Runs that this process has under way, and what is known of each.
//!
//! A run lives in a task of its own, so that it can outlast the request that started it: when a
//! person has to decide, or when it takes longer than a client waits. Requests only look on.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle},
};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::{ApprovalRequest, Observer, RunReport},
    feed::Feed,
    records::RunInfo,
    sessions::SessionError,
};

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
    /// With the report of a run, and the canonical result as text.
    Run(Arc<RunReport>, Bytes),
    /// With the `CallToolResult` of one tool.
    Tool(Arc<Value>),
    /// Its session did not take it; nothing was run.
    Refused(SessionError),
    /// It was aborted.
    Aborted,
    /// The backend fell over.
    Lost,
}

/// A run under way, or just ended.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    state: Arc<watch::Sender<State>>,
    end: CancellationToken,
    task: Arc<OnceLock<AbortHandle>>,
}

/// A run that is found by its id from when it has one.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    by_id: Arc<ById>,
    about: About,
}

impl Known {
    /// The run has an id: who is told of it can ask for it at once.
    pub(crate) fn announce(&self, run_id: &str, live: Live) {
        lock(&self.by_id).insert(run_id.to_owned(), (live, Some(self.about.clone())));
    }
}

/// What a list says of a run that is under way.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) language: String,
    pub(crate) durable: bool,
    pub(crate) started_ms: u64,
}

impl Live {
    /// Starts what `work` makes of an observer.
    fn start<F>(
        feed: Option<Feed>,
        known: Option<Known>,
        work: impl FnOnce(Observer) -> F,
    ) -> (Self, JoinHandle<Finished>)
    where
        F: Future<Output = Finished> + Send + 'static,
    {
        let live = Self {
            state: Arc::new(watch::Sender::new(State::default())),
            end: CancellationToken::new(),
            task: Arc::default(),
        };
        let running = tokio::spawn(work(Observer::new(live.clone(), feed, known)));
        // Nobody else sets it.
        let _ = live.task.set(running.abort_handle());
        (live, running)
    }

    /// Waits for the end, and tells those who look on.
    async fn tell_end(&self, running: &mut JoinHandle<Finished>) {
        let finished = match running.await {
            Ok(finished) => finished,
            Err(error) if error.is_cancelled() => Finished::Aborted,
            Err(error) => {
                tracing::error!(%error, "a run took its task down");
                Finished::Lost
            }
        };
        self.state.send_modify(|state| {
            state.waiting.clear();
            state.finished = Some((finished, Instant::now()));
        });
    }

    /// Changes what is known.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
    }

    /// Completes when the run is to end.
    pub(crate) fn told_to_end(&self) -> impl Future<Output = ()> + Send + 'static {
        self.end.clone().cancelled_owned()
    }

    /// What is known, now and as it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// How it ended, once it has.
    pub(crate) async fn finished(&self) -> Finished {
        let mut state = self.watch();
        let ended = state.wait_for(|state| state.finished.is_some()).await;
        let finished = ended.ok().and_then(|state| Some(state.finished.as_ref()?.0.clone()));
        finished.unwrap_or(Finished::Lost)
    }

    /// Asks the backend to end the run, and to say what came of it.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// Ends the run, without a word.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Nobody needs to be asked for this any more.
    pub(crate) fn settled(&self, approval_id: &str) {
        self.state.send_modify(|state| state.waiting.retain(|known| known.id != approval_id));
    }

    fn is_stale(&self) -> bool {
        self.state
            .borrow()
            .finished
            .as_ref()
            .is_some_and(|(_, since)| since.elapsed() > KEEP_FINISHED)
    }
}

/// All runs under way, and by id those that can be asked for.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_id: Arc<ById>,
    all: Mutex<Vec<AbortHandle>>,
}

type ById = Mutex<HashMap<String, (Live, Option<About>)>>;

impl Runs {
    /// Starts a run that ends with the server, at the latest.
    pub(crate) fn start<F>(&self, work: impl FnOnce(Observer) -> F) -> Live
    where
        F: Future<Output = Finished> + Send + 'static,
    {
        let (live, mut running) = Live::start(None, None, work);
        self.note(&running);
        let told = live.clone();
        tokio::spawn(async move { told.tell_end(&mut running).await });
        live
    }

    /// The same for a run that can be asked for by its id from when it has one to when it ends.
    pub(crate) fn start_known<F>(
        &self,
        about: About,
        feed: Option<Feed>,
        work: impl FnOnce(Observer) -> F,
    ) -> Live
    where
        F: Future<Output = Finished> + Send + 'static,
    {
        let known = Known { by_id: self.by_id.clone(), about };
        let (live, mut running) = Live::start(feed, Some(known), work);
        self.note(&running);
        let (told, by_id) = (live.clone(), self.by_id.clone());
        tokio::spawn(async move {
            told.tell_end(&mut running).await;
            let Some(id) = told.state.borrow().run_id.clone() else { return };
            // One that a client was told to ask for is kept a while longer.
            let mut by_id = lock(&by_id);
            if by_id.get(&id).is_some_and(|(_, about)| about.is_some()) {
                by_id.remove(&id);
            }
        });
        live
    }

    fn note(&self, running: &JoinHandle<Finished>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|task| !task.is_finished());
        all.push(running.abort_handle());
    }

    /// Keeps a run so that its id is enough to find it.
    pub(crate) fn keep(&self, run_id: &str, live: &Live) {
        let mut by_id = lock(&self.by_id);
        by_id.retain(|_, (live, _)| !live.is_stale());
        by_id.insert(run_id.to_owned(), (live.clone(), None));
    }

    /// The run with this id, if it is here.
    pub(crate) fn find(&self, run_id: &str) -> Option<Live> {
        lock(&self.by_id).get(run_id).map(|(live, _)| live.clone())
    }

    /// Those under way, as a list shows them.
    pub(crate) fn under_way(&self) -> Vec<RunInfo> {
        let by_id = lock(&self.by_id);
        let known = by_id.iter().filter_map(|(id, (live, about))| Some((id, live, about.clone()?)));
        known
            .map(|(id, live, about)| {
                let waits = !live.state.borrow().waiting.is_empty();
                RunInfo {
                    id: id.clone(),
                    status: if waits { "approval_required" } else { "running" }.to_owned(),
                    language: about.language,
                    durable: about.durable,
                    started_ms: about.started_ms,
                    finished_ms: None,
                }
            })
            .collect()
    }

    /// Ends every run.
    pub(crate) fn abort_all(&self) {
        for task in self.all.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

fn lock(by_id: &ById) -> std::sync::MutexGuard<'_, HashMap<String, (Live, Option<About>)>> {
    by_id.lock().unwrap_or_else(PoisonError::into_inner)
}
