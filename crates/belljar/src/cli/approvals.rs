//! `belljar approvals`: what waits for a person, and the person's word.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use belljar::{is_owner_alive, now_ms};
use belljar_store::{Approval, ApprovalState, Approvals, DecideError, Store, StoreError, Verdict};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    approval_text::{arguments, arguments_in_line, place},
    arguments::{ApprovalsArguments, ApprovalsCommand, ApprovalsListArguments, DecideArguments},
    look::{Look, Role},
    moments::{ago, span},
    print_json,
    project::Project,
    runtime,
    visible::visible,
};

/// Who decides, as the store remembers it.
const BY: &str = "command line";

/// Runs the command.
pub(crate) fn approvals(
    arguments: &ApprovalsArguments,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let store = project.existing_store()?;
    runtime()?.block_on(async {
        match &arguments.command {
            None => list(arguments.list, store.as_ref()).await,
            Some(ApprovalsCommand::List(arguments)) => list(*arguments, store.as_ref()).await,
            Some(ApprovalsCommand::Approve(decide)) => {
                decide_all(decide, Verdict::Approve, store.as_ref()).await
            }
            Some(ApprovalsCommand::Deny(decide)) => {
                decide_all(decide, Verdict::Deny, store.as_ref()).await
            }
        }
    })
}

/// An approval as JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    id: &'a str,
    state: &'static str,
    kind: &'a str,
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
}

impl<'a> From<&'a Approval> for Shown<'a> {
    fn from(approval: &'a Approval) -> Self {
        let Approval { asked, state, decided_by, decided_ms } = approval;
        let json = RawValue::from_string(asked.arguments.clone());
        Self {
            id: &asked.id,
            state: state.as_str(),
            kind: &asked.kind,
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
        print_json(&found.iter().map(Shown::from).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        writeln!(io::stderr(), "nothing waits for a decision")?;
    }
    let look = Look::of_stdout();
    let texts: Vec<String> = found.iter().map(|approval| text(approval, now_ms(), look)).collect();
    io::stdout().write_all(texts.join("\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All a person needs to decide.
fn text(approval: &Approval, now_ms: i64, look: Look) -> String {
    let asked = &approval.asked;
    let is_doubt = asked.kind.starts_with("in_doubt");
    let fate = match approval.state {
        ApprovalState::Pending if is_doubt => {
            "it may have happened; approve to call it again".into()
        }
        ApprovalState::Pending => format!("{} left", span(asked.expires_ms - now_ms)),
        ApprovalState::Approved | ApprovalState::Denied => {
            let by = approval.decided_by.as_deref().unwrap_or_default();
            format!("{} by {}", approval.state.as_str(), visible(by))
        }
        ApprovalState::Expired => "expired, so denied".to_owned(),
    };
    let head = format!("{}  {}", visible(&asked.id), visible(&asked.tool));
    let place = place(&asked.run_id, asked.line, asked.code_line.as_deref());
    format!(
        "{}  asked {}, {fate}\n  {}\n{}",
        look.paint(Role::Strong, &head),
        ago(asked.created_ms, now_ms),
        look.paint(Role::Dim, &place),
        arguments(&asked.arguments, look),
    )
}

/// Decides each; one that cannot be decided does not keep the others.
async fn decide_all(
    arguments: &DecideArguments,
    verdict: Verdict,
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
        print_json(&decided.iter().map(Shown::from).collect::<Vec<_>>())?;
    } else {
        for approval in &decided {
            tell(approval, store).await?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn decide(id: &str, verdict: Verdict, store: Option<&Store>) -> Result<Approval, String> {
    let unknown =
        || format!("there is no approval {id} in this project; `belljar approvals` lists them");
    let store = store.ok_or_else(unknown)?;
    let found = store.find_approval(id, now_ms()).await.map_err(|error| error.to_string())?;
    let id = found.ok_or_else(unknown)?.asked.id;
    let decided = store.decide(&id, verdict, BY, now_ms()).await;
    decided.map_err(|error| match error {
        DecideError::AlreadyDecided { at_ms, .. } => {
            format!("{error}, {}", ago(at_ms, now_ms()))
        }
        DecideError::Unknown(_) | DecideError::Expired { .. } | DecideError::Store(_) => {
            error.to_string()
        }
    })
}

async fn tell(approval: &Approval, store: Option<&Store>) -> anyhow::Result<()> {
    let Approval { asked, state, .. } = approval;
    let (tool, arguments) = (visible(&asked.tool), arguments_in_line(&asked.arguments));
    writeln!(io::stdout(), "{} {}: {tool} {arguments}", state.as_str(), asked.id)?;
    if let Some(store) = store
        && is_resumable(store, &asked.run_id).await?
    {
        writeln!(
            io::stderr(),
            "its run has ended meanwhile; go on: belljar resume {}",
            asked.run_id
        )?;
    }
    Ok(())
}

/// Whether nobody waits for the decision, and somebody could.
async fn is_resumable(store: &Store, run_id: &str) -> Result<bool, StoreError> {
    let Some(run) = store.run(run_id).await? else { return Ok(false) };
    let is_running = run.summary.status == "running" && is_owner_alive(&run.summary.owner);
    Ok(run.result_json.is_none() && !is_running)
}

#[cfg(test)]
mod tests;
