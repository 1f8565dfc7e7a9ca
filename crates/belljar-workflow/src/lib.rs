//! Workflows: a DAG as data, a pure state machine that runs it, a driver that performs its effects,
//! and the store that makes each step durable.
//!
//! The machine gives the same bytes for the same inputs, so a workflow is rebuilt after a crash from a
//! snapshot and the inputs since. Inputs, events and intents are on disk before an effect is performed.
//! One driver at a time has a workflow; a fence in the store decides. This crate knows neither tools nor
//! cells nor transports.

mod bounds;
mod check;
mod command;
mod dag;
mod driver;
mod effect;
mod event;
mod machine;
mod sqlite_workflow_store;
mod state;
mod template;
pub mod workflow_store;
mod workflows;

pub use check::{DagFault, DagFaults, ToolLookup, bad_task_id, check};
pub use command::{AGENT, Acknowledgement, DoubtResolution, WorkflowCommand, is_agent};
pub use dag::{
    Action, AtLimit, Backoff, Code, Compensation, Dag, DagSettings, Decider, DecisionPoints,
    Foreach, Goto, LOOP_POSITION_PREFIX, LoopAction, OnError, Reducer, ResultShape, Retry,
    SandboxAction, Task, ToolAction, Wait,
};
pub use driver::{
    Claim, ClaimedWorkflow, CommitPoint, DriveError, DriveResult, Driver, DriverClock,
    DriverOptions, Job, LeaveReason, Performer, SystemClock, WhenIdle,
};
pub use effect::{
    DecisionKind, Effect, FileEntry, Finish, InputKind, MachineInput, NotUndone, OpenIntent,
    Repeatability, RollbackReport, SessionUndo, TaskEnding, TaskFailure, TaskOutcome, TaskStart,
    TaskWork, WhyNot, WorkflowDecision,
};
pub use event::{WorkflowEvent, WorkflowEventKind};
pub use machine::{InputRefusal, Machine, TaskView, WorkflowFiles};
pub use sqlite_workflow_store::SqliteWorkflowStore;
pub use state::{StateError, check_fits, reducer_of};
pub use template::{TemplateError, is_template_method, names_in_expression, names_in_template};
pub use workflow_store::{WorkflowStore, WorkflowStoreError};
pub use workflows::{NewWorkflow, WorkflowError, Workflows};
