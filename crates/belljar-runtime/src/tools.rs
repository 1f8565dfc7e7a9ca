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
    /// The requests of the code; the channel closes when the run ends.
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

#[cfg(test)]
mod tests {
    use belljar_contract::ErrorCode;

    use super::*;

    #[test]
    fn inputs_arrive_in_order_and_a_wait_for_a_person_reaches_the_clock_at_once() {
        let (mut run, bridge) = ToolLink::pair(None);
        let reply = ToolReply { call: 1, now_ms: None, outcome: Ok(b"1".to_vec()) };
        let stop = StopReason::Failed(ToolFault::new(ErrorCode::RunInterrupted, "no disk"));
        bridge.inputs.send(GuestInput::Reply(reply.clone()));
        bridge.inputs.send(GuestInput::WaitsForPerson(true));
        bridge.inputs.send(GuestInput::Timer { now_ms: 5.0 });
        bridge.inputs.send(GuestInput::Stop(stop.clone()));
        assert!(*run.waits_for_person.borrow());
        let received: Vec<_> = std::iter::from_fn(|| run.inputs.try_recv().ok()).collect();
        let expected =
            [Ok(Command::ToolReply(reply)), Ok(Command::Timer { now_ms: 5.0 }), Err(stop)];
        assert_eq!(received, expected);
    }
}
