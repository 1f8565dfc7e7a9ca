//! Replays a journal to a resumed run: pure, no clock, no I/O.
//!
//! The code gets the recorded inputs in the recorded order, each after it has asked for it. Its calls are
//! compared with the recorded ones; a difference means that this is another program, and the replay
//! stops.

use std::collections::{BTreeMap, VecDeque};

use belljar_wire::ToolCall;

use crate::{
    arguments::is_recorded_as,
    record::{CallEntry, JournalEntry, OutcomeEntry},
};

/// The part of a journal that has not been replayed yet.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    called: BTreeMap<u32, EarlierCall>,
    inputs: VecDeque<RecordedInput>,
    last_now_ms: Option<f64>,
    asked: u32,
    wants_timer: bool,
}

/// A call in the journal.
#[derive(Debug)]
struct EarlierCall {
    called: CallEntry,
    times_sent: u32,
    has_ended: bool,
}

/// An input in the journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RecordedInput {
    Ended(OutcomeEntry),
    Timer { now_ms: f64 },
}

/// The next step of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayStep {
    /// It is not in the journal.
    Fresh,
    /// It was asked for, and did not leave the host.
    NotSent,
    /// It was sent so many times, and the last outcome is unknown.
    InDoubt { times_sent: u32 },
    /// Its outcome is in the journal and is delivered in turn.
    Recorded,
}

/// A call that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Divergence {
    pub(crate) call: u32,
    pub(crate) before: String,
    pub(crate) now: String,
}

impl Replay {
    pub(crate) fn new(entries: impl IntoIterator<Item = JournalEntry>) -> Self {
        let mut replay = Self::default();
        for entry in entries {
            match entry {
                JournalEntry::Called(called) => {
                    let earlier = EarlierCall { called, times_sent: 0, has_ended: false };
                    replay.called.insert(earlier.called.call, earlier);
                }
                JournalEntry::Sent { call } => {
                    if let Some(earlier) = replay.called.get_mut(&call) {
                        earlier.times_sent += 1;
                    }
                }
                JournalEntry::Ended(ended) => {
                    if let Some(earlier) = replay.called.get_mut(&ended.call) {
                        earlier.has_ended = true;
                    }
                    replay.last_now_ms = Some(ended.now_ms);
                    replay.inputs.push_back(RecordedInput::Ended(ended));
                }
                JournalEntry::Timer { now_ms } => {
                    replay.last_now_ms = Some(now_ms);
                    replay.inputs.push_back(RecordedInput::Timer { now_ms });
                }
                // Its host does not resume such a run.
                JournalEntry::Connection => {}
            }
        }
        replay
    }

    /// The last time that the guest's clock showed.
    pub(crate) fn last_now_ms(&self) -> Option<f64> {
        self.last_now_ms
    }

    /// How many calls are in doubt.
    pub(crate) fn doubts(&self) -> usize {
        let is_doubt = |earlier: &&EarlierCall| earlier.times_sent > 0 && !earlier.has_ended;
        self.called.values().filter(is_doubt).count()
    }

    /// The code makes a call.
    pub(crate) fn ask(&mut self, call: &ToolCall) -> Result<ReplayStep, Divergence> {
        self.asked = call.call;
        let Some(earlier) = self.called.get(&call.call) else { return Ok(ReplayStep::Fresh) };
        let before = &earlier.called;
        let is_same = before.server == call.server
            && before.tool == call.tool
            && is_recorded_as(&before.arguments, &call.arguments);
        if !is_same {
            let arguments = &before.arguments;
            return Err(Divergence {
                call: call.call,
                before: shown(before.server.as_deref(), &before.tool, arguments),
                now: shown(call.server.as_deref(), &call.tool, &call.arguments),
            });
        }
        Ok(match earlier {
            EarlierCall { has_ended: true, .. } => ReplayStep::Recorded,
            EarlierCall { times_sent: 0, .. } => ReplayStep::NotSent,
            EarlierCall { times_sent, .. } => ReplayStep::InDoubt { times_sent: *times_sent },
        })
    }

    /// The code waits for a time.
    pub(crate) fn want_timer(&mut self) {
        self.wants_timer = true;
    }

    /// Whether all recorded inputs were delivered.
    pub(crate) fn is_over(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The next recorded input, if the code has asked for it.
    pub(crate) fn next_input(&mut self) -> Option<RecordedInput> {
        let has_asked = match self.inputs.front()? {
            RecordedInput::Ended(ended) => ended.call <= self.asked,
            RecordedInput::Timer { .. } => self.wants_timer,
        };
        if !has_asked {
            return None;
        }
        let input = self.inputs.pop_front();
        if matches!(input, Some(RecordedInput::Timer { .. })) {
            self.wants_timer = false;
        }
        input
    }

    /// The first recorded call that the code, which has ended, did not make.
    pub(crate) fn not_asked(&self) -> Option<Divergence> {
        let (call, earlier) = self.called.range(self.asked.saturating_add(1)..).next()?;
        let CallEntry { server, tool, arguments, .. } = &earlier.called;
        let before = shown(server.as_deref(), tool, arguments);
        Some(Divergence { call: *call, before, now: "nothing".to_owned() })
    }
}

/// A call for people.
fn shown(server: Option<&str>, tool: &str, arguments: &[u8]) -> String {
    const MOST: usize = 200;
    let mut arguments = String::from_utf8_lossy(arguments).into_owned();
    if arguments.len() > MOST {
        arguments.truncate(arguments.floor_char_boundary(MOST));
        arguments.push('…');
    }
    match server {
        Some(server) => format!("{server}.{tool}({arguments})"),
        None => format!("{tool}({arguments})"),
    }
}

#[cfg(test)]
mod tests;
