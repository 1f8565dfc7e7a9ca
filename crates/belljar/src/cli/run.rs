//! `belljar run`: one piece of code, one fresh cell, one result.

use std::{io, process::ExitCode};

use belljar::{
    BuildError, ErrorCode, RunError, RunRequest, RunResult, Sandbox, SandboxBuilder, Status, unrun,
};

use super::{
    arguments::RunArguments,
    artifacts,
    config::Settings,
    granted::{Granted, granted},
    interrupt::{Interrupt, Stop},
    is_broken_pipe,
    look::Look,
    print_json,
    report::{self, Shown},
    runtime,
    source::{self, Source},
};

/// Runs the code the arguments name.
pub(crate) fn run(arguments: &RunArguments, settings: &Settings) -> anyhow::Result<ExitCode> {
    let source = Source::load(arguments)?;
    let context = source::context(arguments, settings.maximum.context_bytes)?;
    let Granted { grants, workspace } = granted(&arguments.grants)?;
    let request = RunRequest {
        code: source.code.clone(),
        language: source.language,
        file_name: source.file_name.clone(),
        context,
        limits: settings.limits(&arguments.limits.given()),
        grants,
        workspace,
    };
    let builder = Sandbox::builder().pool(0).ready([]).maximum(settings.maximum);
    runtime()?.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        let (sandbox, result, stop) = start_and_run(builder, request, &mut interrupt).await;
        // Told before the cell is cleared away: whoever waits for the answer has it sooner.
        let told = tell(&result, &source, arguments.json);
        let saved = match &arguments.artifacts {
            Some(directory) => artifacts::save(&result.artifacts, directory),
            None => Ok(()),
        };
        if let Some(sandbox) = sandbox {
            sandbox.shutdown().await;
        }
        saved?;
        match told {
            // Whoever read our output has seen enough; the run ended as it ended.
            Err(error) if !is_broken_pipe(&error) => Err(error),
            _ => Ok(exit_code(&result, stop)),
        }
    })
}

/// Runs the request unless a signal comes first, at whatever moment.
async fn start_and_run(
    builder: SandboxBuilder,
    request: RunRequest,
    interrupt: &mut Interrupt,
) -> (Option<Sandbox>, RunResult, Option<Stop>) {
    let mut stop = None;
    let built = tokio::select! {
        biased;
        signal = interrupt.received() => {
            let error = RunError::new(ErrorCode::RunAborted, signal.name());
            return (None, unrun(Status::Aborted, error), Some(signal));
        }
        built = builder.build() => built,
    };
    let (sandbox, result) = match built {
        Ok(sandbox) => {
            let abort = async { stop = Some(interrupt.received().await) };
            let result = sandbox.run_until(request, abort).await;
            (Some(sandbox), result)
        }
        Err(error) => (None, refused(&error)),
    };
    if stop.is_none() && !result.success {
        // A terminal's signal reaches zygote and cell too, and may be seen there first.
        stop = interrupt.pending().await;
    }
    let result = match stop {
        Some(stop) if !result.success => aborted(result, stop),
        _ => result,
    };
    (sandbox, result, stop)
}

/// Whatever else a stopped run ended with, the signal was the reason.
fn aborted(result: RunResult, stop: Stop) -> RunResult {
    let error = RunError::new(ErrorCode::RunAborted, stop.name());
    RunResult { status: Status::Aborted, error: Some(error), ..result }
}

/// The result when there is no sandbox to run in.
pub(crate) fn refused(error: &BuildError) -> RunResult {
    let code = match error {
        BuildError::Launch(launch) => launch.code(),
        BuildError::NotInitialised | BuildError::InsideZygote => ErrorCode::SandboxFailed,
    };
    let error = RunError::new(code, chain(error))
        .with_hint("nothing ran; `belljar doctor` says what this machine lacks and how to fix it");
    unrun(Status::Failed, error)
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

fn tell(result: &RunResult, source: &Source, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(result);
    }
    let (out, err) = (Look::of_stdout(), Look::of_stderr());
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr().lock());
    let written = report::write_output(result, &mut stdout, &mut stderr, (out, err));
    let shown = Shown { code: &source.code, name: &source.shown_name };
    let about = report::about(result, shown, err);
    io::Write::write_all(&mut stderr, about.as_bytes())?;
    Ok(written?)
}

fn exit_code(result: &RunResult, stop: Option<Stop>) -> ExitCode {
    match stop {
        Some(stop) => ExitCode::from(stop.exit_status()),
        None if result.success => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}
