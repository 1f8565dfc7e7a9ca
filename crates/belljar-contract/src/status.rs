//! How runs, workflows and their tasks stand.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enum of statuses with the text that results, records and events write for each.
macro_rules! statuses {
    (
        $(#[$doc:meta])* $name:ident:
        $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every status there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The status as results, records and events write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The status that is written so; `None` if there is no such status.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|status| status.as_str() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

statuses! {
    /// How a run stands. A result never says `running`; records and lists do.
    RunStatus:
    /// A host has it under way.
    Running = "running",
    /// It ended with a value.
    Completed = "completed",
    /// It ended with an error.
    Failed = "failed",
    /// Its caller stopped it.
    Aborted = "aborted",
    /// Its host stopped or died, or could not keep its journal; it resumes by itself.
    Interrupted = "interrupted",
    /// It waits for a person to approve a call.
    ApprovalRequired = "approval_required",
    /// A call of it may or may not have happened; a person has to say.
    InDoubt = "in_doubt",
}

impl RunStatus {
    /// Whether the run has ended for good: it completed, failed, or was aborted.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Aborted)
    }

    /// Whether the run only stopped, and can resume from its journal.
    pub const fn is_paused(self) -> bool {
        matches!(self, Self::Interrupted | Self::ApprovalRequired | Self::InDoubt)
    }
}

statuses! {
    /// How a workflow stands. Only records say `created`; only clients see `queued` and
    /// `needs_attention`.
    WorkflowStatus:
    /// It is stored, and no host has begun it.
    Created = "created",
    /// It has not started: too many others run, or no host has looked at it yet.
    Queued = "queued",
    /// Hosts leave it alone until a person resumes it.
    NeedsAttention = "needs_attention",
    /// `Begin` was not applied yet.
    New = "new",
    /// Tasks run, or wait for a time or a decision.
    Running = "running",
    /// Nothing starts until a `continue` command.
    Paused = "paused",
    /// The workflow ends as soon as its running tasks have stopped.
    Stopping = "stopping",
    /// The workflow is undoing tasks on its way back to a checkpoint.
    RollingBack = "rolling_back",
    /// All tasks have ended and the workflow has its output.
    Completed = "completed",
    /// A task failed, or the time was up.
    Failed = "failed",
    /// A command, or a decision of a person, ended the workflow.
    Aborted = "aborted",
}

impl WorkflowStatus {
    /// Whether nothing will happen any more, except a rollback.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Aborted)
    }
}

statuses! {
    /// How a task of a workflow stands.
    TaskStatus:
    /// Waits for its dependencies.
    Waiting = "waiting",
    /// Waits for a free slot.
    Ready = "ready",
    /// The task or one of its parts is being performed.
    Running = "running",
    /// Waits for its next attempt.
    Retrying = "retrying",
    /// Waits for a decision.
    Deciding = "deciding",
    /// Waits for a time.
    Sleeping = "sleeping",
    /// Whether it took effect is unknown; waits for a person to resolve that.
    InDoubt = "in_doubt",
    /// Ended with a result.
    Completed = "completed",
    /// Failed for good, and the workflow with it.
    Failed = "failed",
    /// Failed for good, and the workflow continues.
    Continued = "continued",
    /// Skipped by its condition, a command or a jump.
    Skipped = "skipped",
    /// Stopped, or never begun, because its container ended.
    Cancelled = "cancelled",
}
