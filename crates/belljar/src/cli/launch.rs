//! Starts what a run needs and shuts it down, whenever a signal arrives.

use belljar_contract::{ErrorCode, RunError, RunResult, RunStatus};
use belljar_project::{BuildError, Executor, Project, Sandbox, SandboxBuilder};

use super::{
    project::executor,
    signals::{SignalListener, StopSignal},
};

/// The outcome of starting a sandbox.
#[derive(Debug)]
pub(crate) enum LaunchOutcome {
    /// The sandbox started, and code can run.
    Ready(Box<Executor>),
    /// Code cannot run, or a signal came first; holds the result to report.
    Not(Box<RunResult>, Option<StopSignal>),
}

/// Starts a sandbox for one run, with the project's tools if a project is given.
pub(crate) async fn launch(
    builder: SandboxBuilder,
    project: Option<&Project>,
    signals: &mut SignalListener,
) -> anyhow::Result<LaunchOutcome> {
    let builder = match project {
        None => builder,
        Some(project) => {
            // The state directory must exist before the protected paths are listed.
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
            // A terminal's signal also reaches the zygote, which may end first.
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

/// The result if a signal came before the run.
pub(crate) fn stopped_result(signal: StopSignal) -> RunResult {
    RunResult::not_run(
        belljar_runtime::run_id(),
        RunStatus::Aborted,
        RunError::new(ErrorCode::RunAborted, signal.name()),
    )
}

/// Waits for a signal that stops the run, and tells the executor why. Ctrl-C means that a person aborts
/// the run. Any other signal only ends this process: a durable run is then interrupted, and the next
/// host resumes it.
pub(crate) async fn wait_for_stop(signals: &mut SignalListener, executor: &Executor) -> StopSignal {
    let signal = signals.received().await;
    executor.abort_because(signal.name());
    match signal {
        StopSignal::Interrupt => {}
        StopSignal::Terminate | StopSignal::HangUp => executor.prepare_to_stop(),
    }
    signal
}

/// Shuts the executor down. A further signal skips the wait.
pub(crate) async fn shut_down(executor: Executor, signals: &mut SignalListener) {
    tokio::select! {
        () = executor.shutdown() => {}
        _ = signals.received() => {}
    }
}

/// The result if the sandbox cannot be built.
pub(crate) fn refused_result(error: &BuildError) -> RunResult {
    let code = match error {
        BuildError::Launch(launch) => launch.code(),
        BuildError::NotInitialised | BuildError::InsideZygote => ErrorCode::SandboxFailed,
    };
    let error = RunError::new(code, error_chain(error))
        .with_hint("nothing ran; `belljar doctor` shows what this machine lacks and how to fix it");
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
