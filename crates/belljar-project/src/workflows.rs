//! Workflows of a project: creating, driving, commanding and watching them.
//!
//! The machine and its driver are in `belljar-workflow`; this module connects them to the project's
//! store, tools and cells. Every surface (command line, MCP, HTTP) goes through
//! [`ProjectWorkflows`]. The operator sets a workflow's permissions when it is created. They are
//! stored with it, and no file and no command changes them.

mod code;
mod directory;
mod driving;
mod error;
mod files;
mod node;
mod performer;
mod permissions;
mod queue;
mod retention;
mod sandboxes;
mod task_questions;
mod task_result;
mod tool_facts;
mod tools;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_config::{MAX_QUEUED, MAX_RUNNING};
use belljar_contract::JsonMap;
use belljar_contract::{CommitExecutable, Limits, hex};
use belljar_tools::{CallObserver, NoObserver};
use belljar_workflow::{
    Dag, DriveError, DriveResult, Machine, NewWorkflow, SqliteWorkflowStore, WorkflowCommand,
    WorkflowError, WorkflowEvent, WorkflowStore as _, Workflows, is_agent,
    workflow_store::{CheckpointRow, ClaimReason, WorkflowFilter, WorkflowRow},
};
use driving::StallDetector;
use files::Versions;
use performer::TaskPerformer;
use queue::DriveQueue;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio_util::sync::CancellationToken;

use crate::{Executor, SessionRegistry, active::ActiveIds, now_ms};

pub(crate) use code::{is_of_workflow, runs_of_intent};
pub use driving::{is_looked_after, needs_attention, status_of};
pub use error::{ProjectWorkflowError, check_workflow_id};
pub use files::HiddenPaths;
pub use permissions::WorkflowPermissions;
pub use retention::forget_workflow;
pub use task_questions::{TaskQuestion, task_questions};
pub use tool_facts::check_workflow;

/// The workflows of a project. Cheap to clone; all clones share store, performer and drivers.
///
/// ```no_run
/// # use belljar_project::ProjectWorkflows;
/// # type Done = Result<(), Box<dyn std::error::Error>>;
/// # async fn example(workflows: ProjectWorkflows, dag: belljar_workflow::Dag) -> Done {
/// let new = belljar_project::WorkflowSubmission::new(dag, "nightly report");
/// let id = workflows.create(new).await?;
/// let ended = workflows.run(&id, &tokio_util::sync::CancellationToken::new()).await?;
/// println!("{id}: {ended:?}");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ProjectWorkflows {
    inner: Arc<WorkflowsInner>,
}

#[derive(Debug)]
struct WorkflowsInner {
    workflows: Workflows<SqliteWorkflowStore>,
    performer: Arc<TaskPerformer>,
    permissions: WorkflowPermissions,
    active: ActiveIds,
    queue: DriveQueue,
    max_queued: usize,
    /// Workflows (with their fence) whose neglect was logged already.
    left_alone: Mutex<BTreeSet<(String, i64)>>,
    /// Finds workflows whose owner lives but does nothing.
    neglected: StallDetector,
    /// Cancelled when the host stops.
    stop: CancellationToken,
    background: Mutex<tokio::task::JoinSet<()>>,
}

/// How a host runs workflows.
#[derive(Debug, Clone)]
pub struct WorkflowOptions {
    /// Limits of code that sets none.
    pub limits: Limits,
    /// The permissions of workflows created here.
    pub permissions: WorkflowPermissions,
    /// A private directory of the host for the files of code tasks.
    pub scratch: PathBuf,
    /// Paths of the host that no workflow may read in or write out.
    pub hidden: HiddenPaths,
    /// Notified of tool calls that wait for a person.
    pub observer: Arc<dyn CallObserver>,
    /// Workflows that run in parallel in the background; the others wait in the queue.
    pub max_running: u32,
    /// Workflows that may wait in the queue; more are refused.
    pub max_queued: u32,
}

impl WorkflowOptions {
    /// Options without code, paths or an observer.
    pub fn new(limits: Limits, scratch: impl Into<PathBuf>) -> Self {
        Self {
            limits,
            permissions: WorkflowPermissions::default(),
            scratch: scratch.into(),
            hidden: HiddenPaths::default(),
            observer: Arc::new(NoObserver),
            max_running: MAX_RUNNING,
            max_queued: MAX_QUEUED,
        }
    }
}

/// A workflow to create.
#[derive(Debug, Clone)]
pub struct WorkflowSubmission {
    /// Id of the new workflow; a random one if it is missing.
    pub id: Option<String>,
    /// The tasks and settings.
    pub dag: Dag,
    /// Values of the declared inputs.
    pub inputs: JsonMap,
    /// Recorded in audit rows and approvals.
    pub caller: String,
    /// A directory whose files the workflow starts with. The operator has allowed it.
    pub workspace: Option<PathBuf>,
}

impl WorkflowSubmission {
    /// A workflow without inputs and files.
    pub fn new(dag: Dag, caller: impl Into<String>) -> Self {
        Self { id: None, dag, inputs: JsonMap::new(), caller: caller.into(), workspace: None }
    }
}

/// A copy of a workflow to create.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// The checkpoint to copy; the newest before the end if it is missing.
    pub at: Option<u64>,
    /// Id of the new workflow; a random one if it is missing.
    pub id: Option<String>,
    /// Pauses the copy before it starts, in this person's name.
    pub paused_by: Option<String>,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// Id of the command. The same id sent again is the same command.
    pub id: String,
    /// Whether the command was applied.
    pub outcome: CommandOutcome,
}

/// Whether a command was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The command was applied.
    Accepted,
    /// The command was refused; holds the reason.
    Refused(String),
    /// Not answered yet. The command is stored, and applied when a host drives the workflow.
    NotYet,
}

impl ProjectWorkflows {
    /// The workflows of an executor's project.
    pub async fn new(
        executor: Executor,
        sessions: SessionRegistry,
        options: WorkflowOptions,
    ) -> Result<Self, ProjectWorkflowError> {
        let store = executor.store().cloned().ok_or(ProjectWorkflowError::NoStore)?;
        let store = Arc::new(SqliteWorkflowStore::new(store));
        let permissions = options.permissions.clone();
        let queue = DriveQueue::new(options.max_running);
        let max_queued = usize::try_from(options.max_queued).unwrap_or(usize::MAX);
        let performer =
            Arc::new(TaskPerformer::new(executor, sessions, options, Arc::clone(&store)));
        let inner = WorkflowsInner {
            workflows: Workflows::new(store),
            performer,
            permissions,
            active: ActiveIds::default(),
            queue,
            max_queued,
            left_alone: Mutex::default(),
            neglected: StallDetector::default(),
            stop: CancellationToken::new(),
            background: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Checks a workflow, including its tools, and stores it. It starts when a host drives it.
    pub async fn create(&self, new: WorkflowSubmission) -> Result<String, ProjectWorkflowError> {
        let WorkflowSubmission { id, dag, inputs, caller, workspace } = new;
        self.check(&dag).await?;
        let id = id.unwrap_or_else(new_workflow_id);
        check_workflow_id(&id)?;
        if self.find(&id).await?.is_some() {
            return Err(ProjectWorkflowError::Exists(id));
        }
        let files = match &workspace {
            Some(path) => self.inner.performer.import_files(path).await?,
            None => BTreeMap::new(),
        };
        let terms = self.inner.permissions.kept();
        let blobs = files::blobs(&files);
        let new = NewWorkflow { id: id.clone(), caller, dag, inputs, files, terms };
        self.inner.workflows.create(new, now_ms()).await?;
        self.inner.performer.retain_blobs(&id, blobs).await?;
        Ok(id)
    }

    /// Finds every fault of a workflow: invalid tasks, unknown tools, code that is not allowed.
    pub async fn check(&self, dag: &Dag) -> Result<(), ProjectWorkflowError> {
        self.inner.permissions.check(&dag.tasks)?;
        let found = self.inner.performer.look_up(&walk::tools(dag)).await;
        tool_facts::check_with(dag, &found).map_err(ProjectWorkflowError::Faulty)
    }

    /// Drives a workflow here until it has ended or `stop` is cancelled. A workflow that another
    /// host drives is refused.
    pub async fn run(&self, id: &str, stop: &CancellationToken) -> Result<DriveResult, DriveError> {
        driving::run(&self.inner, id, stop, (driving::DriveUntil::Ended, ClaimReason::Asked)).await
    }

    /// Like [`run`](Self::run), until only a command could change anything.
    pub async fn run_until_idle(
        &self,
        id: &str,
        stop: &CancellationToken,
    ) -> Result<DriveResult, DriveError> {
        driving::run(&self.inner, id, stop, (driving::DriveUntil::Idle, ClaimReason::Asked)).await
    }

    /// Queues a workflow to be driven in the background, unless this host drives it already. Needs
    /// a running tokio runtime.
    pub fn drive(&self, id: &str) {
        driving::drive(&self.inner, id, ClaimReason::Asked);
    }

    /// Creates a workflow and queues it, unless the queue is full.
    pub async fn start(&self, new: WorkflowSubmission) -> Result<String, ProjectWorkflowError> {
        self.check_room()?;
        let id = self.create(new).await?;
        self.drive(&id);
        Ok(id)
    }

    /// Refuses a workflow if the queue is full.
    fn check_room(&self) -> Result<(), ProjectWorkflowError> {
        let waiting = self.inner.queue.len();
        if waiting >= self.inner.max_queued {
            return Err(ProjectWorkflowError::Busy { waiting });
        }
        Ok(())
    }

    /// Creates a copy of a workflow at a checkpoint (by default the newest before its end) and
    /// queues it; paused, if it should wait for commands.
    pub async fn fork(&self, id: &str, fork: Fork) -> Result<String, ProjectWorkflowError> {
        let new_id = fork.id.unwrap_or_else(new_workflow_id);
        check_workflow_id(&new_id)?;
        self.check_room()?;
        // The copy knows the commands of the original, so this needs a new id.
        let command_id = new_command_id();
        let pause = fork.paused_by.as_deref().map(|by| (command_id.as_str(), by));
        self.inner.workflows.fork(id, fork.at, &new_id, now_ms(), pause).await?;
        self.drive(&new_id);
        Ok(new_id)
    }

    /// The place of a workflow in the queue; the first is 1.
    pub fn place_in_queue(&self, id: &str) -> Option<usize> {
        self.inner.queue.position(id)
    }

    /// Sends a command, makes sure that a host drives the workflow, and waits up to `timeout` for
    /// the answer.
    pub async fn command(
        &self,
        id: &str,
        command_id: Option<String>,
        by: &str,
        command: WorkflowCommand,
        timeout: Duration,
    ) -> Result<CommandResult, ProjectWorkflowError> {
        let command_id = self.send(id, command_id, by, &command).await?;
        if !self.is_driven(id).await? {
            // A person may revive a workflow that hosts leave alone; a model may not.
            let row = self.find(id).await?;
            if !is_agent(by) {
                self.drive(id);
            } else if row.is_some_and(|row| needs_attention(&row).is_none()) {
                driving::drive(&self.inner, id, ClaimReason::Found);
            }
        }
        self.answer(id, &command_id, timeout).await
    }

    /// Stores a command and returns its id. The answer comes when a host drives the workflow.
    pub async fn send(
        &self,
        id: &str,
        command_id: Option<String>,
        by: &str,
        command: &WorkflowCommand,
    ) -> Result<String, ProjectWorkflowError> {
        let command_id = command_id.unwrap_or_else(new_command_id);
        check_command(&self.inner.workflows, id, command).await?;
        self.inner.performer.look_up_tools_of(command).await;
        let workflows = &self.inner.workflows;
        workflows.send(id, &command_id, by, command, now_ms()).await?;
        Ok(command_id)
    }

    /// The answer to a command, after at most `timeout`.
    pub async fn answer(
        &self,
        id: &str,
        command_id: &str,
        timeout: Duration,
    ) -> Result<CommandResult, ProjectWorkflowError> {
        let answer = self.inner.workflows.answer(id, command_id, timeout).await?;
        let outcome = match answer {
            None => CommandOutcome::NotYet,
            Some(answer) => match answer.refused {
                None => CommandOutcome::Accepted,
                Some(why) => CommandOutcome::Refused(why),
            },
        };
        Ok(CommandResult { id: command_id.to_owned(), outcome })
    }

    /// A workflow in its current state, or at a checkpoint.
    pub async fn load(
        &self,
        id: &str,
        checkpoint: Option<u64>,
    ) -> Result<Machine, ProjectWorkflowError> {
        Ok(self.inner.workflows.look(id, checkpoint).await?)
    }

    /// Tool calls inside the tasks' code that wait for a person.
    pub async fn task_questions(
        &self,
        machine: &Machine,
    ) -> Result<Vec<TaskQuestion>, ProjectWorkflowError> {
        let asked = task_questions(self.inner.performer.store.project_store(), machine).await;
        Ok(asked
            .map_err(belljar_workflow::WorkflowStoreError::from)
            .map_err(WorkflowError::from)?)
    }

    /// The record of a workflow, without its state.
    pub async fn find(&self, id: &str) -> Result<Option<WorkflowRow>, ProjectWorkflowError> {
        let found = self.inner.workflows.store().find(id).await;
        Ok(found.map_err(WorkflowError::from)?)
    }

    /// Workflows, newest first; only those before an id, if one is given.
    pub async fn list(
        &self,
        filter: WorkflowFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<WorkflowRow>, ProjectWorkflowError> {
        let rows = self.inner.workflows.store().list(filter, before, limit).await;
        Ok(rows.map_err(WorkflowError::from)?)
    }

    /// Checkpoints, newest first; only those before a number, if one is given.
    pub async fn checkpoints(
        &self,
        id: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, ProjectWorkflowError> {
        let rows = self.inner.workflows.store().checkpoints(id, before, limit).await;
        Ok(rows.map_err(WorkflowError::from)?)
    }

    /// Events after a number. Waits up to `timeout` if there are none.
    pub async fn events(
        &self,
        id: &str,
        after: u64,
        limit: u32,
        timeout: Duration,
    ) -> Result<Vec<WorkflowEvent>, ProjectWorkflowError> {
        Ok(self.inner.workflows.events(id, after, limit, timeout).await?)
    }

    /// Whether a live process, this one included, drives the workflow.
    pub async fn is_driven(&self, id: &str) -> Result<bool, ProjectWorkflowError> {
        if self.inner.active.has(id) {
            return Ok(true);
        }
        let row =
            self.find(id).await?.ok_or_else(|| ProjectWorkflowError::Unknown(id.to_owned()))?;
        Ok(driving::is_held(&row, &self.inner.active))
    }

    /// Writes the files that the workflow changed to a directory.
    pub async fn export(
        &self,
        id: &str,
        to: &std::path::Path,
        executable: &CommitExecutable,
    ) -> Result<ExportReport, ProjectWorkflowError> {
        let (before, after) = (self.load(id, Some(0)).await?, self.load(id, None).await?);
        let versions = Versions { before: before.files(), after: after.files() };
        self.inner.performer.export_files(versions, to, executable).await
    }

    /// Drives workflows of dead hosts in the background, and those that a stopped host drove for
    /// clients. Workflows of a person at the command line stay stopped.
    pub async fn adopt_abandoned(&self) {
        driving::adopt(&self.inner, driving::AdoptionScope::Everything).await;
    }

    /// Drives workflows in the background that are due or have new commands, and that no host
    /// drives. One query finds all of them, so resting workflows cost nothing.
    pub async fn drive_due(&self) {
        driving::adopt(&self.inner, driving::AdoptionScope::Due).await;
    }

    /// Stops all drivers of this host. Their workflows can be resumed.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        let background = {
            let mut all = self.inner.background.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *all)
        };
        background.join_all().await;
    }
}

/// Refuses a command that adds code which the workflow's permissions do not allow. The code could
/// not run, and its task would fail the workflow.
pub async fn check_command(
    workflows: &Workflows<SqliteWorkflowStore>,
    id: &str,
    command: &WorkflowCommand,
) -> Result<(), ProjectWorkflowError> {
    let (WorkflowCommand::InjectTasks { tasks } | WorkflowCommand::Replan { tasks, .. }) = command
    else {
        return Ok(());
    };
    let machine = workflows.look(id, None).await?;
    WorkflowPermissions::of(machine.terms()).check(tasks)
}

/// Files written to a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Paths that were written.
    pub written: Vec<String>,
    /// Paths that were refused, each with the reason.
    pub refused: Vec<(String, String)>,
    /// Paths that the host would execute, each with the reason. They are written only on request.
    pub withheld: Vec<(String, String)>,
}

/// A new random workflow id.
pub fn new_workflow_id() -> String {
    format!("flow_{}", random())
}

/// A new random command id.
pub fn new_command_id() -> String {
    format!("cmd_{}", random())
}

fn random() -> String {
    let mut bytes = [0; 8];
    // Without randomness an id may be taken; then it is refused.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    hex::encode(&bytes)
}
