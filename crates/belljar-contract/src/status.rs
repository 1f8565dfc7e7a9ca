//! How a run stands.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run stands. A result never says `running`; records and lists do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A host has it under way.
    Running,
    /// It ended with a value.
    Completed,
    /// It ended with an error.
    Failed,
    /// Its caller stopped it.
    Aborted,
    /// Its host stopped or died, or could not keep its journal; it resumes by itself.
    Interrupted,
    /// It waits until a person approves a call.
    ApprovalRequired,
    /// One of its calls may have happened; a person has to decide.
    InDoubt,
}

impl RunStatus {
    /// Every status there is.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Aborted,
        Self::Interrupted,
        Self::ApprovalRequired,
        Self::InDoubt,
    ];

    /// The status as results and records write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Interrupted => "interrupted",
            Self::ApprovalRequired => "approval_required",
            Self::InDoubt => "in_doubt",
        }
    }

    /// The status that is written so; `None` if there is no such status.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the run has ended for good: it completed, failed, or was aborted.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Aborted)
    }

    /// Whether the run only stopped, and can resume from its journal.
    pub const fn is_paused(self) -> bool {
        matches!(self, Self::Interrupted | Self::ApprovalRequired | Self::InDoubt)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
