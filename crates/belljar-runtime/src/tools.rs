//! The port by which tool calls of a run leave it and their outcomes come back.
//!
//! The runtime moves frames and counts calls; what a call means, whether it is allowed and in which
//! order outcomes come is for whoever holds the other end.

use belljar_contract::{RunError, RunStatus};
pub use belljar_wire::{Durable, ToolCall, ToolFault, ToolReply};
use tokio::sync::{mpsc, watch};

/// A run's end of the bridge.
///
/// Inputs reach the code in the order in which they are sent here.
#[derive(Debug)]
pub struct ToolLink {
    /// What makes the run repeatable, if it is to be.
    pub durable: Option<Durable>,
    /// What the code asks for.
    pub asks: mpsc::UnboundedSender<Ask>,
    /// What it gets.
    pub inputs: mpsc::UnboundedReceiver<Input>,
    /// While true the run waits for a person, and its clock stands still.
    pub waits_for_person: watch::Receiver<bool>,
}

/// The bridge's end of a run.
#[derive(Debug)]
pub struct BridgeLink {
    /// What the code asks for; ends with the run.
    pub asks: mpsc::UnboundedReceiver<Ask>,
    /// What it gets.
    pub inputs: mpsc::UnboundedSender<Input>,
    /// Whether the run waits for a person.
    pub waits_for_person: watch::Sender<bool>,
}

/// Something the code asks for. Nothing of it has been checked, except that calls are numbered
/// from 1 without a gap.
#[derive(Debug)]
pub enum Ask {
    /// A tool call.
    Call(ToolCall),
    /// To be told when this time has come, in milliseconds since 1970. Only in durable runs.
    Timer(f64),
}

/// Something the code gets, or the end of it.
#[derive(Debug)]
pub enum Input {
    /// How a call ended.
    Reply(ToolReply),
    /// The time has come. Only in durable runs.
    Timer {
        /// What the guest's clock shows from here on.
        now_ms: f64,
    },
    /// The run is ended.
    Stop(Stop),
}

/// Why a bridge ends a run.
#[derive(Debug, Clone)]
pub struct Stop {
    /// How the run ended.
    pub status: RunStatus,
    /// Why.
    pub error: RunError,
}

impl ToolLink {
    /// Both ends of a bridge.
    pub fn pair(durable: Option<Durable>) -> (Self, BridgeLink) {
        let (ask, asks) = mpsc::unbounded_channel();
        let (input, inputs) = mpsc::unbounded_channel();
        let (waits, waits_for_person) = watch::channel(false);
        let run = Self { durable, asks: ask, inputs, waits_for_person };
        (run, BridgeLink { asks, inputs: input, waits_for_person: waits })
    }
}
