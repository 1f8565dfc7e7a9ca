//! Jobs, timers, and when a run is over.
//!
//! A round: the promise jobs that are ready, then one timer callback. When neither is there, the
//! loop waits for the next timer. (Waiting is [`EventLoop::wait`] alone, the place for a `poll`
//! on the host's socket once answers can come from there.)

use std::{thread, time::Duration};

use rquickjs::{
    ArrayBuffer, Context, Ctx, Error, Persistent, Promise, Runtime, Value, promise::PromiseState,
};

use super::{
    current::Current,
    failure::{Failure, Occasion},
    library::Library,
    rejections::Rejections,
};

/// Jobs between two looks at the clock. Seldom: the engine looks itself while it runs bytecode,
/// and then knows the line.
const JOBS_PER_CHECK: u32 = 1 << 17;
/// With less memory than this left, code cannot be expected to go on.
static PROBE: [u8; 64 << 10] = [0; 64 << 10];

/// What one run's loop works with.
pub(super) struct EventLoop<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) context: &'a Context,
    pub(super) library: &'a Library,
    pub(super) rejections: &'a Rejections,
    pub(super) current: &'a Current,
}

/// Where the body stands.
enum Body {
    Pending,
    /// Over, with nothing to say; timers may still be waiting.
    Done,
    /// Over, with a value.
    Value(Persistent<Value<'static>>),
}

impl EventLoop<'_> {
    /// Runs until the body has a value, or has none and nothing is left to do.
    pub(super) fn run(
        &self,
        body: &Persistent<Promise<'static>>,
    ) -> Result<Option<Persistent<Value<'static>>>, Failure> {
        loop {
            self.run_jobs()?;
            let is_done = match self.context.with(|ctx| self.look_at(&ctx, body))? {
                Body::Value(value) => return Ok(Some(value)),
                Body::Done => true,
                Body::Pending => false,
            };
            if self.try_with(|ctx| self.library.run_one(ctx))? {
                continue;
            }
            let delay = self.try_with(|ctx| self.library.delay(ctx, is_done))?;
            match Duration::try_from_secs_f64(delay / 1e3) {
                Ok(delay) => self.wait(delay)?,
                Err(_) if is_done => return Ok(None),
                Err(_) => return Err(self.context.with(stalled)),
            }
        }
    }

    /// Runs promise jobs until there are none.
    fn run_jobs(&self) -> Result<(), Failure> {
        let mut until_check = JOBS_PER_CHECK;
        loop {
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => return self.try_with(|_| Err(Error::Exception)),
            }
            until_check -= 1;
            if until_check == 0 {
                until_check = JOBS_PER_CHECK;
                if self.current.is_overdue() {
                    return Err(Failure::Overdue(None));
                }
            }
        }
    }

    fn look_at(&self, ctx: &Ctx<'_>, body: &Persistent<Promise<'static>>) -> Result<Body, Failure> {
        let caught = |error| Failure::caught(ctx, error, Occasion::Running, self.current);
        let body = body.clone().restore(ctx).map_err(caught)?;
        // A rejected body throws here what it was rejected with.
        let settled = match body.state() {
            PromiseState::Pending => None,
            PromiseState::Resolved | PromiseState::Rejected => {
                body.result::<Value>().transpose().map_err(caught)?
            }
        };
        if let Some(reason) = self.rejections.first(ctx).map_err(caught)? {
            return Err(Failure::Thrown(Occasion::Unhandled, Persistent::save(ctx, reason)));
        }
        let Some(value) = settled else { return Ok(Body::Pending) };
        if value.is_undefined() || self.library.is_timer(ctx, &value).map_err(caught)? {
            return Ok(Body::Done);
        }
        Ok(Body::Value(Persistent::save(ctx, value)))
    }

    /// Sleeps, though not past the deadline.
    fn wait(&self, delay: Duration) -> Result<(), Failure> {
        let left = self.current.left().unwrap_or(delay);
        thread::sleep(delay.min(left));
        if self.current.is_overdue() { Err(Failure::Overdue(None)) } else { Ok(()) }
    }

    fn try_with<T>(
        &self,
        call: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<T>,
    ) -> Result<T, Failure> {
        self.context.with(|ctx| {
            let caught = |error| Failure::caught(&ctx, error, Occasion::Running, self.current);
            call(&ctx).map_err(caught)
        })
    }
}

/// Nothing is left to do while the body waits. A job that finds no memory is lost without a word,
/// so that is asked first.
fn stalled(ctx: Ctx<'_>) -> Failure {
    match ArrayBuffer::new_copy(ctx.clone(), PROBE) {
        Ok(_) => Failure::Stalled,
        Err(_) => {
            ctx.catch();
            Failure::Exhausted
        }
    }
}
