//! One durable call without guest code: a task of a workflow.

use belljar_contract::ErrorCode;
use belljar_store::{Lease, Store};
use belljar_wire::{GuestInput, StopReason, ToolCall, ToolFault};
use tokio::sync::mpsc;

use super::{Bridge, RunBridge, RunContext};
use crate::arguments::CallArguments;

impl Bridge {
    /// Makes one call that survives its host: policy, approval and audit row as for any call, and a
    /// journal like that of a durable run. Called again with the same run, it returns the recorded
    /// outcome, continues to wait for the person, sends a call that was not sent, or stops for a call in
    /// doubt.
    ///
    /// # Errors
    /// If the call is in doubt, or the journal cannot be written or read.
    pub async fn call_durable(
        &self,
        run: RunContext,
        journal: (Store, Lease),
        tool: &str,
        arguments: CallArguments,
    ) -> Result<Result<Vec<u8>, ToolFault>, StopReason> {
        let (deliver, mut delivered) = mpsc::unbounded_channel();
        let sink = move |delivery| drop(deliver.send(delivery));
        let began_ms = (self.config.now_ms)() as f64;
        let calls = RunBridge::durable(self, run, journal, began_ms, sink).await;
        let mut calls = calls.map_err(|error| lost(error.to_string()))?;
        let CallArguments { text: arguments, read } = arguments;
        let tool = tool.to_owned();
        calls.start_durable(ToolCall { call: 1, server: None, tool, line: None, arguments }, read);
        while let Some(delivery) = delivered.recv().await {
            match delivery {
                // As the journal has it: a call that is repeated gives the same.
                GuestInput::Reply(reply) => {
                    return Ok(reply.outcome.map_err(|fault| ToolFault::from_json(&fault)));
                }
                GuestInput::Stop(reason) => return Err(reason),
                GuestInput::WaitsForPerson(_) | GuestInput::Timer { .. } => {}
            }
        }
        Err(lost("the call ended without an outcome".to_owned()))
    }
}

fn lost(why: String) -> StopReason {
    StopReason::Failed(ToolFault::new(ErrorCode::ToolUnavailable, why))
}
