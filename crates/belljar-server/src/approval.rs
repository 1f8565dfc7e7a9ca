//! How a person who sits at the client is asked, and what their answer means.
//!
//! Answers come from the client itself (`elicitation/create`, or `inputResponses` of a retried
//! request), never from a tool's arguments: a model has no way to say yes. Only an explicit yes
//! approves; closing the question leaves it open for `belljar approvals`.

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rmcp::{
    RoleServer,
    model::{
        BooleanSchema, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
        ProtocolVersion,
    },
    service::RequestContext,
};

use crate::backend::{ApprovalRequest, Verdict};

/// Arguments are shown up to here; what is left out is counted.
const MAX_SHOWN_CHARS: usize = 4_000;

/// How the client of a request can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// By a request of ours (up to 2025-11-25).
    Elicit,
    /// By an answer that wants the request again (from 2026-07-28).
    InputRequired,
    /// Not at all.
    None,
}

impl Channel {
    /// What the client said it can do.
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

/// The question.
pub(crate) fn form(request: &ApprovalRequest) -> ElicitRequestParams {
    asking(question(request))
}

/// Some other question that is answered with yes or no. Its text may come from a model.
pub(crate) fn yes_or_no(text: &str) -> ElicitRequestParams {
    let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    asking(visible(&shown))
}

fn asking(message: String) -> ElicitRequestParams {
    let approve = |schema: BooleanSchema| schema.title("Approve").with_default(false);
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: ElicitationSchema::builder()
            .required_bool_with("approve", approve)
            .build_unchecked(),
    }
}

/// What the answer means; `None` if it decides nothing.
pub(crate) fn verdict(answer: &ElicitResult) -> Option<Verdict> {
    match answer.action {
        ElicitationAction::Accept => {
            let yes = answer.content.as_ref().and_then(|content| content.get("approve"));
            match yes.and_then(serde_json::Value::as_bool) {
                Some(true) => Some(Verdict::Approve),
                Some(false) => Some(Verdict::Deny),
                None => None,
            }
        }
        ElicitationAction::Decline => Some(Verdict::Deny),
        // Closed without a word, or answered in a way that later revisions may add.
        ElicitationAction::Cancel | _ => None,
    }
}

/// How long there is to answer, if not for ever.
pub(crate) fn until(expires_ms: Option<u64>) -> Option<Duration> {
    let expires = UNIX_EPOCH.checked_add(Duration::from_millis(expires_ms?))?;
    Some(expires.duration_since(SystemTime::now()).unwrap_or_default())
}

fn question(request: &ApprovalRequest) -> String {
    let mut text = format!("Allow the call of {}?\n", visible(&request.tool));
    let arguments = serde_json::to_string_pretty(&request.arguments)
        .unwrap_or_else(|_| request.arguments.to_string());
    let shown: String = arguments.chars().take(MAX_SHOWN_CHARS).collect();
    text += &format!("Arguments: {}", visible(&shown));
    if shown.len() < arguments.len() {
        text += &format!("\n… and {} bytes more", arguments.len() - shown.len());
    }
    text += &format!("\nRun: {}", visible(&request.run_id));
    match (request.line, &request.code_line) {
        (Some(line), Some(code)) => {
            text += &format!("\nCode, line {line}: {}", visible(code.trim()));
        }
        (Some(line), None) => text += &format!("\nCode, line {line}"),
        (None, Some(code)) => text += &format!("\nCode: {}", visible(code.trim())),
        (None, None) => {}
    }
    text
}

/// The text came from a model. Characters that would hide or reorder it on a screen are spelt out.
fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c,
                '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e01ef}')
    };
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
