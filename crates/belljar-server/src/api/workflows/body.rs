//! What requests and answers about workflows hold.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::error::ApiError;
use crate::{
    request::{MAX_INTEGER, whole_number},
    workflows::{
        MAX_ID, WorkflowEventInfo, WorkflowFork, WorkflowInfo, WorkflowRequest, WorkflowSource,
        is_fit_for_id,
    },
};

/// A workflow that is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkflowRequest")]
pub(in super::super) struct WorkflowBody {
    /// A DAG or an agent: an object, a list of tasks, or the text of a file.
    #[schemars(schema_with = "written")]
    workflow: Value,
    /// What it is given, by name.
    #[serde(default)]
    inputs: Option<Map<String, Value>>,
    /// What it is to be called.
    #[serde(default, alias = "workflow_id")]
    #[schemars(schema_with = "chosen_id")]
    id: Option<String>,
    /// Wait this long for it to end or to need somebody, at most a minute; not at all if absent.
    #[serde(default, deserialize_with = "whole_number")]
    #[schemars(range(max = 60_000))]
    wait_ms: Option<u32>,
}

fn written(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "array", "string"]})
}

fn chosen_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"})
}

impl WorkflowBody {
    /// What the port takes, and how long to wait.
    pub(super) fn into_request(self) -> Result<(WorkflowRequest, Option<u32>), ApiError> {
        let wanted = "workflow: must be an object, a list of tasks, or the text of a file";
        let workflow =
            WorkflowSource::from_value(self.workflow).map_err(|_| ApiError::invalid(wanted))?;
        check_id("id", self.id.as_deref())?;
        let inputs = self.inputs.unwrap_or_default();
        Ok((WorkflowRequest { workflow, inputs, id: self.id }, self.wait_ms))
    }
}

/// A workflow that is asked for, as another was.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkflowForkRequest")]
pub(in super::super) struct WorkflowForkBody {
    /// At which checkpoint; the newest at which it had not ended if absent.
    #[serde(default, deserialize_with = "whole_number")]
    at: Option<u64>,
    /// What it is to be called.
    #[serde(default)]
    #[schemars(schema_with = "chosen_id")]
    id: Option<String>,
    /// Begin paused: commands can change it before `continue`.
    #[serde(default)]
    paused: Option<bool>,
}

impl WorkflowForkBody {
    /// What the port takes.
    pub(super) fn into_fork(self) -> Result<WorkflowFork, ApiError> {
        check_id("id", self.id.as_deref())?;
        if self.at.is_some_and(|at| at > MAX_INTEGER) {
            return Err(ApiError::invalid("at: too large for a checkpoint number"));
        }
        Ok(WorkflowFork { at: self.at, id: self.id, paused: self.paused.unwrap_or(false) })
    }
}

/// Something asked of a workflow. What each command takes is in the guide.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct CommandRequest {
    /// What.
    command: CommandName,
    /// The same id again is the same command again: it is done once.
    #[serde(default, skip_serializing)]
    #[schemars(schema_with = "chosen_id")]
    command_id: Option<String>,
    /// `skip`, `modify_args`, `resolve`: which task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// `inject_tasks`, `replan`: the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tasks: Option<Vec<Map<String, Value>>>,
    /// `modify_args`, `modify`: arguments that change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Map<String, Value>>,
    /// `approve`, `reject`, `modify`: which decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    /// `approve`, `modify`: what is said with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// `resolve`: `{"resolution": "retry"}`, `{"resolution": "use", "value": …}` or
    /// `{"resolution": "fail"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    how: Option<Map<String, Value>>,
    /// `roll_back`: to which checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole_number")]
    to: Option<u64>,
    /// `abort`, `reject`, `replan`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What can be asked of a workflow.
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
    /// The command's id, if it was given one, and the command.
    pub(super) fn into_command(self) -> Result<(Option<String>, Map<String, Value>), ApiError> {
        check_id("command_id", self.command_id.as_deref())?;
        match serde_json::to_value(&self) {
            Ok(Value::Object(command)) => Ok((self.command_id, command)),
            Ok(_) | Err(_) => Err(ApiError::invalid("cannot read the command")),
        }
    }
}

fn check_id(field: &str, id: Option<&str>) -> Result<(), ApiError> {
    match id {
        Some(id) if !is_fit_for_id(id) => Err(ApiError::invalid(format!(
            "{field}: must be up to {MAX_ID} letters, digits, `_`, `-` or `.`"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Which workflows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct WorkflowListQuery {
    /// How many; 50 if absent.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<u32>,
    /// Those before this one, by id.
    pub(super) before: Option<String>,
}

/// How long to look.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct WorkflowQuery {
    /// Wait this long for it to end or to need somebody, at most a minute; not at all if absent.
    #[schemars(range(max = 60_000))]
    pub(super) wait_ms: Option<u32>,
}

/// Which events of a workflow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct WorkflowEventsQuery {
    /// Those after this number; the `Last-Event-ID` header does the same.
    pub(super) after: Option<u64>,
    /// How many, in a list; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<u32>,
    /// If there are none, wait this long for one, at most a minute; not at all if absent.
    #[schemars(range(max = 60_000))]
    pub(super) wait_ms: Option<u32>,
}

/// Workflows, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct WorkflowList {
    pub(super) workflows: Vec<WorkflowInfo>,
}

/// What happened to a workflow, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct WorkflowEventList {
    pub(super) events: Vec<WorkflowEventInfo>,
}

/// How a workflow stands.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "read by the generator of the schema")]
pub(in super::super) struct WorkflowState {
    /// Its id.
    id: String,
    /// What its author calls it.
    name: String,
    /// `queued`, `needs_attention`, `running`, `paused`, `stopping`, `rolling_back`, `completed`, `failed`, `aborted`.
    status: String,
    /// Its place among those that wait for their turn, if it does; the first is 1.
    queue: Option<u64>,
    /// Why no host goes on with it by itself, if that is so.
    attention: Option<String>,
    /// The number of the newest event.
    events: u64,
    /// What it gave, once it has ended well.
    output: Option<Value>,
    /// Why it failed or was aborted.
    failure: Option<Map<String, Value>>,
    /// What somebody has to decide.
    decisions: Option<Vec<Map<String, Value>>>,
    /// Its tasks.
    tasks: Option<Vec<Map<String, Value>>>,
    /// What came of the last rollback.
    rollback: Option<Map<String, Value>>,
    /// Its state.
    state: Option<Map<String, Value>>,
    /// What was tolerated in what was written.
    warnings: Option<Vec<String>>,
}
