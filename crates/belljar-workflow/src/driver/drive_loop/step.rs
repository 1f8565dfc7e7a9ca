//! A step: the machine takes an input, the batch is committed, its effects are performed.

use belljar_contract::json_value;
use std::{collections::HashSet, time::Instant};

use super::DriveLoop;
use crate::{
    command::{Acknowledgement, WorkflowCommand},
    driver::{
        CommitPoint, DriveError, DriverClock, Performer, rebuild,
        round::{Round, encode},
    },
    effect::{Effect, InputKind, MachineInput, Repeatability},
    machine::InputRefusal,
    workflow_store::{QueuedCommand, WorkflowStatusUpdate, WorkflowStore, WorkflowStoreError},
};

/// Whether a commit includes the whole state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Snapshot {
    IfDue,
    Always,
}

impl<S, P, C> DriveLoop<'_, S, P, C>
where
    S: WorkflowStore + 'static,
    P: Performer + 'static,
    C: DriverClock,
{
    /// Applies an input to the machine; a refused input changes nothing.
    pub(super) fn apply(&mut self, round: &mut Round, what: InputKind) -> Result<(), InputRefusal> {
        let now_ms = u64::try_from(round.now_ms).unwrap_or_default();
        let (performer, is_stopping) = (&self.driver.performer, self.is_stopping);
        round.apply(&mut self.machine, MachineInput { now_ms, what }, |start| {
            if is_stopping {
                Repeatability::NotBegun
            } else if performer.is_repeatable(start) {
                Repeatability::Harmless
            } else {
                Repeatability::Unknown
            }
        })?;
        if self.is_resuming {
            self.wanted.extend(round.drop_effects());
        }
        Ok(())
    }

    /// Applies a command; the machine may refuse it.
    pub(super) async fn apply_command(
        &mut self,
        mut round: Round,
        queued: QueuedCommand,
    ) -> Result<Round, DriveError> {
        let (id, by) = (queued.id, queued.sender);
        let refused = match json_value::from_slice(&queued.body) {
            Ok(WorkflowCommand::RollBack { to }) => {
                // The checkpoint may be in this very round.
                self.commit(round, Snapshot::IfDue).await?;
                return self.roll_back(id, by, to, queued.seq).await;
            }
            Ok(command) => {
                let what = InputKind::Command { id: id.clone(), by, command };
                self.apply(&mut round, what).err().map(|refusal| refusal.to_string())
            }
            Err(error) => Some(format!("not a valid command: {error}")),
        };
        if let Some(refused) = refused {
            round.answer(&Acknowledgement { command: id, refused: Some(refused) });
        }
        round.batch.taken.push((queued.seq, self.machine.taken()));
        Ok(round)
    }

    /// Goes back to a checkpoint in a commit of its own, with a snapshot. Returns the next round.
    async fn roll_back(
        &mut self,
        id: String,
        by: String,
        to: u64,
        command: u64,
    ) -> Result<Round, DriveError> {
        let mut round = self.round();
        let refused = match self.driver.store.load(&self.flow, Some(to)).await {
            Ok(loaded) => {
                let base = Box::new(rebuild(&loaded)?);
                let what = InputKind::RollBack { id: id.clone(), by, to, base };
                self.apply(&mut round, what).err().map(|refusal| refusal.to_string())
            }
            Err(error @ WorkflowStoreError::NoCheckpoint { .. }) => Some(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        if let Some(refused) = refused {
            round.answer(&Acknowledgement { command: id, refused: Some(refused) });
        }
        round.batch.taken.push((command, self.machine.taken()));
        self.commit(round, Snapshot::Always).await?;
        Ok(self.round())
    }

    /// Commits a round, then performs its effects.
    pub(super) async fn commit(
        &mut self,
        mut round: Round,
        snapshot: Snapshot,
    ) -> Result<(), DriveError> {
        if round.is_empty() {
            return Ok(());
        }
        if let Some(error) = &round.broken {
            return Err(self.unwritable(error));
        }
        self.since.inputs += round.batch.inputs.len() as u64;
        self.since.bytes += round.bytes as u64;
        let is_over = self.machine.status().is_over();
        if !round.batch.inputs.is_empty()
            && (snapshot == Snapshot::Always || is_over || self.since.is_due())
        {
            let bytes = encode(&self.machine).map_err(|error| self.unwritable(&error))?;
            self.since = super::SinceSnapshot { inputs: 0, bytes: 0, size: bytes.len() as u64 };
            round.batch.snapshot = Some(bytes);
        }
        round.batch.state = Some(self.status_row());
        let until_ms = self.now().saturating_add(self.driver.lease_ms());
        round.batch.lease_until_ms = Some(self.driver.lapses_ms());
        let is_checkpoint = round.batch.inputs.iter().any(|row| row.checkpoint.is_some());
        self.driver.performer.at(CommitPoint::Committing);
        let began = Instant::now();
        self.driver.store.commit(&self.lease, round.batch).await?;
        if is_checkpoint {
            self.driver.performer.saved(began.elapsed());
        }
        self.driver.performer.at(CommitPoint::Committed);
        self.lease_until_ms = until_ms;
        self.commits += 1;
        self.perform(round.effects).await
    }

    fn unwritable(&self, error: &serde_json::Error) -> DriveError {
        let reason = format!("cannot be written as JSON: {error}");
        DriveError::Damaged { flow: self.flow.clone(), reason }
    }

    /// Performs effects, which are durable by now.
    async fn perform(&mut self, effects: Vec<Effect>) -> Result<(), DriveError> {
        if self.now() >= self.lease_until_ms {
            // The commit took so long that another host may have the workflow: renewing finds out.
            self.renew_if_due().await?;
        }
        let cancelled: HashSet<(String, u32)> = effects.iter().filter_map(cancelled).collect();
        for effect in effects {
            match effect {
                Effect::Start(_) if self.is_stopping => {}
                // A later input of the same round has stopped it.
                Effect::Start(start)
                    if cancelled.contains(&(start.instance.clone(), start.attempt)) =>
                {
                    self.tasks.skip(&start);
                }
                Effect::Start(start) => {
                    let files = start.files.and_then(|version| self.machine.files_at(version));
                    let files = files.cloned();
                    self.tasks.start(&self.driver.performer, &self.flow, start, files);
                }
                Effect::Cancel { instance, attempt } => {
                    let drop_at_ms = self.now().saturating_add(self.driver.grace_ms());
                    self.tasks.cancel(&instance, attempt, drop_at_ms);
                }
                Effect::Timer { timer, at_ms } => {
                    self.timers.insert(timer, i64::try_from(at_ms).unwrap_or(i64::MAX));
                }
                Effect::Forget { timer } => {
                    self.timers.remove(&timer);
                }
                // The machine keeps decisions and announces them by events; the rest is committed.
                Effect::Ask(_)
                | Effect::Withdraw { .. }
                | Effect::Event(_)
                | Effect::Acknowledge(_)
                | Effect::Checkpoint { .. }
                | Effect::Finish(_) => {}
            }
        }
        Ok(())
    }

    /// Renews the claim if it is time, and drops late tasks.
    pub(super) async fn renew_if_due(&mut self) -> Result<(), DriveError> {
        let now_ms = self.now();
        self.tasks.drop_late(now_ms);
        if now_ms >= self.lease_until_ms.saturating_sub(self.driver.lease_ms() / 3 * 2) {
            let until_ms = now_ms.saturating_add(self.driver.lease_ms());
            self.driver.store.renew(&self.lease, self.driver.lapses_ms()).await?;
            self.lease_until_ms = until_ms;
        }
        Ok(())
    }

    /// The row by which other hosts see the workflow's status and when it is due.
    fn status_row(&self) -> WorkflowStatusUpdate {
        let status = self.machine.status();
        let due_ms = if status.is_over() {
            i64::MAX
        } else if self.machine.running().is_empty() {
            let timers = self.machine.timers();
            let first = timers.into_iter().map(|(_, at_ms)| at_ms).min();
            first.map_or(i64::MAX, |at_ms| i64::try_from(at_ms).unwrap_or(i64::MAX))
        } else {
            0
        };
        WorkflowStatusUpdate { status, due_ms, finished: status.is_over() }
    }
}

/// The instance and attempt that an effect cancels.
fn cancelled(effect: &Effect) -> Option<(String, u32)> {
    let Effect::Cancel { instance, attempt } = effect else { return None };
    Some((instance.clone(), *attempt))
}
