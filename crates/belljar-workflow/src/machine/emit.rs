//! Events, timers and checkpoints: the machine's side of the outside world.

use belljar_contract::WorkflowStatus;

use super::Machine;
use super::parts::{Timer, TimerPurpose};
use crate::effect::Effect;
use crate::event::{WorkflowEvent, WorkflowEventKind};

impl Machine {
    /// Emits an event with the next number.
    pub(super) fn emit(&mut self, happened: WorkflowEventKind) {
        self.last_event += 1;
        let event = WorkflowEvent {
            seq: self.last_event,
            at_ms: self.now_ms,
            branch: self.branch,
            happened,
        };
        self.out.push(Effect::Event(event));
    }

    /// Sets a timer `after_ms` from now.
    pub(super) fn set_timer(&mut self, after_ms: u64, what: TimerPurpose) -> u64 {
        self.set_timer_at(self.now_ms.saturating_add(after_ms), what)
    }

    pub(super) fn set_timer_at(&mut self, at_ms: u64, what: TimerPurpose) -> u64 {
        let timer = self.next_timer;
        self.next_timer += 1;
        self.timers.insert(timer, Timer { at_ms, what });
        self.out.push(Effect::Timer { timer, at_ms });
        timer
    }

    /// Withdraws a timer, if it is still set.
    pub(super) fn forget(&mut self, timer: Option<u64>) {
        let Some(timer) = timer else { return };
        if self.timers.remove(&timer).is_some() {
            self.out.push(Effect::Forget { timer });
        }
    }

    /// Handles a timer that went off.
    pub(super) fn fired(&mut self, timer: u64) {
        let Some(Timer { what, .. }) = self.timers.remove(&timer) else { return };
        match what {
            TimerPurpose::Timeout(node) => self.timed_out(node),
            TimerPurpose::Retry(node) => self.enqueue(node),
            TimerPurpose::Wake(node) => self.woke(node),
            TimerPurpose::Decision(decision) => self.decision_timed_out(decision),
            TimerPurpose::Whole => self.took_too_long(),
        }
    }

    /// Marks the state after this input as a checkpoint, if a task ended in it.
    pub(super) fn mark_checkpoint(&mut self) {
        let worth = std::mem::take(&mut self.worth_keeping);
        if !worth || self.status == WorkflowStatus::RollingBack {
            return;
        }
        self.out.push(Effect::Checkpoint { at: self.taken });
        self.emit(WorkflowEventKind::CheckpointSaved { checkpoint: self.taken });
    }
}
