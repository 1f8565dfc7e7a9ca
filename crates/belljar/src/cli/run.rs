//! `belljar run`: one piece of code, one fresh cell, one result.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use belljar_project::{
    Execution, Executor, RunDurability, RunRequest, RunResult, Sandbox, SandboxBuilder, Status,
    config::{ConfigLocations, ProjectSettings},
    unrun,
};

use super::{
    arguments::RunArguments,
    artifacts, asking,
    granted::{Granted, commit_names, granted},
    interrupt::{Interrupt, Stop},
    is_broken_pipe,
    launch::{Launched, after_signals, clear_up, launch, stop_signal, stopped},
    look::{Look, Role},
    print_json,
    project::Project,
    report::{self, Shown},
    runtime, session,
    source::{self, Source},
    tool_grants::Wanted,
    visible::visible,
};

pub(crate) use super::launch::{chain, refused};

/// Who asks, in audit rows and approvals.
pub(crate) const CALLER: &str = "cli";

/// Runs the code the arguments name.
pub(crate) fn run(
    arguments: &RunArguments,
    settings: &ProjectSettings,
    places: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    if let Some(directory) = &arguments.artifacts {
        artifacts::check(directory)?;
    }
    if let Some(id) = &arguments.session {
        return session::run_in(id, arguments, settings, &Project::find(places, settings)?);
    }
    let source = Source::load(arguments)?;
    let context = source::context(arguments, settings.maximum.context_bytes)?;
    let shown = Shown { code: &source.code, name: &source.shown_name };
    let mut executable = match commit_names(&arguments.grants.commit_executable) {
        Ok(names) => names,
        Err(error) => {
            let result = unrun(Status::Failed, error);
            return finish(tell(&result, shown, arguments.json), &result, None);
        }
    };
    executable.extend_from_slice(&settings.commit_executable);
    let Granted { grants, workspace } = granted(&arguments.grants, executable)?;
    let request = RunRequest {
        code: source.code.clone(),
        language: source.language,
        file_name: source.file_name.clone(),
        context,
        limits: settings.limits(&arguments.limits.given()),
        grants,
        workspace,
    };
    let project = Project::find(places, settings)?;
    let wanted = Wanted::of(&arguments.tools, &project)?;
    runtime()?.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        let ran =
            start_and_run(builder(settings, &project), request, &project, wanted, &mut interrupt);
        let Ran { executor, result, stop } = ran.await?;
        // Told before the cell is cleared away: whoever waits for the answer has it sooner.
        let told = tell(&result, shown, arguments.json);
        let saved = match &arguments.artifacts {
            Some(directory) => artifacts::save(&result.artifacts, directory),
            None => Ok(()),
        };
        if let Some(executor) = executor {
            tell_how_to_resume(&executor, &result).await;
            clear_up(executor, &mut interrupt).await;
        }
        saved?;
        finish(told, &result, stop)
    })
}

/// A sandbox for one run.
pub(crate) fn builder(settings: &ProjectSettings, project: &Project) -> SandboxBuilder {
    let builder = Sandbox::builder().pool(0).ready([]).maximum(settings.maximum);
    builder.protect(project.protected()).reserve_names(Project::RESERVED_NAMES)
}

/// What is there after a run.
struct Ran {
    /// Nothing if nothing ran.
    executor: Option<Executor>,
    result: RunResult,
    stop: Option<Stop>,
}

/// Runs the request unless a signal comes first, at whatever moment.
async fn start_and_run(
    builder: SandboxBuilder,
    request: RunRequest,
    project: &Project,
    wanted: Wanted,
    interrupt: &mut Interrupt,
) -> anyhow::Result<Ran> {
    let launched = launch(builder, wanted.needs_project.then_some(project), interrupt).await?;
    let executor = match launched {
        Launched::Ready(executor) => *executor,
        Launched::Not(result, stop) => return Ok(Ran { executor: None, result: *result, stop }),
    };
    let mut execution = Execution {
        tools: wanted.tools.clone(),
        intent: wanted.intent.clone(),
        max_output_tokens: wanted.max_output_tokens,
        cache: wanted.cache,
        observer: asking::observer(executor.store()),
        ..Execution::new(request, CALLER)
    };
    tokio::select! {
        biased;
        signal = interrupt.received() => {
            let (result, stop) = (stopped(signal), Some(signal));
            return Ok(Ran { executor: Some(executor), result, stop });
        }
        () = wanted.prepare(&mut execution, &executor) => {}
    }
    let id = belljar_runtime::run_id();
    tell_beforehand(&id, &execution);
    let mut stop = None;
    let abort = async { stop = Some(stop_signal(interrupt, &executor).await) };
    let result = executor.execute_as(id, execution, abort).await;
    let result = after_signals(result, &mut stop, interrupt).await;
    Ok(Ran { executor: Some(executor), result, stop })
}

/// Tells a person at a terminal what the run is called and which tools it gets.
fn tell_beforehand(id: &str, execution: &Execution) {
    let look = Look::of_stderr();
    if !look.is_terminal() {
        return;
    }
    let mut lines = Vec::new();
    if let (Some(_), Some(report)) = (&execution.intent, &execution.report) {
        let names = if report.injected.is_empty() { "none" } else { &report.injected.join(", ") };
        lines.push(format!("tools: {}", visible(names)));
    }
    if execution.durability == RunDurability::Always {
        lines.push(format!("durable run {id}"));
    }
    for line in lines {
        let _ = writeln!(io::stderr(), "{}", look.paint(Role::Dim, &line));
    }
}

/// Shows a result to a person or a program.
pub(crate) fn tell(result: &RunResult, shown: Shown<'_>, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(result);
    }
    let (out, err) = (Look::of_stdout(), Look::of_stderr());
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr().lock());
    let written = report::write_output(result, &mut stdout, &mut stderr, (out, err));
    let about = report::about(result, shown, err);
    stderr.write_all(about.as_bytes())?;
    Ok(written?)
}

/// A run that was stopped and left a journal can go on from where it was.
pub(crate) async fn tell_how_to_resume(executor: &Executor, result: &RunResult) {
    let (Status::Aborted | Status::Interrupted, Some(store)) = (result.status, executor.store())
    else {
        return;
    };
    if let Ok(Some(_)) = store.run(&result.id).await {
        let _ = writeln!(io::stderr(), "go on from here: belljar resume {}", result.id);
    }
}

/// The exit status, once the result was told.
pub(crate) fn finish(
    told: anyhow::Result<()>,
    result: &RunResult,
    stop: Option<Stop>,
) -> anyhow::Result<ExitCode> {
    match told {
        // Whoever read our output has seen enough; the run ended as it ended.
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(match stop {
            Some(stop) => ExitCode::from(stop.exit_status()),
            None if result.success => ExitCode::SUCCESS,
            None => ExitCode::FAILURE,
        }),
    }
}
