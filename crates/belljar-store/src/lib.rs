//! Durable state of a project: runs, journal, approvals, audit, blobs, cache, events, shapes,
//! sessions, workflows.
//!
//! One SQLite file in the project's `.belljar/` directory, used by several processes at once. The
//! store keeps rows and knows nothing of what they mean. Three promises hold everywhere:
//!
//! - what was answered is on disk: a write is acknowledged after its transaction was synchronised;
//! - a writer whose lease was taken over changes nothing and is told so ([`StoreError::Fenced`]);
//! - time and ids are arguments: the store has no clock of its own.

mod approvals;
mod audit;
mod behind;
mod blobs;
mod cache;
mod error;
mod events;
mod flows;
mod journal;
mod kinds;
mod open;
mod place;
mod prune;
mod readers;
mod runs;
mod schema;
mod sessions;
mod shapes;
mod spill;
mod store;
mod upkeep;
mod writer;

pub use approvals::{Approval, ApprovalState, Approvals, DecideError, NewApproval};
pub use audit::{AuditFilter, AuditId, AuditRow, SENT};
pub use blobs::BlobInfo;
pub use error::{StoreError, Trouble};
pub use events::Event;
pub use flows::{
    CheckpointRow, CommandRow, FlowBatch, FlowCommand, FlowError, FlowEvent, FlowFilter, FlowInput,
    FlowLease, FlowRow, FlowState, GiveBack, IntentChange, IntentRow, LeaseRequest, LeftAlone,
    LoadedFlow, NewFlow, SentCommand, Why,
};
pub use journal::JournalRow;
pub use kinds::RecordKind;
pub use open::{FILE_NAME, Found};
pub use prune::{Prune, Removed};
pub use runs::{ClaimReason, Lease, NewRun, RunRecord, RunSummary, UnfinishedRun};
pub use sessions::{NewSession, SessionEnd, SessionRecord};
pub use store::{Options, Store, WriteCounts};
pub use upkeep::{Shrinking, StoreSizes};
