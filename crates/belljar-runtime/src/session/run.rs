//! A run in a session: in the guest that ran the code before it.

use std::{
    future::Future,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    pin::{Pin, pin},
    sync::Arc,
    time::{Instant, SystemTime},
};

use belljar_contract::{ErrorCode, Grants, Limits, RunError, RunRequest, RunResult};
use belljar_jail::CellKind;

use super::{CellSession, SessionState, guest_turn::GuestTurn, run_network::SessionRunNetwork};
use crate::{
    NetworkOptions, RunOptions, ToolLink,
    files::{self, AbandonOnDrop, CollectedFiles, Leftovers},
    result_builder::ResultBuilder,
    run::{self, CellRunOutcome, CollectFiles, ReturnedValue, RunSpec},
    transcript::Transcript,
};

impl CellSession {
    /// Runs code after all earlier calls to the session. Every failure is in the result. What the code did
    /// before a failure stays done, unless the result says that it is lost.
    ///
    /// The session's own limits on memory, processes and files hold for the run, whatever the request asks
    /// for, and so do its grants. Dropping the future ends the run, and the guest with it.
    pub async fn run(
        &self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let (admitted, state) = (Instant::now(), &self.state);
        let mut abort = pin!(abort);
        let RunOptions { id, tools, listener, network } = options;
        let limits = request.limits.in_session(&state.limits);
        let transcript = Transcript::new(&limits, listener);
        let mut result = ResultBuilder::new(state.zygote.engine, id, transcript);
        result.session_id = Some(state.id.clone());
        let _queued = state.queue_call();
        let turn = match state.admit(&request, &limits) {
            Err(refusal) => Err(refusal),
            Ok(()) => run::unless_aborted(abort.as_mut(), GuestTurn::begin(state)).await,
        };
        let outcome = match turn {
            Err(refusal) => Err(refusal),
            Ok(turn) => {
                result.starts(admitted, &state.pool);
                // The guest keeps to the limits of the session, not to those of the request.
                let request = RunRequest { limits, ..request };
                let links = (tools, network);
                let outcome = state.run_in_guest(turn, request, links, &mut result, abort).await;
                result.withheld = state.written.withhold_live().await;
                outcome
            }
        };
        result.finish(outcome)
    }
}

impl SessionState {
    fn admit(&self, request: &RunRequest, limits: &Limits) -> Result<(), RunError> {
        self.host.admit(request, limits)?;
        let invalid = |message: String| RunError::new(ErrorCode::RequestInvalid, message);
        let engine = self.zygote.engine;
        if let Some(asked) = request.engine.filter(|asked| *asked != engine) {
            return Err(invalid(format!("this session runs on {engine}, not on {asked}"))
                .with_hint(format!("omit `engine`, or open a session on {asked}")));
        }
        if !engine.runs(request.language) {
            let (asked, own) = (request.language.as_str(), self.language.as_str());
            return Err(invalid(format!("this session runs {own}, not {asked}"))
                .with_hint(format!("open a session for {asked}")));
        }
        if request.workspace.is_some() || request.grants != Grants::default() {
            return Err(invalid("a run in a session cannot have grants of its own".to_owned())
                .with_hint("grants and the workspace are set when the session is opened"));
        }
        Ok(())
    }

    /// Runs the code in the live guest, and gives the guest back or loses it.
    async fn run_in_guest(
        self: &Arc<Self>,
        mut turn: GuestTurn,
        request: RunRequest,
        (tools, options): (Option<ToolLink>, NetworkOptions),
        result: &mut ResultBuilder,
        abort: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<ReturnedValue, RunError> {
        let (began, started, limits) = (SystemTime::now(), Instant::now(), request.limits);
        let (grants, collect) = (self.guest.clone(), CollectFiles::IfNamed);
        let spec = RunSpec::new(request, grants, tools, collect, CellKind::Session);
        let mut ending = self.ending.subscribe();
        let stop = pin!(async {
            tokio::select! {
                () = abort => {}
                _ = ending.wait_for(Option::is_some) => {}
            }
        });
        let network = SessionRunNetwork::begin(turn.cell(), (limits, options), result).await;
        let excess = network.as_ref().map(SessionRunNetwork::excess).unwrap_or_default();
        let mut spec = spec.ended_by(excess.clone());
        spec.fetches = network.as_ref().map(SessionRunNetwork::fetches);
        let branch = turn.branch()?;
        let (meter, transcript) = (branch.meter(), &mut result.transcript);
        let run = run::run_guest(&mut branch.connection, &meter, spec, transcript, stop).await;
        if let Some(network) = network {
            network.end().await;
            result.transcript.log_last_host_lines();
        }
        branch.note_peak(run.usage.peak_memory_bytes);
        let has_answered = run.cause.is_answer();
        let has_ended = !has_answered && run.has_guest_ended();
        let end = if has_ended { branch.end().await } else { None };
        let number = branch.number();
        let cell = turn.cell().clone();
        let mut run = run.judge(end, cell.end_reason(), cell.body(), &limits).await;
        // It may be known only when all connections have ended.
        run.outcome = run.outcome.and_then(|value| excess.error().map_or(Ok(value), Err));
        result.ended(started, &run);
        let CellRunOutcome { outcome, reports, .. } = run;
        let is_protocol = |error: &RunError| error.code == ErrorCode::SandboxProtocol;
        if !has_answered || outcome.as_ref().is_err_and(is_protocol) {
            let error = outcome.err().unwrap_or_else(run::aborted);
            return Err(self.lose_guest(turn, error));
        }
        if reports.artifacts.iter().any(|named| files::is_returned(named)) {
            let work = cell.work(number).await;
            let left = work.map(|work| Leftovers {
                work,
                keeper: None,
                named: reports.artifacts,
                workspace: None,
                reserved_names: self.host.reserved_names.clone(),
                began,
                success: outcome.is_ok(),
                limits,
                is_abandoned: AbandonOnDrop::default().0.clone(),
            });
            result.files = self.collect_files(&mut turn, left).await;
        }
        for id in turn.finish() {
            let note =
                format!("[checkpoint] {id} was dropped: the checkpoints of the session say why");
            result.files.notes.push(note);
        }
        outcome
    }

    /// Collects the files that a run named, without those that came back before and have not changed.
    async fn collect_files(
        &self,
        turn: &mut GuestTurn,
        left: std::io::Result<Leftovers>,
    ) -> CollectedFiles {
        let mut files = self.host.collect_live_files(left).await;
        let returned = &mut turn.guests().returned;
        files.artifacts.retain(|artifact| {
            let mut hash = DefaultHasher::new();
            artifact.data.hash(&mut hash);
            let hash = hash.finish();
            returned.insert(artifact.path.clone(), hash) != Some(hash)
        });
        files
    }

    /// Ends the guest of a run that failed like this; the error says what that means for the session.
    fn lose_guest(&self, turn: GuestTurn, error: RunError) -> RunError {
        turn.lose_guest(&error);
        if let Some(ending) = self.ending.borrow().clone()
            && error.code == ErrorCode::RunAborted
            && ending.code != error.code.as_str()
        {
            return self.ended_error();
        }
        let what = match self.lost_error().hint {
            Some(back) if self.ending.borrow().is_none() => {
                format!("the memory of the session is lost: {back}")
            }
            _ => "the session has ended with it: open a new one".to_owned(),
        };
        let hint = match &error.hint {
            Some(hint) => format!("{hint}; {what}"),
            None => what,
        };
        error.with_hint(hint)
    }
}
