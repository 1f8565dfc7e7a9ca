//! Records the decisions of `belljar approvals`.

use std::{
    collections::BTreeSet,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    process::ExitCode,
};

use anyhow::{anyhow, bail};
use belljar_contract::{ConsentRule, ConsentScope, RunId, RunStatus, Verdict};
use belljar_project::{is_owner_alive, now_ms};
use belljar_store::{Approval, DecideError, Store, StoreError};
use belljar_tools::{RecordedVerdict, VerdictError};
use serde_json::{Map, Value};

use super::{
    ApprovalView, BY, ProjectApprovals, head,
    text::{all_arguments, arguments_in_line, name_in_line},
};
use crate::cli::{
    arguments::{ApproveArguments, DecideArguments},
    print_json,
    terminal::{elapsed::ago, style::TextStyle, visible::visible},
};

/// Approves calls, and the rule that was asked for with them.
pub(super) async fn approve(
    arguments: &ApproveArguments,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<ExitCode> {
    let scope = ConsentScope::from_name(&arguments.scope).unwrap_or_default();
    let when = conditions(&arguments.when)?;
    let verdict = match scope {
        ConsentScope::Once if when.is_empty() => Verdict::Approve,
        ConsentScope::Once => bail!("--when needs --for run, session or always"),
        ConsentScope::Run | ConsentScope::Session | ConsentScope::Always => {
            Verdict::ApproveRule(ConsentRule { scope, when })
        }
    };
    // Found once: a call that comes after a person has looked waits for another decision.
    let ids = ids(&arguments.decide, approvals).await?;
    let is_person = io::stdin().is_terminal() && io::stderr().is_terminal();
    if is_person
        && !arguments.yes
        && !arguments.decide.json
        && !is_meant(&ids, arguments.decide.run.is_some(), &verdict, approvals).await?
    {
        writeln!(io::stderr(), "nothing was decided")?;
        return Ok(ExitCode::FAILURE);
    }
    decide_these(ids, &arguments.decide, &verdict, approvals).await
}

/// Asks a person about what they have not named: the calls of a run, and rules that are for good.
async fn is_meant(
    ids: &[String],
    is_of_run: bool,
    verdict: &Verdict,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<bool> {
    if is_of_run && !ids.is_empty() {
        let style = TextStyle::of_stderr();
        for id in ids {
            // A fault is reported when the approval is decided.
            let Ok(found) = approvals.find(id).await else { continue };
            let (head, json) = (head(&found, now_ms(), style), &found.asked.arguments);
            write!(io::stderr(), "{head}{}", all_arguments(json, style))?;
        }
        if !says_yes(&format!("approve these {} calls?", ids.len()))? {
            return Ok(false);
        }
    }
    for id in ids {
        if !agrees(id, verdict, approvals).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn says_yes(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Shows a person a rule for good, and asks whether it is meant.
async fn agrees(
    id: &str,
    verdict: &Verdict,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<bool> {
    let (Verdict::ApproveRule(wanted), Some(decisions)) = (verdict, approvals.decisions()) else {
        return Ok(true);
    };
    if wanted.scope != ConsentScope::Always {
        return Ok(true);
    }
    // A fault is reported when the approval is decided.
    let Ok(found) = approvals.find(id).await else { return Ok(true) };
    let Ok(rule) = decisions.rule_for(&found.asked, wanted.clone(), BY, now_ms()) else {
        return Ok(true);
    };
    writeln!(
        io::stderr(),
        "this allows {} {}: {}",
        visible(&rule.to_string()),
        wanted.scope.phrase(),
        visible(&approvals.project.root().to_string_lossy()),
    )?;
    Ok(says_yes("keep this rule?")?)
}

/// The conditions of `--when ARGUMENT=VALUE`.
fn conditions(given: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut when = Map::new();
    for one in given {
        let (argument, value) = one
            .split_once('=')
            .ok_or_else(|| anyhow!("--when {one}: write ARGUMENT=VALUE, e.g. 'path=/srv/*'"))?;
        let value = match serde_json::from_str::<Value>(value) {
            Ok(scalar @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => scalar,
            Ok(Value::Null | Value::Array(_) | Value::Object(_)) | Err(_) => Value::from(value),
        };
        if when.insert(argument.to_owned(), value).is_some() {
            bail!("--when names {argument} twice");
        }
    }
    Ok(when)
}

/// The ids that were given, or those of the calls of a run that wait for a yes or a no.
async fn ids(
    arguments: &DecideArguments,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<Vec<String>> {
    let Some(run) = &arguments.run else { return Ok(arguments.ids.clone()) };
    let Some(decisions) = approvals.decisions() else { return Ok(Vec::new()) };
    let waiting = decisions.waiting_in(&RunId::from(run.as_str()), now_ms()).await?;
    let calls = waiting.into_iter().filter(|one| !one.asked.is_in_doubt());
    Ok(calls.map(|one| one.asked.id.to_string()).collect())
}

/// Decides all approvals that the arguments name.
pub(super) async fn decide_all(
    arguments: &DecideArguments,
    verdict: &Verdict,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<ExitCode> {
    decide_these(ids(arguments, approvals).await?, arguments, verdict, approvals).await
}

/// Decides each approval. If one fails, the others are still decided.
async fn decide_these(
    ids: Vec<String>,
    arguments: &DecideArguments,
    verdict: &Verdict,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<ExitCode> {
    let (mut decided, mut failed) = (Vec::<RecordedVerdict>::new(), false);
    let mut answered = BTreeSet::new();
    if let (Some(run), true) = (&arguments.run, ids.is_empty()) {
        writeln!(io::stderr(), "no calls of {run} wait for a decision in this project")?;
        return Ok(ExitCode::FAILURE);
    }
    for id in ids {
        // A rule for an earlier one has answered it.
        if answered.contains(&id) {
            continue;
        }
        match decide(&id, verdict, approvals).await {
            Ok(recorded) => {
                answered.extend(recorded.also.iter().map(|one| one.asked.id.to_string()));
                decided.push(recorded);
            }
            Err(why) => {
                failed = true;
                writeln!(io::stderr(), "{why}")?;
            }
        }
    }
    if arguments.json {
        let all = decided.iter().flat_map(|one| [&one.approval].into_iter().chain(&one.also));
        print_json(&all.map(ApprovalView::from).collect::<Vec<_>>())?;
    } else {
        for recorded in &decided {
            tell(recorded, approvals).await?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn decide(
    id: &str,
    verdict: &Verdict,
    approvals: &ProjectApprovals<'_>,
) -> Result<RecordedVerdict, String> {
    let found = approvals.find(id).await?;
    let decisions = approvals.decisions().ok_or_else(|| "the project has no records".to_owned())?;
    let decided = decisions.decide(&found.asked.id, verdict.clone(), BY, now_ms()).await;
    decided.map_err(|error| match error {
        VerdictError::Decide(error @ DecideError::AlreadyDecided { at_ms, .. }) => {
            format!("{error}, {}", ago(at_ms, now_ms()))
        }
        error @ (VerdictError::Decide(_)
        | VerdictError::Rule(_)
        | VerdictError::NotCovered { .. }
        | VerdictError::TooLong { .. }
        | VerdictError::OnceWithConditions
        | VerdictError::NotKept(_)) => visible(&format!("{:#}", anyhow!(error))).into_owned(),
    })
}

async fn tell(recorded: &RecordedVerdict, approvals: &ProjectApprovals<'_>) -> anyhow::Result<()> {
    for Approval { asked, state, .. } in [&recorded.approval].into_iter().chain(&recorded.also) {
        let (tool, arguments) = (name_in_line(&asked.tool), arguments_in_line(&asked.arguments));
        writeln!(io::stdout(), "{} {}: {tool} {arguments}", state.as_str(), asked.id)?;
    }
    if let Some((scope, rule)) = &recorded.rule {
        writeln!(io::stdout(), "{}", visible(&recorded.to_string()))?;
        if *scope == ConsentScope::Always {
            writeln!(io::stderr(), "to remove it: belljar approvals rules rm {}", rule.id)?;
        }
    }
    let asked = &recorded.approval.asked;
    if let Some(store) = &approvals.store
        && is_resumable(store, &asked.run_id).await?
    {
        writeln!(
            io::stderr(),
            "no process runs its run now: `belljar serve` in this project resumes it by itself, \
             or resume it yourself: belljar resume {}",
            asked.run_id
        )?;
    }
    Ok(())
}

/// Whether the run waits without a process and could be resumed.
async fn is_resumable(store: &Store, run_id: &RunId) -> Result<bool, StoreError> {
    let Some(run) = store.run(run_id).await? else { return Ok(false) };
    let is_running = run.summary.status == RunStatus::Running && is_owner_alive(&run.summary.owner);
    Ok(run.result_json.is_none() && !is_running)
}
