//! The bytes that the host holds for the tool calls of one run: arguments of open calls, and inputs that the guest
//! has not read yet.
//!
//! Both are the host's memory, and the guest and the tools fill it. So both are bounded: otherwise a guest
//! that does not read could make the host keep everything it asks for.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use belljar_contract::{ErrorCode, Limits, RunError};
use belljar_wire::Command;

/// Arguments of all open calls together. One call may always have as many as a value may have.
const MAX_ARGUMENT_BYTES: u64 = 32 << 20;
/// The cost of an open call beside its arguments.
const CALL_BYTES: u64 = 1 << 10;

/// Tool calls, and steps of fetches, that have no outcome yet.
#[derive(Debug)]
pub(super) struct OpenCalls {
    max_bytes: u64,
    pending: Mutex<PendingArguments>,
}

#[derive(Debug, Default)]
struct PendingArguments {
    /// Bytes by number of call.
    calls: HashMap<u32, u64>,
    bytes: u64,
}

impl OpenCalls {
    pub(super) fn new(limits: &Limits) -> Self {
        let max_bytes = MAX_ARGUMENT_BYTES.max(limits.result_bytes.saturating_add(CALL_BYTES));
        Self { max_bytes, pending: Mutex::default() }
    }

    /// Counts a call as open. The error ends the run.
    pub(super) fn begin(&self, call: u32, arguments: usize) -> Result<(), RunError> {
        let bytes = CALL_BYTES.saturating_add(arguments as u64);
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.bytes = pending.bytes.saturating_add(bytes);
        pending.calls.insert(call, bytes);
        if pending.bytes <= self.max_bytes {
            return Ok(());
        }
        let mib = self.max_bytes >> 20;
        Err(too_much(
            format!("the arguments of open tool calls and fetches went over {mib} MiB"),
            "Wait for the outcome of some calls before making more.",
        ))
    }

    fn end(&self, call: u32) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = pending.calls.remove(&call).unwrap_or_default();
        pending.bytes = pending.bytes.saturating_sub(bytes);
    }
}

/// Commands for the guest that are not sent yet, in order.
#[derive(Debug)]
pub(super) struct InputQueue<'a> {
    open: &'a OpenCalls,
    max_bytes: u64,
    commands: VecDeque<Command>,
    bytes: u64,
}

impl<'a> InputQueue<'a> {
    /// The guest cannot hold more than its memory, so the host holds no more for it.
    pub(super) fn new(open: &'a OpenCalls, limits: &Limits) -> Self {
        Self { open, max_bytes: limits.memory, commands: VecDeque::new(), bytes: 0 }
    }

    /// Adds a command; a reply closes its call. The error ends the run.
    pub(super) fn add(&mut self, command: Command) -> Result<(), RunError> {
        if let Command::ToolReply(reply) = &command {
            self.open.end(reply.call);
        }
        self.bytes = self.bytes.saturating_add(size(&command));
        self.commands.push_back(command);
        if self.bytes <= self.max_bytes {
            return Ok(());
        }
        let mib = self.max_bytes >> 20;
        Err(too_much(
            format!("unread outcomes of tool calls and fetches went over {mib} MiB"),
            "Make fewer calls at a time.",
        ))
    }

    /// Takes out the command to send next.
    pub(super) fn next(&mut self) -> Option<Command> {
        let command = self.commands.pop_front()?;
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

fn too_much(message: String, hint: &str) -> RunError {
    RunError::new(ErrorCode::LimitMemory, message).with_hint(hint).with_advice()
}

#[cfg(test)]
mod tests;
