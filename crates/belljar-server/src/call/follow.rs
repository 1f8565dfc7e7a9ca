//! Follows a run for one request: sends progress, asks the person, and notices cancellation.

use std::{future::Future, pin::Pin, time::Duration};

use belljar_contract::{ApprovalId, RunId, RunStatus, Verdict};
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::McpCall;
use crate::{
    approval::{self, Channel, QuestionForm},
    backend::{ApprovalRequest, Backend},
    feed::HEARTBEAT,
    gateway::Gateway,
    live::{LiveRun, LiveRunState, RunOutcome},
};

/// How long to wait for a client that does not read its progress.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(2);

/// Lines are sent no more often than this; of those in between, only the last.
const LINE_EVERY: Duration = Duration::from_millis(200);

/// The backend reports expiry itself; if it does not, the question is closed this much later.
const EXPIRY_SLACK: Duration = Duration::from_secs(5);

/// How long a question waits for others, so that calls made in parallel are one question.
const GATHERING_TIME: Duration = Duration::from_millis(60);

/// The effect of a cancelled request on its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnCancel {
    /// It ends too: no other request needs it.
    Abort,
    /// It continues: the request only asked for its state.
    Leave,
}

/// Why the follower stopped.
#[derive(Debug)]
pub(super) enum FollowResult {
    /// The run has ended.
    Finished { run_id: Option<RunId>, finished: RunOutcome },
    /// A person has to decide, and this request cannot ask them (again).
    Waiting { run_id: RunId, waiting: Vec<ApprovalRequest> },
    /// The run takes longer than the client will wait.
    Running { run_id: RunId },
    /// The client cancelled the request.
    Cancelled,
}

type VerdictFuture = Pin<Box<dyn Future<Output = Option<Verdict>> + Send>>;

pub(super) struct Follower<'a, B> {
    gateway: &'a Gateway<B>,
    live: &'a LiveRun,
    call: &'a mut McpCall,
    state: watch::Receiver<LiveRunState>,
    /// The open question, with the ids of its approvals. Only one is open at a time.
    asking: Option<(Vec<ApprovalId>, VerdictFuture)>,
    /// When the next question is opened: calls that are made together are asked about together.
    gathers_until: Option<Instant>,
    progress: Option<ProgressSender>,
}

/// The state of a run at one moment.
struct RunSnapshot {
    run_id: Option<RunId>,
    waiting: Vec<ApprovalRequest>,
    finished: Option<RunOutcome>,
    said: Option<(u64, String)>,
}

impl<'a, B: Backend> Follower<'a, B> {
    pub(super) fn new(gateway: &'a Gateway<B>, live: &'a LiveRun, call: &'a mut McpCall) -> Self {
        let progress = ProgressSender::of(&call.context);
        Self {
            gateway,
            live,
            call,
            state: live.watch(),
            asking: None,
            gathers_until: None,
            progress,
        }
    }

    /// Follows the run until there is something to answer.
    pub(super) async fn run(mut self, wait: Duration, on_cancel: OnCancel) -> FollowResult {
        let deadline = Instant::now() + wait;
        let cancelled = self.call.context.ct.clone();
        loop {
            let seen = self.snapshot();
            if let Some(finished) = seen.finished {
                return FollowResult::Finished { run_id: seen.run_id, finished };
            }
            // A request that only asks for the state waits: a person may decide elsewhere in time.
            let may_wait = on_cancel == OnCancel::Leave && Instant::now() < deadline;
            if let Some(turn) = self.next_step(&seen, may_wait) {
                return turn;
            }
            let mut next_line = None;
            if let (Some(progress), Some((lines, line))) = (&mut self.progress, seen.said) {
                next_line = progress.send_line(&self.call.context, lines, &line).await;
            }
            let may_answer = self.asking.is_none() && seen.run_id.is_some();
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {
                    if on_cancel == OnCancel::Abort {
                        self.live.give_up();
                    }
                    return FollowResult::Cancelled;
                }
                (ids, verdict) = next_verdict(&mut self.asking) => {
                    self.asking = None;
                    for id in ids {
                        let verdict = verdict.clone();
                        self.gateway.record_decision(self.call, Some(self.live), &id, verdict).await;
                    }
                }
                () = wait_until(self.gathers_until) => {}
                changed = self.state.changed() => if changed.is_err() {
                    let finished = RunOutcome::Lost;
                    return FollowResult::Finished { run_id: seen.run_id, finished };
                },
                () = tokio::time::sleep_until(deadline), if may_answer => {
                    if seen.waiting.is_empty() {
                        return FollowResult::Running { run_id: seen.run_id.unwrap_or_default() };
                    }
                }
                () = wait_until(next_line) => {}
                () = tokio::time::sleep(HEARTBEAT), if self.progress.is_some() => {
                    if let Some(progress) = &mut self.progress {
                        progress.send_heartbeat(&self.call.context).await;
                    }
                }
            }
        }
    }

    fn snapshot(&mut self) -> RunSnapshot {
        let sent = self.progress.as_ref().map(|progress| progress.lines);
        let state = self.state.borrow_and_update();
        let news = sent.is_some_and(|sent| state.lines > sent);
        RunSnapshot {
            run_id: state.run_id.clone(),
            waiting: state.waiting.clone(),
            finished: state.finished.as_ref().map(|(finished, _)| finished.clone()),
            said: state.line.clone().filter(|_| news).map(|line| (state.lines, line)),
        }
    }

    /// Opens the next question, closes one that was settled elsewhere, or ends following.
    fn next_step(&mut self, seen: &RunSnapshot, may_wait: bool) -> Option<FollowResult> {
        let is_open = |id: &ApprovalId| seen.waiting.iter().any(|one| one.id == *id);
        if self.asking.as_ref().is_some_and(|(ids, _)| !ids.iter().any(is_open)) {
            self.asking = None;
        }
        if self.asking.is_some() {
            return None;
        }
        let Some(first) = seen.waiting.first() else {
            self.gathers_until = None;
            return None;
        };
        let open: Vec<&ApprovalRequest> =
            seen.waiting.iter().filter(|one| !self.call.is_dismissed(&one.id)).collect();
        if self.call.channel == Channel::Elicit && !open.is_empty() {
            let until = *self.gathers_until.get_or_insert_with(|| Instant::now() + GATHERING_TIME);
            if Instant::now() < until {
                return None;
            }
        }
        self.gathers_until = None;
        match (self.call.channel, approval::next_form(&open)) {
            (Channel::Elicit, Some((ids, form))) => {
                let context = self.call.context.clone();
                let left = open.iter().map(|one| approval::time_left(one.expires_ms)).min();
                let asked = async move { ask_form(&context, form, left.flatten()).await };
                self.asking = Some((ids, Box::pin(asked)));
                None
            }
            (Channel::None, _) if may_wait && self.gateway.shared.told.are_known(&seen.waiting) => {
                None
            }
            (Channel::Elicit, None) | (Channel::InputRequired | Channel::None, _) => {
                Some(FollowResult::Waiting {
                    run_id: first.run_id.clone(),
                    waiting: seen.waiting.clone(),
                })
            }
        }
    }
}

/// Asks the person at the client (up to 2025-11-25) about calls that wait. Returns what the question was
/// about, and no verdict if they did not decide.
///
/// Must run in the task that handles the request: the transport uses the task to find the stream
/// that the question belongs to.
pub(super) async fn ask(
    context: &RequestContext<RoleServer>,
    open: &[&ApprovalRequest],
) -> (Vec<ApprovalId>, Option<Verdict>) {
    let Some((ids, form)) = approval::next_form(open) else { return (Vec::new(), None) };
    let left = open.iter().map(|one| approval::time_left(one.expires_ms)).min();
    (ids, ask_form(context, form, left.flatten()).await)
}

/// Asks a question that expires after `left`. `None` if the person did not decide.
pub(super) async fn ask_form(
    context: &RequestContext<RoleServer>,
    QuestionForm { params, extent }: QuestionForm,
    left: Option<Duration>,
) -> Option<Verdict> {
    let left = left.map(|left| left + EXPIRY_SLACK);
    let asked = context.peer.create_elicitation_with_timeout(params, left);
    tokio::select! {
        () = context.ct.cancelled() => None,
        answer = asked => match answer {
            Ok(answer) => approval::verdict(&answer, extent),
            Err(error) => {
                tracing::warn!(%error, "cannot ask the person at the client");
                None
            }
        },
    }
}

/// Completes at this moment, or never if there is none.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn next_verdict(
    asking: &mut Option<(Vec<ApprovalId>, VerdictFuture)>,
) -> (Vec<ApprovalId>, Option<Verdict>) {
    match asking {
        Some((ids, asked)) => (ids.clone(), asked.await),
        None => std::future::pending().await,
    }
}

/// Sends progress to a client that asked for it. The protocol requires the number to grow.
pub(super) struct ProgressSender {
    token: ProgressToken,
    sent: f64,
    lines: u64,
    /// When the next line may be sent.
    next: Instant,
}

impl ProgressSender {
    /// `None` if the client did not ask for progress.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token();
        token.map(|token| Self { token, sent: 0.0, lines: 0, next: Instant::now() })
    }

    /// Sends the latest line. If the last one was sent just now, gives the time when it may be
    /// sent.
    async fn send_line(
        &mut self,
        context: &RequestContext<RoleServer>,
        lines: u64,
        line: &str,
    ) -> Option<Instant> {
        if Instant::now() < self.next {
            return Some(self.next);
        }
        self.lines = lines;
        self.send(context, line).await;
        self.next = Instant::now() + LINE_EVERY;
        None
    }

    pub(super) async fn send_heartbeat(&mut self, context: &RequestContext<RoleServer>) {
        self.send(context, RunStatus::Running.as_str()).await;
    }

    /// Sends one message to the client, and gives up if the client does not take it in time.
    pub(super) async fn send(&mut self, context: &RequestContext<RoleServer>, message: &str) {
        self.sent += 1.0;
        let progress =
            ProgressNotificationParam::new(self.token.clone(), self.sent).with_message(message);
        let _ = timeout(PROGRESS_TIMEOUT, context.peer.notify_progress(progress)).await;
    }
}
