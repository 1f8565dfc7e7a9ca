//! The port to workflows: DAGs of tools, code and decisions that survive their host.
//!
//! The HTTP API and the MCP server ask, the `belljar` crate answers, in JSON: what a workflow, a
//! command and an event look like is not known here. Two things are: who commands, because a model
//! must not decide what a person is asked for, and which events are worth looking up for.

use std::{future::Future, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Keeps workflows. One that was made goes on by itself, whoever asked for it.
pub trait WorkflowBackend: Send + Sync + 'static {
    /// Whether there are any to be had here: the operator may have switched them off.
    fn offers_workflows(&self) -> bool {
        true
    }

    /// Checks a workflow, makes it durable, and has it begin. Its id.
    fn run_workflow(
        &self,
        request: WorkflowRequest,
    ) -> impl Future<Output = Result<String, WorkflowApiError>> + Send;

    /// Makes a workflow that is what another was at a checkpoint, and has it go on. Its id.
    fn fork_workflow(
        &self,
        id: &str,
        fork: WorkflowFork,
    ) -> impl Future<Output = Result<String, WorkflowApiError>> + Send;

    /// Forgets a workflow that has ended.
    fn forget_workflow(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<(), WorkflowApiError>> + Send;

    /// How a workflow stands.
    fn workflow(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<WorkflowReport, WorkflowApiError>> + Send;

    /// Workflows, newest first; those before `before`, an id, if given.
    fn workflows(
        &self,
        at_most: u32,
        before: Option<&str>,
    ) -> impl Future<Output = Result<Vec<WorkflowInfo>, WorkflowApiError>> + Send;

    /// What happened to a workflow after the event with this number, oldest first; if that is
    /// nothing, it is waited for this long.
    fn workflow_events(
        &self,
        id: &str,
        after: u64,
        at_most: u32,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<WorkflowEventInfo>, WorkflowApiError>> + Send;

    /// Asks something of a workflow, durably and once per id of a command, and waits this long for
    /// the answer. Who may not ask for it is told [`WorkflowApiError::NotYours`].
    fn command_workflow(
        &self,
        id: &str,
        command: WorkflowCommandRequest,
        wait: Duration,
    ) -> impl Future<Output = Result<WorkflowCommandAnswer, WorkflowApiError>> + Send;
}

/// A workflow that is asked for, as another was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowFork {
    /// At which checkpoint; the newest at which it had not ended if absent.
    pub at: Option<u64>,
    /// What it is to be called; the backend thinks of something if absent.
    pub id: Option<String>,
    /// Whether it begins paused.
    pub paused: bool,
}

/// A workflow that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRequest {
    /// What it is.
    pub workflow: WorkflowSource,
    /// What it is given.
    pub inputs: Map<String, Value>,
    /// What it is to be called; the backend thinks of something if absent.
    pub id: Option<String>,
}

/// A workflow, as somebody wrote it.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkflowSource {
    /// A DAG or an agent, as an object or a list of tasks.
    Json(Value),
    /// The text of a file, YAML or JSON.
    Text(String),
}

impl WorkflowSource {
    /// Reads the `workflow` of a request; gives the value back if it cannot be one.
    pub(crate) fn from_value(given: Value) -> Result<Self, Value> {
        match given {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Object(_) | Value::Array(_) => Ok(Self::Json(given)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Err(given),
        }
    }
}

/// How a workflow stands.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowReport {
    /// `id`, `name`, `status`, `tasks`, and, once they say something, `output`, `failure`,
    /// `decisions`, `rollback`, its place in the `queue`, why it needs `attention` and more. [`last_event`](Self::last_event) is in it as `events`.
    pub value: Value,
    /// The number of the newest event that it takes into account.
    pub last_event: u64,
    /// Whether it has ended: nothing happens any more by itself.
    pub is_over: bool,
    /// What a person could answer with yes or no.
    pub questions: Vec<WorkflowQuestion>,
}

/// Something that a person is asked by a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowQuestion {
    /// The decision's id, for `approve` and `reject`.
    pub decision: String,
    /// What is asked.
    pub message: String,
    /// When no answer becomes a no, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// Something asked of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowCommandRequest {
    /// A second command with the same id is the first one; the backend thinks of one if absent.
    pub id: Option<String>,
    /// `command` names it; the other fields are what it takes.
    pub command: Map<String, Value>,
    /// Who asks.
    pub by: CommandSender,
}

/// Who asks something of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSender {
    /// A model: what a person is asked to decide is not its to decide, nor to go around.
    Agent,
    /// A person, or a program that acts for them; the name is for the record.
    Person(String),
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CommandAnswer")]
pub struct WorkflowCommandAnswer {
    /// The command's id.
    pub command_id: String,
    /// Whether it was done; absent while nobody has taken it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkflowInfo {
    /// Its id.
    pub id: String,
    /// What its author calls it.
    pub name: String,
    /// How it stands: `queued`, `needs_attention`, `running`, `paused`, `completed`, `failed`, `aborted`, …
    pub status: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed.
    pub updated_ms: u64,
}

/// Something that happened to a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "WorkflowEvent")]
pub struct WorkflowEventInfo {
    /// Its number: 1, 2, 3 … without a gap.
    pub seq: u64,
    /// What happened: `task_started`, `decision_required`, …
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The details.
    pub data: Value,
    /// In a few words, for people who look on.
    #[serde(skip)]
    pub line: String,
    /// Whether it matters to those who wait.
    #[serde(skip)]
    pub effect: EventEffect,
}

/// Whether an event matters to those who wait for a workflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventEffect {
    /// It goes on.
    #[default]
    Continues,
    /// Somebody has to decide, or it is paused: who waits should look.
    NeedsAttention,
    /// It has ended.
    Ends,
    /// It had ended, and goes on.
    Resumes,
}

impl EventEffect {
    /// Whether a client that waits for the workflow should look at it now.
    pub(crate) const fn ends_wait(self) -> bool {
        match self {
            Self::NeedsAttention | Self::Ends => true,
            Self::Continues | Self::Resumes => false,
        }
    }
}

/// Why something was not done for a workflow. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowApiError {
    /// The operator switched them off, or there is nowhere to keep them.
    #[error("this server does not offer workflows")]
    Off,
    /// There is none.
    #[error("no workflow has the id {id}")]
    Unknown {
        /// What was asked for.
        id: String,
    },
    /// There is one already.
    #[error("a workflow with the id {id} already exists")]
    Taken {
        /// What was asked for.
        id: String,
    },
    /// It has not ended.
    #[error("workflow {id} has not ended, or a host is still working on it")]
    NotOver {
        /// What was asked for.
        id: String,
    },
    /// More wait for their turn than the operator lets.
    #[error("{why}")]
    Busy {
        /// How many wait.
        why: String,
    },
    /// It is not a workflow, or not one that can run here.
    #[error("{}", .faults.join("; "))]
    Faulty {
        /// Everything that is wrong with it, with where.
        faults: Vec<String>,
    },
    /// It does not fit.
    #[error("{what} is larger than {most_bytes} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it may be.
        most_bytes: u64,
    },
    /// There is no such command, or it takes something else.
    #[error("{why}")]
    BadCommand {
        /// What is wrong with it.
        why: String,
    },
    /// A person decides that.
    #[error("{why}")]
    NotYours {
        /// What is theirs.
        why: String,
        /// How they do it.
        hint: String,
    },
    /// It is beyond what the operator allows.
    #[error("{why}")]
    Refused {
        /// Why.
        why: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The host could not do it. The operator's log says more.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
    },
}

impl WorkflowApiError {
    /// The stable name of the kind.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Off => "workflow.off",
            Self::Unknown { .. } => "workflow.unknown",
            Self::Taken { .. } => "workflow.taken",
            Self::NotOver { .. } => "workflow.not_over",
            Self::Busy { .. } => "workflow.busy",
            Self::Faulty { .. } => "workflow.invalid",
            Self::TooLarge { .. } => "workflow.too_large",
            Self::BadCommand { .. } => "command.invalid",
            Self::NotYours { .. } => "command.not_yours",
            Self::Refused { .. } => "workflow.refused",
            Self::Failed { .. } => "workflow.failed",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Off => Some("the operator's configuration has `[workflows] serve = false`"),
            Self::Unknown { .. } => Some("GET /v1/workflows lists the workflows"),
            Self::Taken { .. } => Some("leave `id` out, or choose another"),
            Self::NotOver { .. } => Some("abort it first"),
            Self::Busy { .. } => Some("retry when others have ended"),
            Self::NotYours { hint, .. } => Some(hint),
            Self::Refused { hint, .. } => hint.as_deref(),
            Self::Faulty { .. }
            | Self::TooLarge { .. }
            | Self::BadCommand { .. }
            | Self::Failed { .. } => None,
        }
    }
}

/// The largest workflow, and the largest inputs, as text: both are in its checkpoints.
const MAX_BYTES: usize = 4 << 20;

impl WorkflowRequest {
    /// Refuses what is too large to be kept at every step.
    pub(crate) fn check_size(&self) -> Result<(), WorkflowApiError> {
        let bytes = match &self.workflow {
            WorkflowSource::Json(given) => given.to_string().len(),
            WorkflowSource::Text(text) => text.len(),
        };
        let given: usize =
            self.inputs.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
        let most_bytes = MAX_BYTES as u64;
        match (bytes > MAX_BYTES, given > MAX_BYTES) {
            (true, _) => Err(WorkflowApiError::TooLarge { what: "the workflow", most_bytes }),
            (_, true) => {
                Err(WorkflowApiError::TooLarge { what: "the object of inputs", most_bytes })
            }
            (false, false) => Ok(()),
        }
    }
}

/// The longest id of a workflow or a command that a client may choose.
pub(crate) const MAX_ID: usize = 64;

/// Whether a client may choose this id: it is in paths, and in lists that people read.
pub(crate) fn is_fit_for_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let starts = id.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    starts && id.len() <= MAX_ID && id.bytes().all(allowed)
}
