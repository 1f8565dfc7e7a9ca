//! The choices of a person who is asked about calls: how long a yes lasts, or no.
//!
//! Each choice spells out the rule that it approves. A choice that is not offered is refused where the
//! decision is recorded, whatever a client sends.

use belljar_contract::{ConsentRule, ConsentScope, Verdict};
use rmcp::model::{ElicitRequestParams, ElicitationSchema, EnumSchema};
use serde_json::Map;

use super::{DENY, QuestionExtent, QuestionForm, single_line, yes_no_form};
use crate::backend::ApprovalRequest;

/// The field with the choice.
pub(super) const DECISION: &str = "decision";

/// The form for calls that are all shown whole. With no choice but yes and no, it asks for a boolean.
pub(super) fn form(message: String, calls: &[&ApprovalRequest]) -> QuestionForm {
    let offered = offered(calls);
    if offered.iter().all(|scope| *scope == ConsentScope::Once) {
        return yes_no_form(message, QuestionExtent::Whole);
    }
    let tool = calls.first().map(|call| single_line(&call.tool)).unwrap_or_default();
    let scopes = offered.iter().map(|scope| match (scope, calls.len()) {
        (ConsentScope::Once, 1) => "Yes, this call only".to_owned(),
        (ConsentScope::Once, _) => "Yes, these calls only".to_owned(),
        (ConsentScope::Run | ConsentScope::Session | ConsentScope::Always, _) => {
            format!("Yes, and {tool} with any arguments {}", scope.phrase())
        }
    });
    let titles: Vec<String> = scopes.chain(["No".to_owned()]).collect();
    let names = offered.iter().map(|scope| scope.as_str());
    let names: Vec<String> = names.chain([DENY]).map(str::to_owned).collect();
    let decision = EnumSchema::builder(names).title("Allow it?");
    // The builder only fails if there are not as many titles as names.
    let schema = match decision.enum_titles(titles) {
        Ok(decision) => {
            ElicitationSchema::builder().required_enum_schema(DECISION, decision.build())
        }
        Err(_) => ElicitationSchema::builder().required_string(DECISION),
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema.build_unchecked(),
    };
    QuestionForm { params, extent: QuestionExtent::Whole }
}

/// The scopes that a yes to all of these calls may have. One beyond the calls themselves is a rule about
/// one tool.
fn offered(calls: &[&ApprovalRequest]) -> Vec<ConsentScope> {
    let Some((first, rest)) = calls.split_first() else { return Vec::new() };
    let is_one_tool = rest.iter().all(|call| call.tool == first.tool);
    let is_offered = |scope: &ConsentScope| {
        *scope == ConsentScope::Once
            || is_one_tool && rest.iter().all(|call| call.scopes.contains(scope))
    };
    first.scopes.iter().copied().filter(is_offered).collect()
}

/// The verdict that a choice stands for; `None` if there is no such choice.
pub(super) fn verdict(choice: &str) -> Option<Verdict> {
    match ConsentScope::from_name(choice) {
        Some(ConsentScope::Once) => Some(Verdict::Approve),
        Some(scope) => Some(Verdict::ApproveRule(ConsentRule { scope, when: Map::new() })),
        None => (choice == DENY).then_some(Verdict::Deny),
    }
}
