//! Checkpoint, rollback and fork of a session.
//!
//! Once begun, all three run to their end, even if the caller goes away: a session is never left half way
//! between two guests.

use std::sync::Arc;

use belljar_contract::{CheckpointId, ErrorCode, RunError};
use tokio::sync::OwnedMutexGuard;

use super::{
    CellSession, SessionGuests, SessionState,
    branch::Branch,
    branching::{NotBranched, branch},
    snapshot::{CheckpointSnapshot, now_ms},
};
use crate::ids::checkpoint_id;

/// Checkpoints a session may have; the oldest are dropped first.
pub const MAX_CHECKPOINTS: usize = 16;
/// The size of a page of memory.
const PAGE_BYTES: u64 = 4096;
/// The memory of a parked guest beside the pages copied since.
const PARKED_BYTES: u64 = 256 << 10;

/// A checkpoint that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// The name of the checkpoint, `chk_…`.
    pub id: CheckpointId,
    /// Older checkpoints that were dropped to make room for it.
    pub dropped: Vec<CheckpointId>,
}

/// A checkpoint: a parked guest that a rollback makes live.
#[derive(Debug)]
pub(super) struct ParkedBranch {
    pub(super) id: CheckpointId,
    pub(super) branch: Branch,
    created_ms: u64,
    /// Its memory when it was parked. It does not run, so this does not change.
    resident_bytes: u64,
    /// Pages copied since, by guests that no longer exist.
    copied_pages: u64,
    /// The live guest's count of page faults from which its copies count for this checkpoint; `None` if they
    /// count for a newer one.
    counted_from: Option<u64>,
}

impl ParkedBranch {
    fn memory_bytes(&self, live_faults: Option<u64>) -> u64 {
        let since = self.counted_from.zip(live_faults).map(|(from, now)| now.saturating_sub(from));
        let pages = self.copied_pages.saturating_add(since.unwrap_or_default());
        let held = pages.saturating_mul(PAGE_BYTES).min(self.resident_bytes);
        held.saturating_add(PARKED_BYTES)
    }

    /// Stops counting the pages that the live guest copies.
    fn stop_counting(&mut self, live_faults: Option<u64>) {
        if let (Some(from), Some(now)) = (self.counted_from.take(), live_faults) {
            self.copied_pages = self.copied_pages.saturating_add(now.saturating_sub(from));
        }
    }
}

impl CellSession {
    /// Saves the session as it is now, for a rollback. The oldest checkpoints are dropped if there are too many,
    /// or if they hold more memory than the session itself may use.
    pub async fn checkpoint(&self) -> Result<NewCheckpoint, RunError> {
        let state = self.state.clone();
        let _queued = self.state.queue_call();
        let guests = self.state.take_turn().await?;
        finish(tokio::spawn(async move { state.checkpoint(guests).await }).await)
    }

    /// Goes back to a checkpoint, both variables and files. The checkpoint stays: it is cloned again before the
    /// next call, without the caller waiting for it.
    pub async fn rollback(&self, checkpoint: &CheckpointId) -> Result<(), RunError> {
        let (state, id) = (self.state.clone(), checkpoint.clone());
        let _queued = self.state.queue_call();
        let mut guests = self.state.take_turn().await?;
        let at = guests.parked.iter().position(|parked| parked.id == *id);
        let at = at.ok_or_else(|| state.no_checkpoint_error(&id))?;
        if guests.parked.get(at).is_some_and(|parked| parked.branch.is_dead()) {
            return Err(state.no_checkpoint_error(&id));
        }
        state.roll_back(&mut guests, at);
        // The task keeps the turn, so the next call finds the clone.
        tokio::spawn(async move { state.park_again(guests, id, at).await });
        Ok(())
    }

    /// Makes new sessions from this one, as it is now or as it was at a checkpoint: all or none. They share its
    /// cell, do not see its changes or each other's, and have no checkpoints.
    pub async fn fork(
        &self,
        count: usize,
        checkpoint: Option<&CheckpointId>,
    ) -> Result<Vec<Self>, RunError> {
        let (state, from) = (self.state.clone(), checkpoint.cloned());
        let _queued = self.state.queue_call();
        let guests = self.state.take_turn().await?;
        finish(tokio::spawn(async move { state.fork(guests, count, from).await }).await)
    }
}

impl SessionState {
    async fn checkpoint(
        self: Arc<Self>,
        mut guests: OwnedMutexGuard<SessionGuests>,
    ) -> Result<NewCheckpoint, RunError> {
        let branch = self.branch_live(&mut guests).await?;
        let id = checkpoint_id();
        let at = guests.parked.len();
        let faults = Self::park(&mut guests, at, id.clone(), now_ms(), branch);
        let dropped = self.drop_surplus_at(&mut guests, faults);
        Ok(NewCheckpoint { id, dropped })
    }

    /// Clones the live guest.
    async fn branch_live(&self, guests: &mut SessionGuests) -> Result<Branch, RunError> {
        let (Some(cell), Some(live)) = (guests.cell.clone(), guests.live.as_mut()) else {
            return Err(self.lost_error());
        };
        match branch(&cell, live).await {
            Ok(branch) => Ok(branch),
            Err(NotBranched::Refused(error)) => Err(error),
            Err(NotBranched::Broken(error)) => {
                self.lose_live_guest(guests, &error);
                Err(error)
            }
        }
    }

    /// Parks a new guest as a checkpoint; returns the live guest's count of page faults.
    fn park(
        guests: &mut SessionGuests,
        at: usize,
        id: CheckpointId,
        created_ms: u64,
        branch: Branch,
    ) -> Option<u64> {
        let faults = faults_of_live(guests);
        guests.parked.iter_mut().for_each(|parked| parked.stop_counting(faults));
        let counted_from = faults;
        // It has not run yet.
        let resident_bytes = branch.resident_at_first().own_bytes;
        let copied_pages = 0;
        let parked =
            ParkedBranch { id, branch, created_ms, resident_bytes, copied_pages, counted_from };
        guests.parked.insert(at, parked);
        faults
    }

    fn roll_back(&self, guests: &mut SessionGuests, at: usize) {
        let faults = faults_of_live(guests);
        guests.parked.iter_mut().for_each(|parked| parked.stop_counting(faults));
        let chosen = guests.parked.remove(at);
        // Dropping the guest that was live ends it.
        guests.live = Some(chosen.branch);
        guests.returned.clear();
        self.facts().lost = None;
        self.note_guests(guests);
    }

    /// Parks a clone of the live guest as the checkpoint that it just was.
    async fn park_again(
        self: Arc<Self>,
        mut guests: OwnedMutexGuard<SessionGuests>,
        id: CheckpointId,
        at: usize,
    ) {
        let created_ms = {
            let facts = self.facts();
            let known = facts.checkpoints.iter().find(|known| known.id == *id);
            known.map_or_else(now_ms, |known| known.created_ms)
        };
        match self.branch_live(&mut guests).await {
            Ok(branch) => {
                let faults = Self::park(&mut guests, at, id, created_ms, branch);
                self.note_checkpoints(&guests, faults);
            }
            Err(error) => {
                let why = format!("could not save it again after a rollback: {}", error.message);
                self.facts().drop_missing(&guests.parked, &why);
            }
        }
    }

    async fn fork(
        self: Arc<Self>,
        mut guests: OwnedMutexGuard<SessionGuests>,
        count: usize,
        from: Option<CheckpointId>,
    ) -> Result<Vec<CellSession>, RunError> {
        let places = self.host.session_places(count)?;
        let cell = guests.cell.clone().ok_or_else(|| self.ended_error())?;
        let mut branches = Vec::with_capacity(count);
        for _ in 0..count {
            let branch = match &from {
                None => self.branch_live(&mut guests).await?,
                Some(id) => self.branch_parked(&mut guests, &cell, id).await?,
            };
            branches.push(branch);
        }
        self.note_checkpoints(&guests, faults_of_live(&guests));
        let forked = branches.into_iter().zip(places);
        Ok(forked.map(|(branch, place)| self.forked(cell.clone(), branch, place)).collect())
    }

    async fn branch_parked(
        &self,
        guests: &mut SessionGuests,
        cell: &Arc<super::SessionCell>,
        id: &CheckpointId,
    ) -> Result<Branch, RunError> {
        let parked = guests.parked.iter_mut().find(|parked| parked.id == *id);
        let parked = parked.ok_or_else(|| self.no_checkpoint_error(id))?;
        match branch(cell, &mut parked.branch).await {
            Ok(branch) => Ok(branch),
            Err(NotBranched::Refused(error)) => Err(error),
            Err(NotBranched::Broken(error)) => {
                guests.parked.retain(|parked| parked.id != *id);
                self.facts().drop_missing(&guests.parked, &error.message);
                Err(error)
            }
        }
    }

    /// Drops the oldest checkpoints until the rest is within bounds; returns the dropped ones.
    pub(super) fn drop_surplus(&self, guests: &mut SessionGuests) -> Vec<CheckpointId> {
        let faults = faults_of_live(guests);
        self.drop_surplus_at(guests, faults)
    }

    fn drop_surplus_at(
        &self,
        guests: &mut SessionGuests,
        faults: Option<u64>,
    ) -> Vec<CheckpointId> {
        let (mut dropped, mut surplus) = (Vec::new(), Vec::new());
        while guests.parked.len() > MAX_CHECKPOINTS {
            surplus.push(guests.parked.remove(0));
            let why = format!("it was the oldest of more than {MAX_CHECKPOINTS}");
            dropped.extend(self.facts().drop_missing(&guests.parked, &why));
        }
        let held = |guests: &SessionGuests| {
            guests.parked.iter().map(|parked| parked.memory_bytes(faults)).sum::<u64>()
        };
        // The newest one always stays: the caller has just asked for it.
        while guests.parked.len() > 1 && held(guests) > self.limits.memory {
            surplus.push(guests.parked.remove(0));
            let why = format!(
                "the checkpoints went over their {} MiB, and it was the oldest",
                self.limits.memory >> 20
            );
            dropped.extend(self.facts().drop_missing(&guests.parked, &why));
        }
        self.note_checkpoints(guests, faults);
        if !surplus.is_empty() {
            // Off the path of the call: their end takes time.
            tokio::task::spawn_blocking(move || drop(surplus));
        }
        dropped
    }

    fn note_checkpoints(&self, guests: &SessionGuests, faults: Option<u64>) {
        let mut facts = self.facts();
        for parked in &guests.parked {
            let memory_bytes = parked.memory_bytes(faults);
            match facts.checkpoints.iter_mut().find(|known| known.id == parked.id) {
                Some(known) => known.memory_bytes = memory_bytes,
                None => facts.checkpoints.push(CheckpointSnapshot {
                    id: parked.id.clone(),
                    created_ms: parked.created_ms,
                    memory_bytes,
                    dropped: None,
                }),
            }
        }
        drop(facts);
        self.note_guests(guests);
    }

    pub(super) fn no_checkpoint_error(&self, id: &CheckpointId) -> RunError {
        let facts = self.facts();
        let gone = facts.checkpoints.iter().find(|known| known.id == *id);
        let message = match gone.and_then(|gone| gone.dropped.as_ref()) {
            Some(why) => format!("checkpoint {id} was dropped: {why}"),
            None => format!("session {} has no checkpoint {id}", self.id),
        };
        RunError::new(ErrorCode::SessionNoCheckpoint, message)
    }

    /// The error of a call that needs a live guest when there is none.
    pub(super) fn lost_error(&self) -> RunError {
        let facts = self.facts();
        let why = facts.lost.as_ref().map_or("its guest is gone", |why| why.message.as_str());
        let message = format!("the memory of session {} is lost: {why}", self.id);
        let newest = facts.checkpoints.iter().rev().find(|known| known.dropped.is_none());
        let error = RunError::new(ErrorCode::SessionLost, message);
        match newest {
            Some(newest) => error.with_hint(format!("roll back to {}", newest.id)),
            None => error,
        }
    }
}

fn faults_of_live(guests: &SessionGuests) -> Option<u64> {
    guests.live.as_ref().and_then(|live| live.processes().faults())
}

fn finish<T>(joined: Result<Result<T, RunError>, tokio::task::JoinError>) -> Result<T, RunError> {
    joined.unwrap_or_else(|error| {
        Err(RunError::new(ErrorCode::SandboxFailed, format!("the call was interrupted: {error}")))
    })
}
