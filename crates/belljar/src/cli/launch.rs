//! Getting ready to run code, and clearing up after it, whatever signal comes when.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};
use belljar_project::{BuildError, Executor, Sandbox, SandboxBuilder};

use super::{
    interrupt::{Interrupt, Stop},
    project::Project,
};

/// Whether code can be run.
#[derive(Debug)]
pub(crate) enum Launched {
    /// It can.
    Ready(Box<Executor>),
    /// It cannot, or a signal came first; this is its result.
    Not(Box<RunResult>, Option<Stop>),
}

/// Starts a sandbox for one run, with the tools of a project if there are to be any.
pub(crate) async fn launch(
    builder: SandboxBuilder,
    project: Option<&Project>,
    interrupt: &mut Interrupt,
) -> anyhow::Result<Launched> {
    let builder = match project {
        None => builder,
        Some(project) => {
            // Before it is asked what is to be protected: from now on there is something.
            project.state()?;
            builder.protect(project.protected())
        }
    };
    let built = tokio::select! {
        biased;
        signal = interrupt.received() => return Ok(Launched::stopped_by(signal)),
        built = builder.build() => built,
    };
    let sandbox: Sandbox = match built {
        Ok(sandbox) => sandbox,
        Err(error) => {
            // A terminal's signal reaches the zygote too, and may be seen there first.
            let stop = interrupt.pending().await;
            return Ok(match stop {
                Some(signal) => Launched::stopped_by(signal),
                None => Launched::Not(Box::new(refused(&error)), None),
            });
        }
    };
    let executor = match project {
        Some(project) => project.executor(sandbox)?,
        None => Executor::new(sandbox, None, None),
    };
    Ok(Launched::Ready(Box::new(executor)))
}

impl Launched {
    fn stopped_by(signal: Stop) -> Self {
        Self::Not(Box::new(stopped(signal)), Some(signal))
    }
}

/// The result when nothing ran because a signal came first.
pub(crate) fn stopped(signal: Stop) -> RunResult {
    RunResult::not_run(
        belljar_runtime::run_id(),
        RunStatus::Aborted,
        RunError::new(ErrorCode::RunAborted, signal.name()),
    )
}

/// Waits for a signal that stops the run. Ctrl-C comes from a person who gives the run up. Any other
/// signal only ends this process: a durable run is then interrupted, and the next host resumes it.
pub(crate) async fn stop_signal(interrupt: &mut Interrupt, executor: &Executor) -> Stop {
    let signal = interrupt.received().await;
    match signal {
        Stop::Interrupt => {}
        Stop::Terminate | Stop::HangUp => executor.prepare_to_stop(),
    }
    signal
}

/// The result as a person sees it who has stopped the run: whatever else it ended with, the signal
/// was the reason. A durable run that was interrupted stays interrupted.
pub(crate) async fn after_signals(
    result: RunResult,
    stop: &mut Option<Stop>,
    interrupt: &mut Interrupt,
) -> RunResult {
    if stop.is_none() && !result.success {
        // A terminal's signal reaches zygote and cell too, and may be seen there first.
        *stop = interrupt.pending().await;
    }
    match *stop {
        Some(stop) if !result.success && result.status != RunStatus::Interrupted => {
            let error = RunError::new(ErrorCode::RunAborted, stop.name());
            RunResult { status: RunStatus::Aborted, error: Some(error), ..result }
        }
        _ => result,
    }
}

/// Ends what was started for the run; a further signal is for not waiting until that is done.
pub(crate) async fn clear_up(executor: Executor, interrupt: &mut Interrupt) {
    tokio::select! {
        () = executor.shutdown() => {}
        _ = interrupt.received() => {}
    }
}

/// The result when there is no sandbox to run in.
pub(crate) fn refused(error: &BuildError) -> RunResult {
    let code = match error {
        BuildError::Launch(launch) => launch.code(),
        BuildError::NotInitialised | BuildError::InsideZygote => ErrorCode::SandboxFailed,
    };
    let error = RunError::new(code, chain(error))
        .with_hint("nothing ran; `belljar doctor` says what this machine lacks and how to fix it");
    RunResult::not_run(belljar_runtime::run_id(), RunStatus::Failed, error)
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
