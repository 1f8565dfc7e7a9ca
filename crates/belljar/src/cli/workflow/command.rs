//! `belljar workflow command` and `rollback`: sends commands, which the host that drives the
//! workflow answers.

use std::{io, io::Write as _, process::ExitCode, time::Duration};

use anyhow::bail;
use belljar_contract::{JsonValue, exact_json};
use belljar_project::{
    CommandOutcome, CommandResult, ProjectWorkflows, WorkflowPermissions, check_command,
    is_looked_after, new_command_id, now_ms,
};
use belljar_workflow::{
    DoubtResolution, SqliteWorkflowStore, Task, WorkflowCommand, WorkflowStore as _, Workflows,
};
use belljar_workflow_formats::{self as formats, CodeExecution, FormatOptions};
use tokio_util::sync::CancellationToken;

use super::{
    event_line::rollback_text,
    find_workflow,
    host::{HostStart, WorkflowContext, WorkflowHost},
    run::{drive_error, json_or_file, not_started},
    stored_workflows,
};
use crate::cli::{
    arguments::{
        LimitArguments, WorkflowCommandArguments, WorkflowCommandSpec, WorkflowRollbackArguments,
    },
    print_json,
    run::CALLER,
    signals::SignalListener,
    terminal::style::TextStyle,
};

/// How long to wait for the answer of a live host.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `belljar workflow command`.
pub(super) async fn send_command(
    arguments: &WorkflowCommandArguments,
    context: WorkflowContext<'_>,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(context.project)?;
    let id = find_workflow(&workflows, &arguments.id).await?;
    let command = workflow_command(&arguments.what)?;
    let given = arguments.command_id.clone();
    let command_id = given.unwrap_or_else(new_command_id);
    check_command(&workflows, &id, &command).await?;
    if !is_driven(&workflows, &id).await? {
        let (now, from) = (now_ms(), (command_id.as_str(), CALLER));
        if let Some(why) = workflows.refusal(&id, from, &command, now).await? {
            let outcome = CommandOutcome::Refused(why);
            return print_command_result(
                &id,
                &CommandResult { id: command_id, outcome },
                arguments.json,
            );
        }
    }
    workflows.send(&id, &command_id, CALLER, &command, now_ms()).await?;
    let machine = workflows.look(&id, None).await?;
    let answer = if is_driven(&workflows, &id).await? {
        workflows.answer(&id, &command_id, ANSWER_TIMEOUT).await?
    } else if machine.status().is_over() {
        // The workflow has ended: it only answers the command.
        drive_until_idle(context, &id).await?;
        workflows.answer(&id, &command_id, Duration::ZERO).await?
    } else {
        workflows.answer(&id, &command_id, Duration::ZERO).await?
    };
    let outcome = match answer.map(|answer| answer.refused) {
        None => CommandOutcome::NotYet,
        Some(None) => CommandOutcome::Accepted,
        Some(Some(why)) => CommandOutcome::Refused(why),
    };
    print_command_result(&id, &CommandResult { id: command_id, outcome }, arguments.json)
}

/// The command that the arguments describe.
fn workflow_command(spec: &WorkflowCommandSpec) -> anyhow::Result<WorkflowCommand> {
    let json = |what, given: &Option<String>| -> anyhow::Result<Option<JsonValue>> {
        given.as_ref().map(|given| json_or_file(what, given)).transpose()
    };
    Ok(match spec {
        WorkflowCommandSpec::Abort { reason } => WorkflowCommand::Abort { reason: reason.clone() },
        WorkflowCommandSpec::Pause => WorkflowCommand::Pause,
        WorkflowCommandSpec::Continue => WorkflowCommand::Continue,
        WorkflowCommandSpec::Skip { task } => WorkflowCommand::Skip { task: task.clone() },
        WorkflowCommandSpec::ModifyArgs { task, arguments } => {
            let JsonValue::Object(arguments) = json_or_file("modify-args", arguments)? else {
                bail!("modify-args: the arguments must be a JSON object");
            };
            WorkflowCommand::ModifyArgs { task: task.clone(), arguments }
        }
        WorkflowCommandSpec::Approve { decision, value } => {
            WorkflowCommand::Approve { decision: decision.clone(), value: json("--value", value)? }
        }
        WorkflowCommandSpec::Reject { decision, reason } => {
            WorkflowCommand::Reject { decision: decision.clone(), reason: reason.clone() }
        }
        WorkflowCommandSpec::Resolve { task, retry, use_value, .. } => {
            let how = match (retry, json("--use", use_value)?) {
                (true, _) => DoubtResolution::Retry,
                (false, Some(value)) => DoubtResolution::Use { value },
                (false, None) => DoubtResolution::Fail { reason: None },
            };
            WorkflowCommand::Resolve { task: task.clone(), how }
        }
        WorkflowCommandSpec::InjectTasks { tasks } => {
            WorkflowCommand::InjectTasks { tasks: read_tasks(tasks)? }
        }
        WorkflowCommandSpec::Replan { tasks, reason } => {
            WorkflowCommand::Replan { tasks: read_tasks(tasks)?, reason: reason.clone() }
        }
    })
}

/// Reads tasks in the format of workflow files. Whether their code may run was decided when the
/// workflow was created.
fn read_tasks(given: &str) -> anyhow::Result<Vec<Task>> {
    let (name, text) = match given.strip_prefix('@') {
        None => ("tasks", given.to_owned()),
        Some(path) => (path, std::fs::read_to_string(path)?),
    };
    let options = FormatOptions { code: CodeExecution::WithShell };
    formats::read_tasks(name, &text, &options).map_err(|faults| {
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", all.join("\n"))
    })
}

fn print_command_result(
    id: &str,
    result: &CommandResult,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let (status, why) = match &result.outcome {
        CommandOutcome::Accepted => ("accepted", None),
        CommandOutcome::Refused(why) => ("refused", Some(why)),
        CommandOutcome::NotYet => ("queued", None),
    };
    if as_json {
        print_json(&exact_json!({ "command": result.id, "status": status, "reason": why }))?;
    } else {
        match why {
            Some(why) => writeln!(io::stderr(), "refused: {why}")?,
            None if matches!(result.outcome, CommandOutcome::NotYet) => writeln!(
                io::stderr(),
                "queued as {}; no process drives the workflow now, so it is applied on the next \
                 resume: belljar workflow resume {id}",
                result.id
            )?,
            None => writeln!(io::stderr(), "{status}")?,
        }
    }
    Ok(if why.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether a live process drives a workflow, or watches it while it rests.
async fn is_driven(workflows: &Workflows<SqliteWorkflowStore>, id: &str) -> anyhow::Result<bool> {
    let row = workflows.store().find(id).await?;
    Ok(row.is_some_and(|row| is_looked_after(&row)))
}

/// Drives a workflow here until only another command could change anything.
async fn drive_until_idle(
    context: WorkflowContext<'_>,
    id: &str,
) -> anyhow::Result<Option<ExitCode>> {
    let mut signals = SignalListener::listen()?;
    let limits = LimitArguments::default();
    let started = context.start(&limits, WorkflowPermissions::default(), |then| then, &mut signals);
    let host: WorkflowHost = match started.await? {
        HostStart::Ready(host) => *host,
        HostStart::Not(result, stop) => return not_started(&result, stop).map(Some),
    };
    let driven = until_idle(&host.workflows, id, &mut signals).await;
    host.end(&mut signals).await;
    driven
}

async fn until_idle(
    workflows: &ProjectWorkflows,
    id: &str,
    signals: &mut SignalListener,
) -> anyhow::Result<Option<ExitCode>> {
    let stop = CancellationToken::new();
    let driving = workflows.run_until_idle(id, &stop);
    let mut driving = std::pin::pin!(driving);
    let mut signal = None;
    loop {
        tokio::select! {
            driven = &mut driving => {
                driven.map_err(|error| drive_error(id, error))?;
                return Ok(signal);
            }
            came = signals.received() => {
                signal = Some(ExitCode::from(came.exit_status()));
                stop.cancel();
            }
        }
    }
}

/// Runs `belljar workflow rollback`.
pub(super) async fn rollback(
    arguments: &WorkflowRollbackArguments,
    context: WorkflowContext<'_>,
) -> anyhow::Result<ExitCode> {
    let workflows = stored_workflows(context.project)?;
    let id = find_workflow(&workflows, &arguments.id).await?;
    let before = workflows.look(&id, None).await?.branch();
    let command_id = new_command_id();
    let command = WorkflowCommand::RollBack { to: arguments.to };
    workflows.send(&id, &command_id, CALLER, &command, now_ms()).await?;
    let is_elsewhere = is_driven(&workflows, &id).await?;
    if !is_elsewhere && let Some(code) = drive_until_idle(context, &id).await? {
        return Ok(code);
    }
    let answer = workflows.answer(&id, &command_id, ANSWER_TIMEOUT).await?;
    if let Some(why) = answer.and_then(|answer| answer.refused) {
        let answer = CommandResult { id: command_id, outcome: CommandOutcome::Refused(why) };
        return print_command_result(&id, &answer, arguments.json);
    }
    let machine = loop {
        let machine = workflows.look(&id, None).await?;
        if machine.branch() > before {
            break machine;
        }
        if !is_driven(&workflows, &id).await? {
            bail!(
                "the workflow is {} and no process drives it: belljar workflow resume {id}",
                machine.status()
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let report = machine.last_rollback();
    if arguments.json {
        print_json(&report)?;
    } else if let Some(report) = report {
        writeln!(io::stdout(), "{}", rollback_text(report, TextStyle::of_stdout()))?;
        writeln!(
            io::stderr(),
            "the workflow is paused: belljar workflow command {id} continue, then belljar \
             workflow resume {id}"
        )?;
    }
    let all = report.is_some_and(|report| report.not_undone.is_empty());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
