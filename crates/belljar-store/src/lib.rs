//! Durable state of a project: runs, journal, approvals, audit, blobs, cache, events, shapes,
//! sessions, workflows.
//!
//! One SQLite file in the project's `.belljar/` directory, used by several processes at once. The
//! store keeps rows and knows nothing of what they mean. Three promises hold everywhere:
//!
//! - a write is acknowledged only after its transaction is on disk;
//! - a writer whose lease was taken over changes nothing and gets [`StoreError::Fenced`];
//! - time and ids are arguments: the store has no clock of its own.

mod approvals;
mod audit;
mod behind;
mod blobs;
mod cache;
mod error;
mod events;
mod journal;
mod kinds;
mod location;
mod open;
mod prune;
mod readers;
mod runs;
mod schema;
mod sessions;
mod shapes;
mod spill;
mod store;
mod upkeep;
mod workflows;
mod writer;

pub use approvals::{
    Approval, ApprovalState, Approvals, ConsentTerms, DecideError, GivenRule, NewApproval,
};
pub use audit::{AuditFilter, AuditId, AuditRow, SENT};
pub use belljar_contract::{RecordKind, StoreSizes};
pub use error::{StoreError, Trouble};
pub use events::StoredEvent;
pub use journal::JournalRow;
pub use open::{FILE_NAME, PriorFile};
pub use prune::{Prune, PruneReport};
pub use runs::{ClaimReason, Lease, NewRun, RunRecord, RunSummary, UnfinishedRun};
pub use sessions::{NewSession, SessionEnd, SessionRecord};
pub use store::{Store, StoreOptions, WriteCounts};
pub use upkeep::ShrinkMode;
pub use workflows::{
    CheckpointRow, CommandRow, GiveBack, IntentChange, IntentRow, LeaseRequest, LoadedWorkflow,
    NewWorkflowRow, QueuedCommand, ResumeExclusions, SentCommand, WorkflowBatch, WorkflowEventRow,
    WorkflowFilter, WorkflowInputRow, WorkflowLease, WorkflowRecordError, WorkflowRow,
    WorkflowStatusUpdate,
};
