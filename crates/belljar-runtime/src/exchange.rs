//! Frames between the host and one running cell: code in, events out, tool calls both ways.

mod backlog;

use std::{future, pin::pin};

use belljar_contract::{ErrorCode, Limits};
use belljar_wire::{Caps, Command, Event, ReadError, ToolFault, ToolReply};
use tokio::sync::mpsc;

use crate::{
    Ask, Input, Stop, ToolLink,
    connection::{CellReader, CellWriter, Connection},
    run::Ended,
    state::State,
    transcript::{TooMuchOutput, Transcript},
};
use backlog::{OpenCalls, Outgoing};

/// The largest text of one print; engines send longer ones in pieces.
const MAX_PRINT_BYTES: u32 = 512 << 10;
/// Frames are paid for by what a run may print, or by this, whichever is more.
const MIN_FRAME_BUDGET: u64 = 1_000_000;
/// Artifacts a run may name.
const MAX_NAMED_ARTIFACTS: usize = 256;
/// Denials the operator hears of, per run; all of them are in the run's own log.
const MAX_DENIALS_TRACED: u32 = 20;

/// What the code said on its way, besides what it printed.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Artifacts it named.
    pub(crate) named: Vec<String>,
    /// Tool calls it made.
    pub(crate) calls: u32,
    /// What it left in `state`.
    pub(crate) state: State,
    denials: u32,
}

/// Sends the command and moves frames until the run ends.
pub(crate) async fn exchange(
    connection: &mut Connection,
    command: &Command,
    limits: &Limits,
    tools: Option<ToolLink>,
    transcript: &mut Transcript,
    said: &mut Said,
) -> Ended {
    let (reader, mut writer) = connection.split();
    if writer.send(command).await.is_err() {
        return Ended::Silent;
    }
    let (asks, inputs) = match tools {
        Some(ToolLink { asks, inputs, .. }) => (Asked::Bridge(asks), inputs),
        None => {
            let (answers, inputs) = mpsc::unbounded_channel();
            (Asked::Nobody(answers), inputs)
        }
    };
    let open = OpenCalls::new(limits);
    let outgoing = Outgoing::new(&open, limits);
    let heard = Heard { asks: &asks, open: &open };
    // Side by side: a guest that does not read must not keep the host from hearing it.
    tokio::select! {
        // What the guest said last comes before what ends it.
        biased;
        ended = listen(reader, limits, heard, transcript, said) => ended,
        stop = feed(writer, inputs, outgoing) => Ended::Stopped(stop),
    }
}

/// Passes inputs to the cell until one of them ends the run. They are taken as they come, also while
/// the cell does not read, so that what is held for it is known.
async fn feed(
    mut writer: CellWriter<'_>,
    mut inputs: mpsc::UnboundedReceiver<Input>,
    mut outgoing: Outgoing<'_>,
) -> Stop {
    loop {
        let Some(command) = outgoing.next() else {
            let Some(input) = inputs.recv().await else { return future::pending().await };
            if let Err(stop) = outgoing.add(input) {
                return stop;
            }
            continue;
        };
        let mut sending = pin!(writer.send(&command));
        let sent = loop {
            tokio::select! {
                biased;
                sent = &mut sending => break sent,
                Some(input) = inputs.recv() => if let Err(stop) = outgoing.add(input) {
                    return stop;
                },
            }
        };
        if sent.is_err() {
            // The cell is gone; whoever listens to it finds out why.
            return future::pending().await;
        }
    }
}

async fn listen(
    mut reader: CellReader<'_>,
    limits: &Limits,
    heard: Heard<'_>,
    transcript: &mut Transcript,
    said: &mut Said,
) -> Ended {
    let body_bytes = u32::try_from(limits.result_bytes).unwrap_or(u32::MAX);
    let caps = Caps { body_bytes, text_bytes: MAX_PRINT_BYTES };
    // Frames cost the host their whole size, not only that of the text in them.
    let mut budget = limits.output_fatal_bytes().max(MIN_FRAME_BUDGET).saturating_mul(64);
    loop {
        let (event, frame_bytes) = match reader.receive(caps).await {
            Ok(received) => received,
            Err(ReadError::Decode(error)) => return Ended::Malformed(error.to_string()),
            Err(ReadError::Ended | ReadError::Io(_)) => return Ended::Silent,
        };
        if !matches!(event, Event::ToolCall(_)) {
            budget = budget.saturating_sub(frame_bytes as u64);
        }
        match said.hear(event, limits, heard, transcript) {
            Err(ended) => return ended,
            Ok(()) if budget == 0 => {
                return Ended::TooMuchOutput(TooMuchOutput { stream: "frames" });
            }
            Ok(()) => {}
        }
    }
}

impl Said {
    fn hear(
        &mut self,
        event: Event,
        limits: &Limits,
        Heard { asks, open }: Heard<'_>,
        transcript: &mut Transcript,
    ) -> Result<(), Ended> {
        match event {
            Event::Print { stream, text } => {
                transcript.print(stream, &text).map_err(Ended::TooMuchOutput)
            }
            Event::Denied { attempt } => {
                self.denials += 1;
                if self.denials <= MAX_DENIALS_TRACED {
                    tracing::warn!(attempt, "guest code was denied");
                }
                let line = format!("[blocked] {attempt}");
                transcript.log(line.as_bytes()).map_err(Ended::TooMuchOutput)
            }
            Event::Artifact { path } => {
                // Naming more than come back is harmless, and so is forgetting them.
                if self.named.len() < MAX_NAMED_ARTIFACTS {
                    self.named.push(path);
                }
                Ok(())
            }
            Event::ToolCall(call) => {
                if self.calls >= limits.tool_calls {
                    return Err(Ended::TooManyCalls);
                }
                self.calls += 1;
                if call.call != self.calls {
                    return Err(Ended::Malformed("calls are not numbered in order".to_owned()));
                }
                open.begin(&call).map_err(Ended::Stopped)?;
                asks.ask(Ask::Call(call));
                Ok(())
            }
            Event::TimerWanted { at_ms } => {
                asks.ask(Ask::Timer(at_ms));
                Ok(())
            }
            Event::State { cut, value } => {
                let checked = State::checked(cut, value);
                self.state = checked.map_err(|error| Ended::Malformed(error.to_owned()))?;
                Ok(())
            }
            event @ (Event::Done { .. } | Event::Failed(_)) => Err(Ended::Answered(event)),
            Event::Ready | Event::Refused { .. } => {
                Err(Ended::Malformed("a second greeting".to_owned()))
            }
            Event::Branched | Event::Rerooted | Event::NotBranched { .. } => {
                Err(Ended::Malformed("a branch nobody asked for".to_owned()))
            }
        }
    }
}

/// What becomes of a call that was heard.
#[derive(Debug, Clone, Copy)]
struct Heard<'a> {
    asks: &'a Asked,
    open: &'a OpenCalls,
}

/// Where asks go.
#[derive(Debug)]
enum Asked {
    Bridge(mpsc::UnboundedSender<Ask>),
    /// Nobody is there: calls are answered with that.
    Nobody(mpsc::UnboundedSender<Input>),
}

impl Asked {
    fn ask(&self, ask: Ask) {
        // An end that is gone gives no answer, and the run ends by its clock.
        match (self, ask) {
            (Self::Bridge(bridge), ask) => {
                let _ = bridge.send(ask);
            }
            (Self::Nobody(answers), Ask::Call(call)) => {
                let fault = ToolFault::new(ErrorCode::ToolUnknown, "this run was given no tools")
                    .with_hint("configure MCP servers in .mcp.json or belljar.toml");
                let outcome = Err(fault.to_json());
                let _ = answers.send(Input::Reply(ToolReply {
                    call: call.call,
                    now_ms: None,
                    outcome,
                }));
            }
            (Self::Nobody(_), Ask::Timer(_)) => {}
        }
    }
}
