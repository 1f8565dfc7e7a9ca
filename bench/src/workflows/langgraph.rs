//! `LangGraph` with its SQLite saver: graphs of functions in one Python process, without a sandbox.
//!
//! For a checkpoint only the saver's `put` is timed, without the writes of tasks. Graphs run with
//! `durability="sync"`: each step is stored before the next one starts, as in Belljar.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use super::super::{
    Bench,
    peers::command,
    python_peer::PythonPeer,
    resident_peer::ResidentPeer,
    rounds::{Frequency, TimedCase},
};

pub(super) const NAME: &str = "langgraph with sqlite";
const PACKAGE: &str = "langgraph";
const SAVER: &str = "langgraph-checkpoint-sqlite";
const CHECKPOINTS: &str = include_str!("langgraph/checkpoints.py");
const FAN_OUT: &str = include_str!("langgraph/fan_out.py");
const RESUME: &str = include_str!("langgraph/resume.py");
/// The saver's journal settings: a write-ahead log that is synchronised with every commit, as
/// Belljar's is.
const DURABLE: &str = "wal 2";
const KILLED: i32 = 9;

/// The peer, and the directory for its scripts and databases.
#[derive(Debug)]
pub(super) struct LangGraph {
    python: PathBuf,
    version: String,
    directory: PathBuf,
}

impl LangGraph {
    /// Finds it, or records that it is missing.
    pub(super) fn of(bench: &Bench<'_>, python: &PythonPeer, project: &Path) -> Option<Self> {
        for package in [PACKAGE, SAVER] {
            if !python.packages.contains_key(package) {
                bench.omissions.missing(package);
                return None;
            }
        }
        let version = python.packages.get(PACKAGE)?.clone();
        let directory = project.join("langgraph");
        fs::create_dir_all(&directory).ok()?;
        Some(Self { python: python.program.clone(), version, directory })
    }

    /// Times checkpoints of a state of this many bytes.
    pub(super) fn checkpoints(
        &self,
        bench: &Bench<'_>,
        bytes: usize,
        often: Frequency,
    ) -> Option<TimedCase<'static>> {
        let script = CHECKPOINTS.replace("BYTES", &bytes.to_string());
        let mut driver = self.driver(bench, &format!("checkpoints_{bytes}.py"), &script)?;
        Some(TimedCase::new(NAME, &self.version, often, move || {
            let (time, durability) = driver.ask()?;
            ensure!(
                durability == DURABLE,
                "its SQLite settings differ from Belljar's: {durability}"
            );
            Ok(time)
        }))
    }

    /// Times a graph with one function call per item; the time is per item.
    pub(super) fn fan_out(
        &self,
        bench: &Bench<'_>,
        tasks: u32,
        at_once: u32,
    ) -> Option<TimedCase<'static>> {
        let script = FAN_OUT.replace("TASKS", &tasks.to_string());
        let script = script.replace("AT_ONCE", &at_once.to_string());
        let mut driver = self.driver(bench, &format!("fan_out_{at_once}.py"), &script)?;
        Some(TimedCase::new(NAME, &self.version, Frequency::Rarely, move || {
            let (time, done) = driver.ask()?;
            ensure!(done == tasks.to_string(), "it ran {done} of {tasks} functions");
            Ok(time / tasks)
        }))
    }

    /// A graph that is killed and then resumed.
    pub(super) fn resume(&self, bench: &Bench<'_>) -> Option<KilledGraph> {
        let script = self.directory.join("resume.py");
        let mut resume = match fs::write(&script, RESUME) {
            Ok(()) => KilledGraph {
                python: self.python.clone(),
                version: self.version.clone(),
                script,
                made: 0,
            },
            Err(error) => return left_out(bench, &error.into()),
        };
        match resume.once() {
            Ok(_) => Some(resume),
            Err(error) => left_out(bench, &error),
        }
    }

    fn driver(&self, bench: &Bench<'_>, name: &str, script: &str) -> Option<ResidentPeer> {
        let path = self.directory.join(name);
        let written = fs::write(&path, script).map_err(anyhow::Error::from);
        match written.and_then(|()| ResidentPeer::start(&self.python, &path)) {
            Ok(driver) => Some(driver),
            Err(error) => left_out(bench, &error),
        }
    }
}

fn left_out<T>(bench: &Bench<'_>, error: &anyhow::Error) -> Option<T> {
    bench.omissions.left_out(NAME, &format!("{error:#}"));
    None
}

/// Creates the graph: two nodes, and the process kills itself in the second.
#[derive(Debug)]
pub(super) struct KilledGraph {
    python: PathBuf,
    pub(super) version: String,
    script: PathBuf,
    made: u32,
}

impl KilledGraph {
    /// Runs one process until it is killed, starts the next, and returns the time until the second
    /// node runs.
    pub(super) fn once(&mut self) -> anyhow::Result<Duration> {
        self.made += 1;
        let killed = self.command("run").output().context("cannot start langgraph's Python")?;
        let said = String::from_utf8_lossy(&killed.stdout);
        let signal = std::os::unix::process::ExitStatusExt::signal(&killed.status);
        let complaint = String::from_utf8_lossy(&killed.stderr);
        let complaint = complaint.lines().last().unwrap_or_default();
        ensure!(
            signal == Some(KILLED) && said == "first\nsecond\n",
            "the first process printed {said:?} {complaint}"
        );
        let began = Instant::now();
        let mut next = self.command("resume").spawn().context("cannot start langgraph's Python")?;
        let mut output =
            BufReader::new(next.stdout.take().context("the process has no standard output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let time = began.elapsed();
        let ended = output.read_to_string(&mut String::new()).and_then(|_| next.wait());
        ensure!(line == "second\n", "the second process printed {line:?}");
        ensure!(ended?.success(), "the second process failed");
        Ok(time)
    }

    fn command(&self, what: &str) -> std::process::Command {
        let mut command = command(&self.python);
        command.arg(&self.script).args([what, &self.made.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
