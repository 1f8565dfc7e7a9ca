//! What can be told of a session at any moment, also while something goes on in it.

use std::{
    sync::{MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use belljar_contract::{Language, RunError};
use belljar_jail::sample::BranchProcesses;

use super::{Inner, Turn, checkpoints::Parked};

/// Checkpoints that are gone and still told of.
const MAX_DROPPED: usize = 32;

/// How a session stands.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// Its name.
    pub id: String,
    /// The session it was forked from.
    pub forked_from: Option<String>,
    /// What its code is written in.
    pub language: Language,
    /// Where it is.
    pub phase: SessionPhase,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When something was last asked of it, or that ended.
    pub last_used_ms: u64,
    /// Runs so far.
    pub runs: u64,
    /// Calls that wait for their turn, the one that has it included.
    pub waiting: usize,
    /// Its checkpoints, oldest first, those that were dropped included.
    pub checkpoints: Vec<CheckpointInfo>,
    /// What it holds in memory, its checkpoints included: no more than this.
    pub memory_bytes: u64,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionPhase {
    /// It can be used.
    Live,
    /// What it held in memory is gone; it can go back to a checkpoint.
    Lost(RunError),
    /// It has ended.
    Ended(Ending),
}

/// Why a session has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Stable name: `destroyed`, `idle`, `lifetime`, `crashed`, or the code of the error that ended it.
    pub code: String,
    /// The reason, for people.
    pub message: String,
}

impl Ending {
    /// Somebody ended it.
    pub fn destroyed() -> Self {
        Self { code: "destroyed".to_owned(), message: "it was destroyed".to_owned() }
    }

    /// It ended with the run or guest that failed like this.
    pub(crate) fn crashed(why: &RunError) -> Self {
        Self { code: why.code.as_str().to_owned(), message: why.message.clone() }
    }
}

/// A checkpoint of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// Its name, `chk_…`.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// What it keeps in memory: no more than this.
    pub memory_bytes: u64,
    /// Why it is gone, if it is.
    pub dropped: Option<String>,
}

/// What is known without asking anybody.
#[derive(Debug)]
pub(crate) struct Told {
    pub(super) lost: Option<RunError>,
    /// The live guest.
    pub(super) live: Option<BranchProcesses>,
    pub(super) checkpoints: Vec<CheckpointInfo>,
    pub(super) last_used_ms: u64,
    pub(super) runs: u64,
    pub(super) waiting: usize,
}

impl Told {
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

    /// Marks those as dropped that are not among the parked ones any more.
    pub(super) fn drop_missing(&mut self, parked: &[Parked], why: &str) -> Vec<String> {
        let mut dropped = Vec::new();
        for told in self.checkpoints.iter_mut().filter(|told| told.dropped.is_none()) {
            if !parked.iter().any(|parked| parked.id == told.id) {
                told.dropped = Some(why.to_owned());
                told.memory_bytes = 0;
                dropped.push(told.id.clone());
            }
        }
        let gone = self.checkpoints.iter().filter(|told| told.dropped.is_some()).count();
        let mut surplus = gone.saturating_sub(MAX_DROPPED);
        self.checkpoints.retain(|told| {
            let forget = told.dropped.is_some() && surplus > 0;
            surplus -= usize::from(forget);
            !forget
        });
        dropped
    }
}

/// Counts a call among those that wait, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'a>(&'a Inner);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut told = self.0.told();
        told.waiting -= 1;
        told.last_used_ms = now_ms();
    }
}

impl Inner {
    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is asked of the session.
    pub(super) fn wait(&self) -> Waiting<'_> {
        let mut told = self.told();
        told.waiting += 1;
        told.last_used_ms = now_ms();
        Waiting(self)
    }

    /// Notes which guests there are.
    pub(super) fn tell_guests(&self, turn: &Turn) {
        let mut told = self.told();
        told.live = turn.live.as_ref().map(super::branch::Branch::processes);
    }

    /// The session has ended; the first reason counts.
    pub(super) fn say_ended(&self, why: Ending) {
        self.ending.send_if_modified(|ending| {
            let is_first = ending.is_none();
            if is_first {
                *ending = Some(why);
            }
            is_first
        });
        let mut told = self.told();
        told.live = None;
        told.drop_missing(&[], "the session has ended");
    }

    pub(super) fn info(&self) -> SessionInfo {
        let ending = self.ending.borrow().clone();
        let told = self.told();
        let phase = match (ending, &told.lost) {
            (Some(ending), _) => SessionPhase::Ended(ending),
            (None, Some(why)) => SessionPhase::Lost(why.clone()),
            (None, None) => SessionPhase::Live,
        };
        let live = told.live.and_then(|live| live.resident());
        let parked = told.checkpoints.iter().map(|checkpoint| checkpoint.memory_bytes);
        SessionInfo {
            id: self.id.clone(),
            forked_from: self.forked_from.clone(),
            language: self.language,
            phase,
            created_ms: milliseconds(self.created),
            last_used_ms: told.last_used_ms,
            runs: told.runs,
            waiting: told.waiting,
            checkpoints: told.checkpoints.clone(),
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
