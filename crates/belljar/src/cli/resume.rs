//! `belljar resume`: a durable run goes on in a new cell, from where it was.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Context as _;
use belljar_project::{
    Executor, ResumeOutcome, RunError, RunResult, Status,
    config::{ConfigLocations, ProjectSettings},
    unrun,
};
use belljar_runtime::ErrorCode;
use belljar_store::{RunRecord, Store};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    arguments::ResumeArguments,
    asking,
    interrupt::{Interrupt, Stop},
    launch::{Launched, after_signals, clear_up, launch, stop_signal},
    project::Project,
    report::Shown,
    run::{builder, finish, tell, tell_how_to_resume},
    runs::find_run,
    runtime,
};

/// Runs the command.
pub(crate) fn resume(
    arguments: &ResumeArguments,
    settings: &ProjectSettings,
    places: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    let project = Project::find(places, settings)?;
    let store = project.existing_store()?;
    let store = store.with_context(|| format!("there is no run {} here", arguments.run))?;
    runtime()?.block_on(async {
        let known = Known::find(&store, &arguments.run).await?;
        if let Some(json) = &known.record.result_json {
            return ended_before(json, &known, arguments.json);
        }
        let mut interrupt = Interrupt::listen()?;
        let executor =
            match launch(builder(settings, &project), Some(&project), &mut interrupt).await? {
                Launched::Ready(executor) => *executor,
                Launched::Not(result, stop) => {
                    let told = tell(&result, known.shown(), arguments.json);
                    return finish(told, &result, stop);
                }
            };
        let (resumed, stop) = go_on(&executor, &known.record.summary.id, &mut interrupt).await;
        let code = match resumed {
            Ok(result) => {
                let told = tell(&result, known.shown(), arguments.json);
                tell_how_to_resume(&executor, &result).await;
                finish(told, &result, stop)
            }
            Err(error) => Err(error),
        };
        clear_up(executor, &mut interrupt).await;
        code
    })
}

/// A run, and the name its code goes by.
struct Known {
    record: RunRecord,
    file_name: String,
}

/// The part of a stored request that is shown.
#[derive(Debug, Deserialize)]
struct Request {
    file_name: String,
}

impl Known {
    async fn find(store: &Store, id: &str) -> anyhow::Result<Self> {
        let id = find_run(store, id).await?;
        let record = store.run(&id).await?.with_context(|| format!("there is no run {id}"))?;
        let request = serde_json::from_str::<Request>(&record.request_json);
        let file_name = request.map_or_else(|_| id, |request| request.file_name);
        Ok(Self { record, file_name })
    }

    fn shown(&self) -> Shown<'_> {
        Shown { code: &self.record.code, name: &self.file_name }
    }
}

async fn go_on(
    executor: &Executor,
    id: &str,
    interrupt: &mut Interrupt,
) -> (anyhow::Result<RunResult>, Option<Stop>) {
    let mut stop = None;
    let observer = asking::observer(executor.store());
    let abort = async { stop = Some(stop_signal(interrupt, executor).await) };
    let resumed = executor.resume(id, observer, abort).await;
    let result = match resumed {
        Ok(ResumeOutcome::Ran(result)) => Ok(after_signals(*result, &mut stop, interrupt).await),
        // It ended between the look and the claim.
        Ok(ResumeOutcome::Ended(json)) => ended(json.get()),
        Err(error) => Err(error.into()),
    };
    (result, stop)
}

/// The result of a run that needs no resuming.
fn ended_before(json: &str, known: &Known, as_json: bool) -> anyhow::Result<ExitCode> {
    let result = ended(json)?;
    writeln!(io::stderr(), "run {} had ended; this is its result", result.id)?;
    if as_json {
        let whole: Box<RawValue> = serde_json::from_str(json)?;
        return finish(super::print_json(&whole), &result, None);
    }
    finish(tell(&result, known.shown(), false), &result, None)
}

/// What is read of a stored result; it was written by this program.
#[derive(Debug, Deserialize)]
struct Stored {
    id: String,
    success: bool,
    result: Box<RawValue>,
    stdout: String,
    stderr: String,
    error: Option<StoredError>,
}

#[derive(Debug, Deserialize)]
struct StoredError {
    code: ErrorCode,
    message: String,
    line: Option<u32>,
    column: Option<u32>,
    hint: Option<String>,
}

fn ended(json: &str) -> anyhow::Result<RunResult> {
    let stored: Stored = serde_json::from_str(json).context("the stored result cannot be read")?;
    let status = if stored.success { Status::Completed } else { Status::Failed };
    let nothing_ran = unrun(status, RunError::new(ErrorCode::RunAborted, ""));
    let error = stored.error.map(|stored| {
        let mut error = RunError::new(stored.code, stored.message);
        (error.line, error.column, error.hint) = (stored.line, stored.column, stored.hint);
        error
    });
    Ok(RunResult {
        id: stored.id,
        success: stored.success,
        result: stored.result,
        stdout: stored.stdout,
        stderr: stored.stderr,
        error,
        ..nothing_ran
    })
}
