//! Workflows, as clients ask for them: within the operator's terms, and by whom.

mod asked;
mod persons;
mod report;

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
use crate::{Answered, FlowOptions, FlowTerms, Flows, FlowsError, Fork, NewFlow, Terms};

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
pub struct WorkflowTerms {
    /// Whether workflows may have code, however they are written.
    pub code: CodeExecution,
    /// A directory of the host's own, where the files of code tasks are laid out.
    pub scratch: std::path::PathBuf,
    /// What of the host no workflow begins with and none brings.
    pub hidden: crate::Hidden,
    /// How many are driven at once; more wait for their turn.
    pub max_running: u32,
    /// How many may wait.
    pub max_queued: u32,
}

impl ProjectBackend {
    /// The workflows of a project, if the operator wants clients to have any.
    pub(super) async fn flows(
        executor: &crate::Executor,
        sessions: &crate::SessionRegistry,
        terms: &Terms,
    ) -> Option<Flows> {
        let WorkflowTerms { code, scratch, hidden, max_running, max_queued } =
            terms.workflows.clone()?;
        let options = FlowOptions {
            terms: FlowTerms {
                code: code != CodeExecution::Off,
                shell: Some(code == CodeExecution::WithShell),
                readable: terms.readable.clone(),
                writable: terms.writable.clone(),
                ..FlowTerms::default()
            },
            hidden,
            max_running,
            max_queued,
            ..FlowOptions::new(terms.limits, scratch)
        };
        let made = Flows::new(executor.clone(), sessions.clone(), options).await;
        made.inspect_err(|error| tracing::warn!(%error, "there are no workflows")).ok()
    }

    /// Drives workflows that hosts have left behind and those that rest here, until it is told to stop.
    pub async fn adopt_workflows(&self, stop: CancellationToken) {
        let Some(flows) = &self.flows else { return };
        for look in (0..ADOPT_EVERY).cycle() {
            match look {
                0 => flows.adopt_abandoned().await,
                _ => flows.tend().await,
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(TEND_EVERY) => {}
            }
        }
    }

    /// Leaves all workflows so that they can go on elsewhere, because the host ends.
    pub async fn leave_workflows(&self) {
        if let Some(flows) = &self.flows {
            flows.stop().await;
        }
    }

    fn all_flows(&self) -> Result<&Flows, WorkflowApiError> {
        self.flows.as_ref().ok_or(WorkflowApiError::Off)
    }

    async fn known(&self, id: &str) -> Result<&Flows, WorkflowApiError> {
        let flows = self.all_flows()?;
        // Those of others, such as a person's at the command line, have terms of their own.
        match flows.find(id).await.map_err(told)? {
            Some(row) if row.caller == self.terms.caller => Ok(flows),
            Some(_) | None => Err(WorkflowApiError::Unknown { id: id.to_owned() }),
        }
    }

    fn code_of_workflows(&self) -> CodeExecution {
        self.terms.workflows.as_ref().map(|terms| terms.code).unwrap_or_default()
    }
}

impl WorkflowBackend for ProjectBackend {
    fn offers_workflows(&self) -> bool {
        self.flows.is_some()
    }

    async fn run_workflow(&self, request: WorkflowRequest) -> Result<String, WorkflowApiError> {
        let flows = self.all_flows()?;
        let (dag, warnings) = asked::workflow(request.workflow, self.code_of_workflows())?;
        let caller = self.terms.caller.clone();
        let new = NewFlow { id: request.id, dag, inputs: request.inputs, caller, workspace: None };
        let id = flows.start(new).await.map_err(told)?;
        self.warnings.keep(&id, warnings);
        Ok(id)
    }

    async fn fork_workflow(
        &self,
        id: &str,
        fork: WorkflowFork,
    ) -> Result<String, WorkflowApiError> {
        let flows = self.known(id).await?;
        let paused_by = fork.paused.then(|| PERSON.to_owned());
        let fork = Fork { at: fork.at, id: fork.id, paused_by };
        flows.fork(id, fork).await.map_err(told)
    }

    async fn forget_workflow(&self, id: &str) -> Result<(), WorkflowApiError> {
        self.known(id).await?.forget(id).await.map_err(told)?;
        self.warnings.forget(id);
        Ok(())
    }

    async fn workflow(&self, id: &str) -> Result<WorkflowReport, WorkflowApiError> {
        let flows = self.known(id).await?;
        let machine = flows.look(id, None).await.map_err(told)?;
        let row = flows.find(id).await.map_err(told)?;
        let attention = row.as_ref().and_then(crate::needs_attention);
        let inside = flows.task_questions(&machine).await.map_err(told)?;
        let mut report = report::of(&machine, &inside, flows.place_in_queue(id), attention);
        self.warnings.add_to(id, &mut report);
        Ok(report)
    }

    async fn workflows(
        &self,
        at_most: u32,
        before: Option<&str>,
    ) -> Result<Vec<WorkflowInfo>, WorkflowApiError> {
        let filter = Filter { caller: Some(self.terms.caller.clone()), ..Filter::default() };
        let listed = self.all_flows()?.list(filter, before, at_most).await;
        Ok(listed.map_err(told)?.into_iter().map(info).collect())
    }

    async fn workflow_events(
        &self,
        id: &str,
        after: u64,
        at_most: u32,
        wait: Duration,
    ) -> Result<Vec<WorkflowEventInfo>, WorkflowApiError> {
        let flows = self.known(id).await?;
        let events = flows.events(id, after, at_most, wait).await.map_err(told)?;
        Ok(events.iter().map(report::event).collect())
    }

    async fn command_workflow(
        &self,
        id: &str,
        command: WorkflowCommandRequest,
        wait: Duration,
    ) -> Result<WorkflowCommandAnswer, WorkflowApiError> {
        let flows = self.known(id).await?;
        let asked = asked::command(command.command)?;
        let by = match command.by {
            CommandSender::Agent => {
                let machine = flows.look(id, None).await.map_err(told)?;
                // One that was taken before is not taken again: it has its answer.
                let id = command.id.as_deref();
                if id.and_then(|id| machine.acknowledgement(id)).is_none() {
                    persons::check(&machine, &asked)?;
                }
                AGENT.to_owned()
            }
            CommandSender::Person(name) => name,
        };
        let answer = flows.command(id, command.id, &by, asked, wait).await.map_err(told)?;
        let (accepted, reason) = match answer.answer {
            Answered::Accepted => (Some(true), None),
            Answered::Refused(why) => (Some(false), Some(why)),
            Answered::NotYet => (None, None),
        };
        Ok(WorkflowCommandAnswer { command_id: answer.id, accepted, reason })
    }
}

/// What was tolerated in workflows that were made here, for as long as this host lives.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<VecDeque<(String, Vec<String>)>>);

impl Warnings {
    /// Of the one that has the id now, whatever had it before.
    fn keep(&self, id: &str, warnings: Vec<String>) {
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
fn told(error: FlowsError) -> WorkflowApiError {
    match error {
        FlowsError::NoStore => WorkflowApiError::Off,
        FlowsError::Unknown(id) => WorkflowApiError::Unknown { id },
        FlowsError::Exists(id) => WorkflowApiError::Taken { id },
        error @ FlowsError::Busy { .. } => WorkflowApiError::Busy { why: error.to_string() },
        FlowsError::Faulty(faults) => {
            WorkflowApiError::Faulty { faults: faults.0.iter().map(ToString::to_string).collect() }
        }
        error @ (FlowsError::CodeOff { .. }
        | FlowsError::ShellOff { .. }
        | FlowsError::BadId(_)) => WorkflowApiError::Faulty { faults: vec![error.to_string()] },
        FlowsError::Workflow(FlowError::Store(WorkflowStoreError::Conflict(why))) => {
            WorkflowApiError::BadCommand { why }
        }
        FlowsError::Workflow(FlowError::Store(error @ WorkflowStoreError::NoCheckpoint { .. })) => {
            WorkflowApiError::BadCommand { why: error.to_string() }
        }
        FlowsError::Workflow(FlowError::Store(WorkflowStoreError::Held { flow, .. })) => {
            WorkflowApiError::NotOver { id: flow }
        }
        error @ (FlowsError::Files { .. } | FlowsError::Workflow(_)) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a workflow failed");
            WorkflowApiError::Failed {
                message: "the workflow could not be read or kept".to_owned(),
            }
        }
    }
}
