//! The turn of a run: the run has the live guest of its session, and gives it back or loses it.

use std::sync::Arc;

use belljar_contract::{CheckpointId, ErrorCode, RunError};
use tokio::sync::OwnedMutexGuard;

use super::{
    SessionGuests, SessionState,
    branch::Branch,
    cell::{RunGuard, SessionCell},
};

/// A run that has the live guest of its session. If this is dropped before [`finish`](Self::finish), the
/// caller is gone and the state of the code is unknown: the guest is lost.
#[derive(Debug)]
pub(super) struct GuestTurn {
    state: Arc<SessionState>,
    guests: OwnedMutexGuard<SessionGuests>,
    cell: Arc<SessionCell>,
    run: Option<RunGuard>,
    /// `None` once the guest is given back or lost.
    branch: Option<Branch>,
}

impl GuestTurn {
    /// Waits for the turn of a run and takes the live guest.
    pub(super) async fn begin(state: &Arc<SessionState>) -> Result<Self, RunError> {
        let mut guests = state.take_turn().await?;
        let (Some(cell), Some(branch)) = (guests.cell.clone(), guests.live.take()) else {
            return Err(state.lost_error());
        };
        state.facts().runs += 1;
        let run = Some(cell.begin_run());
        Ok(Self { state: state.clone(), guests, cell, run, branch: Some(branch) })
    }

    /// The live guest of the session.
    pub(super) fn branch(&mut self) -> Result<&mut Branch, RunError> {
        self.branch.as_mut().ok_or_else(|| self.state.lost_error())
    }

    /// The cell of the guest.
    pub(super) fn cell(&self) -> &Arc<SessionCell> {
        &self.cell
    }

    /// The guests of the session, which this run has locked.
    pub(super) fn guests(&mut self) -> &mut SessionGuests {
        &mut self.guests
    }

    /// Gives the guest back: it has answered and waits for its next command. Returns the checkpoints that had
    /// to be dropped.
    pub(super) fn finish(mut self) -> Vec<CheckpointId> {
        self.guests.live = self.branch.take();
        let engine = self.state.zygote.engine.row();
        self.end_run(if engine.ends_strays_with_run { Strays::EndNow } else { Strays::EndLater });
        if self.guests.parked.is_empty() {
            return Vec::new();
        }
        self.state.drop_surplus(&mut self.guests)
    }

    /// Ends the guest, which may be damaged.
    pub(super) fn lose_guest(mut self, why: &RunError) {
        self.branch = None;
        self.end_run(Strays::EndNow);
        self.state.lose_live_guest(&mut self.guests, why);
    }

    fn end_run(&mut self, strays: Strays) {
        let Some(run) = self.run.take() else { return };
        match strays {
            Strays::EndNow => run.end_with_strays(),
            Strays::EndLater => drop(run),
        }
    }
}

/// When the processes that a run left behind end.
#[derive(Debug, Clone, Copy)]
enum Strays {
    EndNow,
    /// At the next check of the cell: a check takes longer than many a run.
    EndLater,
}

impl Drop for GuestTurn {
    fn drop(&mut self) {
        if self.branch.take().is_some() {
            self.end_run(Strays::EndNow);
            let why = RunError::new(ErrorCode::RunAborted, "a run in it was dropped by its caller");
            self.state.lose_live_guest(&mut self.guests, &why);
        }
    }
}
