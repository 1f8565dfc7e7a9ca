//! `belljar run`: runs one piece of code in a fresh cell.

mod options;
mod start_notice;

use std::{io, io::Write as _, process::ExitCode, sync::Arc};

use belljar_contract::{RunRequest, RunResult, RunStatus};
use belljar_project::{
    Execution, Executor, Project, RunDurability, Sandbox, SandboxBuilder,
    config::{ConfigLocations, ProjectSettings},
};
use belljar_runtime::Listener;
use options::ProjectOptions;
use start_notice::{NoticeOptions, StartNotice};

use super::{
    access::{commit_names, requested_grants, requested_workspace},
    arguments::RunArguments,
    artifacts, is_broken_pipe,
    launch::{LaunchOutcome, launch, shut_down, wait_for_stop},
    live_output::{LiveOutput, OutputState},
    print_json, report,
    report::{FrameSource, PrintedParts},
    runtime, session,
    signals::{SignalListener, StopSignal},
    source,
    source::CodeSource,
    terminal::style::TextStyle,
};

pub(crate) use super::launch::{error_chain, refused_result};

/// Recorded as the caller in audit rows and approvals.
pub(crate) const CALLER: &str = "cli";

/// Runs `belljar run`: turns flags into one request, executes it and prints the result.
pub(crate) fn run(
    arguments: &RunArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    if let Some(directory) = &arguments.artifacts {
        artifacts::check(directory)?;
    }
    if let Some(id) = &arguments.session {
        return session::run_in(id, arguments, settings, &Project::find(locations, settings)?);
    }
    let source = CodeSource::load(arguments)?;
    let context = source::context(arguments, settings.maximum.context_bytes)?;
    let shown = FrameSource { code: &source.code, name: &source.shown_name };
    let mut executable = match commit_names(&arguments.workspace.commit_executable) {
        Ok(names) => names,
        Err(error) => {
            let result = RunResult::not_run(belljar_runtime::run_id(), RunStatus::Failed, error);
            return exit_code(print_result(&result, shown, arguments.json), &result, None);
        }
    };
    executable.extend_from_slice(&settings.commit_executable);
    let workspace = requested_workspace(&arguments.workspace, executable)?;
    let request = RunRequest {
        engine: arguments.engine,
        code: source.code.clone(),
        language: source.language,
        file_name: source.file_name.clone(),
        arguments: arguments.script.clone(),
        context,
        limits: settings.limits(arguments.limits.given()),
        grants: requested_grants(&arguments.grants)?,
        workspace,
    };
    let project = Project::find(locations, settings)?;
    let mut options = ProjectOptions::of(&arguments.tools, &project)?;
    // Its connections are in the audit log.
    options.needs_project |= !request.grants.net.is_empty();
    let mut execution = Execution::new(request, CALLER);
    execution.language_left_out = source.is_language_left_out;
    runtime()?.block_on(async {
        let mut signals = SignalListener::listen()?;
        let live = (!arguments.json).then(LiveOutput::start);
        let sandbox_builder = sandbox_builder(settings, &project);
        let code = (execution, &*source.shown_name, live);
        let ran = start_and_run(sandbox_builder, code, &project, options, &mut signals);
        let FinishedRun { executor, result, output, unwritten, stop } = ran.await?;
        // Printed before the cell is shut down, so that the caller does not wait for that.
        let parts = PrintedParts { output, kept: arguments.artifacts.as_deref() };
        let printed = print_parts(&result, shown, arguments.json, parts);
        let printed = unwritten.map_or(printed, |error| Err(error.into()));
        let saved = match &arguments.artifacts {
            Some(directory) => artifacts::save(&result.artifacts, directory),
            None => Ok(()),
        };
        if let Some(executor) = executor {
            print_resume_hint(&executor, &result).await;
            shut_down(executor, &mut signals).await;
        }
        saved?;
        exit_code(printed, &result, stop)
    })
}

/// A sandbox for one run, without a pool.
pub(crate) fn sandbox_builder(settings: &ProjectSettings, project: &Project) -> SandboxBuilder {
    let builder = Sandbox::builder().pool(0).ready([]).maximum(settings.maximum);
    let builder = builder.engines(settings.engines.clone());
    builder.protect(project.protected()).reserve_names(Project::RESERVED_NAMES)
}

/// A run that has ended.
struct FinishedRun {
    /// `None` if nothing ran.
    executor: Option<Executor>,
    result: RunResult,
    /// How much of its output was printed while it ran.
    output: OutputState,
    /// Why not all of it could be. Standard error may still be read.
    unwritten: Option<io::Error>,
    stop: Option<StopSignal>,
}

/// Runs the request, unless a signal comes first.
async fn start_and_run(
    sandbox_builder: SandboxBuilder,
    (execution, shown_name, live): (Execution, &str, Option<Arc<LiveOutput>>),
    project: &Project,
    options: ProjectOptions,
    signals: &mut SignalListener,
) -> anyhow::Result<FinishedRun> {
    let launched =
        launch(sandbox_builder, options.needs_project.then_some(project), signals).await?;
    let executor = match launched {
        LaunchOutcome::Ready(executor) => *executor,
        LaunchOutcome::Not(result, stop) => {
            let (output, unwritten) = (OutputState::Unprinted, None);
            return Ok(FinishedRun { executor: None, result: *result, output, unwritten, stop });
        }
    };
    let id = belljar_runtime::run_id();
    let asked = NoticeOptions {
        has_intent: options.intent.is_some(),
        is_durable: options.durability == RunDurability::Always,
        wait: options.wait,
    };
    let notice = StartNotice::new(&id, asked, &executor, project);
    let listener = live.clone().map(|live| -> Arc<dyn Listener> { live });
    let execution = Execution {
        tools: options.tools,
        intent: options.intent,
        durability: options.durability,
        max_output_tokens: options.max_output_tokens,
        cache: options.cache,
        observer: notice.clone(),
        listener,
        ..execution
    };
    let mut stop = None;
    let abort = async { stop = Some(wait_for_stop(signals, &executor).await) };
    let run = executor.execute_as(id, execution, abort);
    let result = match TextStyle::of_stderr().is_terminal() {
        true => notice.watch(executor.bridge(), shown_name, run).await,
        false => run.await,
    };
    let (output, unwritten) = match live.map(|live| live.finish()) {
        Some(Err(error)) => (OutputState::Printed { ends_line: true }, Some(error)),
        // The cell of a cached answer printed nothing.
        Some(Ok(printed)) if !result.cached => (printed, None),
        Some(Ok(_)) | None => (OutputState::Unprinted, None),
    };
    Ok(FinishedRun { executor: Some(executor), result, output, unwritten, stop })
}

/// Prints a result for a person, or as JSON.
pub(crate) fn print_result(
    result: &RunResult,
    shown: FrameSource<'_>,
    json: bool,
) -> anyhow::Result<()> {
    print_parts(result, shown, json, PrintedParts::NONE)
}

/// Prints a result for a person, without what they have seen already, or as JSON.
fn print_parts(
    result: &RunResult,
    shown: FrameSource<'_>,
    json: bool,
    parts: PrintedParts<'_>,
) -> anyhow::Result<()> {
    if json {
        return print_json(result);
    }
    let (out, err) = (TextStyle::of_stdout(), TextStyle::of_stderr());
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr().lock());
    let written = report::write_output(result, parts, &mut stdout, &mut stderr, (out, err));
    let about = report::about(result, shown, parts, err);
    stderr.write_all(about.as_bytes())?;
    Ok(written?)
}

/// Says how to resume a run that was stopped and has a journal.
pub(crate) async fn print_resume_hint(executor: &Executor, result: &RunResult) {
    let (RunStatus::Aborted | RunStatus::Interrupted, Some(store)) =
        (result.status, executor.store())
    else {
        return;
    };
    if let Ok(Some(_)) = store.run(&result.id).await {
        let _ = writeln!(io::stderr(), "to resume it: belljar resume {}", result.id);
    }
}

/// The exit status, once the result is printed.
pub(crate) fn exit_code(
    printed: anyhow::Result<()>,
    result: &RunResult,
    stop: Option<StopSignal>,
) -> anyhow::Result<ExitCode> {
    match printed {
        // The reader closed the pipe; the exit status is still that of the run.
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(match stop {
            Some(stop) => ExitCode::from(stop.exit_status()),
            None if result.success => ExitCode::SUCCESS,
            None => ExitCode::FAILURE,
        }),
    }
}
