//! The `quickjs` engine: TypeScript and JavaScript.
//!
//! Warmed in the zygote: runtime, context, guest library. A cell forked from there transpiles
//! the code, runs it to its end and encodes its value. What the code may use is limited here for
//! the sake of good messages; the boundary is the jail.

mod current_run;
mod encoding;
mod error_reader;
mod event_loop;
mod failure;
mod fetch;
mod files;
mod frames;
mod hashes;
mod hints;
mod holes;
mod library;
mod locale;
mod missing_names;
mod modules;
mod natives;
mod node_modules;
mod peek;
mod prelude;
mod random;
mod rejections;
mod sources;
mod state;
mod text;
mod tools;
mod transpile;
mod url;
mod value;
mod zone;

use std::rc::Rc;

use belljar_contract::{EngineName, ErrorCode, Language};
use belljar_wire::{Event, GuestError, GuestGrants, GuestLimits, RunCommand, RunValue};
use current_run::CurrentRun;
use error_reader::ErrorReader;
use event_loop::EventLoop;
use failure::{Occasion, Reporter, RunFailure};
use library::GuestLibrary;
use rejections::RejectionTracker;
use rquickjs::{
    CatchResultExt, Context, Ctx, Function, Object, Persistent, Promise, Runtime, Undefined, Value,
    context::EvalOptions, object::Property,
};
use sources::{History, Sources};
use transpile::{NameScope, PredeclaredNames, Script, SourceCode, TranspileError};
use value::EncodeError;

use crate::{CodeRunner, Engine, HostLink, engine::name_output, zygote::become_zygote};

/// The jail gives the main thread 64 MiB of stack; the engine stops far below.
const STACK_BYTES: usize = 16 << 20;
/// Memory for the report after guest code has used up its own.
const SPARE_BYTES: u64 = 16 << 20;
/// The memory for a run after one that had used up the memory of its session.
const FREED_BYTES: u64 = 4 << 20;
/// No run leaves more jobs behind than its memory has room for.
const MAX_DROPPED_JOBS: u32 = 1 << 24;
/// The collector does not run before this much is allocated.
const MAX_GC_THRESHOLD: usize = 128 << 20;

/// A little of everything most runs do; it prints nothing and leaves nothing behind.
const REHEARSAL: &str = "const rows: { n: number }[] = [{ n: 1 }, { n: 2 }];
const total = await Promise.resolve(rows.map((row) => row.n).reduce((a, b) => a + b, 0));
return { total, text: `${JSON.stringify(rows)}`.length };";
const REHEARSAL_BYTES: u64 = 64 << 20;
const REHEARSAL_MS: u64 = 1000;

/// Why the engine could not be warmed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// QuickJS did not start.
    #[error("could not start quickjs")]
    Start(#[from] rquickjs::Error),
    /// A file of the guest library threw.
    #[error("the guest library threw: {0}")]
    Library(String),
}

/// TypeScript and JavaScript, in this program itself.
#[derive(Debug)]
pub(crate) struct QuickJsEngine;

impl Engine for QuickJsEngine {
    fn name(&self) -> EngineName {
        EngineName::QuickJs
    }

    fn start(&self, _setup: &str) -> ! {
        become_zygote(|| QuickJs::warm().map_err(|error| error.to_string()))
    }
}

/// A warmed QuickJS. A cell uses it once, or for all the runs of one session.
pub struct QuickJs {
    // Handles into the runtime come first, so that they are dropped before it.
    library: GuestLibrary,
    rejections: Rc<RejectionTracker>,
    context: Context,
    runtime: Runtime,
    current: Rc<CurrentRun>,
    history: History,
    /// The last run of the session used up its memory, and may have left it so.
    is_full: bool,
}

impl std::fmt::Debug for QuickJs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("QuickJs").finish_non_exhaustive()
    }
}

impl QuickJs {
    /// Starts the engine and evaluates the guest library.
    pub fn warm() -> Result<Self, EngineError> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK_BYTES);
        let current = CurrentRun::new();
        let clock = current.clone();
        let is_over = move || clock.exit_status().is_some() || clock.is_overdue();
        runtime.set_interrupt_handler(Some(Box::new(is_over)));
        modules::refuse_all(&runtime, &current);
        let rejections = RejectionTracker::watch(&runtime);
        let context = Context::full(&runtime)?;
        let library = context.with(|ctx| {
            let caught = warm_library(&ctx, &current).catch(&ctx);
            caught.map_err(|error| EngineError::Library(error.to_string()))
        })?;
        let history = History::default();
        Ok(Self { library, rejections, context, runtime, current, history, is_full: false })
    }

    /// Transpiles the code, runs it and encodes its value.
    fn run_source(
        &self,
        sources: &Sources,
        limits: &GuestLimits,
        context: Vec<u8>,
    ) -> Result<RunValue, GuestError> {
        let script = transpile::transpile(sources.current()).map_err(|refusal| {
            let TranspileError { error, attempt } = refusal;
            if let Some(attempt) = attempt {
                self.current.send(&Event::Denied { attempt });
            }
            *error
        })?;
        // Zero would mean no limit.
        self.runtime.set_memory_limit(to_usize(self.memory_for(limits)).max(1));
        // References are counted; the collector is only for cycles, and most runs make none.
        self.runtime.set_gc_threshold(to_usize(limits.memory_bytes / 4).min(MAX_GC_THRESHOLD));
        let done = self
            .start(script, context, sources.current())
            .and_then(|body| self.event_loop().run(&body));
        let done = self.end_process(done).and_then(|value| self.encode(value, limits));
        let done = done.and_then(|done| {
            let lossy = self.send_state(limits)?;
            Ok(RunValue { lossy: done.lossy || lossy, ..done })
        });
        done.map_err(|failure| {
            let roomy = limits.memory_bytes.saturating_add(SPARE_BYTES);
            self.runtime.set_memory_limit(to_usize(roomy));
            self.context.with(|ctx| {
                let reader = ErrorReader { ctx: &ctx, library: &self.library, sources };
                Reporter { reader, current: &self.current, limits }.report(failure)
            })
        })
    }

    /// The memory that the code may use in all. If an earlier run has left nothing of it, there is
    /// a little more, so that something can be let go.
    fn memory_for(&self, limits: &GuestLimits) -> u64 {
        if !self.is_full {
            return limits.memory_bytes;
        }
        self.runtime.run_gc();
        let used = u64::try_from(self.runtime.memory_usage().malloc_size).unwrap_or_default();
        let most = limits.memory_bytes.saturating_add(SPARE_BYTES);
        used.saturating_add(FREED_BYTES).clamp(limits.memory_bytes, most)
    }

    /// Ends the jobs that a run of a session has left. Without a stack to run on, no job gets as
    /// far as guest code.
    fn drop_jobs(&self) {
        if !self.runtime.is_job_pending() {
            return;
        }
        self.runtime.set_max_stack_size(1);
        for _ in 0..MAX_DROPPED_JOBS {
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => self.context.with(|ctx| drop(ctx.catch())),
            }
        }
        self.runtime.set_max_stack_size(STACK_BYTES);
    }

    /// Compiles the script and runs it up to its first `await`.
    fn start(
        &self,
        script: Script,
        context: Vec<u8>,
        source: &SourceCode,
    ) -> Result<Persistent<Promise<'static>>, RunFailure> {
        self.context.with(|ctx| {
            let caught = |occasion| {
                let (ctx, current) = (&ctx, &self.current);
                move |error| RunFailure::caught(ctx, error, occasion, current)
            };
            if context.contains(&0) {
                let message = "context is not valid JSON: it contains a NUL byte";
                return Err(RunFailure::Reported(GuestError::new(
                    ErrorCode::RequestInvalid,
                    message,
                )));
            }
            if source.scope != NameScope::Run {
                self.library.forget(&ctx).map_err(caught(Occasion::Running))?;
            }
            if self.current.is_durable() {
                self.library.make_durable(&ctx).map_err(caught(Occasion::Running))?;
            }
            set_context(&ctx, context).map_err(caught(Occasion::Context))?;
            let mut options = EvalOptions::default();
            options.strict = false;
            options.filename = Some(source.script_name());
            let main = ctx.eval_with_options::<Function, _>(script.text, options);
            let main = main.map_err(caught(Occasion::Compiling))?;
            declare(&ctx, &script.ahead).map_err(caught(Occasion::Running))?;
            let import = self.library.import_module(&ctx).map_err(caught(Occasion::Running))?;
            let body: Promise = main.call((import,)).map_err(caught(Occasion::Running))?;
            Ok(Persistent::save(&ctx, body))
        })
    }

    /// The code is over: unless it failed, its `process` may still have a word, and a status. Code that ended
    /// itself with status 0 has done what it wanted, and has no value.
    fn end_process(
        &self,
        done: Result<Option<Persistent<Value<'static>>>, RunFailure>,
    ) -> Result<Option<Persistent<Value<'static>>>, RunFailure> {
        let ended = done.and_then(|value| {
            let status = self.context.with(|ctx| {
                let failed =
                    |error| RunFailure::caught(&ctx, error, Occasion::Running, &self.current);
                self.library.end_process(&ctx).map_err(failed)
            })?;
            if status == 0 { Ok(value) } else { Err(RunFailure::Exited(status)) }
        });
        self.current.take_exit_status();
        match ended {
            Err(RunFailure::Exited(0)) => Ok(None),
            other => other,
        }
    }

    fn event_loop(&self) -> EventLoop<'_> {
        EventLoop {
            runtime: &self.runtime,
            context: &self.context,
            library: &self.library,
            rejections: &self.rejections,
            current: &self.current,
        }
    }

    fn encode(
        &self,
        value: Option<Persistent<Value<'static>>>,
        limits: &GuestLimits,
    ) -> Result<RunValue, RunFailure> {
        let Some(value) = value else {
            return Ok(RunValue { lossy: false, cut: false, value: b"null".to_vec() });
        };
        self.context.with(|ctx| {
            let failed = |error| RunFailure::caught(&ctx, error, Occasion::Running, &self.current);
            let value = value.restore(&ctx).map_err(failed)?;
            let library = self.library.values(&ctx).map_err(failed)?;
            match value::encode(&value, &library, limits.result_bytes as usize) {
                Ok(encoded) => Ok(encoded),
                Err(EncodeError::Engine(error)) => Err(failed(error)),
                Err(EncodeError::Misfit { what, path }) => {
                    Err(RunFailure::Reported(value::describe(what, "result", &path)))
                }
                Err(EncodeError::TooLarge) => Err(RunFailure::Reported(too_large(limits))),
            }
        })
    }
}

impl CodeRunner for QuickJs {
    fn run(&mut self, run: RunCommand, host: &HostLink) -> Result<RunValue, GuestError> {
        let RunCommand {
            language,
            file_name,
            arguments,
            limits,
            grants,
            code,
            context,
            durable,
            session,
        } = run;
        self.current.set_arguments(arguments);
        if session && durable.is_some() {
            let message =
                "a run in a session cannot be durable: the journal does not record session state";
            return Err(GuestError::new(ErrorCode::RequestInvalid, message));
        }
        let scope = match session {
            true => NameScope::Session { run: self.history.next_run() },
            false => NameScope::Run,
        };
        // QuickJS takes the name as a C string.
        let file_name = file_name.replace('\0', "");
        let sources = self.history.with(SourceCode { language, file_name, text: code, scope });
        let begun = self.current.begin(host, &limits, grants, &sources, durable.as_ref());
        begun.map_err(|error| {
            GuestError::new(
                ErrorCode::SandboxEngine,
                format!("cannot get random bytes from the system: {error}"),
            )
        })?;
        let done = self.run_source(&sources, &limits, context);
        name_output(host);
        self.current.end();
        if session {
            self.drop_jobs();
            self.history.remember(&sources);
            let code = done.as_ref().err().map(|error| error.code);
            self.is_full = code == Some(ErrorCode::LimitMemory);
        }
        self.rejections.clear();
        done
    }

    fn rehearse(&mut self, host: &HostLink) {
        let limits = GuestLimits {
            memory_bytes: REHEARSAL_BYTES,
            wall_ms: REHEARSAL_MS,
            cpu_ms: REHEARSAL_MS,
            result_bytes: 1024,
            processes: 1,
            open_files: 1,
        };
        let _ = self.run(
            RunCommand {
                language: Language::TypeScript,
                file_name: "rehearsal.ts".to_owned(),
                arguments: Vec::new(),
                limits,
                grants: GuestGrants::default(),
                code: REHEARSAL.to_owned(),
                context: b"{}".to_vec(),
                durable: None,
                session: false,
            },
            host,
        );
    }

    fn warm_further(&mut self) {
        // A failure here is harmless: guest code tries again on first use.
        self.context.with(|ctx| {
            let _ = self.library.load_all(&ctx).catch(&ctx);
        });
        holes::fill();
    }
}

fn warm_library<'js>(ctx: &Ctx<'js>, current: &Rc<CurrentRun>) -> rquickjs::Result<GuestLibrary> {
    let native = Object::new(ctx.clone())?;
    natives::install(ctx, &native, current)?;
    peek::install(ctx, &native)?;
    encoding::install(ctx, &native)?;
    hashes::install(&native)?;
    url::install(ctx, &native)?;
    zone::install(ctx, &native)?;
    locale::install(&native)?;
    files::install(ctx, &native, current)?;
    tools::install(ctx, &native, current)?;
    fetch::install(ctx, &native, current)?;
    prelude::evaluate(ctx, &native)?;
    GuestLibrary::save(&native)
}

/// Makes the caller's data the global `context`.
fn set_context(ctx: &Ctx<'_>, json: Vec<u8>) -> rquickjs::Result<()> {
    let value = match json.is_empty() {
        true => Object::new(ctx.clone())?.into_value(),
        false => ctx.json_parse(json)?,
    };
    ctx.globals().prop("context", Property::from(value).writable().configurable().enumerable())
}

/// Makes the names that must be there before the code runs.
fn declare(ctx: &Ctx<'_>, ahead: &PredeclaredNames) -> rquickjs::Result<()> {
    let globals = ctx.globals();
    for name in &ahead.renewed {
        globals.set(name.as_str(), Undefined)?;
    }
    for name in &ahead.declared {
        if !globals.contains_key(name.as_str())? {
            globals.set(name.as_str(), Undefined)?;
        }
    }
    Ok(())
}

fn too_large(limits: &GuestLimits) -> GuestError {
    let limit = hints::bytes(limits.result_bytes.into());
    GuestError::new(ErrorCode::LimitResult, format!("the value is larger than {limit} of JSON"))
        .with_hint("Return a summary: filter, count, or take the first rows.")
}

/// On a 32-bit machine no limit is larger than the address space.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
