//! Jobs, timers, and when a run is over.
//!
//! A round: the promise jobs that are ready, then one timer callback. When neither is there, the
//! loop waits for the next timer or for the outcome of a tool call, whichever comes first. In a
//! durable run it takes exactly one input of the host's then, and only then: their order alone
//! decides what happens.

use std::{thread, time::Duration};

use rquickjs::{
    ArrayBuffer, Context, Ctx, Error, Persistent, Promise, Runtime, Value, promise::PromiseState,
};

use super::{
    current_run::{CurrentRun, HostInput},
    failure::{Occasion, RunFailure, TimeoutPoint},
    library::GuestLibrary,
    rejections::RejectionTracker,
};

/// Promise jobs between two checks of the deadline. The engine checks it too while it runs
/// bytecode, and then knows the line.
const JOBS_PER_CHECK: u32 = 1 << 17;
/// Callbacks after which a durable run takes an input, if it waits for one.
const BUSY_ROUNDS: u32 = 1000;
/// With less free memory than this, code cannot continue.
static PROBE: [u8; 64 << 10] = [0; 64 << 10];

/// The state of one run's loop.
pub(super) struct EventLoop<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) context: &'a Context,
    pub(super) library: &'a GuestLibrary,
    pub(super) rejections: &'a RejectionTracker,
    pub(super) current: &'a CurrentRun,
}

/// How far the body of the code is.
enum BodyState {
    Pending,
    /// Over without a value; timers may still be waiting.
    Done,
    /// Over, with a value.
    Value(Persistent<Value<'static>>),
}

impl EventLoop<'_> {
    /// Runs until the body has a value, or has none and nothing is left to do.
    pub(super) fn run(
        &self,
        body: &Persistent<Promise<'static>>,
    ) -> Result<Option<Persistent<Value<'static>>>, RunFailure> {
        let mut busy = 0;
        loop {
            self.run_jobs()?;
            let is_done = match self.context.with(|ctx| self.look_at(&ctx, body))? {
                // A call that is not awaited is finished all the same: it was already sent.
                BodyState::Value(value) if self.current.unfinished_calls() == 0 => {
                    return Ok(Some(value));
                }
                BodyState::Value(_) => true,
                BodyState::Done => true,
                BodyState::Pending => false,
            };
            if self.try_with(|ctx| self.library.run_one(ctx))? {
                busy += 1;
                self.listen_meanwhile(&mut busy)?;
                continue;
            }
            busy = 0;
            let delay = self.try_with(|ctx| self.library.delay(ctx, is_done))?;
            match (Duration::try_from_secs_f64(delay / 1e3).ok(), self.current.waiting_calls()) {
                (None, 0) if is_done => return Ok(None),
                // An interrupted job cannot settle its promise any more.
                (None, 0) if self.current.is_overdue() => {
                    return Err(RunFailure::Overdue(TimeoutPoint::BetweenJobs));
                }
                (None, 0) => return Err(self.context.with(stalled)),
                (delay, _) => self.wait(delay)?,
            }
        }
    }

    /// Timers that are always due must not keep outcomes from the code.
    fn listen_meanwhile(&self, busy: &mut u32) -> Result<(), RunFailure> {
        if self.current.waiting_calls() == 0 {
            return Ok(());
        }
        if self.current.is_durable() {
            // By count, because a replay may have received other inputs by now.
            if *busy >= BUSY_ROUNDS {
                *busy = 0;
                return self.take_input();
            }
        } else if self.current.has_input_within(Duration::ZERO) {
            return self.take_input();
        }
        Ok(())
    }

    /// Runs promise jobs until there are none.
    fn run_jobs(&self) -> Result<(), RunFailure> {
        let mut until_check = JOBS_PER_CHECK;
        loop {
            // An async function makes a rejection of the interruption, so it is asked for here.
            if let Some(status) = self.current.exit_status() {
                return Err(RunFailure::Exited(status));
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => return self.try_with(|_| Err(Error::Exception)),
            }
            until_check -= 1;
            if until_check == 0 {
                until_check = JOBS_PER_CHECK;
                if self.current.is_overdue() {
                    return Err(RunFailure::Overdue(TimeoutPoint::BetweenJobs));
                }
            }
        }
    }

    fn look_at(
        &self,
        ctx: &Ctx<'_>,
        body: &Persistent<Promise<'static>>,
    ) -> Result<BodyState, RunFailure> {
        let caught = |error| RunFailure::caught(ctx, error, Occasion::Running, self.current);
        let body = body.clone().restore(ctx).map_err(caught)?;
        // A rejected body throws here what it was rejected with.
        let settled = match body.state() {
            PromiseState::Pending => None,
            PromiseState::Resolved | PromiseState::Rejected => {
                body.result::<Value>().transpose().map_err(caught)?
            }
        };
        if let Some(reason) = self.rejections.first(ctx).map_err(caught)? {
            return Err(RunFailure::Thrown(Occasion::Unhandled, Persistent::save(ctx, reason)));
        }
        let Some(value) = settled else { return Ok(BodyState::Pending) };
        if value.is_undefined() || self.library.is_timer(ctx, &value).map_err(caught)? {
            return Ok(BodyState::Done);
        }
        Ok(BodyState::Value(Persistent::save(ctx, value)))
    }

    /// Waits for a timer or an input, though not past the deadline.
    fn wait(&self, delay: Option<Duration>) -> Result<(), RunFailure> {
        if self.current.is_durable() {
            if let Some(delay) = delay {
                self.current.want_timer(delay);
            }
            return self.take_input();
        }
        let left = self.current.left();
        let time = delay.into_iter().chain(left).min().unwrap_or(Duration::MAX);
        if self.current.waiting_calls() == 0 {
            thread::sleep(time);
        } else if self.current.has_input_within(time) {
            return self.take_input();
        }
        if self.current.is_overdue() {
            Err(RunFailure::Overdue(TimeoutPoint::Waiting))
        } else {
            Ok(())
        }
    }

    fn take_input(&self) -> Result<(), RunFailure> {
        match self.current.receive() {
            Some(HostInput::Reply(reply)) => self.try_with(|ctx| self.library.settle(ctx, reply)),
            Some(HostInput::FetchReply(reply, kind)) => {
                self.try_with(|ctx| self.library.settle_fetch(ctx, reply, kind))
            }
            Some(HostInput::Timer) => Ok(()),
            // The host is gone, and ends the cell.
            None => Err(RunFailure::Stalled),
        }
    }

    fn try_with<T>(
        &self,
        call: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<T>,
    ) -> Result<T, RunFailure> {
        self.context.with(|ctx| {
            let caught = |error| RunFailure::caught(&ctx, error, Occasion::Running, self.current);
            call(&ctx).map_err(caught)
        })
    }
}

/// Nothing is left to do while the body waits. A job that finds no memory is lost without a word,
/// so that is asked first. (What the lost job held may be free again by now: the host, which knows
/// the most that was in use, looks too.)
fn stalled(ctx: Ctx<'_>) -> RunFailure {
    match ArrayBuffer::new_copy(ctx.clone(), PROBE) {
        Ok(_) => RunFailure::Stalled,
        Err(_) => {
            ctx.catch();
            RunFailure::Exhausted
        }
    }
}
