//! `belljar approvals`: lists tool calls that wait for a person, and records decisions.

mod decide;
pub(crate) mod prompt;
mod rules;
pub(crate) mod text;

use std::{collections::BTreeMap, io, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use belljar_contract::{ApprovalKind, Verdict, shell_word};
use belljar_project::{Project, now_ms};
use belljar_store::{Approval, ApprovalState, Approvals, GivenRule, Store};
use belljar_tools::{Decisions, StandingRule};
use belljar_wire::json::check_keys;
use serde::{Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use text::{Extent, all_arguments, arguments, cut_note, name_in_line, place};

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
    let approvals = ProjectApprovals { project, store: existing_store(project)? };
    runtime()?.block_on(async {
        match &arguments.command {
            None => list(arguments.list, &approvals).await,
            Some(ApprovalsCommand::List(arguments)) => list(*arguments, &approvals).await,
            Some(ApprovalsCommand::Show(arguments)) => show(arguments, &approvals).await,
            Some(ApprovalsCommand::Approve(approve)) => decide::approve(approve, &approvals).await,
            Some(ApprovalsCommand::Deny(decide)) => {
                decide::decide_all(decide, &Verdict::Deny, &approvals).await
            }
            Some(ApprovalsCommand::Retry(decide)) => {
                decide::decide_all(decide, &Verdict::Retry, &approvals).await
            }
            Some(ApprovalsCommand::Use(UseArguments { id, result, json })) => {
                serde_json::from_str::<IgnoredAny>(result).context("--result is not valid JSON")?;
                check_keys(result.as_bytes()).context("--result is ambiguous JSON")?;
                let decide = DecideArguments { ids: vec![id.clone()], run: None, json: *json };
                decide::decide_all(&decide, &Verdict::Use(result.clone()), &approvals).await
            }
            Some(ApprovalsCommand::Rules(arguments)) => rules::rules(arguments, project),
        }
    })
}

/// Where decisions about the calls of a project are made.
struct ProjectApprovals<'a> {
    project: &'a Project,
    /// `None` if the project keeps no records yet.
    store: Option<Store>,
}

impl ProjectApprovals<'_> {
    fn decisions(&self) -> Option<Decisions> {
        Some(Decisions::new(self.store.clone()?, self.project.kept_rules().cloned()))
    }

    /// Finds an approval by its id or a prefix.
    async fn find(&self, id: &str) -> Result<Approval, String> {
        if let Some(store) = &self.store {
            let found = store.find_approval(id, now_ms()).await;
            if let Some(found) = found.map_err(|error| error.to_string())? {
                return Ok(found);
            }
        }
        let unknown = format!("there is no approval {id} in this project");
        let Some(elsewhere) = self.project.approval_elsewhere(id).await else {
            return Err(format!(
                "{unknown}; `belljar approvals` lists them, `--project DIR` looks in another one"
            ));
        };
        let at = elsewhere.to_string_lossy();
        Err(format!("{unknown}, but in {at}: add --project {}", shell_word(&at)))
    }
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
    /// How long the yes lasts, if longer than for the call.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    /// The rule that was approved with the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Box<RawValue>>,
}

impl<'a> From<&'a Approval> for ApprovalView<'a> {
    fn from(approval: &'a Approval) -> Self {
        let Approval { asked, state, decided_by, decided_ms, result, given } = approval;
        let json = RawValue::from_string(asked.arguments.clone());
        let kind = asked.question.kind();
        Self {
            id: &asked.id,
            state: state.as_str(),
            kind,
            message: kind.message(),
            tool: &asked.tool,
            // The person who decides must never see less than is sent.
            arguments: json.unwrap_or_else(|_| quoted(&asked.arguments)),
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
            scope: given.as_ref().map(|given| given.scope.as_str()),
            rule: given.as_ref().and_then(|given| RawValue::from_string(given.rule.clone()).ok()),
        }
    }
}

/// Text that is not JSON, as a JSON string.
fn quoted(text: &str) -> Box<RawValue> {
    let json = serde_json::value::to_raw_value(text);
    json.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

async fn list(
    arguments: ApprovalsListArguments,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<ExitCode> {
    let which = if arguments.all { Approvals::All } else { Approvals::Pending };
    let found = match &approvals.store {
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
    print_runs(&found)?;
    Ok(ExitCode::SUCCESS)
}

/// Names the runs in which several calls wait: one decision can answer them.
fn print_runs(found: &[Approval]) -> io::Result<()> {
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let is_call = |one: &&Approval| one.state == ApprovalState::Pending && !one.asked.is_in_doubt();
    for approval in found.iter().filter(is_call) {
        *waiting.entry(&approval.asked.run_id).or_default() += 1;
    }
    for (run, count) in waiting.into_iter().filter(|(_, count)| *count > 1) {
        writeln!(
            io::stderr(),
            "{count} calls of {run} wait; to approve all of them: belljar approvals approve --run {run}"
        )?;
    }
    Ok(())
}

/// Prints one approval with all arguments.
async fn show(
    arguments: &ApprovalsShowArguments,
    approvals: &ProjectApprovals<'_>,
) -> anyhow::Result<ExitCode> {
    let approval = match approvals.find(&arguments.id).await {
        Ok(approval) => approval,
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
            let rule = approval.given.as_ref().map(|given| format!(", also {}", rule_text(given)));
            let rule = rule.unwrap_or_default();
            format!("{} by {}{rule}", approval.state.as_str(), visible(by))
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

/// A rule that was approved with a call, in words.
fn rule_text(given: &GivenRule) -> String {
    let rule = serde_json::from_str::<StandingRule>(&given.rule);
    let rule = rule.map_or_else(|_| given.rule.clone(), |rule| rule.to_string());
    format!("{} {}", visible(&rule), given.scope.phrase())
}

#[cfg(test)]
mod tests;
