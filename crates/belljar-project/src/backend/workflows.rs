//! Workflows, as clients ask for them: within the operator's terms, and by whom.

mod person_only;
mod report;
mod requests;

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use belljar_server::{
    CommandSender, WorkflowApiError, WorkflowBackend, WorkflowCommandAnswer,
    WorkflowCommandRequest, WorkflowEventInfo, WorkflowFork, WorkflowInfo, WorkflowReport,
    WorkflowRequest,
};
use belljar_workflow::{
    WorkflowError as FlowError, WorkflowStoreError,
    workflow_store::{Filter, FlowRow},
};
use belljar_workflow_formats::CodeExecution;
use tokio_util::sync::CancellationToken;

pub use report::{task_question, with_task};

use super::ProjectBackend;
use crate::{
    ClientPermissions, CommandOutcome, Fork, ProjectWorkflowError, ProjectWorkflows,
    WorkflowOptions, WorkflowPermissions, WorkflowSubmission,
};

/// How often it is looked for workflows that are due or were sent a command.
const TEND_EVERY: Duration = Duration::from_millis(500);
/// Every so many looks, also for those whose host has died.
const ADOPT_EVERY: u32 = 10;
/// Who pauses what is made over HTTP, where whoever has the token is the operator.
const PERSON: &str = "http";
/// Workflows whose warnings are remembered.
const MOST_WARNED: usize = 1000;
/// Whose commands a model's are.
const AGENT: &str = "agent";

/// What clients may do with workflows.
#[derive(Debug, Clone)]
pub struct WorkflowServiceOptions {
    /// Whether workflows may have code, however they are written.
    pub code: CodeExecution,
    /// A directory of the host's own, where the files of code tasks are laid out.
    pub scratch: std::path::PathBuf,
    /// What of the host no workflow begins with and none brings.
    pub hidden: crate::HiddenPaths,
    /// How many are driven at once; more wait for their turn.
    pub max_running: u32,
    /// How many may wait.
    pub max_queued: u32,
}

impl ProjectBackend {
    /// The workflows of a project, if the operator wants clients to have any.
    pub(super) async fn project_workflows(
        executor: &crate::Executor,
        sessions: &crate::SessionRegistry,
        permissions: &ClientPermissions,
    ) -> Option<ProjectWorkflows> {
        let WorkflowServiceOptions { code, scratch, hidden, max_running, max_queued } =
            permissions.workflows.clone()?;
        let options = WorkflowOptions {
            permissions: WorkflowPermissions {
                code: code != CodeExecution::Off,
                shell: Some(code == CodeExecution::WithShell),
                readable: permissions.readable.clone(),
                writable: permissions.writable.clone(),
                ..WorkflowPermissions::default()
            },
            hidden,
            max_running,
            max_queued,
            ..WorkflowOptions::new(permissions.limits, scratch)
        };
        let made = ProjectWorkflows::new(executor.clone(), sessions.clone(), options).await;
        made.inspect_err(|error| tracing::warn!(%error, "there are no workflows")).ok()
    }

    /// Drives workflows that hosts have left behind and those that rest here, until it is told to stop.
    pub async fn adopt_workflows(&self, stop: CancellationToken) {
        let Some(workflows) = &self.workflows else { return };
        for look in (0..ADOPT_EVERY).cycle() {
            match look {
                0 => workflows.adopt_abandoned().await,
                _ => workflows.drive_due().await,
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(TEND_EVERY) => {}
            }
        }
    }

    /// Leaves all workflows so that they can go on elsewhere, because the host ends.
    pub async fn leave_workflows(&self) {
        if let Some(workflows) = &self.workflows {
            workflows.stop().await;
        }
    }

    fn enabled_workflows(&self) -> Result<&ProjectWorkflows, WorkflowApiError> {
        self.workflows.as_ref().ok_or(WorkflowApiError::Off)
    }

    async fn own_workflow(&self, id: &str) -> Result<&ProjectWorkflows, WorkflowApiError> {
        let workflows = self.enabled_workflows()?;
        // Those of others, such as a person's at the command line, have terms of their own.
        match workflows.find(id).await.map_err(workflow_error)? {
            Some(row) if row.caller == self.permissions.caller => Ok(workflows),
            Some(_) | None => Err(WorkflowApiError::Unknown { id: id.to_owned() }),
        }
    }

    fn code_of_workflows(&self) -> CodeExecution {
        self.permissions.workflows.as_ref().map(|options| options.code).unwrap_or_default()
    }
}

impl WorkflowBackend for ProjectBackend {
    fn offers_workflows(&self) -> bool {
        self.workflows.is_some()
    }

    async fn run_workflow(&self, request: WorkflowRequest) -> Result<String, WorkflowApiError> {
        let workflows = self.enabled_workflows()?;
        let (dag, warnings) = requests::workflow(request.workflow, self.code_of_workflows())?;
        let caller = self.permissions.caller.clone();
        let new = WorkflowSubmission {
            id: request.id,
            dag,
            inputs: request.inputs,
            caller,
            workspace: None,
        };
        let id = workflows.start(new).await.map_err(workflow_error)?;
        self.warnings.remember(&id, warnings);
        Ok(id)
    }

    async fn fork_workflow(
        &self,
        id: &str,
        fork: WorkflowFork,
    ) -> Result<String, WorkflowApiError> {
        let workflows = self.own_workflow(id).await?;
        let paused_by = fork.paused.then(|| PERSON.to_owned());
        let fork = Fork { at: fork.at, id: fork.id, paused_by };
        workflows.fork(id, fork).await.map_err(workflow_error)
    }

    async fn forget_workflow(&self, id: &str) -> Result<(), WorkflowApiError> {
        self.own_workflow(id).await?.forget(id).await.map_err(workflow_error)?;
        self.warnings.forget(id);
        Ok(())
    }

    async fn workflow(&self, id: &str) -> Result<WorkflowReport, WorkflowApiError> {
        let workflows = self.own_workflow(id).await?;
        let machine = workflows.load(id, None).await.map_err(workflow_error)?;
        let row = workflows.find(id).await.map_err(workflow_error)?;
        let attention = row.as_ref().and_then(crate::needs_attention);
        let inside = workflows.task_questions(&machine).await.map_err(workflow_error)?;
        let mut report = report::of(&machine, &inside, workflows.place_in_queue(id), attention);
        self.warnings.add_to(id, &mut report);
        Ok(report)
    }

    async fn workflows(
        &self,
        at_most: u32,
        before: Option<&str>,
    ) -> Result<Vec<WorkflowInfo>, WorkflowApiError> {
        let filter = Filter { caller: Some(self.permissions.caller.clone()), ..Filter::default() };
        let listed = self.enabled_workflows()?.list(filter, before, at_most).await;
        Ok(listed.map_err(workflow_error)?.into_iter().map(info).collect())
    }

    async fn workflow_events(
        &self,
        id: &str,
        after: u64,
        at_most: u32,
        wait: Duration,
    ) -> Result<Vec<WorkflowEventInfo>, WorkflowApiError> {
        let workflows = self.own_workflow(id).await?;
        let events = workflows.events(id, after, at_most, wait).await.map_err(workflow_error)?;
        Ok(events.iter().map(report::event).collect())
    }

    async fn command_workflow(
        &self,
        id: &str,
        command: WorkflowCommandRequest,
        wait: Duration,
    ) -> Result<WorkflowCommandAnswer, WorkflowApiError> {
        let workflows = self.own_workflow(id).await?;
        let asked = requests::command(command.command)?;
        let by = match command.by {
            CommandSender::Agent => {
                let machine = workflows.load(id, None).await.map_err(workflow_error)?;
                // One that was taken before is not taken again: it has its answer.
                let id = command.id.as_deref();
                if id.and_then(|id| machine.acknowledgement(id)).is_none() {
                    person_only::check(&machine, &asked)?;
                }
                AGENT.to_owned()
            }
            CommandSender::Person(name) => name,
        };
        let answer =
            workflows.command(id, command.id, &by, asked, wait).await.map_err(workflow_error)?;
        let (accepted, reason) = match answer.outcome {
            CommandOutcome::Accepted => (Some(true), None),
            CommandOutcome::Refused(why) => (Some(false), Some(why)),
            CommandOutcome::NotYet => (None, None),
        };
        Ok(WorkflowCommandAnswer { command_id: answer.id, accepted, reason })
    }
}

/// What was tolerated in workflows that were made here, for as long as this host lives.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<VecDeque<(String, Vec<String>)>>);

impl Warnings {
    /// Of the one that has the id now, whatever had it before.
    fn remember(&self, id: &str, warnings: Vec<String>) {
        self.forget(id);
        if warnings.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.truncate(MOST_WARNED - 1);
        all.push_front((id.to_owned(), warnings));
    }

    fn forget(&self, id: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(warned, _)| warned != id);
    }

    fn add_to(&self, id: &str, report: &mut WorkflowReport) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(warned, _)| warned == id);
        if let (Some((_, warnings)), Some(fields)) = (found, report.value.as_object_mut()) {
            fields.insert("warnings".to_owned(), warnings.clone().into());
        }
    }
}

fn info(row: FlowRow) -> WorkflowInfo {
    let moment = |ms: i64| u64::try_from(ms).unwrap_or_default();
    WorkflowInfo {
        status: crate::status_of(&row).to_owned(),
        id: row.id,
        name: row.name,
        created_ms: moment(row.created_ms),
        updated_ms: moment(row.updated_ms),
    }
}

/// Why something was not done, in the port's words.
fn workflow_error(error: ProjectWorkflowError) -> WorkflowApiError {
    match error {
        ProjectWorkflowError::NoStore => WorkflowApiError::Off,
        ProjectWorkflowError::Unknown(id) => WorkflowApiError::Unknown { id },
        ProjectWorkflowError::Exists(id) => WorkflowApiError::Taken { id },
        error @ ProjectWorkflowError::Busy { .. } => {
            WorkflowApiError::Busy { why: error.to_string() }
        }
        ProjectWorkflowError::Faulty(faults) => {
            WorkflowApiError::Faulty { faults: faults.0.iter().map(ToString::to_string).collect() }
        }
        error @ (ProjectWorkflowError::CodeOff { .. }
        | ProjectWorkflowError::ShellOff { .. }
        | ProjectWorkflowError::BadId(_)) => {
            WorkflowApiError::Faulty { faults: vec![error.to_string()] }
        }
        ProjectWorkflowError::Workflow(FlowError::Store(WorkflowStoreError::Conflict(why))) => {
            WorkflowApiError::BadCommand { why }
        }
        ProjectWorkflowError::Workflow(FlowError::Store(
            error @ WorkflowStoreError::NoCheckpoint { .. },
        )) => WorkflowApiError::BadCommand { why: error.to_string() },
        ProjectWorkflowError::Workflow(FlowError::Store(WorkflowStoreError::Held {
            flow, ..
        })) => WorkflowApiError::NotOver { id: flow },
        error @ (ProjectWorkflowError::Files { .. } | ProjectWorkflowError::Workflow(_)) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a workflow failed");
            WorkflowApiError::Failed {
                message: "the workflow could not be read or kept".to_owned(),
            }
        }
    }
}
