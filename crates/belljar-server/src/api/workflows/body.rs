//! Bodies, queries and answers of `/v1/workflows`.

use belljar_contract::{
    JsonMap, JsonValue, MAX_JSON_INTEGER, MAX_WORKFLOW_ID, is_workflow_id, json_value,
    optional_whole_number,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use super::super::error::ApiError;
use crate::workflows::{
    WorkflowEventInfo, WorkflowFork, WorkflowInfo, WorkflowRequest, WorkflowSource,
};

/// A request to run a workflow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkflowRequest")]
pub(in super::super) struct WorkflowBody {
    /// A DAG or an agent: an object, a list of tasks, or the text of a file.
    #[schemars(schema_with = "written")]
    #[serde(deserialize_with = "exact")]
    workflow: JsonValue,
    /// The workflow's inputs, by name.
    #[serde(default, deserialize_with = "exact")]
    inputs: Option<JsonMap>,
    /// The id to give it; a new one if absent.
    #[serde(default, alias = "workflow_id")]
    #[schemars(schema_with = "chosen_id")]
    id: Option<String>,
    /// Wait this long for it to end or to need a decision, at most a minute; do not wait if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schemars(range(max = 60_000))]
    wait_ms: Option<u32>,
}

/// Reads a field as it is written, because the values in it are for code.
fn exact<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let json = Box::<RawValue>::deserialize(deserializer)?;
    json_value::from_str(json.get()).map_err(D::Error::custom)
}

fn written(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "array", "string"]})
}

fn chosen_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"})
}

impl WorkflowBody {
    /// The port's request, and how long to wait.
    pub(super) fn into_request(self) -> Result<(WorkflowRequest, Option<u32>), ApiError> {
        let wanted = "workflow: must be an object, a list of tasks, or the text of a file";
        let workflow =
            WorkflowSource::from_value(self.workflow).map_err(|_| ApiError::invalid(wanted))?;
        check_id("id", self.id.as_deref())?;
        let inputs = self.inputs.unwrap_or_default();
        Ok((WorkflowRequest { workflow, inputs, id: self.id }, self.wait_ms))
    }
}

/// A request for a new workflow that starts from a checkpoint of another.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkflowForkRequest")]
pub(in super::super) struct WorkflowForkBody {
    /// The number of the checkpoint; the newest at which the workflow had not ended if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    at: Option<u64>,
    /// The id to give the new workflow; a new one if absent.
    #[serde(default)]
    #[schemars(schema_with = "chosen_id")]
    id: Option<String>,
    /// Start paused, so that commands can change it before `continue`.
    #[serde(default)]
    paused: Option<bool>,
}

impl WorkflowForkBody {
    /// Converts it to the port's request.
    pub(super) fn into_fork(self) -> Result<WorkflowFork, ApiError> {
        check_id("id", self.id.as_deref())?;
        if self.at.is_some_and(|at| at > MAX_JSON_INTEGER) {
            return Err(ApiError::invalid("at: too large for a checkpoint number"));
        }
        Ok(WorkflowFork { at: self.at, id: self.id, paused: self.paused.unwrap_or(false) })
    }
}

/// A command to a workflow. The guide lists what each command takes.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct CommandRequest {
    /// The name of the command.
    command: CommandName,
    /// Makes the command safe to repeat: a workflow takes each id once.
    #[serde(default, skip_serializing)]
    #[schemars(schema_with = "chosen_id")]
    command_id: Option<String>,
    /// `skip`, `modify_args`, `resolve`: the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// `inject_tasks`, `replan`: the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "exact")]
    tasks: Option<Vec<JsonMap>>,
    /// `modify_args`, `modify`: the arguments to change.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "exact")]
    arguments: Option<JsonMap>,
    /// `approve`, `reject`, `modify`: the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    /// `approve`, `modify`: a value to answer with.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "exact")]
    value: Option<JsonValue>,
    /// `resolve`: `{"resolution": "retry"}`, `{"resolution": "use", "value": …}` or
    /// `{"resolution": "fail"}`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "exact")]
    how: Option<JsonMap>,
    /// `roll_back`: the number of the checkpoint.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_whole_number"
    )]
    to: Option<u64>,
    /// `abort`, `reject`, `replan`: the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The commands that a workflow takes.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CommandName")]
enum CommandName {
    Abort,
    Pause,
    Continue,
    InjectTasks,
    Replan,
    Skip,
    ModifyArgs,
    Approve,
    Reject,
    Modify,
    Resolve,
    RollBack,
}

impl CommandRequest {
    /// The command's id, if it has one, and the command as JSON.
    pub(super) fn into_command(self) -> Result<(Option<String>, JsonMap), ApiError> {
        check_id("command_id", self.command_id.as_deref())?;
        match json_value::to_value(&self) {
            Ok(JsonValue::Object(command)) => Ok((self.command_id, command)),
            Ok(_) | Err(_) => Err(ApiError::invalid("cannot read the command")),
        }
    }
}

fn check_id(field: &str, id: Option<&str>) -> Result<(), ApiError> {
    match id {
        Some(id) if !is_workflow_id(id) => Err(ApiError::invalid(format!(
            "{field}: must be up to {MAX_WORKFLOW_ID} letters, digits, `_`, `-` or `.`"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Which workflows to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct WorkflowListQuery {
    /// At most this many; 50 if absent.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<u32>,
    /// Only workflows older than the one with this id.
    pub(super) before: Option<String>,
}

/// How long to wait before answering.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct WorkflowQuery {
    /// Wait this long for it to end or to need a decision, at most a minute; do not wait if absent.
    #[schemars(range(max = 60_000))]
    pub(super) wait_ms: Option<u32>,
}

/// Which events of a workflow to list or follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct WorkflowEventsQuery {
    /// Only events after this number; the `Last-Event-ID` header does the same.
    pub(super) after: Option<u64>,
    /// At most this many events in a list; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<u32>,
    /// If there are none, wait this long for one, at most a minute; do not wait if absent.
    #[schemars(range(max = 60_000))]
    pub(super) wait_ms: Option<u32>,
}

/// A list of workflows, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct WorkflowList {
    pub(super) workflows: Vec<WorkflowInfo>,
}

/// The events of a workflow, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct WorkflowEventList {
    pub(super) events: Vec<WorkflowEventInfo>,
}

/// The state of a workflow.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "read by the generator of the schema")]
pub(in super::super) struct WorkflowState {
    /// The id that requests name it by.
    id: String,
    /// The name its author gave it.
    name: String,
    /// `queued`, `needs_attention`, `running`, `paused`, `stopping`, `rolling_back`, `completed`, `failed`, `aborted`.
    status: String,
    /// Its position in the queue, if it is queued; the first is 1.
    queue: Option<u64>,
    /// Why no host resumes it by itself, if that is so.
    attention: Option<String>,
    /// The number of its newest event.
    events: u64,
    /// Its output, once it has completed.
    output: Option<JsonValue>,
    /// Why it failed or was aborted.
    failure: Option<JsonMap>,
    /// Open decisions, of people or of the agent.
    decisions: Option<Vec<JsonMap>>,
    /// Each task with its status.
    tasks: Option<Vec<JsonMap>>,
    /// The report of the last rollback.
    rollback: Option<JsonMap>,
    /// The state that its tasks share.
    state: Option<JsonMap>,
    /// Faults in its source that were tolerated.
    warnings: Option<Vec<String>>,
}
