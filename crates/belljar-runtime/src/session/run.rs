//! A run in a session: in the guest that ran what came before it.

use std::{
    future::Future,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    pin::{Pin, pin},
    sync::Arc,
    time::{Instant, SystemTime},
};

use belljar_contract::{ErrorCode, Grants, Limits, RunError, RunRequest, RunResult};
use belljar_jail::GuestEnd;
use belljar_wire::Event;

use super::{Inner, Session, cell::SessionCell, flight::Flight};
use crate::{
    RunOptions, ToolLink,
    files::{AbandonOnDrop, Leftovers, Settled},
    orders::command,
    report::{Report, milliseconds_since},
    run::{self, Conversed, Driven, Ended, Files, Finished, Task},
    transcript::Transcript,
};

/// A run's request, checked, and its end of the bridge.
struct Checked {
    request: RunRequest,
    limits: Limits,
    tools: Option<ToolLink>,
}

impl Session {
    /// Runs code after whatever was asked of the session before. Whatever goes wrong is in the
    /// result; what the code had done until then stays done, unless the result says that it is lost.
    ///
    /// The session's own limits on memory, processes and files hold for the run, whatever it asks for;
    /// so do its grants. Dropping the future ends the run, and the guest with it.
    pub async fn run(
        &self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        let (admitted, inner) = (Instant::now(), &self.inner);
        let mut abort = pin!(abort);
        let RunOptions { id, tools, listener } = options;
        let mut report = Report::new(inner.zygote.engine, id);
        report.session_id = Some(inner.id.clone());
        let limits = request.limits.in_session(&inner.limits);
        let mut transcript = Transcript::new(&limits, listener);
        let _waiting = inner.wait();
        let begun = match inner.admit(&request, &limits) {
            Err(refusal) => Err(refusal),
            Ok(()) => tokio::select! {
                biased;
                () = &mut abort => Err(run::aborted()),
                flight = Flight::begin(inner) => flight,
            },
        };
        let outcome = match begun {
            Err(refusal) => Err(refusal),
            Ok(flight) => {
                report.metrics.startup_ms = milliseconds_since(admitted);
                report.confined(&inner.pool);
                // The guest keeps to the session's limits, not to what the run asked for.
                let request = RunRequest { limits, ..request };
                let checked = Checked { request, limits, tools };
                let outcome = inner.fly(flight, checked, &mut report, &mut transcript, abort).await;
                report.taken_back = inner.written.take_back_live().await;
                outcome
            }
        };
        let outcome = match report.settled.error.take() {
            Some(error) if outcome.is_ok() => Err(error),
            _ => outcome,
        };
        report.into_result(outcome, transcript)
    }
}

impl Inner {
    fn admit(&self, request: &RunRequest, limits: &Limits) -> Result<(), RunError> {
        self.host.admit(request, limits)?;
        let invalid = |message: String| RunError::new(ErrorCode::RequestInvalid, message);
        if request.engine() != self.zygote.engine {
            let (asked, own) = (request.language.as_str(), self.language.as_str());
            return Err(invalid(format!("this is a session for {own}, not for {asked}"))
                .with_hint("make a session for it"));
        }
        if request.workspace.is_some() || request.grants != Grants::default() {
            return Err(invalid("a run in a session cannot be granted anything".to_owned())
                .with_hint("grants and the workspace are given when the session is made"));
        }
        Ok(())
    }

    /// Has the guest run the code, and decides what becomes of the guest.
    async fn fly(
        self: &Arc<Self>,
        mut flight: Flight,
        checked: Checked,
        report: &mut Report,
        transcript: &mut Transcript,
        abort: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Finished, RunError> {
        let (began, started) = (SystemTime::now(), Instant::now());
        let Checked { request, limits, tools } = checked;
        let durable = tools.as_ref().and_then(|tools| tools.durable.clone());
        let command = command(request, self.guest.clone(), durable, true);
        let task = Task { command: &command, limits: &limits, files: Files::WantedIfNamed, tools };
        let mut ending = self.ending.subscribe();
        let stop = pin!(async {
            tokio::select! {
                () = abort => {}
                _ = ending.wait_for(Option::is_some) => {}
            }
        });
        let branch = flight.branch()?;
        let meter = branch.meter();
        let conversed = run::converse(&mut branch.connection, &meter, task, transcript, stop).await;
        let Conversed { ended, measured, said, still_there } = conversed;
        branch.measured(measured.peak_memory_bytes);
        let mut is_whole = matches!(ended, Ended::Answered(Event::Done { .. } | Event::Failed(_)));
        let end = if is_whole || (still_there && !matches!(ended, Ended::Silent)) {
            None
        } else {
            branch.end().await
        };
        let number = branch.number();
        let cell = flight.cell().clone();
        let stopped = if let Ended::Stopped(stop) = &ended { Some(stop.status) } else { None };
        let outcome = judge(ended, end, &cell, &limits).await;
        let outcome = measured.blame_memory(outcome, &limits);
        is_whole &= !matches!(&outcome, Err(error) if error.code == ErrorCode::SandboxProtocol);
        let driven = Driven { outcome, stopped, measured, work: None, said };
        report.measured(started, &driven);
        let Driven { outcome, said, .. } = driven;
        if !is_whole {
            let error = match outcome {
                Err(error) => error,
                Ok(_) => run::aborted(),
            };
            return Err(self.crash(flight, error));
        }
        if !said.named.is_empty() {
            let work = cell.work(number).await;
            let left = work.map(|work| Leftovers {
                work,
                keeper: None,
                named: said.named,
                workspace: None,
                reserved_names: self.host.reserved_names(),
                began,
                success: outcome.is_ok(),
                limits,
                is_abandoned: AbandonOnDrop::default().0.clone(),
            });
            report.settled = self.settle(&mut flight, left).await;
        }
        for id in flight.land() {
            report.settled.notes.push(format!("[checkpoint] {id} was dropped: see its session"));
        }
        outcome
    }

    /// Collects the files that a run named, without those that came back before and are the same.
    async fn settle(&self, flight: &mut Flight, left: std::io::Result<Leftovers>) -> Settled {
        let mut settled = self.host.settle_live(left).await;
        let returned = &mut flight.turn().returned;
        settled.artifacts.retain(|artifact| {
            let mut sum = DefaultHasher::new();
            artifact.data.hash(&mut sum);
            let sum = sum.finish();
            returned.insert(artifact.path.clone(), sum) != Some(sum)
        });
        settled
    }

    /// The guest is lost; the error says what that means for the session.
    fn crash(&self, flight: Flight, error: RunError) -> RunError {
        flight.crash(&error);
        if let Some(ending) = self.ending.borrow().clone()
            && error.code == ErrorCode::RunAborted
            && ending.code != error.code.as_str()
        {
            return self.has_ended();
        }
        let what = match self.is_lost().hint {
            Some(back) if self.ending.borrow().is_none() => {
                format!("what the session held in memory is lost: {back}")
            }
            _ => "the session has ended with it: make a new one".to_owned(),
        };
        let hint = match &error.hint {
            Some(hint) => format!("{hint}; {what}"),
            None => what,
        };
        error.with_hint(hint)
    }
}

/// What a run's end means, in a cell that may have been ended as a whole.
async fn judge(
    ended: Ended,
    end: Option<GuestEnd>,
    cell: &SessionCell,
    limits: &Limits,
) -> Result<Finished, RunError> {
    match cell.ended_for() {
        Some(why) if matches!(ended, Ended::Silent) => Err(why),
        _ => run::judge(ended, end, cell.body(), limits).await,
    }
}
