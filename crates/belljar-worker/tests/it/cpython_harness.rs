//! Runs Python snippets through the guest runtime, in the machine's own Python and without a jail.
//!
//! One Python per test process is warmed as a zygote would be; it forks a cell for every
//! connection to its socket. The package is laid out in a folder of the test's own, as the worker
//! does for real.

#![expect(clippy::disallowed_methods, reason = "the tests start the machine's Python themselves")]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command as Process, Stdio},
    sync::OnceLock,
};

use belljar_contract::Language;
use belljar_wire::{
    Caps, Command, Event, GuestGrants, GuestLimits, RunCommand, RunValue, read_message,
    write_message,
};
use serde_json::Value;

use crate::harness::state_of;

pub(crate) use crate::harness::Outcome;

const LAUNCHER: &str = include_str!("cpython_launcher.py");
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cpython/guest");
const TARGET: &str = env!("CARGO_TARGET_TMPDIR");

/// Which Python runs the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Python {
    /// The machine's own, with its standard library.
    Plain,
    /// The same once more, in a process of its own: what depends on addresses differs there.
    Again,
    /// One with numpy, pandas, matplotlib, scikit-learn and what goes with them.
    Data,
}

/// A run with limits nothing here reaches.
pub(crate) fn command(code: &str) -> RunCommand {
    RunCommand {
        language: Language::Python,
        file_name: "main.py".into(),
        arguments: Vec::new(),
        limits: GuestLimits {
            memory_bytes: 2 << 30,
            wall_ms: 20_000,
            cpu_ms: 20_000,
            result_bytes: 16 << 20,
            processes: 32,
            open_files: 256,
        },
        grants: GuestGrants::default(),
        code: code.into(),
        context: Vec::new(),
        durable: None,
        session: false,
    }
}

/// A run that was granted these modules and builtins. Outside of a cell there are no folders of
/// granted commands, so it gets the machine's.
pub(crate) fn granted(modules: &[&str], code: &str) -> RunCommand {
    let mut command = command(code);
    command.grants.env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
    command.grants.modules = modules.iter().map(|&name| name.to_owned()).collect();
    command
}

/// Runs Python code with the standard limits and no grants.
pub(crate) fn run(code: &str) -> Outcome {
    run_command(Python::Plain, &command(code))
}

/// Runs Python that must succeed, and gives its value.
#[track_caller]
pub(crate) fn value(code: &str) -> Value {
    value_in(Python::Plain, code)
}

/// Runs code that must succeed in this Python, and gives its value.
#[track_caller]
pub(crate) fn value_in(python: Python, code: &str) -> Value {
    let outcome = run_command(python, &command(code));
    assert_eq!(outcome.error, None, "{code}");
    outcome.value
}

/// Runs a whole command.
pub(crate) fn run_command(python: Python, command: &RunCommand) -> Outcome {
    run_in(&mut ready_cell(python), command)
}

/// Runs commands one after the other in one cell, as a session.
pub(crate) fn run_session(python: Python, commands: &[RunCommand]) -> Vec<Outcome> {
    let mut cell = ready_cell(python);
    let commands = commands.iter().map(|one| RunCommand { session: true, ..one.clone() });
    commands.map(|command| run_in(&mut cell, &command)).collect()
}

const CAPS: Caps = Caps { body_bytes: 1 << 26, text_bytes: 64 * 1024 };

fn ready_cell(python: Python) -> UnixStream {
    let mut socket = launcher(python).connect();
    let ready = read_message::<Event>(&mut socket, CAPS).expect("the cell says it is ready");
    assert_eq!(ready, Event::Ready);
    socket
}

fn run_in(socket: &mut UnixStream, command: &RunCommand) -> Outcome {
    write_message(socket, &Command::Run(command.clone())).expect("the cell takes a run");
    let mut outcome = Outcome {
        value: Value::Null,
        lossy: false,
        cut: false,
        prints: Vec::new(),
        denied: Vec::new(),
        artifacts: Vec::new(),
        state: Value::Null,
        error: None,
    };
    loop {
        match read_message::<Event>(socket, CAPS).expect("the cell goes on to its end") {
            Event::Print { stream, text } => {
                outcome.prints.push((stream, String::from_utf8(text).expect("prints are UTF-8")));
            }
            Event::Denied { attempt } => outcome.denied.push(attempt),
            Event::Artifact { path } => outcome.artifacts.push(path),
            Event::State { cut, value } => outcome.state = state_of(cut, &value),
            Event::Failed(error) => {
                outcome.error = Some(error);
                return outcome;
            }
            Event::Done(RunValue { lossy, cut, value }) => {
                outcome.value = serde_json::from_slice(&value).expect("the value is JSON");
                (outcome.lossy, outcome.cut) = (lossy, cut);
                return outcome;
            }
            other @ (Event::Ready
            | Event::Refused { .. }
            | Event::ToolCall(_)
            | Event::TimerWanted { .. }
            | Event::Branched
            | Event::Rerooted
            | Event::Fetch(_)
            | Event::FetchCancelled { .. }
            | Event::NotBranched { .. }) => {
                unreachable!("a cell with code does not send {other:?}");
            }
        }
    }
}

/// A connection to a cell that has not said anything yet.
pub(crate) fn connect(python: Python) -> UnixStream {
    launcher(python).connect()
}

/// A warmed Python. It ends when this process does, which closes its input.
struct Launcher {
    socket: PathBuf,
    _process: Child,
}

impl Launcher {
    fn start(python: &Path, kind: Python) -> Self {
        let folder = PathBuf::from(TARGET).join(format!("cpython-{}-{kind:?}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the launcher");
        let (script, socket) = (folder.join("launcher.py"), folder.join("socket"));
        fs::write(&script, LAUNCHER).expect("the launcher is written");
        let mut process = Process::new(python)
            // Not `-I`, which ignores the variable; a zygote has it too, for durable runs.
            .args(["-s", "-B"])
            .args([&script, Path::new(GUEST), &folder])
            .arg(if kind == Python::Data { "data" } else { "plain" })
            .env_clear()
            .env("PYTHONHASHSEED", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("stderr")).expect("a file for its errors"))
            .spawn()
            .expect("Python starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("the launcher says it is warm");
        assert_eq!(line, "warm, 1 thread\n");
        Self { socket, _process: process }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).expect("the launcher listens")
    }
}

fn launcher(python: Python) -> &'static Launcher {
    static PLAIN: OnceLock<Launcher> = OnceLock::new();
    static AGAIN: OnceLock<Launcher> = OnceLock::new();
    static DATA: OnceLock<Launcher> = OnceLock::new();
    match python {
        Python::Again => AGAIN.get_or_init(|| Launcher::start(&plain_python(), python)),
        Python::Plain => PLAIN.get_or_init(|| Launcher::start(&plain_python(), python)),
        Python::Data => DATA.get_or_init(|| Launcher::start(&data_python(), python)),
    }
}

/// The machine's Python; `BELLJAR_TEST_PYTHON` names another one.
fn plain_python() -> PathBuf {
    env::var_os("BELLJAR_TEST_PYTHON").unwrap_or("/usr/bin/python3".into()).into()
}

/// A Python with the data packages, made once below the target folder.
fn data_python() -> PathBuf {
    let home = PathBuf::from(TARGET).join("../python-data");
    let python = home.join("bin/python");
    let lock = fs::File::create(PathBuf::from(TARGET).join("python-data.lock")).expect("a lock");
    lock.lock().expect("one test at a time makes it");
    let all = "import numpy, pandas, matplotlib, sklearn, scipy, seaborn, joblib, psutil, requests";
    let is_there = Process::new(&python).args(["-c", all]).status();
    if !is_there.is_ok_and(|status| status.success()) {
        must(Process::new("python3").args(["-m", "venv"]).arg(&home));
        let packages = "numpy pandas matplotlib scikit-learn scipy seaborn joblib psutil requests";
        let install = ["-m", "pip", "install", "--quiet"];
        must(Process::new(&python).args(install).args(packages.split(' ')));
    }
    python
}

fn must(process: &mut Process) {
    let status = process.status().expect("it starts");
    assert!(status.success(), "{process:?}: {status}");
}
