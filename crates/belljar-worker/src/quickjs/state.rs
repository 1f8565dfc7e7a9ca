//! The object that code leaves in the global `state`: handed on beside its value.

use belljar_contract::Stream;
use belljar_wire::{Event, GuestLimits, RunValue};
use rquickjs::{Ctx, Value};

use super::{
    QuickJs,
    failure::{Occasion, RunFailure},
    value::{self, EncodeError},
};

/// The most that is handed on, in bytes of JSON; the host takes no more.
const MAX_STATE_BYTES: usize = 1 << 20;
/// A run that has left nothing.
const NOTHING: &[u8] = b"{}";

impl QuickJs {
    /// Sends the state, if it is an object with something in it. Whether it differs from what was
    /// left, as JSON. What cannot be sent is left out and logged: `state` may be a name the code has
    /// for something of its own, and a run does not fail for that.
    pub(super) fn send_state(&self, limits: &GuestLimits) -> Result<bool, RunFailure> {
        self.context.with(|ctx| {
            let failed = |error| RunFailure::caught(&ctx, error, Occasion::Running, &self.current);
            let state: Value = ctx.globals().get("state").map_err(failed)?;
            if !state.is_object() || state.is_function() {
                return Ok(false);
            }
            let library = self.library.values(&ctx).map_err(failed)?;
            let most = MAX_STATE_BYTES.min(limits.result_bytes as usize);
            match value::encode(&state, &library, most) {
                Ok(RunValue { value, lossy, .. }) => {
                    if value.starts_with(b"{") && value != NOTHING {
                        self.current.send(&Event::State { cut: false, value });
                    }
                    Ok(lossy)
                }
                Err(error) => self.leave_out(&ctx, error, most).map(|()| false),
            }
        })
    }

    fn leave_out(&self, ctx: &Ctx<'_>, error: EncodeError, most: usize) -> Result<(), RunFailure> {
        let why = match error {
            EncodeError::Misfit { what, path } => value::describe(what, "state", &path).message,
            EncodeError::TooLarge => format!("state is larger than {most} bytes of JSON"),
            EncodeError::Engine(error) => {
                let failure = RunFailure::caught(ctx, error, Occasion::Running, &self.current);
                if matches!(failure, RunFailure::Overdue(_)) {
                    return Err(failure);
                }
                "state cannot be read".to_owned()
            }
        };
        let text = format!("[state] not returned: {why}").into_bytes();
        self.current.send(&Event::Print { stream: Stream::Log, text });
        self.current.send(&Event::State { cut: true, value: Vec::new() });
        Ok(())
    }
}
