//! Runs a snippet through the engine as a cell would, and collects all it said.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use belljar_contract::{ErrorCode, Language, Stream};
use belljar_wire::{
    Caps, Command, Event, GuestError, GuestGrants, GuestLimits, RunCommand, read_message,
    write_message,
};
use belljar_worker::{CodeRunner, HostLink, quickjs::QuickJs};
use serde_json::Value;

/// The jail gives the cell's main thread as much.
const STACK_BYTES: usize = 64 << 20;

/// All that came of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The value; null when the run failed.
    pub(crate) value: Value,
    /// Whether the value lost something.
    pub(crate) lossy: bool,
    /// Whether a table was cut.
    pub(crate) cut: bool,
    /// The printed text, in order.
    pub(crate) prints: Vec<(Stream, String)>,
    /// The refused attempts, in order.
    pub(crate) denied: Vec<String>,
    /// Files that are to come back, in order.
    pub(crate) artifacts: Vec<String>,
    /// The value that the code left in `state`: null when nothing came, text when it was left out.
    pub(crate) state: Value,
    /// Why the run failed.
    pub(crate) error: Option<GuestError>,
}

impl Outcome {
    /// All that went to standard output.
    pub(crate) fn stdout(&self) -> String {
        self.printed(Stream::Stdout)
    }

    /// All that went to one stream.
    pub(crate) fn printed(&self, stream: Stream) -> String {
        let texts = self.prints.iter().filter(|(to, _)| *to == stream);
        texts.map(|(_, text)| text.as_str()).collect()
    }

    /// The error; the run must have failed.
    #[track_caller]
    pub(crate) fn failure(&self) -> &GuestError {
        self.error.as_ref().expect("the run fails")
    }

    /// Code, message, line and column of the error.
    #[track_caller]
    pub(crate) fn place(&self) -> (ErrorCode, &str, Option<u32>, Option<u32>) {
        let error = self.failure();
        (error.code, &error.message, error.line, error.column)
    }

    /// Code and message of the error.
    #[track_caller]
    pub(crate) fn told(&self) -> (ErrorCode, &str) {
        let error = self.failure();
        (error.code, &error.message)
    }

    /// The hint of the error.
    #[track_caller]
    pub(crate) fn hint(&self) -> &str {
        self.failure().hint.as_deref().expect("the error has a hint")
    }
}

/// The error code of each run; none for one that succeeded.
pub(crate) fn codes(outcomes: &[Outcome]) -> Vec<Option<ErrorCode>> {
    outcomes.iter().map(|outcome| outcome.error.as_ref().map(|error| error.code)).collect()
}

/// A run with limits nothing here reaches.
pub(crate) fn command(code: &str) -> RunCommand {
    RunCommand {
        language: Language::TypeScript,
        file_name: "main.ts".into(),
        arguments: Vec::new(),
        limits: GuestLimits {
            memory_bytes: 256 << 20,
            wall_ms: 20_000,
            cpu_ms: 20_000,
            result_bytes: 16 << 20,
            processes: 1,
            open_files: 16,
        },
        grants: GuestGrants::default(),
        code: code.into(),
        context: Vec::new(),
        durable: None,
        session: false,
    }
}

/// Runs TypeScript code with the standard limits and no grants.
pub(crate) fn run(code: &str) -> Outcome {
    run_command(command(code))
}

/// Runs TypeScript that must succeed, and gives its value.
#[track_caller]
pub(crate) fn value(code: &str) -> Value {
    let outcome = run(code);
    assert_eq!(outcome.error, None, "{code}");
    outcome.value
}

/// The value of each expression; what throws has "Name: message" as its value.
pub(crate) fn values(expressions: &[&str]) -> Value {
    let functions: String = expressions.iter().map(|e| format!("() => ({e}),\n")).collect();
    value(&format!(
        "return [{functions}].map((f) => {{
            try {{ return f() ?? null; }} catch (e) {{ return `${{e.name}}: ${{e.message}}`; }}
        }});"
    ))
}

/// Runs a whole command.
pub(crate) fn run_command(command: RunCommand) -> Outcome {
    run_on(|| QuickJs::warm().expect("the engine warms"), command)
}

/// Runs a whole command on any engine.
pub(crate) fn run_on<R: CodeRunner>(
    warm: impl FnOnce() -> R + Send + 'static,
    command: RunCommand,
) -> Outcome {
    run_with(warm, command, |ask| unreachable!("nobody answers {ask:?}"))
}

/// Runs a whole command on any engine, with a host that answers what the code asks of it.
pub(crate) fn run_with<R: CodeRunner>(
    warm: impl FnOnce() -> R + Send + 'static,
    command: RunCommand,
    answer: impl FnMut(Event) -> Vec<Command> + Send + 'static,
) -> Outcome {
    on_engine_thread(move || run_once(&mut warm(), command, answer))
}

/// Runs commands one after the other on one engine, as the cell of a session does.
pub(crate) fn run_session<R: CodeRunner>(
    warm: impl FnOnce() -> R + Send + 'static,
    commands: Vec<RunCommand>,
    answer: impl FnMut(Event) -> Vec<Command> + Clone + Send + 'static,
) -> Vec<Outcome> {
    on_engine_thread(move || {
        let mut engine = warm();
        let commands = commands.into_iter().map(|one| RunCommand { session: true, ..one });
        commands.map(|one| run_once(&mut engine, one, answer.clone())).collect()
    })
}

fn on_engine_thread<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let engine = thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    engine.expect("a thread").join().expect("the engine does not panic")
}

fn run_once<R: CodeRunner>(
    engine: &mut R,
    command: RunCommand,
    answer: impl FnMut(Event) -> Vec<Command> + Send + 'static,
) -> Outcome {
    let (cell, host) = UnixStream::pair().expect("a socket pair");
    let reader = thread::spawn(move || drain(host, answer));
    let link = HostLink::new(cell);
    let result = engine.run(command, &link);
    drop(link);
    let HeardEvents { prints, denied, artifacts, state } =
        reader.join().expect("the reader does not panic");
    let (value, (lossy, cut), error) = match result {
        Ok(done) => {
            let value = serde_json::from_slice(&done.value).expect("the value is JSON");
            (value, (done.lossy, done.cut), None)
        }
        Err(error) => (Value::Null, (false, false), Some(error)),
    };
    Outcome { value, lossy, cut, prints, denied, artifacts, state, error }
}

#[derive(Default)]
struct HeardEvents {
    prints: Vec<(Stream, String)>,
    denied: Vec<String>,
    artifacts: Vec<String>,
    state: Value,
}

/// The state as it was sent, or that it was not.
pub(crate) fn state_of(cut: bool, value: &[u8]) -> Value {
    match cut {
        true => "left out".into(),
        false => serde_json::from_slice(value).expect("the state is JSON"),
    }
}

fn drain(mut host: UnixStream, mut answer: impl FnMut(Event) -> Vec<Command>) -> HeardEvents {
    let mut heard = HeardEvents::default();
    let caps = Caps { body_bytes: 1 << 26, text_bytes: 1 << 20 };
    while let Ok(event) = read_message::<Event>(&mut host, caps) {
        match event {
            Event::Print { stream, text } => {
                let text = String::from_utf8(text).expect("prints are UTF-8");
                heard.prints.push((stream, text));
            }
            Event::Denied { attempt } => heard.denied.push(attempt),
            Event::Artifact { path } => heard.artifacts.push(path),
            Event::State { cut, value } => heard.state = state_of(cut, &value),
            ask @ (Event::ToolCall(_) | Event::TimerWanted { .. }) => {
                for command in answer(ask) {
                    // The code may have ended without waiting for it.
                    let _ = write_message(&mut host, &command);
                }
            }
            other @ (Event::Ready
            | Event::Refused { .. }
            | Event::Done(_)
            | Event::Failed(_)
            | Event::Branched
            | Event::Rerooted
            | Event::Fetch(_)
            | Event::FetchCancelled { .. }
            | Event::NotBranched { .. }) => {
                unreachable!("an engine does not send {other:?}");
            }
        }
    }
    heard
}

/// A directory of a test's own, removed when the test is over.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
}

impl Place {
    /// Makes an empty directory with a name of its own.
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("belljar-place-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a directory can be made");
        Self { path }
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in it, as code has to write it.
    pub(crate) fn at(&self, name: &str) -> String {
        self.path.join(name).to_str().expect("a path is UTF-8").to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A session that declares `old` in its first run and calls it in its last, after so many runs of a mebibyte
/// of source each. Returns the stack of the error that `old` throws.
pub(crate) fn stack_of_old(
    session: impl Fn(&[&str]) -> Vec<Outcome>,
    declaration: &str,
    filler: &str,
    fillers: usize,
) -> Option<String> {
    let mut codes = vec![declaration];
    codes.extend(std::iter::repeat_n(filler, fillers));
    codes.push("old()");
    session(&codes).last().expect("there is a run").failure().stack.clone()
}
