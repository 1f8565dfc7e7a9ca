//! The bodies of requests, as clients write them (DESIGN: one request everywhere).

use belljar_contract::{CheckpointId, ConsentRule, ConsentScope, Verdict, optional_whole_number};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Which checkpoint to go back to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackRequest {
    /// As `POST …/checkpoints` named it.
    pub(super) checkpoint_id: CheckpointId,
}

/// How many sessions to make of one, and from where.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ForkRequest {
    /// How many; one if absent.
    #[serde(deserialize_with = "optional_whole_number")]
    #[schemars(range(min = 1, max = 512))]
    pub(super) count: Option<u32>,
    /// From this checkpoint; from how it is now if absent.
    pub(super) checkpoint_id: Option<CheckpointId>,
}

/// The decision of a person. For a call that was not made yet, `approve` or `deny`; for one in
/// doubt, `retry`, `use` or `deny`: a yes to a call is not a yes to a second call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum DecisionRequest {
    /// It may be made.
    Approve {
        /// How long the yes lasts; `once` if absent. Longer, it covers later calls of the same tool.
        #[serde(default, rename = "for")]
        scope: ConsentScope,
        /// Only calls whose arguments are as said here, in the form of rules in `belljar.toml`.
        #[serde(default)]
        when: Map<String, Value>,
    },
    /// It may not; one in doubt fails in the code.
    Deny {},
    /// One in doubt is made again.
    Retry {},
    /// One in doubt happened.
    Use {
        /// The result of the call, as the code would have got it: any JSON.
        result: Value,
    },
}

/// The answer about a call.
#[derive(Debug, Clone, Copy, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Decision")]
pub(super) enum ApprovalDecision {
    /// It may be made.
    Approve,
    /// It is not made; one in doubt fails.
    Deny,
    /// It is made again.
    Retry,
    /// The call happened; the given result takes the place of its answer.
    Use,
}

impl DecisionRequest {
    /// The verdict for the port, and the decision for the answer.
    pub(super) fn into_verdict(self) -> (Verdict, ApprovalDecision) {
        match self {
            Self::Approve { scope: ConsentScope::Once, when } if when.is_empty() => {
                (Verdict::Approve, ApprovalDecision::Approve)
            }
            Self::Approve { scope, when } => {
                (Verdict::ApproveRule(ConsentRule { scope, when }), ApprovalDecision::Approve)
            }
            Self::Deny {} => (Verdict::Deny, ApprovalDecision::Deny),
            Self::Retry {} => (Verdict::Retry, ApprovalDecision::Retry),
            Self::Use { result } => (Verdict::Use(result.to_string()), ApprovalDecision::Use),
        }
    }
}

/// A search for tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchRequest {
    /// The purpose, in words.
    pub(super) intent: String,
    /// How many to name; 5 if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) k: Option<u32>,
}
