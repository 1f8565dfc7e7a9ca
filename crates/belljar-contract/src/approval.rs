//! Questions to a person about a tool call, and the answers.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// A person's decision about a tool call that waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call may be made, once, with the arguments that were shown.
    Approve,
    /// The call is not made; one in doubt fails in the code.
    Deny,
    /// A call in doubt is made again.
    Retry,
    /// A call in doubt happened, and gave this value, as JSON.
    Use(String),
}

/// What is asked about a call, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// Whether it may be made.
    Call,
    /// It may have happened, and its end is unknown: what is to be made of that.
    InDoubt,
}

impl ApprovalKind {
    /// What is asked, in words, with the answers there are.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Call => "The call was not made yet. Answer `approve` or `deny`.",
            Self::InDoubt => {
                "The call may have happened: the host ended before it was answered. Look, then answer \
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

    /// What is asked, as clients see it.
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
