//! Resuming a workflow after `kill -9`: from the start of `belljar workflow resume` until a task
//! runs again.
//!
//! Everything runs in separate processes. The first host is killed while the second task waits for
//! its MCP call. A new process resumes the workflow and starts a new server, because the old one
//! ended with its host. The server reports each call at once, and that stops the timer. The host's
//! own event tells, to the millisecond, when it had resumed the workflow.

use std::{
    fs, io,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use belljar_project::now_ms;
use belljar_store::Store;
use belljar_workflow::{SqliteWorkflowStore, WorkflowEventKind, Workflows};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, Mode, OFlags, mkfifoat},
};

use super::{
    super::{
        Bench,
        peers::command,
        program,
        rounds::{Frequency, share},
        row::BenchRow,
        stats::Times,
    },
    LangGraph, VERSION,
    counting_server::CountingServer,
    langgraph,
};
use crate::runtime;

const NAME: &str = "workflow resume, process start until a task runs again";
/// This case is timed with this fraction of the requested number.
const SHARE: u32 = 10;
/// Timeout of a step; far longer than any step takes on a working machine.
const EVENT_TIMEOUT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// Events fetched at once; more than this workflow has.
const PAGE: u32 = 500;

const FILE: &str = "name: interrupted
tasks:
  - {id: before, tool: count:append, arguments: {text: before}}
  - {id: again, tool: count:slow, arguments: {ms: 600000}, depends_on: [before]}
";
/// Notes that the server writes for the two calls.
const BEFORE: &str = "before";
const AGAIN: &str = "slow begins";

/// Times killing and resuming.
pub(super) fn measure(
    bench: &Bench<'_>,
    project: &Path,
    python: &Path,
    peer: Option<&LangGraph>,
) -> anyhow::Result<Vec<BenchRow>> {
    let mut ours = InterruptedProject::new(&project.join("resume"), python)?;
    let mut peer = peer.and_then(|peer| peer.resume(bench));
    let n = bench.arguments.n.div_ceil(SHARE);
    let (mut called, mut resumed, mut theirs) =
        (Times::default(), Times::default(), Times::default());
    // The first round does not count: it fills the file cache.
    for round in 0..=n {
        bench.progress.show(&format!("{NAME}: {round} of {n}"));
        let (to_call, to_event) = ours.once(round)?;
        if round == 0 {
            continue;
        }
        called.add(to_call);
        resumed.add_ms(to_event);
        for _ in 0..share(Frequency::Seldom.of(bench.arguments.n), round - 1, n) {
            if let Some(peer) = &mut peer {
                theirs.add(peer.once()?);
            }
        }
    }
    let mut rows = vec![
        BenchRow::timed(NAME, "belljar, its tool is called", VERSION, &called),
        BenchRow::timed(NAME, "belljar, the workflow is taken up", VERSION, &resumed),
    ];
    if let Some(peer) = peer {
        rows.push(BenchRow::timed(
            NAME,
            &format!("{}, its node runs", langgraph::NAME),
            &peer.version,
            &theirs,
        ));
    }
    Ok(rows)
}

/// A project with a killed workflow, and the notes of its server.
struct InterruptedProject {
    directory: PathBuf,
    notes: NotePipe,
}

impl InterruptedProject {
    fn new(directory: &Path, python: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)?;
        let server = CountingServer::install(directory, python)?;
        let notes = NotePipe::create(server.notes()).context("cannot create a named pipe")?;
        fs::write(directory.join("belljar.toml"), server.configuration())?;
        fs::write(directory.join("interrupted.yaml"), FILE)?;
        Ok(Self { directory: directory.to_owned(), notes })
    }

    /// Kills one host and starts the next. Returns the time until the tool was called, and, by the
    /// timestamps of its events, the milliseconds until the host had resumed the workflow.
    fn once(&mut self, round: u32) -> anyhow::Result<(Duration, f64)> {
        let id = format!("interrupted-{round}");
        let host = self.start(&["run", "interrupted.yaml", "--id", &id])?;
        for expected in [BEFORE, AGAIN] {
            self.notes.expect(expected).context("the first host")?;
        }
        drop(host);
        let (began, began_ms) = (Instant::now(), now_ms());
        let host = self.start(&["resume", &id])?;
        // If the first task ran again, its note would come first.
        self.notes.expect(AGAIN).context("the second host")?;
        let time = began.elapsed();
        drop(host);
        Ok((time, self.resumed_at_ms(&id)?.saturating_sub(began_ms) as f64))
    }

    fn start(&self, arguments: &[&str]) -> anyhow::Result<HostProcess> {
        let mut host = command(&program::belljar()?);
        host.arg("workflow").args(arguments).current_dir(&self.directory);
        let streams = host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(HostProcess(streams.spawn().context("cannot start a host")?))
    }

    /// The time of the event that says the workflow was resumed.
    fn resumed_at_ms(&self, id: &str) -> anyhow::Result<i64> {
        let store = Store::open(&self.directory.join(".belljar"))?;
        let workflows = Workflows::new(Arc::new(SqliteWorkflowStore::new(store)));
        let events = runtime()?.block_on(workflows.events(id, 0, PAGE, Duration::ZERO))?;
        let mut resumed = events
            .iter()
            .filter(|event| matches!(event.happened, WorkflowEventKind::WorkflowResumed));
        let (first, more) =
            (resumed.next().context("the workflow was not resumed")?, resumed.count());
        ensure!(more == 0, "the workflow was resumed {more} more times");
        Ok(i64::try_from(first.at_ms)?)
    }
}

/// A host process, killed when this is dropped.
struct HostProcess(Child);

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the server's notes as they are written: their file is a named pipe.
struct NotePipe(BufReader<fs::File>);

impl NotePipe {
    fn create(path: &Path) -> io::Result<Self> {
        mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
        // Opened for writing too, so that the pipe does not end when a server exits.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self(BufReader::new(fs::File::from(pipe))))
    }

    fn expect(&mut self, expected: &str) -> anyhow::Result<()> {
        if self.0.buffer().is_empty() {
            let mut readable = [PollFd::new(self.0.get_ref(), PollFlags::IN)];
            if poll(&mut readable, Some(&EVENT_TIMEOUT))? == 0 {
                bail!("the MCP server did not write {expected:?} in time");
            }
        }
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        ensure!(
            line.trim_end() == expected,
            "the MCP server wrote {line:?} instead of {expected:?}"
        );
        Ok(())
    }
}
