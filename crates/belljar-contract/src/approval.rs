//! Questions to a person about a tool call, and the answers.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A person's decision about a tool call that waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call may be made, once, with the arguments that were shown.
    Approve,
    /// The call may be made, and so may later calls that a rule covers.
    ApproveRule(ConsentRule),
    /// The call is not made; one in doubt fails in the code.
    Deny,
    /// A call in doubt is made again.
    Retry,
    /// A call in doubt happened, and gave this value, as JSON.
    Use(String),
}

/// How long a yes lasts, from the shortest to the longest.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ConsentScope {
    /// For the one call that was asked about.
    #[default]
    Once,
    /// For the run of that call, also after it was resumed.
    Run,
    /// For the session of that run.
    Session,
    /// For the project, until the user removes the rule.
    Always,
}

impl ConsentScope {
    /// Every scope, from the shortest to the longest.
    pub const ALL: [Self; 4] = [Self::Once, Self::Run, Self::Session, Self::Always];

    /// Its name, in records, requests and flags.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Session => "session",
            Self::Always => "always",
        }
    }

    /// The scope of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }

    /// When calls that a rule of this scope covers are made without a question.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Once => "this once",
            Self::Run => "in this run",
            Self::Session => "in this session",
            Self::Always => "always in this project",
        }
    }
}

/// A yes to more than one call: to calls of the same tool, as long as its scope lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentRule {
    /// How long it lasts.
    pub scope: ConsentScope,
    /// Conditions on arguments, as rules of `belljar.toml` have them; empty for any arguments.
    pub when: Map<String, Value>,
}

/// The command by which a person decides about a call, from any directory if the project is known. `state` is
/// the project's state directory, if it is not in its default place.
pub fn decision_command(
    verb: &str,
    id: &str,
    project: Option<&str>,
    state: Option<&str>,
) -> String {
    let mut command = format!("belljar approvals {verb} {id}");
    for (flag, place) in [("--project", project), ("--state-dir", state)] {
        if let Some(place) = place {
            command.push_str(&format!(" {flag} {}", shell_word(place)));
        }
    }
    command
}

/// The text as one word of a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The question about a call, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// Whether it may be made.
    Call,
    /// It may have happened, and its end is unknown: what is to be made of that.
    InDoubt,
}

impl ApprovalKind {
    /// The question in words, with the possible answers.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Call => "The call was not made yet. Answer `approve` or `deny`.",
            Self::InDoubt => {
                "The call may have happened: the host ended before it was answered. Check, then answer \
                 `retry` (make it again), `use` with its `result` (it happened), or `deny` (it fails \
                 in the code)."
            }
        }
    }
}

/// The question about a call. A call has one approval for each.
///
/// Its [`Display`](fmt::Display) is the text that records keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalQuestion {
    /// May it be made?
    MayCall,
    /// It may have happened; may it be repeated? A repeated call that is in doubt again is a new
    /// question: the person who agreed to the first has not seen it.
    MayRepeat {
        /// How often the call was sent; at least once.
        times_sent: u32,
    },
}

impl ApprovalQuestion {
    const MAY_CALL: &'static str = "ask";
    const MAY_REPEAT: &'static str = "in_doubt";

    /// The question that a record names. A name of some other version counts as a question about a
    /// call in doubt if it begins like one, and as the plain question otherwise.
    pub fn from_record(name: &str) -> Self {
        match name.strip_prefix(Self::MAY_REPEAT) {
            None => Self::MayCall,
            Some(rest) => {
                let times_sent = rest.strip_prefix('_').and_then(|times| times.parse().ok());
                Self::MayRepeat { times_sent: times_sent.unwrap_or(1) }
            }
        }
    }

    /// The question as clients see it.
    pub const fn kind(self) -> ApprovalKind {
        match self {
            Self::MayCall => ApprovalKind::Call,
            Self::MayRepeat { .. } => ApprovalKind::InDoubt,
        }
    }
}

impl fmt::Display for ApprovalQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MayCall => f.write_str(Self::MAY_CALL),
            Self::MayRepeat { times_sent: 0 | 1 } => f.write_str(Self::MAY_REPEAT),
            Self::MayRepeat { times_sent } => write!(f, "{}_{times_sent}", Self::MAY_REPEAT),
        }
    }
}
