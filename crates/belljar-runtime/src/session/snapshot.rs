//! The state of a session as others see it, at any time, even during a call.

use std::{
    sync::{MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use belljar_contract::{CheckpointId, Language, RunError, SessionId};
use belljar_jail::sample::BranchProcesses;

use super::{SessionGuests, SessionState, checkpoints::ParkedBranch};

/// Dropped checkpoints that a snapshot still lists.
const MAX_DROPPED: usize = 32;

/// The state of a session at one moment.
#[derive(Debug, Clone)]
pub struct SessionSnapshot {
    /// The name of the session, `ses_…`.
    pub id: SessionId,
    /// The session it was forked from.
    pub forked_from: Option<SessionId>,
    /// The language of its code.
    pub language: Language,
    /// Whether it is live, lost or ended.
    pub phase: SessionPhase,
    /// When it was opened, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its last call began or ended, in milliseconds since 1970.
    pub last_used_ms: u64,
    /// How many runs it has had, the current one included.
    pub runs: u64,
    /// Calls in its queue, the current one included.
    pub waiting: usize,
    /// Its checkpoints, oldest first, with those that were dropped lately.
    pub checkpoints: Vec<CheckpointSnapshot>,
    /// An upper bound of its memory, checkpoints included.
    pub memory_bytes: u64,
}

/// Whether a session can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionPhase {
    /// Its guest is alive and takes runs.
    Live,
    /// Its live guest is gone; a rollback to a checkpoint makes it live again.
    Lost(RunError),
    /// It takes no more calls.
    Ended(SessionEnding),
}

/// Why a session has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnding {
    /// Stable name: `destroyed`, `idle`, `lifetime`, `crashed`, or the code of the error that ended it.
    pub code: String,
    /// The reason, for people to read.
    pub message: String,
}

impl SessionEnding {
    /// A caller ended it.
    pub fn destroyed() -> Self {
        Self { code: "destroyed".to_owned(), message: "it was destroyed".to_owned() }
    }

    /// It ended with a run or a guest that failed like this.
    pub(crate) fn failed(why: &RunError) -> Self {
        Self { code: why.code.as_str().to_owned(), message: why.message.clone() }
    }
}

/// The state of a checkpoint at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSnapshot {
    /// The name of the checkpoint, `chk_…`.
    pub id: CheckpointId,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// An upper bound of the memory it holds.
    pub memory_bytes: u64,
    /// Why it was dropped; `None` while it exists.
    pub dropped: Option<String>,
}

/// The facts behind a snapshot, readable without waiting for a turn.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    pub(super) lost: Option<RunError>,
    /// The processes of the live guest.
    pub(super) live: Option<BranchProcesses>,
    pub(super) checkpoints: Vec<CheckpointSnapshot>,
    pub(super) last_used_ms: u64,
    pub(super) runs: u64,
    pub(super) waiting: usize,
}

impl SessionFacts {
    pub(super) fn new() -> Self {
        Self {
            lost: None,
            live: None,
            checkpoints: Vec::new(),
            last_used_ms: now_ms(),
            runs: 0,
            waiting: 0,
        }
    }

    /// Marks checkpoints as dropped that are no longer parked; returns their names.
    pub(super) fn drop_missing(&mut self, parked: &[ParkedBranch], why: &str) -> Vec<CheckpointId> {
        let mut dropped = Vec::new();
        for known in self.checkpoints.iter_mut().filter(|known| known.dropped.is_none()) {
            if !parked.iter().any(|parked| parked.id == known.id) {
                known.dropped = Some(why.to_owned());
                known.memory_bytes = 0;
                dropped.push(known.id.clone());
            }
        }
        let gone = self.checkpoints.iter().filter(|known| known.dropped.is_some()).count();
        let mut surplus = gone.saturating_sub(MAX_DROPPED);
        self.checkpoints.retain(|known| {
            let forget = known.dropped.is_some() && surplus > 0;
            surplus -= usize::from(forget);
            !forget
        });
        dropped
    }
}

/// Counts a call in the queue of its session, until it is dropped.
#[derive(Debug)]
pub(super) struct QueuedCall<'a>(&'a SessionState);

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        let mut facts = self.0.facts();
        facts.waiting -= 1;
        facts.last_used_ms = now_ms();
    }
}

impl SessionState {
    pub(super) fn facts(&self) -> MutexGuard<'_, SessionFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call in the queue of the session.
    pub(super) fn queue_call(&self) -> QueuedCall<'_> {
        let mut facts = self.facts();
        facts.waiting += 1;
        facts.last_used_ms = now_ms();
        QueuedCall(self)
    }

    /// Notes which guest is live.
    pub(super) fn note_guests(&self, guests: &SessionGuests) {
        let mut facts = self.facts();
        facts.live = guests.live.as_ref().map(super::branch::Branch::processes);
    }

    /// Marks the session as ended. The first reason counts.
    pub(super) fn set_ended(&self, why: SessionEnding) {
        self.ending.send_if_modified(|ending| {
            let is_first = ending.is_none();
            if is_first {
                *ending = Some(why);
            }
            is_first
        });
        let mut facts = self.facts();
        facts.live = None;
        facts.drop_missing(&[], "the session has ended");
    }

    pub(super) fn snapshot(&self) -> SessionSnapshot {
        let ending = self.ending.borrow().clone();
        let facts = self.facts();
        let phase = match (ending, &facts.lost) {
            (Some(ending), _) => SessionPhase::Ended(ending),
            (None, Some(why)) => SessionPhase::Lost(why.clone()),
            (None, None) => SessionPhase::Live,
        };
        let live = facts.live.and_then(|live| live.resident());
        let parked = facts.checkpoints.iter().map(|checkpoint| checkpoint.memory_bytes);
        SessionSnapshot {
            id: self.id.clone(),
            forked_from: self.forked_from.clone(),
            language: self.language,
            phase,
            created_ms: milliseconds(self.created),
            last_used_ms: facts.last_used_ms,
            runs: facts.runs,
            waiting: facts.waiting,
            checkpoints: facts.checkpoints.clone(),
            memory_bytes: live.unwrap_or_default().own_bytes + parked.sum::<u64>(),
        }
    }
}

pub(super) fn now_ms() -> u64 {
    milliseconds(SystemTime::now())
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
