//! Getting ready to run code, and clearing up after it, whatever signal comes when.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};
use belljar_project::{BuildError, Executor, Project, Sandbox, SandboxBuilder};

use super::{
    project::executor,
    signals::{SignalListener, StopSignal},
};

/// Whether code can be run.
#[derive(Debug)]
pub(crate) enum LaunchOutcome {
    /// It can.
    Ready(Box<Executor>),
    /// It cannot, or a signal came first; this is its result.
    Not(Box<RunResult>, Option<StopSignal>),
}

/// Starts a sandbox for one run, with the tools of a project if there are to be any.
pub(crate) async fn launch(
    builder: SandboxBuilder,
    project: Option<&Project>,
    signals: &mut SignalListener,
) -> anyhow::Result<LaunchOutcome> {
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
        signal = signals.received() => return Ok(LaunchOutcome::stopped_by(signal)),
        built = builder.build() => built,
    };
    let sandbox: Sandbox = match built {
        Ok(sandbox) => sandbox,
        Err(error) => {
            // A terminal's signal reaches the zygote too, and may be seen there first.
            let stop = signals.pending().await;
            return Ok(match stop {
                Some(signal) => LaunchOutcome::stopped_by(signal),
                None => LaunchOutcome::Not(Box::new(refused_result(&error)), None),
            });
        }
    };
    let executor = match project {
        Some(project) => executor(project, sandbox)?,
        None => Executor::new(sandbox, None, None),
    };
    Ok(LaunchOutcome::Ready(Box::new(executor)))
}

impl LaunchOutcome {
    fn stopped_by(signal: StopSignal) -> Self {
        Self::Not(Box::new(stopped_result(signal)), Some(signal))
    }
}

/// The result when nothing ran because a signal came first.
pub(crate) fn stopped_result(signal: StopSignal) -> RunResult {
    RunResult::not_run(
        belljar_runtime::run_id(),
        RunStatus::Aborted,
        RunError::new(ErrorCode::RunAborted, signal.name()),
    )
}

/// Waits for a signal that stops the run. Ctrl-C comes from a person who gives the run up. Any other
/// signal only ends this process: a durable run is then interrupted, and the next host resumes it.
pub(crate) async fn wait_for_stop(signals: &mut SignalListener, executor: &Executor) -> StopSignal {
    let signal = signals.received().await;
    match signal {
        StopSignal::Interrupt => {}
        StopSignal::Terminate | StopSignal::HangUp => executor.prepare_to_stop(),
    }
    signal
}

/// The result as a person sees it who has stopped the run: whatever else it ended with, the signal
/// was the reason. A durable run that was interrupted stays interrupted.
pub(crate) async fn after_signals(
    result: RunResult,
    stop: &mut Option<StopSignal>,
    signals: &mut SignalListener,
) -> RunResult {
    if stop.is_none() && !result.success {
        // A terminal's signal reaches zygote and cell too, and may be seen there first.
        *stop = signals.pending().await;
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
pub(crate) async fn shut_down(executor: Executor, signals: &mut SignalListener) {
    tokio::select! {
        () = executor.shutdown() => {}
        _ = signals.received() => {}
    }
}

/// The result when there is no sandbox to run in.
pub(crate) fn refused_result(error: &BuildError) -> RunResult {
    let code = match error {
        BuildError::Launch(launch) => launch.code(),
        BuildError::NotInitialised | BuildError::InsideZygote => ErrorCode::SandboxFailed,
    };
    let error = RunError::new(code, error_chain(error))
        .with_hint("nothing ran; `belljar doctor` says what this machine lacks and how to fix it");
    RunResult::not_run(belljar_runtime::run_id(), RunStatus::Failed, error)
}

/// An error and its causes on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
