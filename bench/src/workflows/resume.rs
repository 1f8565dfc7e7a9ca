//! A workflow that goes on after `kill -9`: from the start of `belljar workflow resume` until a task
//! runs again.
//!
//! All are processes. The first host is killed while the second task's call is with the MCP server; a
//! new process is told to go on, and starts a new server, as the old one went with its host. The
//! server says at once when a call is there, and by that the time is taken. How much of it was over
//! when the host had the workflow is told by its own event, to the millisecond.

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
/// What of the times asked for is spent on it.
const SHARE: u32 = 10;
/// Longer than anything here takes on a machine that still works.
const EVENT_TIMEOUT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// Events that are fetched at once; more than this workflow has.
const PAGE: u32 = 500;

const FILE: &str = "name: interrupted
tasks:
  - {id: before, tool: count:append, arguments: {text: before}}
  - {id: again, tool: count:slow, arguments: {ms: 600000}, depends_on: [before]}
";
/// What the server writes down of the two.
const BEFORE: &str = "before";
const AGAIN: &str = "slow begins";

/// Kills and resumes.
pub(super) fn measure(
    bench: &Bench<'_>,
    project: &Path,
    python: &Path,
    peer: Option<&LangGraph>,
) -> anyhow::Result<Vec<BenchRow>> {
    let mut ours = InterruptedProject::new(&project.join("resume"), python)?;
    let mut peer = peer.and_then(|peer| peer.resume(bench));
    let n = bench.arguments.n.div_ceil(SHARE);
    let (mut called, mut taken_up, mut theirs) =
        (Times::default(), Times::default(), Times::default());
    // The first round does not count: files are cached from then on.
    for round in 0..=n {
        bench.progress.show(&format!("{NAME}: {round} of {n}"));
        let (to_call, to_event) = ours.once(round)?;
        if round == 0 {
            continue;
        }
        called.add(to_call);
        taken_up.add_ms(to_event);
        for _ in 0..share(Frequency::Seldom.of(bench.arguments.n), round - 1, n) {
            if let Some(peer) = &mut peer {
                theirs.add(peer.once()?);
            }
        }
    }
    let mut rows = vec![
        BenchRow::timed(NAME, "belljar, its tool is called", VERSION, &called),
        BenchRow::timed(NAME, "belljar, the workflow is taken up", VERSION, &taken_up),
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

/// A project, and what its server writes down.
struct InterruptedProject {
    directory: PathBuf,
    notes: NotePipe,
}

impl InterruptedProject {
    fn new(directory: &Path, python: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)?;
        let server = CountingServer::install(directory, python)?;
        let notes = NotePipe::create(server.notes()).context("could not make a pipe")?;
        fs::write(directory.join("belljar.toml"), server.configuration())?;
        fs::write(directory.join("interrupted.yaml"), FILE)?;
        Ok(Self { directory: directory.to_owned(), notes })
    }

    /// Kills one host and starts the next: how long until the tool was called, and by the clock of
    /// its events how many milliseconds until it had the workflow.
    fn once(&mut self, round: u32) -> anyhow::Result<(Duration, f64)> {
        let id = format!("interrupted-{round}");
        let host = self.start(&["run", "interrupted.yaml", "--id", &id])?;
        for expected in [BEFORE, AGAIN] {
            self.notes.expect(expected).context("the first host")?;
        }
        drop(host);
        let (began, began_ms) = (Instant::now(), now_ms());
        let host = self.start(&["resume", &id])?;
        // Were the first task done again, this would be told first.
        self.notes.expect(AGAIN).context("the second host")?;
        let time = began.elapsed();
        drop(host);
        Ok((time, self.taken_up_ms(&id)?.saturating_sub(began_ms) as f64))
    }

    fn start(&self, arguments: &[&str]) -> anyhow::Result<HostProcess> {
        let mut host = command(&program::belljar()?);
        host.arg("workflow").args(arguments).current_dir(&self.directory);
        let streams = host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(HostProcess(streams.spawn().context("could not start a host")?))
    }

    /// When it was taken up again.
    fn taken_up_ms(&self, id: &str) -> anyhow::Result<i64> {
        let store = Store::open(&self.directory.join(".belljar"))?;
        let workflows = Workflows::new(Arc::new(SqliteWorkflowStore::new(store)));
        let events = runtime()?.block_on(workflows.events(id, 0, PAGE, Duration::ZERO))?;
        let mut resumed = events
            .iter()
            .filter(|event| matches!(event.happened, WorkflowEventKind::WorkflowResumed));
        let (first, more) = (resumed.next().context("it was not resumed")?, resumed.count());
        ensure!(more == 0, "it was resumed {more} times more");
        Ok(i64::try_from(first.at_ms)?)
    }
}

/// A host, which is killed when it is dropped.
struct HostProcess(Child);

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines of the server as they come: its file is a pipe.
struct NotePipe(BufReader<fs::File>);

impl NotePipe {
    fn create(path: &Path) -> io::Result<Self> {
        mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
        // Writable too, so that it does not end with each server.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self(BufReader::new(fs::File::from(pipe))))
    }

    fn expect(&mut self, expected: &str) -> anyhow::Result<()> {
        if self.0.buffer().is_empty() {
            let mut readable = [PollFd::new(self.0.get_ref(), PollFlags::IN)];
            if poll(&mut readable, Some(&EVENT_TIMEOUT))? == 0 {
                bail!("its server never wrote {expected:?}");
            }
        }
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        ensure!(line.trim_end() == expected, "its server wrote {line:?}, not {expected:?}");
        Ok(())
    }
}
