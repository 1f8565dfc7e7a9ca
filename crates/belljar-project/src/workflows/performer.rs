//! Performs the tasks of workflows: tool calls, code in cells, sessions.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use belljar_contract::JsonValue;
use belljar_contract::RunResult;
use belljar_server::TaskMeasurement;
use belljar_tools::crash_point;
use belljar_workflow::{
    CommitPoint, Job, Performer, SandboxAction, SqliteWorkflowStore, TaskEnding, TaskFailure,
    TaskOutcome, TaskStart, TaskWork, WorkflowCommand,
};

use super::{
    WorkflowOptions, WorkflowPermissions,
    sandboxes::WorkflowSandbox,
    tool_facts::{LookupResults, ToolFactCache},
    walk,
};
use crate::{Executor, SessionRegistry};

/// Performs the tasks of all workflows that this host drives.
#[derive(Debug)]
pub(super) struct TaskPerformer {
    pub(super) executor: Executor,
    pub(super) sessions: SessionRegistry,
    pub(super) options: WorkflowOptions,
    pub(super) store: Arc<SqliteWorkflowStore>,
    pub(super) tool_facts: ToolFactCache,
    /// The workflows that this host drives.
    workflows: Mutex<HashMap<String, Arc<DrivenWorkflow>>>,
}

/// Data about a workflow that this host drives.
#[derive(Debug, Default)]
pub(super) struct DrivenWorkflow {
    /// Recorded in audit rows and approvals.
    pub(super) caller: String,
    /// The permissions of its code.
    pub(super) permissions: WorkflowPermissions,
    /// Sessions that its tasks have created.
    pub(super) sandboxes: Mutex<Vec<WorkflowSandbox>>,
}

impl TaskPerformer {
    pub(super) fn new(
        executor: Executor,
        sessions: SessionRegistry,
        options: WorkflowOptions,
        store: Arc<SqliteWorkflowStore>,
    ) -> Self {
        let (tool_facts, workflows) = (ToolFactCache::default(), Mutex::default());
        Self { executor, sessions, options, store, tool_facts, workflows }
    }

    /// Prepares for driving a workflow.
    pub(super) async fn begin(
        &self,
        flow: &str,
        caller: &str,
        terms: &JsonValue,
        tools: &BTreeSet<String>,
    ) {
        let driven = DrivenWorkflow {
            caller: caller.to_owned(),
            permissions: WorkflowPermissions::of(terms),
            sandboxes: Mutex::default(),
        };
        self.look_up(tools).await;
        let mut workflows = self.workflows.lock().unwrap_or_else(PoisonError::into_inner);
        workflows.insert(flow.to_owned(), Arc::new(driven));
    }

    /// Forgets a workflow. Its sessions end: the next host could not use them.
    pub(super) async fn end(&self, flow: &str) {
        let gone = self.workflows.lock().unwrap_or_else(PoisonError::into_inner).remove(flow);
        if let Some(driven) = gone {
            self.end_sandboxes(&driven).await;
        }
    }

    pub(super) fn workflow(&self, flow: &str) -> Arc<DrivenWorkflow> {
        let workflows = self.workflows.lock().unwrap_or_else(PoisonError::into_inner);
        workflows.get(flow).cloned().unwrap_or_default()
    }

    /// Looks up tools and returns which exist.
    pub(super) async fn look_up(&self, names: &BTreeSet<String>) -> LookupResults {
        match self.executor.bridge() {
            Some(bridge) => self.tool_facts.look_up(bridge, names).await,
            None => names.iter().map(|name| (name.clone(), Err(Vec::new()))).collect(),
        }
    }

    async fn perform_work(&self, job: &Job) -> TaskOutcome {
        let driven = self.workflow(&job.flow);
        if !is_allowed(&job.start.work, &driven.permissions) {
            return TaskOutcome::failed(code_is_off());
        }
        match &job.start.work {
            TaskWork::McpTool(call) => self.call_tool(job, &driven, call).await,
            TaskWork::CodeExecution(code) => self.run_code(job, &driven, code).await,
            TaskWork::Sandbox { action } => self.sandbox(job, &driven, action).await,
            TaskWork::RestoreSandbox { sandbox_id, checkpoint } => {
                self.restore_sandbox(&driven, sandbox_id, checkpoint).await
            }
        }
    }

    /// Adds a run of a workflow to the metrics.
    pub(super) fn measure(&self, job: &Job, result: &RunResult, took: Duration) {
        if let Some(meter) = self.executor.meter() {
            meter.ran(result, took, &job.flow);
        }
    }

    /// Looks up the tools that a command adds.
    pub(super) async fn look_up_tools_of(&self, command: &WorkflowCommand) {
        if let WorkflowCommand::InjectTasks { tasks } | WorkflowCommand::Replan { tasks, .. } =
            command
        {
            self.look_up(&walk::tools_of(tasks)).await;
        }
    }
}

impl Performer for TaskPerformer {
    async fn perform(&self, job: Job) -> TaskOutcome {
        let began = Instant::now();
        let outcome = self.perform_work(&job).await;
        if let Some(meter) = self.executor.meter() {
            let TaskStart { instance, attempt, work, .. } = &job.start;
            let failure = match &outcome.ending {
                TaskEnding::Done { .. } => None,
                TaskEnding::Failed { failure } => Some(failure.code.as_str()),
            };
            meter.performed(TaskMeasurement {
                workflow: &job.flow,
                task: instance,
                kind: kind(work),
                attempt: *attempt,
                failure,
                took: began.elapsed(),
            });
        }
        outcome
    }

    fn saved(&self, took: Duration) {
        if let Some(meter) = self.executor.meter() {
            meter.checkpointed(took);
        }
    }

    fn at(&self, place: CommitPoint) {
        crash_point(match place {
            CommitPoint::Committing => "flow_committing",
            CommitPoint::Committed => "flow_committed",
        });
    }

    fn keeps(&self, flow: &str) -> bool {
        !self.workflow(flow).live_sandboxes().is_empty()
    }

    fn is_repeatable(&self, start: &TaskStart) -> bool {
        match &start.work {
            // A call that may wait for a person has its own journal.
            TaskWork::McpTool(call) => {
                self.tool_facts.get(&call.tool).is_some_and(|fact| fact.repeatable || fact.may_ask)
            }
            // A run has its own journal. A lost session is reported by the task.
            TaskWork::CodeExecution(_) => true,
            TaskWork::Sandbox { action } => match action {
                SandboxAction::Create { .. }
                | SandboxAction::Execute { .. }
                | SandboxAction::Destroy { .. }
                | SandboxAction::List => true,
            },
            TaskWork::RestoreSandbox { .. } => true,
        }
    }
}

fn kind(work: &TaskWork) -> &'static str {
    match work {
        TaskWork::McpTool(_) => "mcp_tool",
        TaskWork::CodeExecution(_) => "code_execution",
        TaskWork::Sandbox { .. } | TaskWork::RestoreSandbox { .. } => "sandbox",
    }
}

/// Whether the operator allows the code of a task.
fn is_allowed(work: &TaskWork, permissions: &WorkflowPermissions) -> bool {
    let language = match work {
        TaskWork::McpTool(_) => return true,
        TaskWork::CodeExecution(code) => Some(code.language),
        TaskWork::Sandbox { action: SandboxAction::Create { language, .. } } => Some(*language),
        TaskWork::Sandbox { .. } | TaskWork::RestoreSandbox { .. } => None,
    };
    permissions.code && permissions.allows(language)
}

fn code_is_off() -> TaskFailure {
    let message = "code execution was not enabled when this workflow was created";
    TaskFailure { lasting: true, ..TaskFailure::new("code.off", message) }
}

/// The outcome of a failure that a retry would not change.
pub(super) fn lasting(code: &str, message: impl Into<String>) -> TaskOutcome {
    let failure = TaskFailure { lasting: true, ..TaskFailure::new(code, message) };
    TaskOutcome { read_only: true, ..TaskOutcome::failed(failure) }
}

/// The outcome of a cancelled task.
pub(super) fn cancelled(may_have_acted: bool) -> TaskOutcome {
    let failure =
        TaskFailure { may_have_acted, ..TaskFailure::new("cancelled", "the task was stopped") };
    TaskOutcome { read_only: !may_have_acted, ..TaskOutcome::failed(failure) }
}
