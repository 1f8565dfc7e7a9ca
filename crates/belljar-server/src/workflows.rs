//! The port to workflows: DAGs of tools, code and decisions that survive their host.
//!
//! The HTTP API and the MCP server ask, the backend answers in JSON. This crate does not know what
//! a workflow, a command or an event looks like. It knows two things: who sends a command, because
//! a model must not decide for a person, and which events a waiting client should look at.

use std::{future::Future, time::Duration};

use belljar_contract::WorkflowStatus;
use belljar_contract::{JsonMap, JsonValue};
use schemars::JsonSchema;
use serde::Serialize;

/// Runs workflows. A workflow continues by itself, whether or not its client is still connected.
pub trait WorkflowBackend: Send + Sync + 'static {
    /// Whether workflows are offered: the operator may have switched them off.
    fn offers_workflows(&self) -> bool {
        true
    }

    /// Checks a workflow, stores it, starts it, and returns its id.
    fn run_workflow(
        &self,
        request: WorkflowRequest,
    ) -> impl Future<Output = Result<String, WorkflowApiError>> + Send;

    /// Creates and starts a workflow from a checkpoint of another, and returns its id.
    fn fork_workflow(
        &self,
        id: &str,
        fork: WorkflowFork,
    ) -> impl Future<Output = Result<String, WorkflowApiError>> + Send;

    /// Deletes a workflow that has ended.
    fn forget_workflow(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<(), WorkflowApiError>> + Send;

    /// The current state of a workflow.
    fn workflow(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<WorkflowReport, WorkflowApiError>> + Send;

    /// Workflows, newest first; only those older than the workflow `before`, if given.
    fn workflows(
        &self,
        at_most: u32,
        before: Option<&str>,
    ) -> impl Future<Output = Result<Vec<WorkflowInfo>, WorkflowApiError>> + Send;

    /// Events of a workflow after the one with this number, oldest first. If there are none, waits
    /// this long for one.
    fn workflow_events(
        &self,
        id: &str,
        after: u64,
        at_most: u32,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<WorkflowEventInfo>, WorkflowApiError>> + Send;

    /// Sends a command durably, at most once per command id, and waits this long for the answer. A
    /// sender without the right gets [`WorkflowApiError::NotYours`].
    fn command_workflow(
        &self,
        id: &str,
        command: WorkflowCommandRequest,
        wait: Duration,
    ) -> impl Future<Output = Result<WorkflowCommandAnswer, WorkflowApiError>> + Send;
}

/// A request for a new workflow that starts from a checkpoint of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowFork {
    /// The number of the checkpoint; the newest at which the workflow had not ended if absent.
    pub at: Option<u64>,
    /// The id of the new workflow; the backend chooses one if absent.
    pub id: Option<String>,
    /// Whether it starts paused.
    pub paused: bool,
}

/// A request to run a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRequest {
    /// The workflow as its author wrote it.
    pub workflow: WorkflowSource,
    /// Values for the inputs it declares.
    pub inputs: JsonMap,
    /// The id of the new workflow; the backend chooses one if absent.
    pub id: Option<String>,
}

/// A workflow as its author wrote it.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkflowSource {
    /// A DAG or an agent, as an object or a list of tasks.
    Json(JsonValue),
    /// The text of a file, YAML or JSON.
    Text(String),
}

impl WorkflowSource {
    /// Reads the `workflow` of a request; gives the value back if it cannot be one.
    pub(crate) fn from_value(given: JsonValue) -> Result<Self, JsonValue> {
        match given {
            JsonValue::String(text) => Ok(Self::Text(text)),
            JsonValue::Object(_) | JsonValue::Array(_) => Ok(Self::Json(given)),
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => Err(given),
        }
    }
}

/// The state of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowReport {
    /// `id`, `name`, `status`, `tasks`; and where they apply, `output`, `failure`, `decisions`,
    /// `rollback`, its position in the `queue`, why it needs `attention`, and more.
    /// [`last_event`](Self::last_event) is in it as `events`.
    pub value: JsonValue,
    /// Its status, which is also in [`value`](Self::value).
    pub status: WorkflowStatus,
    /// The number of the newest event that is reflected here.
    pub last_event: u64,
    /// Whether it has ended: nothing more happens by itself.
    pub is_over: bool,
    /// Open questions that a person can answer with yes or no.
    pub questions: Vec<WorkflowQuestion>,
}

/// A question of a workflow to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowQuestion {
    /// The id of the decision, for `approve` and `reject`.
    pub decision: String,
    /// Text of the question; it may come from a model.
    pub message: String,
    /// When it counts as rejected, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// A command to a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowCommandRequest {
    /// A workflow takes each id once; the backend chooses one if absent.
    pub id: Option<String>,
    /// `command` is its name; the other fields are its arguments.
    pub command: JsonMap,
    /// Decides which commands are allowed.
    pub by: CommandSender,
}

/// The sender of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandSender {
    /// A model: it may not decide for a person, nor bypass the decision.
    Agent,
    /// A person, or a program that acts for them; the name is for the record.
    Person(String),
}

/// The workflow's answer to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CommandAnswer")]
pub struct WorkflowCommandAnswer {
    /// The id of the command, chosen or given.
    pub command_id: String,
    /// Whether the workflow accepted it; absent while it is in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// Why the workflow refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A workflow in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkflowInfo {
    /// The id that requests name it by.
    pub id: String,
    /// The name its author gave it.
    pub name: String,
    /// Its status: `queued`, `needs_attention`, `running`, `paused`, `completed`, `failed`,
    /// `aborted`, …
    #[schemars(with = "String")]
    pub status: WorkflowStatus,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
}

/// An event of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "WorkflowEvent")]
pub struct WorkflowEventInfo {
    /// Its number: 1, 2, 3 … without a gap.
    pub seq: u64,
    /// The kind of event: `task_started`, `decision_required`, …
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Details, which depend on the kind.
    pub data: JsonValue,
    /// The event in a few words, for people who follow the workflow.
    #[serde(skip)]
    pub line: String,
    /// Its effect on clients that wait for the workflow.
    #[serde(skip)]
    pub effect: EventEffect,
}

/// The effect of an event on clients that wait for its workflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventEffect {
    /// The workflow continues, and so does the wait.
    #[default]
    Continues,
    /// A person has to decide, or the workflow is paused: the wait is over.
    NeedsAttention,
    /// The workflow has ended: the wait is over.
    Ends,
    /// The workflow had ended and continues.
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

/// Why a request about a workflow failed. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowApiError {
    /// The operator switched workflows off, or there is no store for them.
    #[error("this server does not offer workflows")]
    Off,
    /// No workflow has this id.
    #[error("no workflow has the id {id}")]
    Unknown {
        /// The id that was asked for.
        id: String,
    },
    /// Another workflow has this id.
    #[error("a workflow with the id {id} already exists")]
    Taken {
        /// The id that was asked for.
        id: String,
    },
    /// Only ended workflows can be deleted.
    #[error("workflow {id} has not ended, or a host is still working on it")]
    NotOver {
        /// The id that was asked for.
        id: String,
    },
    /// The queue is as long as the operator allows.
    #[error("{why}")]
    Busy {
        /// The length of the queue, in words.
        why: String,
    },
    /// It is not a valid workflow, or it cannot run here.
    #[error("{}", .faults.join("; "))]
    Faulty {
        /// Every fault, with its position.
        faults: Vec<String>,
    },
    /// A part of the request is too large to store.
    #[error("{what} is larger than {most_bytes} bytes")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The most bytes it may have.
        most_bytes: u64,
    },
    /// There is no such command, or it takes other arguments.
    #[error("{why}")]
    BadCommand {
        /// The fault of the command.
        why: String,
    },
    /// Only a person may decide this.
    #[error("{why}")]
    NotYours {
        /// The decision that belongs to a person.
        why: String,
        /// How a person makes it.
        hint: String,
    },
    /// The operator does not allow it.
    #[error("{why}")]
    Refused {
        /// The rule that forbids it, for people.
        why: String,
        /// How the operator can allow it.
        hint: Option<String>,
    },
    /// The host could not do it. The operator's log says more.
    #[error("{message}")]
    Failed {
        /// The failure, without host paths.
        message: String,
    },
}

impl WorkflowApiError {
    /// The stable code of the error.
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

    /// The remedy for the client, if there is one.
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

/// The largest workflow, and the largest inputs, as text: both are part of its checkpoints.
const MAX_BYTES: usize = 4 << 20;

impl WorkflowRequest {
    /// Refuses requests that are too large to store at every step.
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
