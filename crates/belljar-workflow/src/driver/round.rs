//! One step of a workflow: inputs and the machine's effects, committed as one batch.

use belljar_contract::exact_json;
use belljar_contract::json_value;
use serde::Serialize;

use crate::{
    bounds,
    command::Acknowledgement,
    driver::DriveError,
    effect::{Effect, InputKind, MachineInput, OpenIntent, Repeatability, TaskStart},
    machine::{InputRefusal, Machine},
    workflow_store::{IntentChange, WorkflowBatch, WorkflowEventRow, WorkflowInputRow},
};

/// Everything that the next commit writes.
#[derive(Debug)]
pub(super) struct Round {
    /// The time that the machine sees.
    pub(super) now_ms: i64,
    pub(super) batch: WorkflowBatch,
    /// Performed after the commit, in this order.
    pub(super) effects: Vec<Effect>,
    /// Bytes of all inputs.
    pub(super) bytes: usize,
    /// Set when something could not be written as JSON: then nothing of the round may be committed.
    pub(super) broken: Option<serde_json::Error>,
}

impl Round {
    pub(super) fn new(now_ms: i64, wall_ms: i64) -> Self {
        let batch = WorkflowBatch { now_ms: wall_ms, ..WorkflowBatch::default() };
        Self { now_ms, batch, effects: Vec::new(), bytes: 0, broken: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        let WorkflowBatch { inputs, taken, intents, .. } = &self.batch;
        inputs.is_empty() && taken.is_empty() && intents.is_empty()
    }

    /// Applies an input to the machine. `again` says whether a started task may be performed twice.
    pub(super) fn apply(
        &mut self,
        machine: &mut Machine,
        input: MachineInput,
        again: impl Fn(&TaskStart) -> Repeatability,
    ) -> Result<(), InputRefusal> {
        let input = bounds::bounded(input);
        let (name, body) = (name(&input.what), self.written(journalled(&input)));
        let has_ended = matches!(input.what, InputKind::Ended { .. });
        let effects = machine.apply(input)?;
        let seq = machine.taken();
        self.bytes += body.len();
        let mut row = WorkflowInputRow { seq, checkpoint: None, body };
        for effect in effects {
            match effect {
                Effect::Event(event) => {
                    let body = self.written(encode(&event));
                    self.batch.events.push(WorkflowEventRow { seq: event.seq, cause: seq, body });
                }
                Effect::Acknowledge(answer) => self.answer(&answer),
                Effect::Checkpoint { .. } => row.checkpoint = Some(name.clone()),
                Effect::Start(start) => {
                    self.open(&start, seq, again(&start));
                    self.effects.push(Effect::Start(start));
                }
                other @ (Effect::Cancel { .. }
                | Effect::Timer { .. }
                | Effect::Forget { .. }
                | Effect::Ask(_)
                | Effect::Withdraw { .. }
                | Effect::Finish(_)) => self.effects.push(other),
            }
        }
        self.batch.progress |= has_ended || row.checkpoint.is_some();
        self.batch.inputs.push(row);
        Ok(())
    }

    /// Drops the effects and intents of the round, and returns the tasks that would have started.
    pub(super) fn drop_effects(&mut self) -> Vec<TaskStart> {
        self.batch.intents.retain(|change| matches!(change, IntentChange::Close { .. }));
        let effects = std::mem::take(&mut self.effects).into_iter();
        let starts = effects.filter_map(|effect| {
            let Effect::Start(start) = effect else { return None };
            Some(start)
        });
        starts.collect()
    }

    /// Records the answer to a command.
    pub(super) fn answer(&mut self, answer: &Acknowledgement) {
        let body = self.written(encode(answer));
        self.batch.answers.push((answer.command.clone(), body));
    }

    /// Records that the outcome of an intent is known.
    pub(super) fn close(&mut self, key: String, at: u64) {
        self.batch.intents.push(IntentChange::Close { key, at });
    }

    fn written(&mut self, body: serde_json::Result<Vec<u8>>) -> Vec<u8> {
        body.unwrap_or_else(|error| {
            self.broken = Some(error);
            Vec::new()
        })
    }

    fn open(&mut self, start: &TaskStart, at: u64, again: Repeatability) {
        let (instance, attempt) = (start.instance.clone(), start.attempt);
        let body = self.written(encode(&OpenIntent { instance, attempt, again }));
        self.batch.intents.push(IntentChange::Open { key: intent_key(start), at, body });
    }
}

/// The key of an intent: each attempt has its own.
pub(super) fn intent_key(start: &TaskStart) -> String {
    format!("{}#{}", start.key, start.attempt)
}

/// Reads the intent of a task that was under way.
pub(super) fn read_open(flow: &str, body: &[u8]) -> Result<OpenIntent, DriveError> {
    json_value::from_slice(body).map_err(|error| DriveError::Damaged {
        flow: flow.to_owned(),
        reason: format!("cannot read an open intent: {error}"),
    })
}

/// The one encoding of everything the store holds.
pub(crate) fn encode(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(value)
}

/// The journalled form of an input. A rollback is written without the machine it goes back to: the
/// same commit holds a snapshot, so the input is never replayed.
fn journalled(input: &MachineInput) -> serde_json::Result<Vec<u8>> {
    match &input.what {
        InputKind::RollBack { id, by, to, .. } => {
            let now_ms = input.now_ms;
            encode(
                &exact_json!({"now_ms": now_ms, "input": "roll_back", "id": id, "by": by, "to": to}),
            )
        }
        InputKind::Begin
        | InputKind::Ended { .. }
        | InputKind::Fired { .. }
        | InputKind::Command { .. }
        | InputKind::Resumed { .. } => encode(input),
    }
}

/// The name of the checkpoint after an input.
fn name(what: &InputKind) -> String {
    match what {
        InputKind::Begin => "begin".to_owned(),
        InputKind::Ended { instance, .. } => instance.clone(),
        InputKind::Fired { timer } => format!("timer {timer}"),
        InputKind::Command { id, .. } => format!("command {id}"),
        InputKind::Resumed { .. } => "resumed".to_owned(),
        InputKind::RollBack { to, .. } => format!("back to {to}"),
    }
}
