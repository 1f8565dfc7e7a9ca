//! Questions to the person at the client, and what their answers mean.
//!
//! Answers come from the client itself (`elicitation/create`, or `inputResponses` of a retried
//! request), never from a tool's arguments: a model cannot say yes. Only an explicit yes approves;
//! closing the question leaves it open for `belljar approvals`. If the question could not be shown
//! in full, the person can only refuse.

mod brief;
mod choices;
#[cfg(test)]
mod tests;

pub(crate) use brief::brief_arguments;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belljar_contract::{ApprovalId, ApprovalKind, Verdict, decision_command};
use belljar_wire::text::is_invisible;
use rmcp::{
    RoleServer,
    model::{
        BooleanSchema, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
        EnumSchema, ProtocolVersion, StringSchema,
    },
    service::RequestContext,
};
use serde_json::Value;

use crate::backend::ApprovalRequest;

/// Fields of the question about a call in doubt, and its possible answers.
const ANSWER: &str = "answer";
const RESULT: &str = "result";
const RETRY: &str = "retry";
const USE: &str = "use";
const DENY: &str = "deny";

/// The longest text that a form shows; of a longer one it shows a part.
const MAX_SHOWN_CHARS: usize = 4_000;

/// Whether a question shows everything it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionExtent {
    Whole,
    /// Part of it is missing, so a yes is not accepted.
    InPart,
}

/// A form for the person, and whether it shows everything.
#[derive(Debug)]
pub(crate) struct QuestionForm {
    pub(crate) params: ElicitRequestParams,
    pub(crate) extent: QuestionExtent,
}

/// How the client of a request can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The server sends an `elicitation/create` request (up to 2025-11-25).
    Elicit,
    /// The answer asks the client to repeat the request with its user's answers (from 2026-07-28).
    InputRequired,
    /// The client cannot ask its user.
    None,
}

impl Channel {
    /// Follows from the capabilities that the client declared.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let has_forms = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation)
            .is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
        let stateless =
            context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
        match (has_forms, stateless) {
            (false, _) => Self::None,
            (true, true) => Self::InputRequired,
            (true, false) => Self::Elicit,
        }
    }
}

/// The form that asks whether to make a call, or what became of one in doubt.
pub(crate) fn form(request: &ApprovalRequest) -> QuestionForm {
    let (message, extent) = question(request);
    match (request.kind, extent) {
        (ApprovalKind::InDoubt, QuestionExtent::Whole) => in_doubt_form(message),
        (ApprovalKind::Call, QuestionExtent::Whole) => choices::form(message, &[request]),
        (_, QuestionExtent::InPart) => yes_no_form(message, extent),
    }
}

/// The next question to the person: about all calls that wait for a yes or a no if they can be shown
/// together, else about the first call.
pub(crate) fn next_form(open: &[&ApprovalRequest]) -> Option<(Vec<ApprovalId>, QuestionForm)> {
    let (first, rest) = open.split_first()?;
    let calls: Vec<&ApprovalRequest> =
        open.iter().copied().filter(|one| one.kind == ApprovalKind::Call).collect();
    if first.kind == ApprovalKind::Call && !rest.is_empty() && calls.len() > 1 {
        let shown: Vec<_> = calls.iter().map(|one| question(one)).collect();
        let is_whole = shown.iter().all(|(_, extent)| *extent == QuestionExtent::Whole);
        let texts: Vec<String> = shown.into_iter().map(|(text, _)| text).collect();
        let message = format!(
            "{} calls wait. The answer is for all of them.\n\n{}",
            texts.len(),
            texts.join("\n\n")
        );
        if is_whole && message.chars().nth(MAX_SHOWN_CHARS).is_none() {
            let ids = calls.iter().map(|one| one.id.clone()).collect();
            return Some((ids, choices::form(message, &calls)));
        }
    }
    Some((vec![first.id.clone()], form(first)))
}

/// A call that may have happened needs more answers than yes and no.
fn in_doubt_form(message: String) -> QuestionForm {
    let answers = [RETRY, USE, DENY].map(str::to_owned).to_vec();
    let titles = ["Make the call again", "It happened: use its result", "Let it fail in the code"];
    let answer = EnumSchema::builder(answers).title("How should the run continue?");
    // The builder only fails if there are not as many titles as answers.
    let answer = answer.enum_titles(titles.map(str::to_owned).to_vec());
    let schema = match answer {
        Ok(answer) => ElicitationSchema::builder().required_enum_schema(ANSWER, answer.build()),
        Err(_) => ElicitationSchema::builder().required_string(ANSWER),
    };
    let result = |schema: StringSchema| {
        schema
            .title("Its result")
            .description("as JSON, if it happened: \"a text\", {\"id\": 1}, null")
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema.optional_string_with(RESULT, result).build_unchecked(),
    };
    QuestionForm { params, extent: QuestionExtent::Whole }
}

/// Another question with the answers yes and no; `elsewhere` says where to see all of it. Its text
/// may come from a model.
pub(crate) fn yes_or_no(text: &str, elsewhere: &str) -> QuestionForm {
    let text = visible(text);
    if text.chars().nth(MAX_SHOWN_CHARS).is_none() {
        return yes_no_form(text, QuestionExtent::Whole);
    }
    let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    let message = format!(
        "{shown}\n… and {} bytes more. Only a part is shown, so you can only refuse here. To see \
         all of it: {elsewhere}",
        text.len() - shown.len()
    );
    yes_no_form(message, QuestionExtent::InPart)
}

fn yes_no_form(message: String, extent: QuestionExtent) -> QuestionForm {
    let schema = ElicitationSchema::builder();
    let schema = match extent {
        QuestionExtent::Whole => schema.required_bool_with("approve", |approve: BooleanSchema| {
            approve.title("Approve").with_default(false)
        }),
        QuestionExtent::InPart => schema.required_bool_with("deny", |deny: BooleanSchema| {
            deny.title("Refuse, without having seen all of it").with_default(false)
        }),
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema.build_unchecked(),
    };
    QuestionForm { params, extent }
}

/// The verdict that an answer stands for; `None` if it decides nothing.
pub(crate) fn verdict(answer: &ElicitResult, extent: QuestionExtent) -> Option<Verdict> {
    let given = |name: &str| answer.content.as_ref()?.get(name);
    match (&answer.action, extent) {
        (ElicitationAction::Accept, QuestionExtent::Whole) => {
            if let Some(decision) = given(choices::DECISION) {
                // Two answers that could contradict each other are none.
                let is_alone = given("approve").is_none() && given(ANSWER).is_none();
                return is_alone.then(|| choices::verdict(decision.as_str()?))?;
            }
            match (given("approve"), given(ANSWER).and_then(Value::as_str)) {
                (Some(Value::Bool(true)), None) => Some(Verdict::Approve),
                (Some(Value::Bool(false)), None) => Some(Verdict::Deny),
                (None, Some(RETRY)) => Some(Verdict::Retry),
                (None, Some(DENY)) => Some(Verdict::Deny),
                (None, Some(USE)) => {
                    let result = given(RESULT)?.as_str()?;
                    let json = serde_json::from_str::<Value>(result).ok()?;
                    Some(Verdict::Use(json.to_string()))
                }
                _ => None,
            }
        }
        (ElicitationAction::Accept, QuestionExtent::InPart) => {
            (given("deny") == Some(&Value::Bool(true))).then_some(Verdict::Deny)
        }
        (ElicitationAction::Decline, _) => Some(Verdict::Deny),
        // Closed without an answer, or with an action that a later revision may add.
        (ElicitationAction::Cancel | _, _) => None,
    }
}

/// How much time is left to answer; `None` if it does not expire.
pub(crate) fn time_left(expires_ms: Option<u64>) -> Option<Duration> {
    let expires = UNIX_EPOCH.checked_add(Duration::from_millis(expires_ms?))?;
    Some(expires.duration_since(SystemTime::now()).unwrap_or_default())
}

fn question(request: &ApprovalRequest) -> (String, QuestionExtent) {
    let tool = single_line(&request.tool);
    let (mut text, yes) = match request.kind {
        ApprovalKind::Call => (format!("Allow the call of {tool}?\n"), "approve"),
        ApprovalKind::InDoubt => {
            let text = format!(
                "The call of {tool} may have happened: the host ended before it was answered. \
                 How should the run continue?\n"
            );
            (text, "retry")
        }
    };
    let (arguments, extent) = brief::arguments(&request.arguments, MAX_SHOWN_CHARS);
    text += &format!("Arguments: {arguments}");
    if extent == QuestionExtent::InPart {
        let (project, state) = (request.project.as_deref(), request.state_dir.as_deref());
        text += &format!(
            "\nOnly a part is shown, so you can only refuse the call here. To see all of it: `{}`; then \
             `{}`",
            single_line(&decision_command("show", &request.id, project, state)),
            single_line(&decision_command(yes, &request.id, project, state)),
        );
    }
    if let Some(project) = &request.project {
        text += &format!("\nProject: {}", single_line(project));
    }
    text += &format!("\nRun: {}", single_line(&request.run_id));
    let code = request.code_line.as_deref().map(|code| single_line(code.trim()));
    match (request.line, code) {
        (Some(line), Some(code)) => text += &format!("\nCode, line {line}: {code}"),
        (Some(line), None) => text += &format!("\nCode, line {line}"),
        (None, Some(code)) => text += &format!("\nCode: {code}"),
        (None, None) => {}
    }
    (text, extent)
}

/// The same for text that must stay on one line.
fn single_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// Escapes characters that would hide or reorder text on a screen. The text came from a model.
fn visible(text: &str) -> String {
    let is_hidden = |c: char| (c.is_control() && c != '\n') || is_invisible(c);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
