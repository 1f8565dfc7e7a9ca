//! Workflows of a project: made, driven, commanded, watched.
//!
//! The machine and its driver are in `belljar-flow`; here they meet the project's store, its tools and
//! its cells. Every surface, the command line, MCP and HTTP, goes through [`Flows`]. What a workflow
//! may do is what the operator allowed when it was made: it is kept with it, and no file and no command
//! changes it.

mod allowed;
mod code;
mod driving;
mod error;
mod files;
mod known;
mod node;
mod performer;
mod queue;
mod ran;
mod retention;
mod sandboxes;
mod tools;
mod tree;
mod waiting;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_flow::{
    Command, Dag, DriveError, Driven, DurableEngine as _, Embedded, Event, Machine, NewWorkflow,
    WorkflowError, Workflows,
    engine::{CheckpointRow, Filter, FlowRow, Why},
    is_agent,
};
use belljar_runtime::{CommitExecutable, Limits};
use belljar_tools::{CallObserver, NoObserver};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{Executor, SessionRegistry, now_ms};

pub use allowed::FlowTerms;
pub(crate) use code::{is_of_workflow, runs_of_intent};
pub use driving::{NEEDS_ATTENTION, QUEUED, is_looked_after, needs_attention, status_of};
pub use error::{FlowsError, check_flow_id};
pub use files::Hidden;
use files::Versions;
pub use known::check_workflow;
pub use retention::forget_workflow;
pub use waiting::{TaskQuestion, task_questions};

use crate::active::ActiveIds;
use driving::Neglected;
use performer::Hands;
use queue::Queue;

/// Workflows that are driven in the background at once, unless the operator says otherwise.
pub const MAX_RUNNING: u32 = 16;
/// Workflows that may wait for that.
pub const MAX_QUEUED: u32 = 1000;

/// The workflows of a project. Cheap to clone; all clones share engine, performer and drivers.
#[derive(Debug, Clone)]
pub struct Flows {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workflows: Workflows<Embedded>,
    hands: Arc<Hands>,
    terms: FlowTerms,
    under_way: ActiveIds,
    queue: Queue,
    max_queued: usize,
    /// Those of which it was said that they are left alone, with their fence.
    left_alone: Mutex<BTreeSet<(String, i64)>>,
    /// Those whose owner lives and does nothing.
    neglected: Neglected,
    /// Cancelled when the host ends.
    stop: CancellationToken,
    background: Mutex<tokio::task::JoinSet<()>>,
}

/// How the workflows of a host are run.
#[derive(Debug, Clone)]
pub struct FlowOptions {
    /// What code may use up that says nothing about it.
    pub limits: Limits,
    /// What workflows that are made here may do.
    pub terms: FlowTerms,
    /// A directory of the host's own, where the files of code tasks are laid out.
    pub scratch: PathBuf,
    /// What of the host no workflow begins with and none brings.
    pub hidden: Hidden,
    /// Who hears of calls that wait for a person.
    pub observer: Arc<dyn CallObserver>,
    /// How many workflows are driven in the background at once; more wait for their turn.
    pub max_running: u32,
    /// How many may wait; more are not begun.
    pub max_queued: u32,
}

impl FlowOptions {
    /// No code, no paths, nobody listening.
    pub fn new(limits: Limits, scratch: impl Into<PathBuf>) -> Self {
        Self {
            limits,
            terms: FlowTerms::default(),
            scratch: scratch.into(),
            hidden: Hidden::default(),
            observer: Arc::new(NoObserver),
            max_running: MAX_RUNNING,
            max_queued: MAX_QUEUED,
        }
    }
}

/// A workflow that is asked for.
#[derive(Debug, Clone)]
pub struct NewFlow {
    /// Its id; one is made up if there is none.
    pub id: Option<String>,
    /// What it is.
    pub dag: Dag,
    /// What it is given.
    pub inputs: Map<String, Value>,
    /// Who asks, for audit rows and approvals.
    pub caller: String,
    /// A directory whose files it begins with. The operator has allowed it.
    pub workspace: Option<PathBuf>,
}

impl NewFlow {
    /// A workflow without inputs and files.
    pub fn new(dag: Dag, caller: impl Into<String>) -> Self {
        Self { id: None, dag, inputs: Map::new(), caller: caller.into(), workspace: None }
    }
}

/// A workflow that is asked for, as another was.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// At which checkpoint.
    pub at: Option<u64>,
    /// Its id; one is made up if there is none.
    pub id: Option<String>,
    /// Who pauses it before it begins, if anybody does.
    pub paused_by: Option<String>,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnswer {
    /// Its id: the same id sent again is the same command.
    pub id: String,
    /// What was said to it.
    pub answer: Answered,
}

/// What was said to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It was done.
    Accepted,
    /// It was not, and why.
    Refused(String),
    /// Nothing yet. It is kept, and taken when somebody drives the workflow.
    NotYet,
}

impl Flows {
    /// The workflows of an executor's project.
    pub async fn new(
        executor: Executor,
        sessions: SessionRegistry,
        options: FlowOptions,
    ) -> Result<Self, FlowsError> {
        let store = executor.store().cloned().ok_or(FlowsError::NoStore)?;
        let engine = Arc::new(Embedded::new(store));
        let terms = options.terms.clone();
        let queue = Queue::new(options.max_running);
        let max_queued = usize::try_from(options.max_queued).unwrap_or(usize::MAX);
        let hands = Arc::new(Hands::new(executor, sessions, options, Arc::clone(&engine)));
        let shared = Shared {
            workflows: Workflows::new(engine),
            hands,
            terms,
            under_way: ActiveIds::default(),
            queue,
            max_queued,
            left_alone: Mutex::default(),
            neglected: Neglected::default(),
            stop: CancellationToken::new(),
            background: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Checks a workflow, its tools included, and makes it durable. It begins when somebody drives it.
    pub async fn create(&self, new: NewFlow) -> Result<String, FlowsError> {
        let NewFlow { id, dag, inputs, caller, workspace } = new;
        self.check(&dag).await?;
        let id = id.unwrap_or_else(new_flow_id);
        check_flow_id(&id)?;
        if self.find(&id).await?.is_some() {
            return Err(FlowsError::Exists(id));
        }
        let files = match &workspace {
            Some(path) => self.shared.hands.import(path).await?,
            None => BTreeMap::new(),
        };
        let terms = self.shared.terms.kept();
        let blobs = files::blobs(&files);
        let new = NewWorkflow { id: id.clone(), caller, dag, inputs, files, terms };
        self.shared.workflows.create(new, now_ms()).await?;
        self.shared.hands.keep(&id, blobs).await?;
        Ok(id)
    }

    /// Finds everything that is wrong with a workflow: the faults of the workflow itself, tools nobody
    /// has, code where there is to be none.
    pub async fn check(&self, dag: &Dag) -> Result<(), FlowsError> {
        self.shared.terms.check(&dag.tasks)?;
        let found = self.shared.hands.look_up(&walk::tools(dag)).await;
        known::check_with(dag, &found).map_err(FlowsError::Faulty)
    }

    /// Drives a workflow here until it has ended or `stop` is cancelled, from wherever it is. One that
    /// another host has is refused.
    pub async fn run(&self, id: &str, stop: &CancellationToken) -> Result<Driven, DriveError> {
        driving::run(&self.shared, id, stop, (driving::Until::Ended, Why::Asked)).await
    }

    /// The same, until only a command could change anything.
    pub async fn run_until_idle(
        &self,
        id: &str,
        stop: &CancellationToken,
    ) -> Result<Driven, DriveError> {
        driving::run(&self.shared, id, stop, (driving::Until::Idle, Why::Asked)).await
    }

    /// Drives a workflow in the background when its turn comes, if nobody here does. Needs a running
    /// tokio runtime.
    pub fn drive(&self, id: &str) {
        driving::drive(&self.shared, id, Why::Asked);
    }

    /// Makes a workflow and drives it in the background, unless too many wait for that already.
    pub async fn start(&self, new: NewFlow) -> Result<String, FlowsError> {
        self.has_room()?;
        let id = self.create(new).await?;
        self.drive(&id);
        Ok(id)
    }

    /// Whether one more may wait for its turn.
    fn has_room(&self) -> Result<(), FlowsError> {
        let waiting = self.shared.queue.waiting();
        if waiting >= self.shared.max_queued {
            return Err(FlowsError::Busy { waiting });
        }
        Ok(())
    }

    /// Makes a workflow that is what another was at a checkpoint, if none is named the newest at which
    /// it had not ended, and drives it in the background; paused, if it is to wait for commands.
    pub async fn fork(&self, id: &str, fork: Fork) -> Result<String, FlowsError> {
        let new_id = fork.id.unwrap_or_else(new_flow_id);
        check_flow_id(&new_id)?;
        self.has_room()?;
        // A fork of a fork knows the commands of the first: this is another.
        let command_id = new_command_id();
        let pause = fork.paused_by.as_deref().map(|by| (command_id.as_str(), by));
        self.shared.workflows.fork(id, fork.at, &new_id, now_ms(), pause).await?;
        self.drive(&new_id);
        Ok(new_id)
    }

    /// The place of a workflow that waits for its turn here; the first is 1.
    pub fn place_in_queue(&self, id: &str) -> Option<usize> {
        self.shared.queue.place(id)
    }

    /// Sends a command durably, sees to it that somebody drives the workflow, and waits this long for
    /// the answer.
    pub async fn command(
        &self,
        id: &str,
        command_id: Option<String>,
        by: &str,
        command: Command,
        patience: Duration,
    ) -> Result<CommandAnswer, FlowsError> {
        let command_id = self.send(id, command_id, by, &command).await?;
        if !self.is_driven(id).await? {
            // What is left alone is taken up for a person, and for nobody else.
            let row = self.find(id).await?;
            if !is_agent(by) {
                self.drive(id);
            } else if row.is_some_and(|row| needs_attention(&row).is_none()) {
                driving::drive(&self.shared, id, Why::Found);
            }
        }
        self.answer(id, &command_id, patience).await
    }

    /// Sends a command durably; its id is given back. The answer comes when somebody drives the
    /// workflow.
    pub async fn send(
        &self,
        id: &str,
        command_id: Option<String>,
        by: &str,
        command: &Command,
    ) -> Result<String, FlowsError> {
        let command_id = command_id.unwrap_or_else(new_command_id);
        check_command(&self.shared.workflows, id, command).await?;
        self.shared.hands.expect(command).await;
        let workflows = &self.shared.workflows;
        workflows.send(id, &command_id, by, command, now_ms()).await?;
        Ok(command_id)
    }

    /// The answer to a command, waited for this long.
    pub async fn answer(
        &self,
        id: &str,
        command_id: &str,
        patience: Duration,
    ) -> Result<CommandAnswer, FlowsError> {
        let answer = self.shared.workflows.answer(id, command_id, patience).await?;
        let answer = match answer {
            None => Answered::NotYet,
            Some(answer) => match answer.refused {
                None => Answered::Accepted,
                Some(why) => Answered::Refused(why),
            },
        };
        Ok(CommandAnswer { id: command_id.to_owned(), answer })
    }

    /// A workflow as it is, or as it was at a checkpoint.
    pub async fn look(&self, id: &str, checkpoint: Option<u64>) -> Result<Machine, FlowsError> {
        Ok(self.shared.workflows.look(id, checkpoint).await?)
    }

    /// The calls inside its tasks' code that wait for a person.
    pub async fn task_questions(&self, machine: &Machine) -> Result<Vec<TaskQuestion>, FlowsError> {
        let asked = task_questions(self.shared.hands.engine.store(), machine).await;
        Ok(asked.map_err(belljar_flow::EngineError::from).map_err(WorkflowError::from)?)
    }

    /// What is known of a workflow without what it did.
    pub async fn find(&self, id: &str) -> Result<Option<FlowRow>, FlowsError> {
        let found = self.shared.workflows.engine().find(id).await;
        Ok(found.map_err(WorkflowError::from)?)
    }

    /// Workflows, newest first; those before an id, if it is given.
    pub async fn list(
        &self,
        filter: Filter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FlowRow>, FlowsError> {
        let rows = self.shared.workflows.engine().list(filter, before, limit).await;
        Ok(rows.map_err(WorkflowError::from)?)
    }

    /// Checkpoints, newest first; those before a number, if it is given.
    pub async fn checkpoints(
        &self,
        id: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, FlowsError> {
        let rows = self.shared.workflows.engine().checkpoints(id, before, limit).await;
        Ok(rows.map_err(WorkflowError::from)?)
    }

    /// Events after a number, waited for this long if there are none.
    pub async fn events(
        &self,
        id: &str,
        after: u64,
        limit: u32,
        patience: Duration,
    ) -> Result<Vec<Event>, FlowsError> {
        Ok(self.shared.workflows.events(id, after, limit, patience).await?)
    }

    /// Whether a process that lives, this one included, drives the workflow.
    pub async fn is_driven(&self, id: &str) -> Result<bool, FlowsError> {
        if self.shared.under_way.has(id) {
            return Ok(true);
        }
        let row = self.find(id).await?.ok_or_else(|| FlowsError::Unknown(id.to_owned()))?;
        Ok(driving::is_held(&row, &self.shared.under_way))
    }

    /// Brings what the workflow changed in its files to a directory.
    pub async fn export(
        &self,
        id: &str,
        to: &std::path::Path,
        executable: &CommitExecutable,
    ) -> Result<Exported, FlowsError> {
        let (before, after) = (self.look(id, Some(0)).await?, self.look(id, None).await?);
        let versions = Versions { before: before.files(), after: after.files() };
        self.shared.hands.export(versions, to, executable).await
    }

    /// Drives in the background what was left behind: workflows whose host died, and those that a
    /// host which was shut down had for others than a person at a command line.
    pub async fn adopt_abandoned(&self) {
        driving::adopt(&self.shared, driving::Look::Everything).await;
    }

    /// Drives in the background what is due or was sent a command, and nobody has. One look for all
    /// of them: those that rest cost nothing.
    pub async fn tend(&self) {
        driving::adopt(&self.shared, driving::Look::Due).await;
    }

    /// Stops all drivers of this host and leaves their workflows so that they can be resumed.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        let background = {
            let mut all = self.shared.background.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *all)
        };
        background.join_all().await;
    }
}

/// Refuses a command that brings code which the workflow's own terms do not allow. Nobody could run it,
/// and a task that cannot run fails the workflow.
pub async fn check_command(
    workflows: &Workflows<Embedded>,
    id: &str,
    command: &Command,
) -> Result<(), FlowsError> {
    let (Command::InjectTasks { tasks } | Command::Replan { tasks, .. }) = command else {
        return Ok(());
    };
    let machine = workflows.look(id, None).await?;
    FlowTerms::of(machine.terms()).check(tasks)
}

/// What was brought to a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Paths that were written.
    pub written: Vec<String>,
    /// Paths that were not, and why.
    pub refused: Vec<(String, String)>,
    /// Paths that are only brought on request, because the host would execute them, and why.
    pub withheld: Vec<(String, String)>,
}

/// A new id of a workflow.
pub fn new_flow_id() -> String {
    format!("flow_{}", random())
}

/// A new id of a command.
pub fn new_command_id() -> String {
    format!("cmd_{}", random())
}

fn random() -> String {
    let mut bytes = [0; 8];
    // Without randomness an id may be taken, which is refused.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
