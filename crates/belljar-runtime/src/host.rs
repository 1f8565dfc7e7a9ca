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
    EngineName, ErrorCode, LimitExcess, Limits, RunError, RunId, RunRequest, RunResult,
};
use belljar_jail::{CellKind, NetworkAccess, ZygotePlan};
use belljar_net::NetPolicy;
use belljar_wire::{GuestGrants, GuestNetwork};
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::timeout,
};

use crate::{
    EngineSource, LaunchError, Listener, ToolLink, ZygoteKind,
    cell::{Cell, CellSockets},
    cell_limits::{cell_limits, parked_limits},
    files::{AbandonOnDrop, CollectedFiles, Leftovers},
    grants::{self, CheckedGrants, OpenWorkspace},
    network::{self, NetworkOptions, RunNetwork, RunReach},
    pool::Pool,
    pools::Pools,
    result_builder::ResultBuilder,
    run::{self, CellRunOutcome, CollectFiles, ReturnedValue, RunSpec},
    scan::{self, Survey, WrittenTree, WrittenTrees},
    session::most_sessions,
    transcript::Transcript,
};

/// The settings of a host.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Finds the engines of this machine.
    pub engines: Arc<dyn EngineSource>,
    /// Engines to start right away; the others start when they are first needed.
    pub ready: Vec<EngineName>,
    /// How cells are confined. Every result shows a plan that is not the full one.
    pub plan: ZygotePlan,
    /// Parked cells of each kind of zygote; with 0 every run gets a fresh cell.
    pub pool_size: usize,
    /// The most a run may ask for.
    pub maximum: Limits,
    /// Paths that no grant and no workspace makes accessible, whether or not they exist: the operator's own
    /// state and configuration.
    pub protected: Vec<PathBuf>,
    /// Names that no commit creates in any directory and that no granted tree shows, because the host would
    /// obey files with these names.
    pub reserved_names: Vec<OsString>,
}

/// Runs guest code in cells. Cheap to clone; all clones share the same pools.
#[derive(Debug, Clone)]
pub struct Host {
    pub(crate) pools: Arc<Pools>,
    cells: Arc<Semaphore>,
    collecting: Arc<Semaphore>,
    /// Limits the uploads into sessions at the same time.
    pub(crate) uploads: Arc<Semaphore>,
    /// Limits the sessions at the same time.
    pub(crate) sessions: Arc<Semaphore>,
    maximum: Limits,
    protected: Arc<[PathBuf]>,
    /// Names that no commit creates in any directory.
    pub(crate) reserved_names: Arc<[OsString]>,
    /// Walks through written trees that run in the background.
    withholding: Arc<Semaphore>,
}

/// The parts of a run beside its request.
#[derive(Debug, Default)]
pub struct RunOptions {
    /// The id of the run, if the caller needs to know it before the run starts; otherwise it gets a new one.
    pub id: Option<RunId>,
    /// The run's end of the bridge; without one the run has no tools.
    pub tools: Option<ToolLink>,
    /// Receives output as the run prints it.
    pub listener: Option<Arc<dyn Listener>>,
    /// The network, beside the hosts that the request names.
    pub network: NetworkOptions,
}

/// A run that takes longer than this does not leave its place in the pool empty.
const REFILL_DELAY: Duration = Duration::from_millis(5);
/// Cells in use at once; further runs wait. Each has three descriptors in the host and two processes.
const MAX_CELLS: usize = 256;

/// Uploads into sessions at the same time.
const MAX_UPLOADS: usize = 8;

/// Runs whose files are collected at the same time.
const MAX_COLLECTING: usize = 8;

/// Background walks through written trees. The host waits for them when it shuts down.
const MAX_WITHHOLDING: u32 = 4096;

/// A run that was admitted, and its cell.
struct AdmittedRun<'a> {
    cell: Cell,
    /// Counts it among the cells in use.
    permit: SemaphorePermit<'a>,
    pool: Arc<Pool>,
    guest: GuestGrants,
    workspace: Option<OpenWorkspace>,
    written: Vec<WrittenTree>,
    network: RunReach,
}

impl Host {
    /// Starts the zygotes of the ready engines, waits until they are confined, and fills their pools.
    pub async fn start(config: HostConfig) -> Result<Self, LaunchError> {
        let HostConfig { engines, ready, plan, pool_size, maximum, protected, reserved_names } =
            config;
        let pools = Pools::new(engines, plan, pool_size, parked_limits(&maximum));
        for engine in ready {
            let zygote = pools.engines.zygote_for(engine, "");
            pools.get(zygote, NetworkAccess::None).await?.refill().await;
        }
        let places = |count| Arc::new(Semaphore::new(count));
        Ok(Self {
            pools: Arc::new(pools),
            cells: places(MAX_CELLS),
            collecting: places(MAX_COLLECTING),
            uploads: places(MAX_UPLOADS),
            sessions: places(most_sessions()),
            maximum,
            protected: protected.into(),
            reserved_names: reserved_names.into(),
            withholding: places(MAX_WITHHOLDING as usize),
        })
    }

    /// Runs guest code to its end. Every failure is in the result.
    ///
    /// Dropping the future ends the run and its cell.
    pub async fn run(&self, request: RunRequest) -> RunResult {
        self.run_with(request, RunOptions::default(), std::future::pending()).await
    }

    /// Runs guest code with an id, a bridge and a listener. When `abort` completes, the run ends as aborted,
    /// with the output it has printed.
    pub async fn run_with(
        &self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let admitted = (Instant::now(), SystemTime::now());
        let mut abort = pin!(abort);
        let zygote = self.pools.engines.zygote_for(request.engine(), &request.code);
        let RunOptions { id, tools, listener, network } = options;
        let transcript = Transcript::new(&request.limits, listener);
        let mut result = ResultBuilder::new(zygote.engine, id, transcript);
        let run =
            run::unless_aborted(abort.as_mut(), self.prepare(&request, zygote, &network)).await;
        let outcome = match run {
            Err(refusal) => Err(refusal),
            Ok(run) => {
                result.starts(admitted.0, &run.pool);
                let links = (tools, network);
                self.run_admitted(run, request, admitted.1, links, &mut result, abort).await
            }
        };
        result.finish(outcome)
    }

    /// Runs the code in its cell, then collects its files and withholds in its trees.
    async fn run_admitted(
        &self,
        run: AdmittedRun<'_>,
        request: RunRequest,
        began: SystemTime,
        (tools, options): (Option<ToolLink>, NetworkOptions),
        result: &mut ResultBuilder,
        mut abort: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<ReturnedValue, RunError> {
        let AdmittedRun { mut cell, permit, pool, guest, workspace, written, network } = run;
        let sockets = cell.body.take_listener();
        let mut network = match network.network == GuestNetwork::None && sockets.is_none() {
            true => None,
            false => Some(start_network(sockets, &network, options, request.limits)?),
        };
        if let Some(lines) = network.as_mut().and_then(RunNetwork::lines) {
            result.transcript.take_lines_of(lines);
        }
        let refill = refill_once_dropped(pool);
        // A guard, because the caller may drop this future.
        let guard = self.written_trees(written).guard(cell.body.keeper());
        let limits = request.limits;
        let collect =
            if workspace.is_some() { CollectFiles::Always } else { CollectFiles::IfNamed };
        let excess = network.as_ref().map(RunNetwork::excess).unwrap_or_default();
        let mut spec = RunSpec::new(request, guest, tools, collect, CellKind::Single);
        spec.fetches = network.as_ref().map(RunNetwork::fetches);
        let spec = spec.ended_by(excess.clone());
        let started = Instant::now();
        let mut run = run::drive(&mut cell, spec, &mut result.transcript, abort.as_mut()).await;
        if let Some(network) = network {
            network.stop().await;
            result.transcript.log_last_host_lines();
            // It may be known only when all connections have ended.
            run.outcome = run.outcome.and_then(|value| excess.error().map_or(Ok(value), Err));
        }
        result.ended(started, &run);
        let CellRunOutcome { outcome, work, reports, .. } = run;
        if let Some(work) = work {
            let abandoned = AbandonOnDrop::default();
            let left = work.and_then(|work| Ok((work, cell.body.keeper()?)));
            let left = left.map(|(work, keeper)| Leftovers {
                work,
                keeper: Some(keeper),
                named: reports.artifacts,
                workspace,
                reserved_names: self.reserved_names.clone(),
                began,
                success: outcome.is_ok(),
                limits,
                is_abandoned: abandoned.0.clone(),
            });
            result.files = self.collect_files(left, &abandoned, abort).await;
        }
        if let Some(guard) = guard {
            result.withheld = guard.withhold().await;
        }
        drop((cell, permit, refill));
        outcome
    }

    /// Ends all cells and zygotes, and waits until they are gone.
    pub async fn shutdown(self) {
        self.pools.shutdown().await;
        // Waits for all background walks.
        let _ = self.withholding.acquire_many(MAX_WITHHOLDING).await;
    }

    /// Checks the engine, the limits and the sizes of a request.
    pub(crate) fn admit(&self, request: &RunRequest, limits: &Limits) -> Result<(), RunError> {
        self.check(request, limits).map_err(RunError::with_advice)
    }

    fn check(&self, request: &RunRequest, limits: &Limits) -> Result<(), RunError> {
        let (engine, language) = (request.engine(), request.language);
        engine.check(language).map_err(|mismatch| {
            RunError::new(ErrorCode::RequestInvalid, mismatch.to_string())
                .with_hint(mismatch.hint())
        })?;
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
            let message = format!("open_files of {asked} is too low: a cell needs {least}");
            return Err(RunError::new(ErrorCode::RequestInvalid, message));
        }
        if request.code.len() as u64 > limits.code_bytes {
            return Err(RunError::new(
                ErrorCode::LimitCode,
                format!(
                    "{} bytes of code, but {} are allowed",
                    request.code.len(),
                    limits.code_bytes
                ),
            )
            .with_hint("Pass data as the context instead of writing it into the code."));
        }
        let argument_bytes: usize = request.arguments.iter().map(String::len).sum();
        if argument_bytes > RunRequest::MAX_ARGUMENT_BYTES {
            let most = RunRequest::MAX_ARGUMENT_BYTES;
            let message = format!("{argument_bytes} bytes of arguments, but {most} are allowed");
            return Err(RunError::new(ErrorCode::RequestInvalid, message)
                .with_hint("pass larger data as the context"));
        }
        if request.arguments.iter().any(|argument| argument.contains('\0')) {
            let message = "an argument contains a NUL character, which programs cannot receive";
            return Err(RunError::new(ErrorCode::RequestInvalid, message));
        }
        let context_bytes = request.context.as_ref().map_or(0, |context| context.get().len());
        if context_bytes as u64 > limits.context_bytes {
            return Err(RunError::new(
                ErrorCode::LimitContext,
                format!(
                    "{context_bytes} bytes of context, but {} are allowed",
                    limits.context_bytes
                ),
            )
            .with_hint("Pass less, or grant the code a file with the data."));
        }
        Ok(())
    }

    /// Collects what a run left in `/work`. An abort does not stop a commit that has begun.
    async fn collect_files(
        &self,
        left: io::Result<Leftovers>,
        abandoned: &AbandonOnDrop,
        abort: Pin<&mut impl Future<Output = ()>>,
    ) -> CollectedFiles {
        let left = match left {
            Ok(left) => left,
            Err(error) => return CollectedFiles::failed(&error),
        };
        // Artifacts are held in memory, so few runs do this at a time.
        let _place = self.collecting.acquire().await;
        let mut collecting = tokio::task::spawn_blocking(|| left.collect_and_commit());
        let files = tokio::select! {
            files = &mut collecting => files,
            () = abort => {
                abandoned.0.store(true, Ordering::SeqCst);
                collecting.await
            }
        };
        files.unwrap_or_else(|error| CollectedFiles::failed(&error))
    }

    /// Collects what a run left in the `/work` of a session, which goes on.
    pub(crate) async fn collect_live_files(&self, left: io::Result<Leftovers>) -> CollectedFiles {
        let never = pin!(std::future::pending());
        self.collect_files(left, &AbandonOnDrop::default(), never).await
    }

    /// Admits a session: the pool of its cell, its grants, and the trees it may write to.
    pub(crate) async fn admit_session(
        &self,
        request: &RunRequest,
        zygote: ZygoteKind,
        policy: Option<NetPolicy>,
    ) -> Result<(Arc<Pool>, CheckedGrants, Vec<WrittenTree>), RunError> {
        self.admit(request, &request.limits)?;
        let survey = self.survey(request).await?;
        let network = NetworkOptions { policy, ..NetworkOptions::default() };
        let engines = &*self.pools.engines;
        let checked = grants::check(request, engines, &self.protected, &survey, &network)?;
        let pool = self.pools.get(zygote, network::access(checked.network.network)).await;
        let pool = pool.map_err(|error| launch_failure(&error))?;
        Ok((pool, checked, survey.written))
    }

    /// Admits a request and gets it a cell of its own.
    async fn prepare(
        &self,
        request: &RunRequest,
        zygote: ZygoteKind,
        network: &NetworkOptions,
    ) -> Result<AdmittedRun<'_>, RunError> {
        self.admit(request, &request.limits)?;
        let survey = self.survey(request).await?;
        let CheckedGrants { cell: grants, guest, workspace, network } =
            grants::check(request, &*self.pools.engines, &self.protected, &survey, network)?;
        let permit = self.cells.acquire().await;
        let permit = permit.map_err(|_| run::aborted())?;
        let pool = self.pools.get(zygote, network::access(network.network)).await;
        let pool = pool.map_err(|error| launch_failure(&error))?;
        let limits = cell_limits(&request.limits);
        let cell = if grants.is_empty() {
            pool.take().await.map_err(|error| launch_failure(&error))?
        } else {
            pool.make_granted(CellKind::Single, grants, limits).await?
        };
        let failed = |what: &str, error: io::Error| {
            RunError::new(ErrorCode::SandboxFailed, format!("could not resize {what}: {error}"))
        };
        let resized = cell.body.resize_scratch(limits.disk_bytes, limits.inodes).await;
        resized.map_err(|error| failed("/work and /tmp", error))?;
        cell.body.limit_cgroup(&limits).map_err(|error| failed("the control group", error))?;
        Ok(AdmittedRun { cell, permit, pool, guest, workspace, written: survey.written, network })
    }

    /// Scans the trees that a request asks for.
    async fn survey(&self, request: &RunRequest) -> Result<Survey, RunError> {
        let trees = grants::requested_trees(request)?;
        if trees.is_empty() {
            return Ok(Survey::default());
        }
        let reserved = self.reserved_names.clone();
        let surveyed = tokio::task::spawn_blocking(move || scan::survey(&trees, &reserved)).await;
        surveyed.unwrap_or_else(|error| {
            let message = format!("could not scan the granted trees: {error}");
            Err(RunError::new(ErrorCode::SandboxFailed, message))
        })
    }

    /// The trees that a cell of this host may write to.
    pub(crate) fn written_trees(&self, written: Vec<WrittenTree>) -> WrittenTrees {
        let (reserved, background) = (self.reserved_names.clone(), self.withholding.clone());
        WrittenTrees { list: written.into(), reserved, background }
    }
}

/// Starts the network of a run that may reach hosts.
fn start_network(
    sockets: Option<CellSockets>,
    reach: &RunReach,
    options: NetworkOptions,
    limits: Limits,
) -> Result<RunNetwork, RunError> {
    let started = RunNetwork::start(sockets, reach, options, limits);
    started.map_err(|error| network::not_started(&error))
}

/// Refills the pool for a cell that was taken. A short run refills when it ends and drops the sender, so that
/// refilling does not compete with it; a long run refills after a short delay.
fn refill_once_dropped(pool: Arc<Pool>) -> oneshot::Sender<Infallible> {
    let (running, ended) = oneshot::channel();
    tokio::spawn(async move {
        let _ = timeout(REFILL_DELAY, ended).await;
        pool.refill().await;
    });
    running
}

/// Logs why there is no cell, and turns it into the error for the caller.
pub(crate) fn launch_failure(error: &LaunchError) -> RunError {
    tracing::error!(error = error as &dyn std::error::Error, "could not start a cell");
    let refused = RunError::new(error.code(), error.to_string());
    if matches!(error, LaunchError::NoEngine(_)) {
        return refused;
    }
    if matches!(error, LaunchError::NoRoom { .. }) {
        return refused.with_hint(
            "no code ran; try again when other runs have ended, or allow this user more processes \
             (ulimit -u, pids.max) or open files (ulimit -n)",
        );
    }
    refused.with_hint("no code ran; `belljar doctor` says what this machine lacks")
}
