//! The fetches of one run: frames of the guest, or steps of its bridge, become requests of the host.
//!
//! The guest's numbers and texts are not trusted: belljar-net checks what a request is, and decides about it.

use std::{pin::Pin, sync::Arc, time::Duration};

use belljar_contract::{ErrorCode, Grant};
use belljar_net::{FetchAnswer, FetchClient, FetchFailure, OutgoingRequest, RequestContent};
use belljar_wire::{
    Command, FetchAsk, FetchBody, FetchHead, FetchReply, FetchRequest, FetchStep, StopReason,
    ToolFault, ToolReply,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

/// Requests of one run. Each is a row of the audit log, also if it is refused.
const MAX_REQUESTS: u32 = 10_000;

/// Something to be done for the fetches of a run.
#[derive(Debug)]
pub(crate) enum FetchJob {
    /// Take this step.
    Step(FetchAsk, FetchReplyTo),
    /// End this fetch.
    Cancel(u32),
}

/// A step under way, and its reply.
type StepTaken = Pin<Box<dyn Future<Output = Result<FetchReply, ToolFault>> + Send>>;

/// The receiver of the reply to a step.
#[derive(Debug)]
pub(crate) enum FetchReplyTo {
    Guest,
    Bridge(oneshot::Sender<Result<FetchReply, ToolFault>>),
}

/// Takes the steps of a run's fetches, many at a time.
#[derive(Debug)]
pub(crate) struct FetchServer {
    /// `None` if the run was granted no host.
    pub(crate) client: Option<Arc<FetchClient>>,
    pub(crate) jobs: mpsc::UnboundedReceiver<FetchJob>,
    pub(crate) inputs: mpsc::UnboundedSender<Result<Command, StopReason>>,
}

impl FetchServer {
    /// Serves until it is dropped; what is under way then ends.
    pub(crate) async fn serve(mut self) -> ! {
        let mut steps = JoinSet::new();
        let mut requests = 0;
        loop {
            tokio::select! {
                Some(job) = self.jobs.recv() => self.start(job, &mut requests, &mut steps),
                Some(_) = steps.join_next() => {}
                else => std::future::pending().await,
            }
        }
    }

    fn start(&self, job: FetchJob, requests: &mut u32, steps: &mut JoinSet<()>) {
        let Some(client) = self.client.clone() else {
            if let FetchJob::Step(ask, to) = job {
                self.reply(ask.call, to, Err(no_hosts()));
            }
            return;
        };
        let (FetchAsk { call, step }, to) = match job {
            FetchJob::Step(ask, to) => (ask, to),
            FetchJob::Cancel(fetch) => {
                steps.spawn(async move { client.cancel(fetch).await });
                return;
            }
        };
        if matches!(step, FetchStep::Begin(_)) {
            *requests += 1;
            if *requests > MAX_REQUESTS {
                self.reply(call, to, Err(too_many()));
                return;
            }
        }
        let replies = self.inputs.clone();
        let taken = take(client, call, step);
        steps.spawn(async move { reply(&replies, call, to, taken.await) });
    }

    fn reply(&self, call: u32, to: FetchReplyTo, outcome: Result<FetchReply, ToolFault>) {
        reply(&self.inputs, call, to, outcome);
    }
}

/// Takes a step. What has to be in the order of the frames happens before this returns.
fn take(client: Arc<FetchClient>, call: u32, step: FetchStep) -> StepTaken {
    match step {
        FetchStep::Begin(request) => {
            let answering = client.begin(call, net_request(request));
            Box::pin(async { answering.await.map(head_of).map_err(fault) })
        }
        FetchStep::Send { fetch, is_last, piece } => Box::pin(async move {
            let sent = client.send(fetch, piece.into(), is_last).await;
            sent.map(|()| FetchReply::default()).map_err(fault)
        }),
        FetchStep::Read { fetch } => Box::pin(async move {
            let piece = client.read(fetch).await.map_err(fault)?;
            Ok(FetchReply { head: None, bytes: piece.to_vec() })
        }),
    }
}

fn reply(
    inputs: &mpsc::UnboundedSender<Result<Command, StopReason>>,
    call: u32,
    to: FetchReplyTo,
    outcome: Result<FetchReply, ToolFault>,
) {
    // Whoever waited for it may be gone.
    match to {
        FetchReplyTo::Bridge(bridge) => {
            let _ = bridge.send(outcome);
        }
        FetchReplyTo::Guest => {
            let outcome = outcome.map(FetchReply::into_body).map_err(|fault| fault.to_json());
            let _ = inputs.send(Ok(Command::ToolReply(ToolReply { call, now_ms: None, outcome })));
        }
    }
}

fn net_request(request: FetchRequest) -> OutgoingRequest {
    let FetchRequest { method, url, headers, body, timeout_ms, .. } = request;
    let timeout = timeout_ms.map(|time| Duration::from_millis(time.into()));
    let content = match body {
        FetchBody::None => RequestContent::None,
        FetchBody::Whole(bytes) => RequestContent::Whole(bytes.into()),
        FetchBody::Pieces { length } => RequestContent::Pieces { length },
    };
    OutgoingRequest { method, url, headers, content, timeout }
}

fn head_of(answer: FetchAnswer) -> FetchReply {
    let FetchAnswer { status, status_text, headers, is_whole } = answer;
    let head = FetchHead { status, status_text, headers, is_whole };
    FetchReply { head: Some(head), bytes: Vec::new() }
}

/// The fault that the code sees.
fn fault(failure: FetchFailure) -> ToolFault {
    match failure {
        FetchFailure::Malformed(error) => ToolFault::new(ErrorCode::FetchFailed, error.to_string()),
        FetchFailure::Failed(message) => ToolFault::new(ErrorCode::FetchFailed, message),
        FetchFailure::TimedOut => {
            ToolFault::new(ErrorCode::FetchTimeout, "the answer did not come within its timeout")
        }
        FetchFailure::Cancelled => {
            ToolFault::new(ErrorCode::FetchFailed, "the fetch has ended already")
        }
        FetchFailure::Refused { message, missing } => {
            let fault = ToolFault::new(ErrorCode::PermissionNetwork, message);
            match missing {
                Some(host) => fault.with_missing(Grant::Net, host),
                None => fault,
            }
        }
    }
}

/// Answers a step of the guest's in a run that was granted no host.
pub(crate) fn refuse(inputs: &mpsc::UnboundedSender<Result<Command, StopReason>>, call: u32) {
    reply(inputs, call, FetchReplyTo::Guest, Err(no_hosts()));
}

fn no_hosts() -> ToolFault {
    ToolFault::new(ErrorCode::PermissionNetwork, "this run was granted no hosts")
}

fn too_many() -> ToolFault {
    let message = format!("the run went over its {MAX_REQUESTS} requests");
    ToolFault::new(ErrorCode::FetchFailed, message)
}
