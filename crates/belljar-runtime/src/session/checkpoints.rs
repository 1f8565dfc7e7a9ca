//! Checkpoint, rollback and fork: what is done with a session's second guests.
//!
//! All three go on to their end once they have begun, whoever still waits for them: a session is
//! never left half way between two guests.

use std::sync::Arc;

use crate::ids::checkpoint_id;
use belljar_contract::{ErrorCode, RunError};
use tokio::sync::OwnedMutexGuard;

use super::{
    Inner, Session, Turn,
    branch::Branch,
    branching::{NotBranched, branch},
    told::{CheckpointInfo, now_ms},
};

/// Checkpoints a session may have; the oldest go first.
pub const MAX_CHECKPOINTS: usize = 16;
/// What the kernel hands out at once.
const PAGE_BYTES: u64 = 4096;
/// What a parked guest costs besides pages that were copied since.
const PARKED_BYTES: u64 = 256 << 10;

/// A checkpoint that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpointed {
    /// Its name, `chk_…`.
    pub id: String,
    /// Older ones that had to go for it.
    pub dropped: Vec<String>,
}

/// A checkpoint: a guest that waits to be gone back to.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) id: String,
    pub(super) branch: Branch,
    created_ms: u64,
    /// What it had in memory when it was parked, and has: it does nothing.
    resident_bytes: u64,
    /// Pages that were copied since, by guests that are not there to be asked any more.
    copied_pages: u64,
    /// The live guest's count of faults from when on its copies are this checkpoint's to keep;
    /// `None` when a newer one has them.
    counted_from: Option<u64>,
}

impl Parked {
    fn memory_bytes(&self, live_faults: Option<u64>) -> u64 {
        let since = self.counted_from.zip(live_faults).map(|(from, now)| now.saturating_sub(from));
        let pages = self.copied_pages.saturating_add(since.unwrap_or_default());
        let held = pages.saturating_mul(PAGE_BYTES).min(self.resident_bytes);
        held.saturating_add(PARKED_BYTES)
    }

    /// From now on what the live guest copies is not kept here alone.
    fn close(&mut self, live_faults: Option<u64>) {
        if let (Some(from), Some(now)) = (self.counted_from.take(), live_faults) {
            self.copied_pages = self.copied_pages.saturating_add(now.saturating_sub(from));
        }
    }
}

impl Session {
    /// Keeps the session as it is now, to go back to. The oldest checkpoints go if there are too
    /// many, or if they keep more memory than the session itself may use.
    pub async fn checkpoint(&self) -> Result<Checkpointed, RunError> {
        let inner = self.inner.clone();
        let _waiting = self.inner.wait();
        let turn = self.inner.take_turn().await?;
        finish(tokio::spawn(async move { inner.checkpoint(turn).await }).await)
    }

    /// Goes back to a checkpoint, variables and files. It can be gone back to again: before the next
    /// run it is copied, which nobody waits for here.
    pub async fn rollback(&self, checkpoint: &str) -> Result<(), RunError> {
        let (inner, id) = (self.inner.clone(), checkpoint.to_owned());
        let _waiting = self.inner.wait();
        let mut turn = self.inner.take_turn().await?;
        let at = turn.parked.iter().position(|parked| parked.id == id);
        let at = at.ok_or_else(|| inner.no_checkpoint(&id))?;
        if turn.parked.get(at).is_some_and(|parked| parked.branch.is_dead()) {
            return Err(inner.no_checkpoint(&id));
        }
        inner.go_back(&mut turn, at);
        // The copy is made with the turn in hand: whatever comes next finds it.
        tokio::spawn(async move { inner.copy_again(turn, id, at).await });
        Ok(())
    }

    /// Makes sessions of this one, as it is now or as it was at a checkpoint: all or none. They live
    /// side by side with it, see nothing of it or of each other, and have no checkpoints.
    pub async fn fork(
        &self,
        count: usize,
        checkpoint: Option<&str>,
    ) -> Result<Vec<Self>, RunError> {
        let (inner, from) = (self.inner.clone(), checkpoint.map(str::to_owned));
        let _waiting = self.inner.wait();
        let turn = self.inner.take_turn().await?;
        finish(tokio::spawn(async move { inner.fork(turn, count, from).await }).await)
    }
}

impl Inner {
    async fn checkpoint(
        self: Arc<Self>,
        mut turn: OwnedMutexGuard<Turn>,
    ) -> Result<Checkpointed, RunError> {
        let branch = self.branch_live(&mut turn).await?;
        let id = checkpoint_id();
        let at = turn.parked.len();
        let faults = Self::park(&mut turn, at, id.clone(), now_ms(), branch);
        let dropped = self.drop_surplus_at(&mut turn, faults);
        Ok(Checkpointed { id, dropped })
    }

    /// A second guest like the live one.
    async fn branch_live(&self, turn: &mut Turn) -> Result<Branch, RunError> {
        let (Some(cell), Some(live)) = (turn.cell.clone(), turn.live.as_mut()) else {
            return Err(self.is_lost());
        };
        match branch(&cell, live).await {
            Ok(branch) => Ok(branch),
            Err(NotBranched::Refused(error)) => Err(error),
            Err(NotBranched::Broken(error)) => {
                self.lose(turn, &error);
                Err(error)
            }
        }
    }

    /// Keeps a new guest as a checkpoint; the live one's count of faults by now.
    fn park(
        turn: &mut Turn,
        at: usize,
        id: String,
        created_ms: u64,
        branch: Branch,
    ) -> Option<u64> {
        let faults = faults_of_live(turn);
        turn.parked.iter_mut().for_each(|parked| parked.close(faults));
        let counted_from = faults;
        // It has done nothing yet.
        let resident_bytes = branch.resident_at_first().own_bytes;
        let copied_pages = 0;
        let parked = Parked { id, branch, created_ms, resident_bytes, copied_pages, counted_from };
        turn.parked.insert(at, parked);
        faults
    }

    fn go_back(&self, turn: &mut Turn, at: usize) {
        let faults = faults_of_live(turn);
        turn.parked.iter_mut().for_each(|parked| parked.close(faults));
        let chosen = turn.parked.remove(at);
        // Whoever was live until now is ended by being dropped.
        turn.live = Some(chosen.branch);
        turn.returned.clear();
        self.told().lost = None;
        self.tell_guests(turn);
    }

    /// Makes the checkpoint that was just gone back to once more.
    async fn copy_again(self: Arc<Self>, mut turn: OwnedMutexGuard<Turn>, id: String, at: usize) {
        let created_ms = {
            let told = self.told();
            let known = told.checkpoints.iter().find(|told| told.id == id);
            known.map_or_else(now_ms, |told| told.created_ms)
        };
        match self.branch_live(&mut turn).await {
            Ok(branch) => {
                let faults = Self::park(&mut turn, at, id, created_ms, branch);
                self.tell_checkpoints(&turn, faults);
            }
            Err(error) => {
                let why = format!(
                    "it could not be kept when it was gone back to: {error}",
                    error = error.message
                );
                self.told().drop_missing(&turn.parked, &why);
            }
        }
    }

    async fn fork(
        self: Arc<Self>,
        mut turn: OwnedMutexGuard<Turn>,
        count: usize,
        from: Option<String>,
    ) -> Result<Vec<Session>, RunError> {
        let places = self.host.session_places(count)?;
        let cell = turn.cell.clone().ok_or_else(|| self.has_ended())?;
        let mut branches = Vec::with_capacity(count);
        for _ in 0..count {
            let branch = match &from {
                None => self.branch_live(&mut turn).await?,
                Some(id) => self.branch_parked(&mut turn, &cell, id).await?,
            };
            branches.push(branch);
        }
        self.tell_checkpoints(&turn, faults_of_live(&turn));
        let forked = branches.into_iter().zip(places);
        Ok(forked.map(|(branch, place)| self.forked(cell.clone(), branch, place)).collect())
    }

    async fn branch_parked(
        &self,
        turn: &mut Turn,
        cell: &Arc<super::SessionCell>,
        id: &str,
    ) -> Result<Branch, RunError> {
        let parked = turn.parked.iter_mut().find(|parked| parked.id == id);
        let parked = parked.ok_or_else(|| self.no_checkpoint(id))?;
        match branch(cell, &mut parked.branch).await {
            Ok(branch) => Ok(branch),
            Err(NotBranched::Refused(error)) => Err(error),
            Err(NotBranched::Broken(error)) => {
                turn.parked.retain(|parked| parked.id != id);
                self.told().drop_missing(&turn.parked, &error.message);
                Err(error)
            }
        }
    }

    /// Drops the oldest checkpoints until what is left is within bounds; tells which.
    pub(super) fn drop_surplus(&self, turn: &mut Turn) -> Vec<String> {
        let faults = faults_of_live(turn);
        self.drop_surplus_at(turn, faults)
    }

    fn drop_surplus_at(&self, turn: &mut Turn, faults: Option<u64>) -> Vec<String> {
        let (mut dropped, mut surplus) = (Vec::new(), Vec::new());
        while turn.parked.len() > MAX_CHECKPOINTS {
            surplus.push(turn.parked.remove(0));
            let why = format!("there were more than {MAX_CHECKPOINTS}, and it was the oldest");
            dropped.extend(self.told().drop_missing(&turn.parked, &why));
        }
        let held =
            |turn: &Turn| turn.parked.iter().map(|parked| parked.memory_bytes(faults)).sum::<u64>();
        // The newest stays in any case: it was asked for.
        while turn.parked.len() > 1 && held(turn) > self.limits.memory {
            surplus.push(turn.parked.remove(0));
            let why = format!(
                "checkpoints kept more than the {} MiB they may, and it was the oldest",
                self.limits.memory >> 20
            );
            dropped.extend(self.told().drop_missing(&turn.parked, &why));
        }
        self.tell_checkpoints(turn, faults);
        if !surplus.is_empty() {
            // Nobody waits for their ends.
            tokio::task::spawn_blocking(move || drop(surplus));
        }
        dropped
    }

    fn tell_checkpoints(&self, turn: &Turn, faults: Option<u64>) {
        let mut told = self.told();
        for parked in &turn.parked {
            let memory_bytes = parked.memory_bytes(faults);
            match told.checkpoints.iter_mut().find(|told| told.id == parked.id) {
                Some(known) => known.memory_bytes = memory_bytes,
                None => told.checkpoints.push(CheckpointInfo {
                    id: parked.id.clone(),
                    created_ms: parked.created_ms,
                    memory_bytes,
                    dropped: None,
                }),
            }
        }
        drop(told);
        self.tell_guests(turn);
    }

    pub(super) fn no_checkpoint(&self, id: &str) -> RunError {
        let told = self.told();
        let gone = told.checkpoints.iter().find(|told| told.id == id);
        let message = match gone.and_then(|told| told.dropped.as_ref()) {
            Some(why) => format!("checkpoint {id} was dropped: {why}"),
            None => format!("session {} has no checkpoint {id}", self.id),
        };
        RunError::new(ErrorCode::SessionNoCheckpoint, message)
    }

    /// The error for what needs a live guest when there is none.
    pub(super) fn is_lost(&self) -> RunError {
        let told = self.told();
        let why = told.lost.as_ref().map_or("its guest is gone", |why| why.message.as_str());
        let message = format!("what session {} held in memory is lost: {why}", self.id);
        let newest = told.checkpoints.iter().rev().find(|told| told.dropped.is_none());
        let error = RunError::new(ErrorCode::SessionLost, message);
        match newest {
            Some(newest) => error.with_hint(format!("roll back to {}", newest.id)),
            None => error,
        }
    }
}

fn faults_of_live(turn: &Turn) -> Option<u64> {
    turn.live.as_ref().and_then(|live| live.processes().faults())
}

fn finish<T>(joined: Result<Result<T, RunError>, tokio::task::JoinError>) -> Result<T, RunError> {
    joined.unwrap_or_else(|error| {
        Err(RunError::new(ErrorCode::SandboxFailed, format!("it was broken off: {error}")))
    })
}
