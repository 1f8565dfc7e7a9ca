//! Connects a run's tool link to the bridge.

use belljar_contract::{RunError, RunStatus};
use belljar_runtime::{Ask, BridgeLink, Input, Stop, ToolFault};
use belljar_tools::{Ask as BridgeAsk, Delivery, RunBridge, StopReason};
use tokio::sync::mpsc;

/// The bridge's end of a tool link.
pub(super) struct BridgeEnd<S> {
    pub(super) asks: mpsc::UnboundedReceiver<Ask>,
    /// Forwards the bridge's deliveries to the run.
    pub(super) sink: S,
}

impl BridgeEnd<()> {
    pub(super) fn new(far: BridgeLink) -> BridgeEnd<impl Fn(Delivery) + Send + Sync + 'static> {
        let BridgeLink { asks, inputs, waits_for_person } = far;
        let sink = move |delivery| {
            let input = match delivery {
                Delivery::Reply(reply) => Input::Reply(reply),
                Delivery::Timer { now_ms } => Input::Timer { now_ms },
                Delivery::Waiting(waits) => {
                    waits_for_person.send_replace(waits);
                    return;
                }
                Delivery::Stop(reason) => Input::Stop(stop(reason)),
            };
            // The run may have ended; then nobody needs the input.
            let _ = inputs.send(input);
        };
        BridgeEnd { asks, sink }
    }
}

/// Forwards the code's requests until the run ends. The result says whether a replay made all calls
/// that it made before.
pub(super) async fn serve(
    mut calls: RunBridge,
    mut asks: mpsc::UnboundedReceiver<Ask>,
) -> Result<(), ToolFault> {
    while let Some(ask) = asks.recv().await {
        calls.ask(match ask {
            Ask::Call(call) => BridgeAsk::Call(call),
            Ask::Timer(at_ms) => BridgeAsk::Timer(at_ms),
        });
    }
    calls.finish()
}

fn stop(reason: StopReason) -> Stop {
    let (status, fault) = match reason {
        StopReason::InDoubt(fault) => (RunStatus::InDoubt, fault),
        StopReason::Diverged(fault) => (RunStatus::Failed, fault),
        // The code did not end by itself: its journal can resume it.
        StopReason::Failed(fault) => (RunStatus::Interrupted, fault),
    };
    Stop { status, error: run_error(fault) }
}

/// Converts a tool fault to the error of a run.
pub(super) fn run_error(fault: ToolFault) -> RunError {
    let ToolFault { code, message, hint, tool_name } = fault;
    let mut error = RunError::new(code, message);
    (error.hint, error.tool_name) = (hint, tool_name);
    error
}
