//! `belljar approvals`: lists tool calls that wait for a person, and records decisions.

pub(crate) mod prompt;
pub(crate) mod text;

use std::{io, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use belljar_contract::{ApprovalKind, RunId, RunStatus, Verdict};
use belljar_project::{Project, is_owner_alive, now_ms};
use belljar_store::{Approval, ApprovalState, Approvals, DecideError, Store, StoreError};
use belljar_wire::json::check_keys;
use serde::{Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use text::{Extent, all_arguments, arguments, arguments_in_line, cut_note, name_in_line, place};

use super::{
    arguments::{
        ApprovalsArguments, ApprovalsCommand, ApprovalsListArguments, ApprovalsShowArguments,
        DecideArguments, UseArguments,
    },
    print_json,
    project::existing_store,
    runtime,
    terminal::{
        elapsed::{ago, span},
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Recorded as the person who decided.
const BY: &str = "command line";

/// Runs `belljar approvals`: lists, shows and decides calls that wait for a person.
pub(crate) fn approvals(
    arguments: &ApprovalsArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let store = existing_store(project)?;
    runtime()?.block_on(async {
        match &arguments.command {
            None => list(arguments.list, store.as_ref()).await,
            Some(ApprovalsCommand::List(arguments)) => list(*arguments, store.as_ref()).await,
            Some(ApprovalsCommand::Show(arguments)) => show(arguments, store.as_ref()).await,
            Some(ApprovalsCommand::Approve(decide)) => {
                decide_all(decide, &Verdict::Approve, store.as_ref()).await
            }
            Some(ApprovalsCommand::Deny(decide)) => {
                decide_all(decide, &Verdict::Deny, store.as_ref()).await
            }
            Some(ApprovalsCommand::Retry(decide)) => {
                decide_all(decide, &Verdict::Retry, store.as_ref()).await
            }
            Some(ApprovalsCommand::Use(UseArguments { id, result, json })) => {
                serde_json::from_str::<IgnoredAny>(result).context("--result is not valid JSON")?;
                check_keys(result.as_bytes()).context("--result is ambiguous JSON")?;
                let decide = DecideArguments { ids: vec![id.clone()], json: *json };
                decide_all(&decide, &Verdict::Use(result.clone()), store.as_ref()).await
            }
        }
    })
}

/// An approval in the JSON output.
#[derive(Debug, Serialize)]
struct ApprovalView<'a> {
    id: &'a str,
    state: &'static str,
    /// `call`, or `in_doubt` for a call that may have happened.
    kind: ApprovalKind,
    message: &'static str,
    tool: &'a str,
    arguments: Box<RawValue>,
    run_id: &'a str,
    call: u32,
    caller: &'a str,
    line: Option<u32>,
    code_line: Option<&'a str>,
    created_ms: i64,
    expires_ms: i64,
    decided_by: Option<&'a str>,
    decided_ms: Option<i64>,
    /// The result that a person entered for a call that happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

impl<'a> From<&'a Approval> for ApprovalView<'a> {
    fn from(approval: &'a Approval) -> Self {
        let Approval { asked, state, decided_by, decided_ms, result } = approval;
        let json = RawValue::from_string(asked.arguments.clone());
        let kind = asked.question.kind();
        Self {
            id: &asked.id,
            state: state.as_str(),
            kind,
            message: kind.message(),
            tool: &asked.tool,
            arguments: json.unwrap_or_else(|_| RawValue::NULL.to_owned()),
            run_id: &asked.run_id,
            call: asked.call,
            caller: &asked.caller,
            line: asked.line,
            code_line: asked.code_line.as_deref(),
            created_ms: asked.created_ms,
            expires_ms: asked.expires_ms,
            decided_by: decided_by.as_deref(),
            decided_ms: *decided_ms,
            result: result.clone().and_then(|result| RawValue::from_string(result).ok()),
        }
    }
}

async fn list(
    arguments: ApprovalsListArguments,
    store: Option<&Store>,
) -> anyhow::Result<ExitCode> {
    let which = if arguments.all { Approvals::All } else { Approvals::Pending };
    let found = match store {
        Some(store) => store.approvals(which, now_ms()).await?,
        None => Vec::new(),
    };
    if arguments.json {
        print_json(&found.iter().map(ApprovalView::from).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        writeln!(io::stderr(), "no calls wait for a decision")?;
    }
    let style = TextStyle::of_stdout();
    let texts: Vec<String> = found.iter().map(|approval| text(approval, now_ms(), style)).collect();
    io::stdout().write_all(texts.join("\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one approval with all arguments.
async fn show(
    arguments: &ApprovalsShowArguments,
    store: Option<&Store>,
) -> anyhow::Result<ExitCode> {
    let approval = match find(&arguments.id, store).await {
        Ok((_, approval)) => approval,
        Err(why) => {
            writeln!(io::stderr(), "{why}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    if arguments.json {
        print_json(&ApprovalView::from(&approval))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = TextStyle::of_stdout();
    let head = head(&approval, now_ms(), style);
    let all = all_arguments(&approval.asked.arguments, style);
    io::stdout().write_all(format!("{head}{all}").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A call in the list.
fn text(approval: &Approval, now_ms: i64, style: TextStyle) -> String {
    let json = &approval.asked.arguments;
    let (mut text, extent) = arguments(json, style);
    if extent == Extent::InPart {
        text.push_str(&cut_note(&approval.asked.id, json, style));
    }
    format!("{}{text}", head(approval, now_ms, style))
}

/// The first lines of a call: id, tool, state and place.
fn head(approval: &Approval, now_ms: i64, style: TextStyle) -> String {
    let asked = &approval.asked;
    let fate = match approval.state {
        ApprovalState::Pending if asked.is_in_doubt() => {
            "it may have happened: `retry` to repeat it, `use` if it happened, or `deny`".into()
        }
        ApprovalState::Pending => format!("{} left", span(asked.expires_ms - now_ms)),
        ApprovalState::Happened => {
            let by = approval.decided_by.as_deref().unwrap_or_default();
            format!("it happened, according to {}", visible(by))
        }
        ApprovalState::Approved | ApprovalState::Denied => {
            let by = approval.decided_by.as_deref().unwrap_or_default();
            format!("{} by {}", approval.state.as_str(), visible(by))
        }
        ApprovalState::Expired => "expired, so denied".to_owned(),
    };
    let head = format!("{}  {}", visible(&asked.id), name_in_line(&asked.tool));
    let place = place(&asked.run_id, asked.line, asked.code_line.as_deref());
    format!(
        "{}  asked {}, {fate}\n  {}\n",
        style.paint(TextRole::Strong, &head),
        ago(asked.created_ms, now_ms),
        style.paint(TextRole::Dim, &place),
    )
}

/// Decides each approval. If one fails, the others are still decided.
async fn decide_all(
    arguments: &DecideArguments,
    verdict: &Verdict,
    store: Option<&Store>,
) -> anyhow::Result<ExitCode> {
    let mut decided = Vec::new();
    let mut failed = false;
    for id in &arguments.ids {
        match decide(id, verdict, store).await {
            Ok(approval) => decided.push(approval),
            Err(why) => {
                failed = true;
                writeln!(io::stderr(), "{why}")?;
            }
        }
    }
    if arguments.json {
        print_json(&decided.iter().map(ApprovalView::from).collect::<Vec<_>>())?;
    } else {
        for approval in &decided {
            tell(approval, store).await?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Finds an approval by its id or a prefix.
async fn find<'a>(id: &str, store: Option<&'a Store>) -> Result<(&'a Store, Approval), String> {
    let unknown =
        || format!("there is no approval {id} in this project; `belljar approvals` lists them");
    let store = store.ok_or_else(unknown)?;
    let found = store.find_approval(id, now_ms()).await.map_err(|error| error.to_string())?;
    Ok((store, found.ok_or_else(unknown)?))
}

async fn decide(id: &str, verdict: &Verdict, store: Option<&Store>) -> Result<Approval, String> {
    let (store, found) = find(id, store).await?;
    let decided = store.decide(&found.asked.id, verdict.clone(), BY, now_ms()).await;
    decided.map_err(|error| match error {
        DecideError::AlreadyDecided { at_ms, .. } => {
            format!("{error}, {}", ago(at_ms, now_ms()))
        }
        DecideError::Unknown(_)
        | DecideError::Expired { .. }
        | DecideError::RunEnded(_)
        | DecideError::InDoubt(_)
        | DecideError::NotInDoubt(_)
        | DecideError::LargeResult(_)
        | DecideError::Store(_) => error.to_string(),
    })
}

async fn tell(approval: &Approval, store: Option<&Store>) -> anyhow::Result<()> {
    let Approval { asked, state, .. } = approval;
    let (tool, arguments) = (name_in_line(&asked.tool), arguments_in_line(&asked.arguments));
    writeln!(io::stdout(), "{} {}: {tool} {arguments}", state.as_str(), asked.id)?;
    if let Some(store) = store
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

#[cfg(test)]
mod tests;
