//! Sessions: cells that are kept between runs, and can be branched.
//!
//! What is asked of a session is done in the order it was asked. A session has one live guest and
//! some parked ones, its checkpoints. A guest that cannot be trusted to be whole is ended; the
//! session goes on from a checkpoint if it has one, and ends otherwise.

mod branch;
mod branching;
mod cell;
mod checkpoints;
mod files;
mod flight;
mod open;
mod patrol;
mod run;
mod told;

use std::{sync::Arc, time::SystemTime};

use belljar_contract::{ErrorCode, Language, Limits, RunError};
use belljar_wire::GuestGrants;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, watch};

pub use checkpoints::{Checkpointed, MAX_CHECKPOINTS};
pub use files::{FileError, SessionFile, SessionFileKind};
pub use open::{MAX_SESSIONS, SessionRequest, most_sessions};
pub use told::{CheckpointInfo, Ending, SessionInfo, SessionPhase};

use self::{branch::Branch, cell::SessionCell, checkpoints::Parked, told::Told};
use crate::{Host, ZygoteKind, grants::OpenWorkspace, pool::Pool, scan::Trees};

/// A session. Cheap to clone; when the last clone is dropped, it ends.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

/// What all clones of a session share.
#[derive(Debug)]
pub(crate) struct Inner {
    id: String,
    forked_from: Option<String>,
    language: Language,
    zygote: ZygoteKind,
    limits: Limits,
    guest: GuestGrants,
    workspace: Option<Arc<OpenWorkspace>>,
    /// Trees that its runs write to.
    written: Trees,
    created: SystemTime,
    host: Host,
    pool: Arc<Pool>,
    /// Held by whoever does something with the session; others wait in order.
    turn: Arc<Mutex<Turn>>,
    told: std::sync::Mutex<Told>,
    /// Set once: why it has ended.
    ending: watch::Sender<Option<Ending>>,
}

/// What only one call at a time has in hand. All of it is gone once the session has ended.
#[derive(Debug, Default)]
struct Turn {
    cell: Option<Arc<SessionCell>>,
    /// `None` while a run has it, and when it is lost.
    live: Option<Branch>,
    parked: Vec<Parked>,
    /// Files that came back from earlier runs, with a sum of their content.
    returned: std::collections::HashMap<String, u64>,
    /// Its place among all sessions.
    _place: Option<OwnedSemaphorePermit>,
}

impl Session {
    /// Its name, `ses_…`.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// How it stands. Does not wait for what goes on in it.
    pub fn info(&self) -> SessionInfo {
        self.inner.info()
    }

    /// Why it has ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.inner.ending.borrow().clone()
    }

    /// Completes when it has ended.
    pub async fn ended(&self) -> Ending {
        let mut ending = self.inner.ending.subscribe();
        match ending.wait_for(Option::is_some).await.map(|ending| ending.clone()) {
            Ok(Some(ending)) => ending,
            Ok(None) | Err(_) => Ending::destroyed(),
        }
    }

    /// Ends it and whatever goes on in it, and waits until its guests are gone. With the last session
    /// of a cell, what they wrote to granted trees has been looked through.
    pub async fn destroy(&self) {
        self.end(Ending::destroyed()).await;
    }

    /// The same, for a reason.
    pub async fn end(&self, why: Ending) {
        self.inner.say_ended(why);
        let mut turn = self.inner.turn.clone().lock_owned().await;
        let cell = turn.cell.clone();
        *turn = Turn::default();
        drop(turn);
        let Some(mut over) = cell.and_then(|cell| cell.end_if_left()) else { return };
        // An error says that it is over.
        while over.changed().await.is_ok() {}
    }
}

impl Inner {
    /// Waits for its turn, unless the session has ended or does so meanwhile.
    async fn take_turn(&self) -> Result<OwnedMutexGuard<Turn>, RunError> {
        let mut ending = self.ending.subscribe();
        let turn = tokio::select! {
            biased;
            _ = ending.wait_for(Option::is_some) => None,
            turn = self.turn.clone().lock_owned() => Some(turn),
        };
        match turn {
            Some(turn) if self.ending.borrow().is_none() => Ok(turn),
            Some(_) | None => Err(self.has_ended()),
        }
    }

    /// The error for whatever is asked of it from now on.
    fn has_ended(&self) -> RunError {
        let ending = self.ending.borrow().clone().unwrap_or_else(Ending::destroyed);
        let message = format!("session {} has ended: {}", self.id, ending.message);
        RunError::new(ErrorCode::SessionEnded, message).with_hint("make a new one")
    }

    /// The live guest is gone. The session ends with it, unless there is something to go back to.
    fn lose(&self, turn: &mut Turn, why: &RunError) {
        turn.live = None;
        if turn.parked.is_empty() {
            self.say_ended(Ending::crashed(why));
            *turn = Turn::default();
        } else {
            self.told().lost = Some(why.clone());
            self.told().live = None;
        }
    }

    /// Takes note of guests that have ended while nothing was asked of them.
    pub(crate) async fn find_dead(&self) {
        let Ok(mut turn) = self.take_turn().await else { return };
        let is_dead = turn.parked.iter().any(|parked| parked.branch.is_dead());
        if is_dead {
            turn.parked.retain(|parked| !parked.branch.is_dead());
            self.told().drop_missing(&turn.parked, "it ended by itself");
        }
        let Some(dead) = turn.live.as_ref().filter(|live| live.is_dead()) else {
            if is_dead && turn.live.is_none() && turn.parked.is_empty() {
                let why = self.told().lost.clone().unwrap_or_else(|| crashed(None));
                self.lose(&mut turn, &why);
            }
            return;
        };
        let why = crashed(dead.end().await);
        let why = turn.cell.as_ref().and_then(|cell| cell.ended_for()).unwrap_or(why);
        tracing::warn!(session = self.id, reason = why.message, "a session's guest has ended");
        self.lose(&mut turn, &why);
    }
}

fn crashed(end: Option<belljar_jail::GuestEnd>) -> RunError {
    match end {
        Some(end) => crate::run::crashed(end),
        None => RunError::new(ErrorCode::SandboxCrashed, "the cell ended between runs"),
    }
}
