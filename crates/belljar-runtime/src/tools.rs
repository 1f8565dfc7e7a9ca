//! The port by which tool calls of a run leave it and their outcomes come back.
//!
//! The runtime moves frames and counts calls. The bridge at the other end decides what a call means, whether
//! it is allowed, and in which order outcomes reach the code.

use belljar_wire::Command;
pub use belljar_wire::{Durable, GuestAsk, GuestInput, StopReason, ToolCall, ToolFault, ToolReply};
use tokio::sync::{mpsc, watch};

/// A run's end of the bridge. [`ToolLink::pair`] makes both ends.
#[derive(Debug)]
pub struct ToolLink {
    pub(crate) durable: Option<Durable>,
    pub(crate) asks: mpsc::UnboundedSender<GuestAsk>,
    /// Commands for the guest, in order; an error ends the run.
    pub(crate) inputs: mpsc::UnboundedReceiver<Result<Command, StopReason>>,
    /// While this is true the run waits for a person, and its clock stands still.
    pub(crate) waits_for_person: watch::Receiver<bool>,
}

/// The bridge's end of a run.
#[derive(Debug)]
pub struct BridgeLink {
    /// What the code asks for; the channel closes when the run ends.
    pub asks: mpsc::UnboundedReceiver<GuestAsk>,
    /// Takes what the bridge sends to the run.
    pub inputs: InputSender,
}

/// Sends inputs to one run.
#[derive(Debug)]
pub struct InputSender {
    inputs: mpsc::UnboundedSender<Result<Command, StopReason>>,
    waits_for_person: watch::Sender<bool>,
}

impl ToolLink {
    /// Both ends of a bridge. With `durable` the run is repeatable: the guest gets that seed and clock.
    pub fn pair(durable: Option<Durable>) -> (Self, BridgeLink) {
        let (ask, asks) = mpsc::unbounded_channel();
        let (input, inputs) = mpsc::unbounded_channel();
        let (waits, waits_for_person) = watch::channel(false);
        let run = Self { durable, asks: ask, inputs, waits_for_person };
        (run, BridgeLink { asks, inputs: InputSender { inputs: input, waits_for_person: waits } })
    }
}

impl InputSender {
    /// Passes an input on, in order. A run that has ended ignores it.
    pub fn send(&self, input: GuestInput) {
        let sent = match input {
            GuestInput::Reply(reply) => Ok(Command::ToolReply(reply)),
            GuestInput::Timer { now_ms } => Ok(Command::Timer { now_ms }),
            GuestInput::Stop(reason) => Err(reason),
            GuestInput::WaitsForPerson(waits) => {
                self.waits_for_person.send_replace(waits);
                return;
            }
        };
        // An error says that the run is over.
        let _ = self.inputs.send(sent);
    }
}
