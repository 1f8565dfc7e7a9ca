//! Belljar for Rust programs, and for one project: run the code an LLM agent wrote in a sealed cell
//! that starts in under a millisecond.
//!
//! A sandbox starts the running program again as its *zygote*, so [`init`] must be the **first line
//! of `main`**: before threads, before an async runtime (`#[tokio::main]` starts one too early),
//! before arguments are read.
//!
//! ```no_run
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! Every outcome of a run, including "this machine cannot sandbox", is a [`RunResult`]. Whatever
//! the code does, the host is unharmed: the code sees no file, no network, no environment and no
//! other process.

mod active;
mod backend;
mod descriptors;
mod engines;
mod executor;
mod network;
mod owner;
mod project;
mod retention;
mod sandbox;
mod sessions;
mod token_savings;
mod workflows;

pub use backend::{
    ClientPermissions, ExecutablePermissions, ProjectBackend, WorkflowServiceOptions,
    task_question, with_task,
};
pub use belljar_config as config;
pub use belljar_config::{MAX_QUEUED, MAX_RUNNING, Retention};
pub use belljar_contract::{
    Artifact, Change, CommitExecutable, EngineMismatch, EngineName, ErrorCode, ErrorKind, Grants,
    Isolation, Language, Limit, Limits, Metrics, RunError, RunRequest, RunResult, RunStatus,
    SessionFile, SessionFileKind, Truncation, Workspace,
};
pub use belljar_runtime::host_patterns;
pub use belljar_runtime::{
    CheckpointSnapshot, FileError, Finding, FindingState, LaunchError, NewCheckpoint,
    SessionEnding, SessionPhase, SessionSnapshot, SessionSpec, examine,
};
pub use descriptors::allow_many as allow_many_descriptors;
pub use engines::locate_engine;
pub use executor::{
    Execution, Executor, ResumeError, ResumeOutcome, RunDurability, now_ms, run_status,
};
pub use network::ClientHosts;
pub use owner::{is_owner_alive, watch_owners_in};
pub use project::{AcceptError, Acceptance, Project, ProjectError};
pub use retention::{CollectionReport, RecordCollector, Sweep};
pub use sandbox::{
    BuildError, RunBuilder, RunResultExt, Sandbox, SandboxBuilder, Session, SessionBuilder,
    ValueError, init,
};
pub use sessions::{
    KeptSession, SessionLifetimes, SessionLookupError, SessionOwner, SessionRegistry,
};
pub use token_savings::TokenSavings;
pub use workflows::{
    CommandOutcome, CommandResult, ExportReport, Fork, HiddenPaths, ProjectWorkflowError,
    ProjectWorkflows, TaskQuestion, WorkflowOptions, WorkflowPermissions, WorkflowSubmission,
    check_command, check_workflow, check_workflow_id, forget_workflow, is_looked_after,
    needs_attention, new_command_id, new_workflow_id, status_of, task_questions,
};
