//! Sessions: cells that stay alive between runs and can be branched.
//!
//! Calls to one session run in order. A session has one live guest, and parked ones: its checkpoints. A guest
//! that may be damaged is ended; the session then continues from a checkpoint if it has one, and otherwise
//! ends.

mod branch;
mod branching;
mod cell;
mod checkpoints;
mod files;
mod guest_turn;
mod idle_watch;
mod network;
mod open;
mod run;
mod run_network;
mod snapshot;

use std::{sync::Arc, time::SystemTime};

use belljar_contract::{ErrorCode, Language, Limits, RunError, SessionId};
use belljar_wire::GuestGrants;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, watch};

pub use checkpoints::{MAX_CHECKPOINTS, NewCheckpoint};
pub use files::FileError;
pub use open::{MAX_SESSIONS, SessionSpec, most_sessions};
pub use snapshot::{CheckpointSnapshot, SessionEnding, SessionPhase, SessionSnapshot};

use self::{branch::Branch, cell::SessionCell, checkpoints::ParkedBranch, snapshot::SessionFacts};
use crate::{Host, ZygoteKind, grants::OpenWorkspace, pool::Pool, scan::WrittenTrees};

/// A session. Cheap to clone; it ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct CellSession {
    state: Arc<SessionState>,
}

/// The state that all clones of a session share.
#[derive(Debug)]
pub(crate) struct SessionState {
    id: SessionId,
    forked_from: Option<SessionId>,
    language: Language,
    zygote: ZygoteKind,
    limits: Limits,
    guest: GuestGrants,
    workspace: Option<Arc<OpenWorkspace>>,
    /// Granted trees that its runs may write to.
    written: WrittenTrees,
    created: SystemTime,
    host: Host,
    pool: Arc<Pool>,
    /// Locked by the call that has its turn; further calls wait in order.
    guests: Arc<Mutex<SessionGuests>>,
    facts: std::sync::Mutex<SessionFacts>,
    /// Set once, when the session ends.
    ending: watch::Sender<Option<SessionEnding>>,
}

/// The guests of a session and what belongs to them. Empty once the session has ended.
#[derive(Debug, Default)]
struct SessionGuests {
    cell: Option<Arc<SessionCell>>,
    /// `None` while a run uses it, and when it is lost.
    live: Option<Branch>,
    parked: Vec<ParkedBranch>,
    /// Artifacts that came back from earlier runs, with a hash of their content.
    returned: std::collections::HashMap<String, u64>,
    /// Counts it among all sessions.
    _place: Option<OwnedSemaphorePermit>,
}

impl CellSession {
    /// The name of the session, `ses_…`.
    pub fn id(&self) -> &SessionId {
        &self.state.id
    }

    /// The state of the session. Does not wait for running calls.
    pub fn snapshot(&self) -> SessionSnapshot {
        self.state.snapshot()
    }

    /// Why the session has ended, if it has.
    pub fn ending(&self) -> Option<SessionEnding> {
        self.state.ending.borrow().clone()
    }

    /// Waits for the end of the session.
    pub async fn ended(&self) -> SessionEnding {
        let mut ending = self.state.ending.subscribe();
        match ending.wait_for(Option::is_some).await.map(|ending| ending.clone()) {
            Ok(Some(ending)) => ending,
            Ok(None) | Err(_) => SessionEnding::destroyed(),
        }
    }

    /// Ends the session and its running call, and waits until its guests are gone. The last session of a cell
    /// also waits until the cell's files in granted trees are checked.
    pub async fn destroy(&self) {
        self.end(SessionEnding::destroyed()).await;
    }

    /// Like [`destroy`](Self::destroy), with a reason of the caller.
    pub async fn end(&self, why: SessionEnding) {
        self.state.set_ended(why);
        let mut guests = self.state.guests.clone().lock_owned().await;
        let cell = guests.cell.clone();
        *guests = SessionGuests::default();
        drop(guests);
        let Some(mut done) = cell.and_then(|cell| cell.end_if_unused()) else { return };
        // The channel closes when the trees are checked.
        while done.changed().await.is_ok() {}
    }
}

impl SessionState {
    /// Waits for the turn of a call. The error says that the session has ended.
    async fn take_turn(&self) -> Result<OwnedMutexGuard<SessionGuests>, RunError> {
        let mut ending = self.ending.subscribe();
        let guests = tokio::select! {
            biased;
            _ = ending.wait_for(Option::is_some) => None,
            guests = self.guests.clone().lock_owned() => Some(guests),
        };
        match guests {
            Some(guests) if self.ending.borrow().is_none() => Ok(guests),
            Some(_) | None => Err(self.ended_error()),
        }
    }

    /// The error of every call after the end of the session.
    fn ended_error(&self) -> RunError {
        let ending = self.ending.borrow().clone().unwrap_or_else(SessionEnding::destroyed);
        let message = format!("session {} has ended: {}", self.id, ending.message);
        RunError::new(ErrorCode::SessionEnded, message).with_hint("open a new session")
    }

    /// Notes that the live guest is gone. Without a checkpoint the session ends with it.
    fn lose_live_guest(&self, guests: &mut SessionGuests, why: &RunError) {
        guests.live = None;
        if guests.parked.is_empty() {
            self.set_ended(SessionEnding::failed(why));
            *guests = SessionGuests::default();
        } else {
            self.facts().lost = Some(why.clone());
            self.facts().live = None;
        }
    }

    /// Notices guests that have ended between two calls.
    pub(crate) async fn check_guests(&self) {
        let Ok(mut guests) = self.take_turn().await else { return };
        let has_dead = guests.parked.iter().any(|parked| parked.branch.is_dead());
        if has_dead {
            guests.parked.retain(|parked| !parked.branch.is_dead());
            self.facts().drop_missing(&guests.parked, "its guest ended by itself");
        }
        let Some(dead) = guests.live.as_ref().filter(|live| live.is_dead()) else {
            if has_dead && guests.live.is_none() && guests.parked.is_empty() {
                let why = self.facts().lost.clone().unwrap_or_else(|| guest_ended(None));
                self.lose_live_guest(&mut guests, &why);
            }
            return;
        };
        let why = guest_ended(dead.end().await);
        let why = guests.cell.as_ref().and_then(|cell| cell.end_reason()).unwrap_or(why);
        tracing::warn!(
            session = self.id.as_str(),
            reason = why.message,
            "the guest of a session has ended"
        );
        self.lose_live_guest(&mut guests, &why);
    }
}

fn guest_ended(end: Option<belljar_jail::GuestEnd>) -> RunError {
    match end {
        Some(end) => crate::run::crashed(end),
        None => RunError::new(ErrorCode::SandboxCrashed, "the cell ended between runs"),
    }
}
