//! The host: admission, cells, deadlines, results.

use std::{
    convert::Infallible,
    ffi::OsString,
    future::Future,
    io,
    path::PathBuf,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use belljar_contract::{
    EngineName, ErrorCode, LimitExcess, Limits, RunError, RunRequest, RunResult,
};
use belljar_jail::{CellKind, ZygotePlan};
use belljar_wire::GuestGrants;
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::timeout,
};

use crate::{
    EngineSource, LaunchError, Listener, ToolLink, ZygoteKind,
    cell::Cell,
    files::{AbandonOnDrop, Leftovers, Settled},
    grants::{self, Checked, OpenWorkspace},
    orders::{cell_limits, command, parked_limits},
    pool::Pool,
    pools::Pools,
    report::{Report, milliseconds_since},
    run::{self, Driven, Files, Task},
    scan::{self, Survey, Trees, WrittenTree},
    session::most_sessions,
    transcript::Transcript,
};

/// How a host is set up.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Where engines come from.
    pub engines: Arc<dyn EngineSource>,
    /// Engines that are started right away; others are when they are first needed.
    pub ready: Vec<EngineName>,
    /// How cells are confined; anything but the full plan shows in every result.
    pub plan: ZygotePlan,
    /// Parked cells of each engine; 0 makes every run use a fresh one.
    pub pool_size: usize,
    /// The most a run may ask for.
    pub maximum: Limits,
    /// Paths that no grant and no workspace gives a guest any access to, whether or not anything is
    /// there: the operator's own state and configuration.
    pub protected: Vec<PathBuf>,
    /// Names that no commit brings to any directory, and that no granted tree shows: what is found
    /// under them would be obeyed.
    pub reserved_names: Vec<OsString>,
}

/// Runs guest code in cells. Cheap to clone; all clones share one pool.
#[derive(Debug, Clone)]
pub struct Host {
    pools: Arc<Pools>,
    cells: Arc<Semaphore>,
    settling: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    maximum: Limits,
    protected: Arc<[PathBuf]>,
    reserved_names: Arc<[OsString]>,
    looking: Arc<Semaphore>,
}

/// What a run is given beside its request.
#[derive(Debug, Default)]
pub struct RunOptions {
    /// Its name, where that has to be known before it starts; otherwise it gets a new one.
    pub id: Option<String>,
    /// Its end of the bridge for tool calls; without one it has no tools.
    pub tools: Option<ToolLink>,
    /// Receives what it prints, as it does.
    pub listener: Option<Arc<dyn Listener>>,
}

/// A run that takes longer than this does not keep its place in the pool empty.
const REFILL_DELAY: Duration = Duration::from_millis(5);
/// Cells in use at once; further runs wait. Each has three descriptors here and two processes.
const MAX_CELLS: usize = 256;

/// Files on their way into sessions at the same time.
const MAX_UPLOADS: usize = 8;

/// Runs whose files are looked at at the same time.
const MAX_SETTLING: usize = 8;

/// Looks through written trees that nobody waits for but the host's end.
const MAX_LOOKING: u32 = 4096;

/// A run that was let in, and the cell it got.
struct Admitted<'a> {
    cell: Cell,
    /// Its place among the cells in use.
    permit: SemaphorePermit<'a>,
    pool: Arc<Pool>,
    guest: GuestGrants,
    workspace: Option<OpenWorkspace>,
    written: Vec<WrittenTree>,
}

impl Host {
    /// Starts zygotes, waits until they are confined, and fills their pools.
    pub async fn start(config: HostConfig) -> Result<Self, LaunchError> {
        let HostConfig { engines, ready, plan, pool_size, maximum, protected, reserved_names } =
            config;
        let pools = Pools::new(engines, plan, pool_size, parked_limits(&maximum));
        for engine in ready {
            pools.get(pools.engines().zygote_for(engine, "")).await?.refill().await;
        }
        let cells = Arc::new(Semaphore::new(MAX_CELLS));
        let settling = Arc::new(Semaphore::new(MAX_SETTLING));
        let uploads = Arc::new(Semaphore::new(MAX_UPLOADS));
        let sessions = Arc::new(Semaphore::new(most_sessions()));
        let (pools, protected) = (Arc::new(pools), protected.into());
        let reserved_names = reserved_names.into();
        let looking = Arc::new(Semaphore::new(MAX_LOOKING as usize));
        Ok(Self {
            pools,
            cells,
            settling,
            uploads,
            sessions,
            maximum,
            protected,
            reserved_names,
            looking,
        })
    }

    /// Runs guest code to its end. Whatever goes wrong is in the result.
    ///
    /// Dropping the future ends the run and its cell.
    pub async fn run(&self, request: RunRequest) -> RunResult {
        self.run_with(request, RunOptions::default(), std::future::pending()).await
    }

    /// The same with a name, a bridge and a listener, until `abort` completes: then the run ends as
    /// aborted, with what it printed.
    pub async fn run_with(
        &self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let (admitted, began) = (Instant::now(), SystemTime::now());
        let mut abort = pin!(abort);
        let zygote = self.pools.engines().zygote_for(request.engine(), &request.code);
        let RunOptions { id, tools, listener } = options;
        let mut report = Report::new(zygote.engine, id);
        let mut transcript = Transcript::new(&request.limits, listener);
        let prepared = tokio::select! {
            biased;
            () = &mut abort => Err(run::aborted()),
            prepared = self.prepare(&request, zygote) => prepared,
        };
        let mut outcome = match prepared {
            Err(refusal) => Err(refusal),
            Ok(Admitted { mut cell, permit, pool, guest, workspace, written }) => {
                report.metrics.startup_ms = milliseconds_since(admitted);
                report.confined(&pool);
                let running = refill_once_dropped(pool);
                // Also when nobody waits for the end of this.
                let writing = self.trees(written).written_by(cell.body.keeper());
                let limits = request.limits;
                let files = if workspace.is_some() { Files::Wanted } else { Files::WantedIfNamed };
                let durable = tools.as_ref().and_then(|tools| tools.durable.clone());
                let command = command(request, guest, durable, false);
                let started = Instant::now();
                let task = Task { command: &command, limits: &limits, files, tools };
                let driven = run::drive(&mut cell, task, &mut transcript, abort.as_mut()).await;
                report.measured(started, &driven);
                let Driven { outcome, work, said, .. } = driven;
                if let Some(work) = work {
                    let abandoned = AbandonOnDrop::default();
                    let (success, is_abandoned) = (outcome.is_ok(), abandoned.0.clone());
                    let left = work.and_then(|work| Ok((work, cell.body.keeper()?)));
                    let left = left.map(|(work, keeper)| Leftovers {
                        work,
                        keeper: Some(keeper),
                        named: said.named,
                        workspace,
                        reserved_names: self.reserved_names.clone(),
                        began,
                        success,
                        limits,
                        is_abandoned,
                    });
                    report.settled = self.settle(left, &abandoned, abort).await;
                }
                if let Some(writing) = writing {
                    report.taken_back = writing.take_back().await;
                }
                drop((cell, permit, running));
                outcome
            }
        };
        if let Some(error) = report.settled.error.take().filter(|_| outcome.is_ok()) {
            outcome = Err(error);
        }
        report.into_result(outcome, transcript)
    }

    /// Ends every cell and every zygote, and waits until they are gone.
    pub async fn shutdown(self) {
        self.pools.shutdown().await;
        // What was written is looked through to the end.
        let _ = self.looking.acquire_many(MAX_LOOKING).await;
    }

    /// Checks a request's limits and sizes.
    pub(crate) fn admit(&self, request: &RunRequest, limits: &Limits) -> Result<(), RunError> {
        let (engine, language) = (request.engine(), request.language);
        if !engine.runs(language) {
            let message = format!("the engine {engine} does not run {language}");
            let usual = EngineName::default_for(language);
            return Err(RunError::new(ErrorCode::RequestInvalid, message)
                .with_hint(format!("leave `engine` out, or name {usual}")));
        }
        if let Some(LimitExcess { limit, asked, allowed }) = limits.excess(&self.maximum) {
            let name = limit.key();
            return Err(RunError::new(
                ErrorCode::LimitMaximum,
                format!("{name} of {asked} is not within the operator's maximum of {allowed}"),
            )
            .with_hint("ask for less, or raise [limits.maximum] in belljar.toml"));
        }
        if limits.open_files < Limits::FEWEST_OPEN_FILES {
            let (asked, least) = (limits.open_files, Limits::FEWEST_OPEN_FILES);
            let message = format!("open_files of {asked} is too few: a cell needs {least}");
            return Err(RunError::new(ErrorCode::RequestInvalid, message));
        }
        if request.code.len() as u64 > limits.code_bytes {
            return Err(RunError::new(
                ErrorCode::LimitCode,
                format!("{} bytes of code, {} allowed", request.code.len(), limits.code_bytes),
            )
            .with_hint("pass data in with --context instead of writing it into the code"));
        }
        let context_bytes = request.context.as_ref().map_or(0, |context| context.get().len());
        if context_bytes as u64 > limits.context_bytes {
            return Err(RunError::new(
                ErrorCode::LimitContext,
                format!("{context_bytes} bytes of context, {} allowed", limits.context_bytes),
            ));
        }
        Ok(())
    }

    /// Looks at what a run left in `/work`. An abort comes too late for a commit that has begun.
    async fn settle(
        &self,
        left: io::Result<Leftovers>,
        abandoned: &AbandonOnDrop,
        abort: Pin<&mut impl Future<Output = ()>>,
    ) -> Settled {
        let left = match left {
            Ok(left) => left,
            Err(error) => return Settled::failed(&error),
        };
        // What comes back is held in memory: of few runs at a time.
        let _turn = self.settling.acquire().await;
        let mut settling = tokio::task::spawn_blocking(|| left.settle());
        let settled = tokio::select! {
            settled = &mut settling => settled,
            () = abort => {
                abandoned.0.store(true, Ordering::SeqCst);
                settling.await
            }
        };
        settled.unwrap_or_else(|error| Settled::failed(&error))
    }

    /// Looks at what a run left in the `/work` of a session, which goes on.
    pub(crate) async fn settle_live(&self, left: io::Result<Leftovers>) -> Settled {
        let never = pin!(std::future::pending());
        self.settle(left, &AbandonOnDrop::default(), never).await
    }

    /// Names that no commit brings to any directory.
    pub(crate) fn reserved_names(&self) -> Arc<[OsString]> {
        self.reserved_names.clone()
    }

    /// The places of files on their way into sessions.
    pub(crate) fn uploads(&self) -> &Semaphore {
        &self.uploads
    }

    /// The places of sessions.
    pub(crate) fn sessions(&self) -> &Arc<Semaphore> {
        &self.sessions
    }

    /// Where the cells of a session come from, and what it is granted.
    pub(crate) async fn admit_session(
        &self,
        request: &RunRequest,
        zygote: ZygoteKind,
    ) -> Result<(Arc<Pool>, Checked, Vec<WrittenTree>), RunError> {
        self.admit(request, &request.limits)?;
        let survey = self.survey(request).await?;
        let checked = grants::check(request, self.pools.engines(), &self.protected, &survey)?;
        let pool = self.pools.get(zygote).await.map_err(|error| no_cell(&error))?;
        Ok((pool, checked, survey.written))
    }

    /// The zygote that suits a piece of code of an engine.
    pub(crate) fn zygote_for(&self, engine: EngineName, code: &str) -> ZygoteKind {
        self.pools.engines().zygote_for(engine, code)
    }

    /// Admits the request and gets it a cell of its own.
    async fn prepare(
        &self,
        request: &RunRequest,
        zygote: ZygoteKind,
    ) -> Result<Admitted<'_>, RunError> {
        self.admit(request, &request.limits)?;
        let survey = self.survey(request).await?;
        let Checked { cell: grants, guest, workspace } =
            grants::check(request, self.pools.engines(), &self.protected, &survey)?;
        let permit = self.cells.acquire().await;
        let permit = permit.map_err(|_| run::aborted())?;
        let pool = self.pools.get(zygote).await.map_err(|error| no_cell(&error))?;
        let limits = cell_limits(&request.limits);
        let cell = if grants.is_empty() {
            pool.take().await.map_err(|error| no_cell(&error))?
        } else {
            pool.make_granted(CellKind::Single, grants, limits).await?
        };
        let failed = |what: &str, error: io::Error| {
            RunError::new(ErrorCode::SandboxFailed, format!("could not size {what}: {error}"))
        };
        let resized = cell.body.resize_scratch(limits.disk_bytes, limits.inodes).await;
        resized.map_err(|error| failed("/work and /tmp", error))?;
        cell.body.limit_cgroup(&limits).map_err(|error| failed("the control group", error))?;
        Ok(Admitted { cell, permit, pool, guest, workspace, written: survey.written })
    }

    /// Looks through the trees that a request asks for.
    async fn survey(&self, request: &RunRequest) -> Result<Survey, RunError> {
        let asked = grants::asked(request)?;
        if asked.is_empty() {
            return Ok(Survey::default());
        }
        let reserved = self.reserved_names.clone();
        let surveyed = tokio::task::spawn_blocking(move || scan::survey(&asked, &reserved)).await;
        surveyed.unwrap_or_else(|error| {
            Err(RunError::new(ErrorCode::SandboxFailed, format!("could not look around: {error}")))
        })
    }

    /// Trees that are written to, to be looked through by this host.
    pub(crate) fn trees(&self, written: Vec<WrittenTree>) -> Trees {
        let (reserved, looking) = (self.reserved_names.clone(), self.looking.clone());
        Trees { list: written.into(), reserved, looking }
    }
}

/// Parks a cell for the one that is used: when what this returns is dropped, at the end of a
/// short run, so that refilling does not compete with it; soon, during a long one.
fn refill_once_dropped(pool: Arc<Pool>) -> oneshot::Sender<Infallible> {
    let (running, ended) = oneshot::channel();
    tokio::spawn(async move {
        let _ = timeout(REFILL_DELAY, ended).await;
        pool.refill().await;
    });
    running
}

/// Why there is no cell, for the operator and for the caller.
pub(crate) fn no_cell(error: &LaunchError) -> RunError {
    tracing::error!(error = error as &dyn std::error::Error, "no cell");
    let refused = RunError::new(error.code(), error.to_string());
    if matches!(error, LaunchError::NoEngine(_)) {
        return refused;
    }
    if matches!(error, LaunchError::NoRoom { .. }) {
        return refused.with_hint(
            "nothing was run; try again when other runs have ended, or allow this user more processes \
             (ulimit -u, pids.max) or open files (ulimit -n)",
        );
    }
    refused.with_hint("nothing was run; `belljar doctor` says what this machine lacks")
}
