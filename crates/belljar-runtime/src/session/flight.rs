//! A run that has its session's guest in hand, and what becomes of the guest when it lets go.

use std::sync::Arc;

use belljar_contract::{ErrorCode, Language, RunError};
use tokio::sync::OwnedMutexGuard;

use super::{
    Inner, Turn,
    branch::Branch,
    cell::{Running, SessionCell},
};

/// A run under way. Dropped before it has landed, its caller is gone and nobody can tell where the
/// code was: the guest is lost.
#[derive(Debug)]
pub(super) struct Flight {
    inner: Arc<Inner>,
    turn: OwnedMutexGuard<Turn>,
    cell: Arc<SessionCell>,
    running: Option<Running>,
    /// `None` once it has landed.
    branch: Option<Branch>,
}

impl Flight {
    /// Takes the live guest for a run.
    pub(super) async fn begin(inner: &Arc<Inner>) -> Result<Self, RunError> {
        let mut turn = inner.take_turn().await?;
        let (Some(cell), Some(branch)) = (turn.cell.clone(), turn.live.take()) else {
            return Err(inner.is_lost());
        };
        inner.told().runs += 1;
        let running = Some(cell.begin_run());
        Ok(Self { inner: inner.clone(), turn, cell, running, branch: Some(branch) })
    }

    /// The guest, while it is in the air.
    pub(super) fn branch(&mut self) -> Result<&mut Branch, RunError> {
        self.branch.as_mut().ok_or_else(|| self.inner.is_lost())
    }

    /// The cell it is in.
    pub(super) fn cell(&self) -> &Arc<SessionCell> {
        &self.cell
    }

    /// What only one call at a time has in hand.
    pub(super) fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }

    /// The guest has answered and waits for what comes next. Tells what was dropped meanwhile.
    pub(super) fn land(mut self) -> Vec<String> {
        self.turn.live = self.branch.take();
        // A shell's processes end with its run.
        self.end_run(self.inner.language == Language::Bash);
        if self.turn.parked.is_empty() {
            return Vec::new();
        }
        self.inner.drop_surplus(&mut self.turn)
    }

    /// The guest is not to be trusted any more.
    pub(super) fn crash(mut self, why: &RunError) {
        self.branch = None;
        self.end_run(true);
        self.inner.lose(&mut self.turn, why);
    }

    fn end_run(&mut self, at_once: bool) {
        if let Some(running) = self.running.take() {
            running.end(at_once);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.branch.take().is_some() {
            self.end_run(true);
            let why = RunError::new(ErrorCode::RunAborted, "a run in it was broken off");
            self.inner.lose(&mut self.turn, &why);
        }
    }
}
