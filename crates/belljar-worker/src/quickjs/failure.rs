//! Turns a failed run into the error that the agent gets: code, message, place and hint.

use belljar_contract::{ErrorCode, MissingKind};
use belljar_wire::{Event, GuestError, GuestLimits};
use rquickjs::{Ctx, Error, Persistent, Type, Value};

use super::{
    current_run::CurrentRun,
    error_reader::{ErrorReader, LibraryErrorInfo},
    frames::{Frame, Origin, StackTrace, current, describe},
    hints,
    missing_names::{self, MissingName},
};
use crate::disk;

/// Longer callees are expressions, not names that help a reader.
const MAX_CALLEE_BYTES: usize = 100;

/// Why a run ended without a value. The values live in the runtime.
#[derive(Debug)]
pub(super) enum RunFailure {
    /// The code threw this value and did not catch it.
    Thrown(Occasion, Persistent<Value<'static>>),
    /// The deadline of the run has passed.
    Overdue(TimeoutPoint),
    /// The code waits for a promise that can no longer settle.
    Stalled,
    /// There is too little memory left to continue.
    Exhausted,
    /// The code ended itself with this status.
    Exited(i32),
    /// The error is already described.
    Reported(GuestError),
    /// The engine itself failed.
    Engine(Error),
}

/// The activity of the code when the deadline passed.
#[derive(Debug)]
pub(super) enum TimeoutPoint {
    /// The code ran, and this was thrown to interrupt it.
    Running(Persistent<Value<'static>>),
    /// The engine was between two promise jobs.
    BetweenJobs,
    /// The code waited for timers or tool calls.
    Waiting,
}

/// The stage at which a value was thrown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The caller's context was parsed.
    Context,
    /// QuickJS compiled the output of the transpiler.
    Compiling,
    /// The guest code was running.
    Running,
    /// A promise was rejected without a handler.
    Unhandled,
}

impl RunFailure {
    /// The failure behind an error of the bindings; takes the exception out of the context.
    pub(super) fn caught(
        ctx: &Ctx<'_>,
        error: Error,
        occasion: Occasion,
        current: &CurrentRun,
    ) -> Self {
        // Without memory, strings cannot be read, and leave an exception behind.
        if !error.is_exception() && !ctx.has_exception() {
            return Self::Engine(error);
        }
        let value = Persistent::save(ctx, ctx.catch());
        if let Some(status) = current.exit_status() {
            return Self::Exited(status);
        }
        match current.is_overdue() {
            true => Self::Overdue(TimeoutPoint::Running(value)),
            false => Self::Thrown(occasion, value),
        }
    }
}

/// Describes the failures of one run.
pub(super) struct Reporter<'a, 'js> {
    pub(super) reader: ErrorReader<'a, 'js>,
    pub(super) current: &'a CurrentRun,
    pub(super) limits: &'a GuestLimits,
}

impl<'js> Reporter<'_, 'js> {
    /// The error of a run that ended this way.
    pub(super) fn report(&self, failure: RunFailure) -> GuestError {
        match failure {
            RunFailure::Thrown(occasion, value) => match value.restore(self.reader.ctx) {
                Ok(value) => self.thrown_when(occasion, &value),
                Err(error) => engine_failed(&error),
            },
            RunFailure::Overdue(when) => self.overdue(when),
            RunFailure::Stalled => {
                let message = "the code awaits a promise that can no longer settle";
                GuestError::new(ErrorCode::RuntimeStalled, message).with_hint(hints::STALLED)
            }
            RunFailure::Exhausted => self.out_of_memory("out of memory"),
            RunFailure::Exited(status) => self.exited(status),
            RunFailure::Reported(error) => error,
            RunFailure::Engine(error) => engine_failed(&error),
        }
    }

    fn exited(&self, status: i32) -> GuestError {
        let message = format!("process.exit: the code ended itself with status {status}");
        let mut error = GuestError::new(ErrorCode::RuntimeExit, message);
        error.exit_code = Some(status);
        error.hint = hints::for_missed_variables(&self.current.missed_variables());
        error
    }

    fn thrown_when(&self, occasion: Occasion, value: &Value<'js>) -> GuestError {
        match occasion {
            Occasion::Running => self.thrown(value, ErrorCode::RuntimeThrown),
            Occasion::Unhandled => self.thrown(value, ErrorCode::RuntimeUnhandledRejection),
            Occasion::Compiling => {
                let mut error = self.thrown(value, ErrorCode::SyntaxInvalid);
                if error.code == ErrorCode::RuntimeStackOverflow {
                    error.code = ErrorCode::SyntaxInvalid;
                    error.message = "SyntaxError: the code is nested too deeply".into();
                    error.hint = None;
                }
                error
            }
            Occasion::Context => {
                let error = self.thrown(value, ErrorCode::RequestInvalid);
                if error.code != ErrorCode::RequestInvalid {
                    return error;
                }
                GuestError::new(error.code, format!("context is not valid JSON: {}", error.message))
            }
        }
    }

    fn overdue(&self, when: TimeoutPoint) -> GuestError {
        let (hint, interrupted) = match when {
            TimeoutPoint::Running(value) => {
                (hints::TIMEOUT_RUNNING, value.restore(self.reader.ctx).ok())
            }
            TimeoutPoint::BetweenJobs => (hints::TIMEOUT_RUNNING, None),
            TimeoutPoint::Waiting => (hints::TIMEOUT_WAITING, None),
        };
        let error = interrupted.as_ref().and_then(Value::as_object);
        let mut frames = error.map(|error| self.reader.trace(error).frames).unwrap_or_default();
        let mut message = format!("timed out after {}", hints::duration(self.limits.wall_ms));
        if let Some(top) = frames.first_mut() {
            top.place_at_loop();
            message.push_str(&format!(", at line {}", top.position().0));
            if top.origin == Origin::Earlier {
                message.push_str(&format!(" of {}", top.source_name()));
            }
        }
        let error = GuestError::new(ErrorCode::LimitTimeout, message).with_hint(hint);
        self.placed(error, &frames, String::new())
    }

    /// A value that was thrown, or that a promise was rejected with.
    fn thrown(&self, value: &Value<'js>, code: ErrorCode) -> GuestError {
        let Some(object) = self.reader.as_error(value) else {
            return self.thrown_value(value, code);
        };
        let mut trace = self.reader.trace(object);
        let mut message = self.reader.headline(object);
        if let Some(error) = self.limit(&message) {
            return self.placed(error, &trace.frames, String::new());
        }
        self.name_missing_function(&mut message, &mut trace);
        let mut error = GuestError::new(code, message);
        if let Some(info) = self.reader.library_error(object) {
            let LibraryErrorInfo { code, hint, host, tool_name } = info;
            (error.code, error.hint, error.tool_name) = (code, hint, tool_name);
            if let Some(host) = host {
                error = error.with_missing(MissingKind::Net, host);
            }
        } else if let Some((name, hint)) = self.reader.file_error(object) {
            (error.code, error.hint) = (of_file_error(&name).unwrap_or(code), Some(hint));
        } else if let Some(name) = undefined_name(&error.message)
            && let Some(missing) = missing_names::lookup(name)
        {
            error = self.missing(name, missing, code);
        } else {
            error.hint = self.reader.hint(object).or_else(|| self.hint_for(&error.message));
        }
        self.placed(error, &trace.frames, self.reader.related(object))
    }

    /// What is known about a message: it may name a variable that was not granted.
    fn hint_for(&self, message: &str) -> Option<String> {
        let mut missed = self.current.missed_variables();
        missed.retain(|name| message.contains(name.as_str()));
        hints::for_missed_variables(&missed)
            .or_else(|| hints::for_message(message).map(str::to_owned))
    }

    /// A thrown value that is not an error: the message is how the console would print it.
    fn thrown_value(&self, value: &Value<'js>, code: ErrorCode) -> GuestError {
        if self.stands_for_no_memory(value) {
            return self.out_of_memory("out of memory");
        }
        GuestError::new(code, format!("Uncaught {}", self.reader.inspect(value)))
            .with_hint("Throw an Error to get a stack: throw new Error(message).")
    }

    /// When memory is used up to the last byte, QuickJS cannot make the error that says so, and
    /// throws null. Code that means to do so says it.
    fn stands_for_no_memory(&self, value: &Value<'js>) -> bool {
        let text = &self.reader.sources.current().text;
        let is_meant = text.contains("throw null") || text.contains("reject(null");
        value.type_of() == Type::Uninitialized || value.is_null() && !is_meant
    }

    /// A name that exists elsewhere but not here.
    fn missing(&self, name: &str, missing: MissingName, code: ErrorCode) -> GuestError {
        let MissingName { code: refusal, hint } = missing;
        if refusal == ErrorCode::RuntimeThrown {
            let message = format!("ReferenceError: {name} does not exist here");
            return GuestError::new(code, message).with_hint(hint);
        }
        self.current.send(&Event::Denied { attempt: name.to_owned() });
        GuestError::new(refusal, format!("PermissionError: {name} is not available"))
            .with_hint(hint)
    }

    /// Names the expression that is not a function; the engine does not.
    fn name_missing_function(&self, message: &mut String, trace: &mut StackTrace) {
        let Some(top) = trace.frames.first_mut().filter(|_| trace.is_direct) else { return };
        if message == "TypeError: not a function"
            && let Some((callee, place)) = top.called()
            && callee.len() <= MAX_CALLEE_BYTES
        {
            *message = format!("TypeError: {callee} is not a function");
            top.offset = place;
        }
    }

    /// Errors by which the engine says that a limit was reached.
    fn limit(&self, message: &str) -> Option<GuestError> {
        match message {
            "InternalError: out of memory" => Some(self.out_of_memory("out of memory")),
            "RangeError: invalid string length" | "InternalError: string too long" => {
                Some(self.out_of_memory("a string grew too long"))
            }
            "RangeError: Maximum call stack size exceeded" => {
                let error = GuestError::new(ErrorCode::RuntimeStackOverflow, message);
                Some(error.with_hint(hints::STACK_OVERFLOW))
            }
            _ => None,
        }
    }

    fn out_of_memory(&self, what: &str) -> GuestError {
        let limit = hints::bytes(self.limits.memory_bytes);
        GuestError::new(ErrorCode::LimitMemory, format!("{what}: the limit is {limit}"))
            .with_hint(hints::MEMORY)
    }

    fn placed(&self, error: GuestError, frames: &[Frame], related: String) -> GuestError {
        let stack = describe(frames) + &related;
        let error = if stack.is_empty() { error } else { error.with_stack(stack) };
        // A line of another run's code would be taken for one of this code.
        let Some(top) = current(frames) else { return error };
        let (line, column) = top.position();
        error.at(line, column)
    }
}

/// The code of a run that ends in this error of `fs`, if it is one of Belljar's.
fn of_file_error(name: &str) -> Option<ErrorCode> {
    match name {
        "EACCES" | "EPERM" | "EROFS" => Some(ErrorCode::PermissionFile),
        "ENOSPC" | "EDQUOT" => Some(disk::exhausted_limit()),
        "EFBIG" => Some(ErrorCode::LimitDisk),
        "EMFILE" => Some(ErrorCode::LimitOpenFiles),
        _ => None,
    }
}

/// The name a ReferenceError is about.
fn undefined_name(message: &str) -> Option<&str> {
    message.strip_prefix("ReferenceError: ")?.strip_suffix(" is not defined")
}

fn engine_failed(error: &Error) -> GuestError {
    GuestError::new(ErrorCode::SandboxEngine, format!("the engine failed: {error}"))
}
