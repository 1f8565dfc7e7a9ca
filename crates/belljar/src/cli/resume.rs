//! `belljar resume`: resumes a durable run in a new cell.

use std::{io, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use belljar_contract::{RunId, RunResult};
use belljar_project::{
    Executor, Project, ResumeOutcome,
    config::{ConfigLocations, ProjectSettings},
};
use belljar_store::{RunRecord, Store};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    approvals::prompt::{self, ApprovalWait},
    arguments::ResumeArguments,
    launch::{LaunchOutcome, launch, shut_down, wait_for_stop},
    project::existing_store,
    report::FrameSource,
    run::{exit_code, print_result, print_resume_hint, sandbox_builder},
    runs::find_run,
    runtime,
    signals::{SignalListener, StopSignal},
};

/// Runs `belljar resume`: continues a durable run from its journal and prints its result.
pub(crate) fn resume(
    arguments: &ResumeArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    let project = Project::find(locations, settings)?;
    let store = existing_store(&project)?;
    let store =
        store.with_context(|| format!("there is no run {} in this project", arguments.run))?;
    runtime()?.block_on(async {
        let run = StoredRun::find(&store, &arguments.run).await?;
        if let Some(json) = &run.record.result_json {
            return print_ended_run(json, &run, arguments.json);
        }
        let mut signals = SignalListener::listen()?;
        let executor = match launch(
            sandbox_builder(settings, &project),
            Some(&project),
            &mut signals,
        )
        .await?
        {
            LaunchOutcome::Ready(executor) => *executor,
            LaunchOutcome::Not(result, stop) => {
                let printed = print_result(&result, run.shown(), arguments.json);
                return exit_code(printed, &result, stop);
            }
        };
        let (resumed, stop) =
            resume_run(&executor, &project, &run.record.summary.id, &mut signals).await;
        let code = match resumed {
            Ok(result) => {
                let printed = print_result(&result, run.shown(), arguments.json);
                print_resume_hint(&executor, &result).await;
                exit_code(printed, &result, stop)
            }
            Err(error) => Err(error),
        };
        shut_down(executor, &mut signals).await;
        code
    })
}

/// A stored run and the file name of its code.
struct StoredRun {
    record: RunRecord,
    file_name: String,
}

/// The part of a stored request that is needed here.
#[derive(Debug, Deserialize)]
struct StoredFileName {
    file_name: String,
}

impl StoredRun {
    async fn find(store: &Store, id: &str) -> anyhow::Result<Self> {
        let id = find_run(store, id).await?;
        let record = store.run(&id).await?.with_context(|| format!("there is no run {id}"))?;
        let request = serde_json::from_str::<StoredFileName>(&record.request_json);
        let file_name = request.map_or_else(|_| id.into(), |request| request.file_name);
        Ok(Self { record, file_name })
    }

    fn shown(&self) -> FrameSource<'_> {
        FrameSource { code: &self.record.code, name: &self.file_name }
    }
}

async fn resume_run(
    executor: &Executor,
    project: &Project,
    id: &RunId,
    signals: &mut SignalListener,
) -> (anyhow::Result<RunResult>, Option<StopSignal>) {
    let mut stop = None;
    let observer = prompt::observer(executor.decisions(), project, ApprovalWait::Wait);
    let abort = async { stop = Some(wait_for_stop(signals, executor).await) };
    let resumed = executor.resume(id, observer, abort).await;
    let result = match resumed {
        // `Ended`: it ended between the check and the claim.
        Ok(ResumeOutcome::Ran(result) | ResumeOutcome::Ended(result)) => Ok(*result),
        Err(error) => Err(error.into()),
    };
    (result, stop)
}

/// Prints the result of a run that had ended before.
fn print_ended_run(json: &str, run: &StoredRun, as_json: bool) -> anyhow::Result<ExitCode> {
    let result: RunResult =
        serde_json::from_str(json).context("the stored result cannot be read")?;
    writeln!(io::stderr(), "run {} had ended; this is its result", result.id)?;
    if as_json {
        let whole: Box<RawValue> = serde_json::from_str(json)?;
        return exit_code(super::print_json(&whole), &result, None);
    }
    exit_code(print_result(&result, run.shown(), false), &result, None)
}
