//! What a journal has to say to a run that is started again: pure, no clock, no I/O.
//!
//! The code is fed the recorded inputs in the recorded order, each when the code has asked for it.
//! What it asks is compared with what it asked before; a difference means that this is another
//! program, and the replay stops.

use std::collections::{BTreeMap, VecDeque};

use belljar_wire::ToolCall;

use crate::{
    arguments::is_recorded_as,
    record::{Called, Ended, Entry},
};

/// The record of a run, as far as it has not been fed to it again.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    called: BTreeMap<u32, Earlier>,
    inputs: VecDeque<Recorded>,
    last_now_ms: Option<f64>,
    asked: u32,
    wants_timer: bool,
}

/// A call as it went before.
#[derive(Debug)]
struct Earlier {
    called: Called,
    times_sent: u32,
    has_ended: bool,
}

/// An input the code got before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Recorded {
    Ended(Ended),
    Timer { now_ms: f64 },
}

/// What to do about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It was never made.
    Fresh,
    /// It was asked for, and did not leave the host.
    NotSent,
    /// It left the host, so many times, and nobody knows what became of it the last time.
    InDoubt { times_sent: u32 },
    /// Its outcome is in the record and comes when it is its turn.
    Recorded,
}

/// The code asks for something else than it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diverged {
    pub(crate) call: u32,
    pub(crate) before: String,
    pub(crate) now: String,
}

impl Replay {
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut replay = Self::default();
        for entry in entries {
            match entry {
                Entry::Called(called) => {
                    let earlier = Earlier { called, times_sent: 0, has_ended: false };
                    replay.called.insert(earlier.called.call, earlier);
                }
                Entry::Sent { call } => {
                    if let Some(earlier) = replay.called.get_mut(&call) {
                        earlier.times_sent += 1;
                    }
                }
                Entry::Ended(ended) => {
                    if let Some(earlier) = replay.called.get_mut(&ended.call) {
                        earlier.has_ended = true;
                    }
                    replay.last_now_ms = Some(ended.now_ms);
                    replay.inputs.push_back(Recorded::Ended(ended));
                }
                Entry::Timer { now_ms } => {
                    replay.last_now_ms = Some(now_ms);
                    replay.inputs.push_back(Recorded::Timer { now_ms });
                }
            }
        }
        replay
    }

    /// What the guest's clock showed last.
    pub(crate) fn last_now_ms(&self) -> Option<f64> {
        self.last_now_ms
    }

    /// How many calls nobody knows the end of.
    pub(crate) fn doubts(&self) -> usize {
        let is_doubt = |earlier: &&Earlier| earlier.times_sent > 0 && !earlier.has_ended;
        self.called.values().filter(is_doubt).count()
    }

    /// The code makes a call.
    pub(crate) fn ask(&mut self, call: &ToolCall) -> Result<Step, Diverged> {
        self.asked = call.call;
        let Some(earlier) = self.called.get(&call.call) else { return Ok(Step::Fresh) };
        let before = &earlier.called;
        let is_same = before.server == call.server
            && before.tool == call.tool
            && is_recorded_as(&before.arguments, &call.arguments);
        if !is_same {
            let arguments = &before.arguments;
            return Err(Diverged {
                call: call.call,
                before: shown(before.server.as_deref(), &before.tool, arguments),
                now: shown(call.server.as_deref(), &call.tool, &call.arguments),
            });
        }
        Ok(match earlier {
            Earlier { has_ended: true, .. } => Step::Recorded,
            Earlier { times_sent: 0, .. } => Step::NotSent,
            Earlier { times_sent, .. } => Step::InDoubt { times_sent: *times_sent },
        })
    }

    /// The code waits for a time.
    pub(crate) fn want_timer(&mut self) {
        self.wants_timer = true;
    }

    /// Whether everything recorded has been fed.
    pub(crate) fn is_over(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The next recorded input, if the code has asked for it.
    pub(crate) fn next_input(&mut self) -> Option<Recorded> {
        let has_asked = match self.inputs.front()? {
            Recorded::Ended(ended) => ended.call <= self.asked,
            Recorded::Timer { .. } => self.wants_timer,
        };
        if !has_asked {
            return None;
        }
        let input = self.inputs.pop_front();
        if matches!(input, Some(Recorded::Timer { .. })) {
            self.wants_timer = false;
        }
        input
    }

    /// A call the code made before and does not make any more, now that it has ended.
    pub(crate) fn not_asked(&self) -> Option<Diverged> {
        let (call, earlier) = self.called.range(self.asked.saturating_add(1)..).next()?;
        let Called { server, tool, arguments, .. } = &earlier.called;
        let before = shown(server.as_deref(), tool, arguments);
        Some(Diverged { call: *call, before, now: "nothing".to_owned() })
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
