//! The host: admission, cells, deadlines, results.

use std::{
    convert::Infallible,
    future::Future,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use belljar_jail::{CellLimits, ZygotePlan};
use belljar_wire::{Command, ErrorCode, GuestGrants, GuestLimits, RunCommand};
use serde_json::value::RawValue;
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::timeout,
};

use crate::{
    Isolation, LaunchError, Limits, Metrics, RunError, RunRequest, RunResult, Status,
    ZygoteProgram,
    cell::Cell,
    pool::Pool,
    run::{self, Finished},
    transcript::Transcript,
};

/// How a host is set up.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// The program that becomes the zygote, normally the running one.
    pub zygote: ZygoteProgram,
    /// How cells are confined; anything but the full plan shows in every result.
    pub plan: ZygotePlan,
    /// Parked cells; 0 makes every run use a fresh one.
    pub pool_size: usize,
    /// The most a run may ask for.
    pub maximum: Limits,
}

/// Runs guest code in cells. Cheap to clone; all clones share one pool.
#[derive(Debug, Clone)]
pub struct Host {
    pool: Arc<Pool>,
    cells: Arc<Semaphore>,
    maximum: Limits,
}

/// A run that takes longer than this does not keep its place in the pool empty.
const REFILL_DELAY: Duration = Duration::from_millis(5);
/// Cells in use at once; further runs wait. Each has three descriptors here and two processes.
const MAX_CELLS: usize = 256;

impl Host {
    /// Starts the zygote, waits until it is confined, and fills the pool.
    pub async fn start(config: HostConfig) -> Result<Self, LaunchError> {
        let HostConfig { zygote, plan, pool_size, maximum } = config;
        let pool = Pool::start(zygote, plan, pool_size, parked_limits(&maximum)).await?;
        pool.refill().await;
        Ok(Self { pool: Arc::new(pool), cells: Arc::new(Semaphore::new(MAX_CELLS)), maximum })
    }

    /// Runs guest code to its end. Whatever goes wrong is in the result.
    ///
    /// Dropping the future ends the run and its cell.
    pub async fn run(&self, request: RunRequest) -> RunResult {
        self.run_until(request, std::future::pending()).await
    }

    /// The same, until `abort` completes: then the run ends as aborted, with what it printed.
    pub async fn run_until(
        &self,
        request: RunRequest,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let admitted = Instant::now();
        let mut abort = pin!(abort);
        let mut report = Report::new(self.pool.memory_bound());
        let mut transcript = Transcript::new(&request.limits);
        let prepared = tokio::select! {
            biased;
            () = &mut abort => Err(run::aborted()),
            prepared = self.prepare(&request) => prepared,
        };
        let outcome = match prepared {
            Err(refusal) => Err(refusal),
            Ok((mut cell, permit)) => {
                report.metrics.startup_ms = milliseconds_since(admitted);
                report.confined(self.pool.plan());
                let running = self.refill_once_dropped();
                let limits = request.limits;
                let command = command(request);
                let started = Instant::now();
                let (outcome, measured) =
                    run::drive(&mut cell, &command, &limits, &mut transcript, abort).await;
                report.metrics.execution_ms = milliseconds_since(started);
                report.metrics.cpu_ms = milliseconds(measured.cpu);
                report.metrics.memory_mb = megabytes(measured.peak_memory_bytes);
                drop((cell, permit, running));
                outcome
            }
        };
        report.into_result(outcome, transcript)
    }

    /// Ends every cell and the zygote, and waits until they are gone.
    pub async fn shutdown(self) {
        self.pool.shutdown().await;
    }

    fn admit(&self, request: &RunRequest) -> Result<(), RunError> {
        let limits = &request.limits;
        if let Some((name, asked, allowed)) = limits.exceeds(&self.maximum) {
            return Err(RunError::new(
                ErrorCode::LimitMaximum,
                format!("{name} of {asked} is not within the operator's maximum of {allowed}"),
            )
            .with_hint("ask for less, or raise [limits.maximum] in belljar.toml"));
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

    /// Admits the request and gets it a cell of its own.
    async fn prepare(&self, request: &RunRequest) -> Result<(Cell, SemaphorePermit<'_>), RunError> {
        self.admit(request)?;
        let permit = self.cells.acquire().await;
        let permit = permit.map_err(|_| run::aborted())?;
        let mut cell = self.pool.take().await.map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "no cell");
            refused(&error)
        })?;
        let limits = cell_limits(&request.limits);
        let failed = |what: &str, error: std::io::Error| {
            RunError::new(ErrorCode::SandboxFailed, format!("could not size {what}: {error}"))
        };
        let resized = cell.resize_tmp(limits.disk_bytes, limits.inodes).await;
        resized.map_err(|error| failed("/tmp", error))?;
        cell.limit_cgroup(&limits).map_err(|error| failed("the control group", error))?;
        Ok((cell, permit))
    }

    /// Parks a cell for the one that is used: when what this returns is dropped, at the end of a
    /// short run, so that refilling does not compete with it; soon, during a long one.
    fn refill_once_dropped(&self) -> oneshot::Sender<Infallible> {
        let (running, ended) = oneshot::channel();
        let pool = self.pool.clone();
        tokio::spawn(async move {
            let _ = timeout(REFILL_DELAY, ended).await;
            pool.refill().await;
        });
        running
    }
}

/// Cells are parked at the operator's maxima, which each run lowers to its own. `/tmp` is the
/// exception: it can grow as well as shrink, so it is parked at what most runs want.
fn parked_limits(maximum: &Limits) -> CellLimits {
    CellLimits {
        disk_bytes: Limits::DEFAULT.disk.min(maximum.disk),
        inodes: Limits::DEFAULT.inodes.min(maximum.inodes),
        ..cell_limits(maximum)
    }
}

fn cell_limits(limits: &Limits) -> CellLimits {
    CellLimits {
        memory_bytes: limits.memory,
        cpu_seconds: limits.cpu.as_secs().saturating_add(2),
        processes: limits.processes.into(),
        open_files: limits.open_files.into(),
        disk_bytes: limits.disk,
        inodes: limits.inodes,
    }
}

fn command(request: RunRequest) -> Command {
    let limits = &request.limits;
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let limits = GuestLimits {
        memory_bytes: limits.memory,
        wall_ms: milliseconds(limits.timeout),
        cpu_ms: milliseconds(limits.cpu),
        result_bytes: u32::try_from(limits.result_bytes).unwrap_or(u32::MAX),
        processes: limits.processes,
        open_files: limits.open_files,
    };
    let RunRequest { code, language, file_name, context, .. } = request;
    let context = context.map_or_else(Vec::new, |json| String::from(Box::<str>::from(json)).into());
    Command::Run(RunCommand {
        language,
        file_name,
        limits,
        grants: GuestGrants::default(),
        code,
        context,
    })
}

fn refused(error: &LaunchError) -> RunError {
    RunError::new(error.code(), error.to_string())
        .with_hint("nothing was run; `belljar doctor` says what this machine lacks")
}

fn milliseconds_since(start: Instant) -> f64 {
    milliseconds(start.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

fn megabytes(bytes: u64) -> f64 {
    rounded(bytes as f64 / f64::from(1 << 20))
}

/// Three decimals: microseconds, or kilobytes of a megabyte.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// The parts of a result that do not depend on how it ended.
#[derive(Debug)]
struct Report {
    id: String,
    metrics: Metrics,
    isolation: Isolation,
}

impl Report {
    fn new(memory: &'static str) -> Self {
        let RunResult { id, metrics, isolation, .. } = RunResult::blank();
        Self { id, metrics, isolation: Isolation { memory, ..isolation } }
    }

    fn confined(&mut self, plan: &ZygotePlan) {
        self.isolation.tier = if plan.is_full() { "full" } else { "weakened" };
        self.isolation.layers = plan.layers();
    }

    fn into_result(self, outcome: Result<Finished, RunError>, transcript: Transcript) -> RunResult {
        let texts = transcript.finish();
        let (value, lossy, error) = match outcome {
            Ok(Finished { value, lossy }) => (value, lossy, None),
            Err(error) => (RawValue::NULL.to_owned(), false, Some(error)),
        };
        let status = match &error {
            None => Status::Completed,
            Some(error) if error.code == ErrorCode::RunAborted => Status::Aborted,
            Some(_) => Status::Failed,
        };
        let exit_code = i32::from(error.is_some());
        RunResult {
            id: self.id,
            status,
            success: error.is_none(),
            result: value,
            stdout: texts.stdout,
            stderr: texts.stderr,
            logs: texts.logs,
            exit_code,
            error,
            metrics: self.metrics,
            isolation: self.isolation,
            truncated: texts.truncated,
            lossy,
            ..RunResult::blank()
        }
    }
}
