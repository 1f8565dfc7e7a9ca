//! The port by which tool calls of a run leave it and their outcomes come back.
//!
//! The runtime moves frames and counts calls. The bridge at the other end decides what a call means, whether
//! it is allowed, and in which order outcomes reach the code.

use belljar_contract::ErrorCode;
use belljar_wire::Command;
pub use belljar_wire::{
    Durable, FetchAsk, FetchReply, GuestAsk, GuestInput, StopReason, ToolCall, ToolFault, ToolReply,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::fetches::{FetchJob, FetchReplyTo};

/// A run's end of the bridge. [`ToolLink::pair`] makes both ends.
#[derive(Debug)]
pub struct ToolLink {
    pub(crate) durable: Option<Durable>,
    pub(crate) asks: mpsc::UnboundedSender<GuestAsk>,
    /// Commands for the guest, in order; an error ends the run.
    pub(crate) inputs: mpsc::UnboundedReceiver<Result<Command, StopReason>>,
    /// While this is true the run waits for a person, and its clock stands still.
    pub(crate) waits_for_person: watch::Receiver<bool>,
    /// Where the run itself sends what it answers without the bridge.
    pub(crate) own_inputs: mpsc::UnboundedSender<Result<Command, StopReason>>,
    /// The steps of fetches that the bridge wants to be taken.
    pub(crate) fetches: mpsc::UnboundedReceiver<FetchJob>,
    pub(crate) own_fetches: mpsc::UnboundedSender<FetchJob>,
}

/// The bridge's end of a run.
#[derive(Debug)]
pub struct BridgeLink {
    /// The requests of the code; the channel closes when the run ends.
    pub asks: mpsc::UnboundedReceiver<GuestAsk>,
    /// Takes what the bridge sends to the run.
    pub inputs: InputSender,
    /// Takes the steps of fetches, which the run makes for its bridge.
    pub fetches: FetchSender,
}

/// Has steps of fetches taken by the run that asked for them. Only durable runs need it: others take their
/// steps at once.
#[derive(Debug, Clone)]
pub struct FetchSender(mpsc::UnboundedSender<FetchJob>);

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
        let (own_fetches, fetches) = mpsc::unbounded_channel();
        let fetch_sender = FetchSender(own_fetches.clone());
        let own_inputs = input.clone();
        let run =
            Self { durable, asks: ask, inputs, waits_for_person, own_inputs, fetches, own_fetches };
        let inputs = InputSender { inputs: input, waits_for_person: waits };
        (run, BridgeLink { asks, inputs, fetches: fetch_sender })
    }
}

impl FetchSender {
    /// Takes a step, and returns its reply.
    ///
    /// # Errors
    /// The step did not succeed, or the run is over.
    pub async fn perform(&self, ask: FetchAsk) -> Result<FetchReply, ToolFault> {
        let (reply, answered) = oneshot::channel();
        let _ = self.0.send(FetchJob::Step(ask, FetchReplyTo::Bridge(reply)));
        let over = || Err(ToolFault::new(ErrorCode::FetchFailed, "the run is over"));
        answered.await.unwrap_or_else(|_| over())
    }

    /// Ends the fetch of this number.
    pub fn cancel(&self, fetch: u32) {
        let _ = self.0.send(FetchJob::Cancel(fetch));
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
