//! What the host holds for the tool calls of one run: arguments of calls without an outcome, and
//! outcomes that the code has not taken yet.
//!
//! Both are the host's memory and filled by others, so both are bounded. A guest that does not read
//! would otherwise have the host keep whatever it can ask for.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use belljar_contract::{ErrorCode, Limits, RunError, RunStatus};
use belljar_wire::{Command, ToolCall};

use crate::{Input, Stop};

/// Arguments of all calls without an outcome; one call may always have as much as a value may.
const MAX_ARGUMENT_BYTES: u64 = 32 << 20;
/// What a call costs besides its arguments.
const CALL_BYTES: u64 = 1 << 10;

/// Calls without an outcome.
#[derive(Debug)]
pub(super) struct OpenCalls {
    most: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    calls: HashMap<u32, u64>,
    bytes: u64,
}

impl OpenCalls {
    pub(super) fn new(limits: &Limits) -> Self {
        let most = MAX_ARGUMENT_BYTES.max(limits.result_bytes.saturating_add(CALL_BYTES));
        Self { most, held: Mutex::default() }
    }

    /// The code makes a call.
    pub(super) fn begin(&self, call: &ToolCall) -> Result<(), Stop> {
        let bytes = CALL_BYTES.saturating_add(call.arguments.len() as u64);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.bytes = held.bytes.saturating_add(bytes);
        held.calls.insert(call.call, bytes);
        if held.bytes <= self.most {
            return Ok(());
        }
        let mib = self.most >> 20;
        Err(too_much(
            format!("the arguments of tool calls under way went over {mib} MiB"),
            "wait for the outcome of some calls before making more",
        ))
    }

    /// It has an outcome.
    fn end(&self, call: u32) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.calls.remove(&call).unwrap_or_default();
        held.bytes = held.bytes.saturating_sub(bytes);
    }
}

/// What the code is to get, in order.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    open: &'a OpenCalls,
    most: u64,
    waiting: VecDeque<Command>,
    bytes: u64,
}

impl<'a> Outgoing<'a> {
    /// The code can hold no more than its memory, so no more is held for it.
    pub(super) fn new(open: &'a OpenCalls, limits: &Limits) -> Self {
        Self { open, most: limits.memory, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Adds an input, unless that ends the run.
    pub(super) fn add(&mut self, input: Input) -> Result<(), Stop> {
        let command = match input {
            Input::Reply(reply) => {
                self.open.end(reply.call);
                Command::ToolReply(reply)
            }
            Input::Timer { now_ms } => Command::Timer { now_ms },
            Input::Stop(stop) => return Err(stop),
        };
        self.bytes = self.bytes.saturating_add(size(&command));
        self.waiting.push_back(command);
        if self.bytes <= self.most {
            return Ok(());
        }
        let mib = self.most >> 20;
        Err(too_much(
            format!("outcomes of tool calls that the code has not taken went over {mib} MiB"),
            "make fewer calls at a time, or ask for more memory with --memory",
        ))
    }

    /// What is to be sent next.
    pub(super) fn next(&mut self) -> Option<Command> {
        let command = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(size(&command));
        Some(command)
    }
}

fn size(command: &Command) -> u64 {
    let body = match command {
        Command::ToolReply(reply) => match &reply.outcome {
            Ok(body) | Err(body) => body.len(),
        },
        Command::Run(_) | Command::Timer { .. } | Command::Branch | Command::Reroot => 0,
    };
    (body as u64).saturating_add(64)
}

fn too_much(message: String, hint: &str) -> Stop {
    let error = RunError::new(ErrorCode::LimitMemory, message).with_hint(hint);
    Stop { status: RunStatus::Failed, error }
}

#[cfg(test)]
mod tests;
