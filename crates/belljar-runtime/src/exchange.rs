//! Frames between the host and one running guest: code in, events out, tool calls both ways.

mod backlog;

use std::{future, pin::pin, sync::Arc};

use belljar_contract::{ErrorCode, Limits, RunError};
use belljar_net::FetchClient;
use belljar_wire::{
    Caps, Command, Event, FetchAsk, GuestAsk, ReadError, StopReason, ToolCall, ToolFault, ToolReply,
};
use tokio::sync::mpsc;

use crate::{
    ToolLink,
    connection::{CellReader, CellWriter, GuestConnection},
    fetches::{self, FetchJob, FetchReplyTo, FetchServer},
    guest_state::GuestState,
    run::EndCause,
    transcript::{TooMuchOutput, Transcript},
};
use backlog::{InputQueue, OpenCalls};

/// The largest text of one print; engines send longer ones in pieces.
const MAX_PRINT_BYTES: u32 = 512 << 10;
/// The bytes of frames that a run may send: 64 times what it may print, or 64 times this if that is more.
const MIN_FRAME_BUDGET: u64 = 1_000_000;
/// Artifacts a run may name.
const MAX_NAMED_ARTIFACTS: usize = 256;
/// Denials of one run that are traced for the operator. The run's own log has all of them.
const MAX_DENIALS_TRACED: u32 = 20;

/// The reports of the guest during a run, besides its output.
#[derive(Debug, Default)]
pub(crate) struct GuestReports {
    /// Paths of artifacts that the code named.
    pub(crate) artifacts: Vec<String>,
    /// How many tool calls the code made.
    pub(crate) calls: u32,
    /// The number of the last tool call or step of a fetch.
    asked: u32,
    /// The object that the code left in `state`.
    pub(crate) state: GuestState,
    denials: u32,
}

/// Sends the command and moves frames until the run ends.
pub(crate) async fn exchange(
    connection: &mut GuestConnection,
    command: &Command,
    limits: &Limits,
    (tools, fetches): (Option<ToolLink>, Option<Arc<FetchClient>>),
    transcript: &mut Transcript,
    reports: &mut GuestReports,
) -> EndCause {
    let (reader, mut writer) = connection.split();
    if writer.send(command).await.is_err() {
        return EndCause::Silent;
    }
    let (link, has_bridge) = match tools {
        Some(link) => (link, true),
        None => (ToolLink::pair(None).0, false),
    };
    let ToolLink { durable, asks, inputs, own_inputs, fetches: jobs, own_fetches, .. } = link;
    let tools = match has_bridge {
        true => AskRoute::Bridge(asks.clone()),
        false => AskRoute::NoTools(own_inputs.clone()),
    };
    // The journal of a durable run has its fetches.
    let fetching = match (&durable, &fetches) {
        (Some(_), _) => FetchRoute::Journal(asks),
        (None, Some(_)) => FetchRoute::AtOnce(own_fetches),
        (None, None) => FetchRoute::NoHosts(own_inputs.clone()),
    };
    let open = OpenCalls::new(limits);
    let queue = InputQueue::new(&open, limits);
    let calls = CallRouter { tools: &tools, fetches: &fetching, open: &open };
    let has_fetches = durable.is_some() || fetches.is_some();
    let server = has_fetches.then(|| FetchServer { client: fetches, jobs, inputs: own_inputs });
    let serving = async {
        match server {
            Some(server) => server.serve().await,
            None => future::pending().await,
        }
    };
    // In parallel: a guest that does not read must not stop the host from reading.
    tokio::select! {
        // The last events of the guest come before a stop of the bridge.
        biased;
        cause = receive_events(reader, limits, calls, transcript, reports) => cause,
        cause = send_inputs(writer, inputs, queue) => cause,
        cause = serving => cause,
    }
}

/// Passes inputs to the guest until one of them ends the run. Takes them as they come, even while the
/// guest does not read, so that the host knows how much it holds.
async fn send_inputs(
    mut writer: CellWriter<'_>,
    mut inputs: mpsc::UnboundedReceiver<Result<Command, StopReason>>,
    mut queue: InputQueue<'_>,
) -> EndCause {
    loop {
        let Some(command) = queue.next() else {
            let Some(input) = inputs.recv().await else { return future::pending().await };
            if let Err(cause) = enqueue(input, &mut queue) {
                return cause;
            }
            continue;
        };
        let mut sending = pin!(writer.send(&command));
        let sent = loop {
            tokio::select! {
                biased;
                sent = &mut sending => break sent,
                Some(input) = inputs.recv() => if let Err(cause) = enqueue(input, &mut queue) {
                    return cause;
                },
            }
        };
        if sent.is_err() {
            // The guest is gone; the reader finds out why.
            return future::pending().await;
        }
    }
}

fn enqueue(input: Result<Command, StopReason>, queue: &mut InputQueue<'_>) -> Result<(), EndCause> {
    queue.add(input.map_err(EndCause::Stopped)?).map_err(EndCause::BacklogFull)
}

async fn receive_events(
    mut reader: CellReader<'_>,
    limits: &Limits,
    calls: CallRouter<'_>,
    transcript: &mut Transcript,
    reports: &mut GuestReports,
) -> EndCause {
    let body_bytes = u32::try_from(limits.result_bytes).unwrap_or(u32::MAX);
    let caps = Caps { body_bytes, text_bytes: MAX_PRINT_BYTES };
    // The host pays for whole frames, not only for the text in them.
    let mut budget = limits.output_fatal_bytes().max(MIN_FRAME_BUDGET).saturating_mul(64);
    loop {
        let received = {
            let mut receiving = pin!(reader.receive(caps));
            loop {
                tokio::select! {
                    biased;
                    received = &mut receiving => break received,
                    logged = transcript.log_host_line() => {
                        if let Err(error) = logged {
                            return EndCause::TooMuchOutput(error);
                        }
                    }
                }
            }
        };
        let (event, frame_bytes) = match received {
            Ok(received) => received,
            Err(ReadError::Decode(error)) => return EndCause::Malformed(error.to_string()),
            Err(ReadError::Ended | ReadError::Io(_)) => return EndCause::Silent,
        };
        let counted_elsewhere = match &event {
            // There are few tool calls.
            Event::ToolCall(_) => frame_bytes,
            // The bytes of bodies are counted where they leave.
            Event::Fetch(ask) => ask.content_bytes(),
            Event::Ready
            | Event::Refused { .. }
            | Event::Print { .. }
            | Event::Denied { .. }
            | Event::Artifact { .. }
            | Event::FetchCancelled { .. }
            | Event::TimerWanted { .. }
            | Event::State { .. }
            | Event::Done(_)
            | Event::Failed(_)
            | Event::Branched
            | Event::Rerooted
            | Event::NotBranched { .. } => 0,
        };
        budget = budget.saturating_sub(frame_bytes.saturating_sub(counted_elsewhere) as u64);
        match reports.handle(event, limits, calls, transcript) {
            Err(cause) => return cause,
            Ok(()) if budget == 0 => {
                return EndCause::TooMuchOutput(TooMuchOutput { stream: "frames" });
            }
            Ok(()) => {}
        }
    }
}

impl GuestReports {
    fn handle(
        &mut self,
        event: Event,
        limits: &Limits,
        calls: CallRouter<'_>,
        transcript: &mut Transcript,
    ) -> Result<(), EndCause> {
        match event {
            Event::Print { stream, text } => {
                transcript.print(stream, &text).map_err(EndCause::TooMuchOutput)
            }
            Event::Denied { attempt } => {
                self.denials += 1;
                if self.denials <= MAX_DENIALS_TRACED {
                    tracing::warn!(attempt, "guest code was denied");
                }
                let line = format!("[blocked] {attempt}");
                transcript.log(line.as_bytes()).map_err(EndCause::TooMuchOutput)
            }
            Event::Artifact { path } => {
                // Further names are dropped: no more artifacts than this come back anyway.
                if self.artifacts.len() < MAX_NAMED_ARTIFACTS {
                    self.artifacts.push(path);
                }
                Ok(())
            }
            Event::ToolCall(call) => {
                if self.calls >= limits.tool_calls {
                    return Err(EndCause::TooManyCalls);
                }
                self.calls += 1;
                self.number(call.call)?;
                calls.begin(call).map_err(EndCause::BacklogFull)
            }
            Event::Fetch(ask) => {
                self.number(ask.call)?;
                calls.fetch(ask).map_err(EndCause::BacklogFull)
            }
            Event::FetchCancelled { fetch } => {
                calls.fetches.cancel(fetch);
                Ok(())
            }
            Event::TimerWanted { at_ms } => {
                calls.tools.send(GuestAsk::Timer(at_ms));
                Ok(())
            }
            Event::State { cut, value } => {
                let checked = GuestState::check(cut, value);
                self.state = checked.map_err(|error| EndCause::Malformed(error.to_owned()))?;
                Ok(())
            }
            event @ (Event::Done(_) | Event::Failed(_)) => Err(EndCause::Answered(event)),
            Event::Ready | Event::Refused { .. } => {
                Err(EndCause::Malformed("a second handshake".to_owned()))
            }
            Event::Branched | Event::Rerooted | Event::NotBranched { .. } => {
                Err(EndCause::Malformed("an answer to a branch that was not requested".to_owned()))
            }
        }
    }
}

impl GuestReports {
    /// Checks the number of a tool call or of a step of a fetch.
    fn number(&mut self, number: u32) -> Result<(), EndCause> {
        self.asked = self.asked.saturating_add(1);
        if number == self.asked {
            return Ok(());
        }
        Err(EndCause::Malformed("tool calls are not numbered in order".to_owned()))
    }
}

/// Counts calls of the guest and passes them on.
#[derive(Debug, Clone, Copy)]
struct CallRouter<'a> {
    tools: &'a AskRoute,
    fetches: &'a FetchRoute,
    open: &'a OpenCalls,
}

impl CallRouter<'_> {
    fn begin(self, call: ToolCall) -> Result<(), RunError> {
        self.open.begin(call.call, call.arguments.len())?;
        self.tools.send(GuestAsk::Call(call));
        Ok(())
    }

    fn fetch(self, ask: FetchAsk) -> Result<(), RunError> {
        self.open.begin(ask.call, ask.body_bytes())?;
        self.fetches.send(ask);
        Ok(())
    }
}

/// Where the steps of fetches go. Whoever gets them may be gone; the clock of the run then ends it.
#[derive(Debug)]
enum FetchRoute {
    /// To the bridge, which keeps the journal of the run.
    Journal(mpsc::UnboundedSender<GuestAsk>),
    AtOnce(mpsc::UnboundedSender<FetchJob>),
    /// The run was granted no host: every fetch fails at once, through this channel.
    NoHosts(mpsc::UnboundedSender<Result<Command, StopReason>>),
}

impl FetchRoute {
    fn send(&self, ask: FetchAsk) {
        match self {
            Self::Journal(bridge) => drop(bridge.send(GuestAsk::Fetch(ask))),
            Self::AtOnce(jobs) => drop(jobs.send(FetchJob::Step(ask, FetchReplyTo::Guest))),
            Self::NoHosts(replies) => fetches::refuse(replies, ask.call),
        }
    }

    fn cancel(&self, fetch: u32) {
        match self {
            Self::Journal(bridge) => drop(bridge.send(GuestAsk::FetchCancelled(fetch))),
            Self::AtOnce(jobs) => drop(jobs.send(FetchJob::Cancel(fetch))),
            // It has failed already.
            Self::NoHosts(_) => {}
        }
    }
}

/// Where the requests of the guest go.
#[derive(Debug)]
enum AskRoute {
    Bridge(mpsc::UnboundedSender<GuestAsk>),
    /// The run has no tools: every call fails at once, through this channel.
    NoTools(mpsc::UnboundedSender<Result<Command, StopReason>>),
}

impl AskRoute {
    fn send(&self, ask: GuestAsk) {
        // A bridge that is gone does not answer; the clock of the run then ends it.
        match (self, ask) {
            (Self::Bridge(bridge), ask) => {
                let _ = bridge.send(ask);
            }
            (Self::NoTools(replies), GuestAsk::Call(call)) => {
                let fault = ToolFault::new(ErrorCode::ToolUnknown, "this run has no tools")
                    .with_hint("configure MCP servers in .mcp.json or belljar.toml");
                let outcome = Err(fault.to_json());
                let reply = ToolReply { call: call.call, now_ms: None, outcome };
                let _ = replies.send(Ok(Command::ToolReply(reply)));
            }
            (
                Self::NoTools(_),
                GuestAsk::Timer(_) | GuestAsk::Fetch(_) | GuestAsk::FetchCancelled(_),
            ) => {}
        }
    }
}
