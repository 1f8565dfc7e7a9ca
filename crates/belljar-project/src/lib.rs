//! Belljar for Rust programs: run the code an LLM agent wrote in a sealed cell that starts in
//! under a millisecond.
//!
//! A sandbox is made by starting the running program once more, as a *zygote*, so
//! [`init`] must be the **first line of `main`**: before threads, before an async runtime
//! (`#[tokio::main]` starts one too early), before arguments are read.
//!
//! ```no_run
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! Every outcome of a run, also "this machine cannot sandbox", is a [`RunResult`]; whatever the
//! code did, the host is unharmed. The code sees nothing of the machine: no file, no network, no
//! environment, no other process.

mod active;
mod backend;
pub mod config;
mod descriptors;
mod engines;
mod executor;
mod owner;
mod retention;
mod sandbox;
mod saving;
mod sessions;
mod workflows;

pub use backend::{
    ExecutableTerms, ProjectBackend, Terms, WorkflowTerms, task_question, with_task,
};
pub use belljar_contract::{
    Artifact, Change, CommitExecutable, EngineName, ErrorCode, ErrorKind, Grants, Isolation,
    Language, Limit, Limits, Metrics, RunError, RunRequest, RunResult, RunStatus, Truncation,
    Workspace,
};
pub use belljar_runtime::{
    CheckpointSnapshot, FileError, Finding, FindingState, LaunchError, NewCheckpoint,
    SessionEnding, SessionFile, SessionFileKind, SessionPhase, SessionSnapshot, SessionSpec,
    examine,
};
pub use descriptors::allow_many as allow_many_descriptors;
pub use executor::{Durability, Execution, Executor, ResumeError, Resumed, now_ms, run_status};
pub use owner::{is_owner_alive, know_owners_of};
pub use retention::{Collected, Collector, Retention, Sweep};
pub use sandbox::{
    BuildError, OpenSession, Run, RunResultExt, Sandbox, SandboxBuilder, Session, ValueError, init,
};
pub use saving::Saving;
pub use sessions::{KeptSession, Lifetimes, NoSession, SessionRegistry, Whose};
pub use workflows::{
    Answered, CommandAnswer, Exported, FlowOptions, FlowTerms, Flows, FlowsError, Fork, Hidden,
    MAX_QUEUED, MAX_RUNNING, NEEDS_ATTENTION, NewFlow, QUEUED, TaskQuestion, check_command,
    check_flow_id, check_workflow, forget_workflow, is_looked_after, needs_attention,
    new_command_id, new_flow_id, status_of, task_questions,
};
