//! Workflows: a DAG as data, a pure state machine that runs it, a driver that performs its effects,
//! and the store that makes each step durable.

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

pub use check::{Fault, Faults, Tools, check};
pub use command::{AGENT, Acknowledgement, Command, Resolution, is_agent};
pub use dag::{
    Action, Asked, AtLimit, Backoff, Code, Compensation, Dag, Decide, Foreach, Goto, Grants,
    LOOP_POSITION_PREFIX, Limits, Loop, OnError, Reducer, Retry, Sandbox, Settings, Shape, Task,
    ToolCall, Wait, WriteAccess,
};
pub use driver::{
    Claim, Clock, DriveError, Driven, Driver, DriverOptions, Job, Left, Performer, Place,
    SystemClock, WhenIdle,
};
pub use effect::{
    Again, Decision, DecisionKind, Effect, Ending, Entry, Failure, Finish, Input, NotUndone, Open,
    Outcome, RollbackReport, Start, Status, Undo, What, WhyNot, Work,
};
pub use event::{Event, Happened};
pub use machine::{Files, Machine, Refusal, TaskStatus, TaskView};
pub use sqlite_workflow_store::SqliteWorkflowStore;
pub use state::{StateError, check_fits, reducer_of};
pub use template::{TemplateError, is_template_method, names_in_expression, names_in_template};
pub use workflow_store::{WorkflowStore, WorkflowStoreError};
pub use workflows::{NewWorkflow, WorkflowError, Workflows};
