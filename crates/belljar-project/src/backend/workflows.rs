//! Workflows for clients: within the operator's permissions, and only the client's own.

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
    workflow_store::{WorkflowFilter, WorkflowRow},
};
use belljar_workflow_formats::CodeExecution;
use tokio_util::sync::CancellationToken;

pub use report::{task_question, with_task};

use super::ProjectBackend;
use crate::{
    ClientPermissions, CommandOutcome, Fork, ProjectWorkflowError, ProjectWorkflows,
    WorkflowOptions, WorkflowPermissions, WorkflowSubmission,
};

/// How often workflows are checked for due timers and new commands.
const TEND_EVERY: Duration = Duration::from_millis(500);
/// Every so many checks, workflows of dead hosts are adopted too.
const ADOPT_EVERY: u32 = 10;
/// Recorded as the sender of a pause over HTTP, where the bearer of the token is the operator.
const PERSON: &str = "http";
/// Workflows whose warnings are kept.
const MOST_WARNED: usize = 1000;
/// Recorded as the sender of a model's commands.
const AGENT: &str = "agent";

/// How the server offers workflows to clients.
#[derive(Debug, Clone)]
pub struct WorkflowServiceOptions {
    /// Whether workflows may contain code, whatever their format.
    pub code: CodeExecution,
    /// A private directory of the host for the files of code tasks.
    pub scratch: std::path::PathBuf,
    /// Paths of the host that no workflow may read in or write out.
    pub hidden: crate::HiddenPaths,
    /// Workflows that run in parallel; the others wait in the queue.
    pub max_running: u32,
    /// Workflows that may wait in the queue.
    pub max_queued: u32,
}

impl ProjectBackend {
    /// The workflows of a project, if the operator offers them to clients.
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
                grants: permissions.grants.clone(),
                hosts: permissions.host_flags(),
            },
            hidden,
            max_running,
            max_queued,
            ..WorkflowOptions::new(permissions.limits, scratch)
        };
        let made = ProjectWorkflows::new(executor.clone(), sessions.clone(), options).await;
        made.inspect_err(|error| tracing::warn!(%error, "cannot offer workflows")).ok()
    }

    /// Drives workflows of dead hosts and due workflows of this one, until `stop` is cancelled.
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

    /// Releases all workflows so that another host can resume them, because this host stops.
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
        // Workflows of other callers, such as a person at the command line, have permissions of
        // their own.
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
        let filter = WorkflowFilter {
            caller: Some(self.permissions.caller.clone()),
            ..WorkflowFilter::default()
        };
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
                // A command with a known id is not applied again; its answer is known.
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

/// Warnings of workflows started by this host, for as long as the host lives.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<VecDeque<(String, Vec<String>)>>);

impl Warnings {
    /// Replaces the warnings of an earlier workflow with the same id.
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

fn info(row: WorkflowRow) -> WorkflowInfo {
    let moment = |ms: i64| u64::try_from(ms).unwrap_or_default();
    WorkflowInfo {
        status: crate::status_of(&row),
        id: row.id,
        name: row.name,
        created_ms: moment(row.created_ms),
        updated_ms: moment(row.updated_ms),
    }
}

/// Translates a workflow error to the API.
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
            WorkflowApiError::Failed { message: "cannot read or save the workflow".to_owned() }
        }
    }
}
