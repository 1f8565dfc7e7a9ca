//! Following a running bash to its end: output goes to the host as it is read, and only the last
//! lines are kept.
//!
//! The run ends with bash itself. Output of its children in the background is read for a moment,
//! while it keeps coming; after that it is no longer part of the run.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    process::ExitStatus,
    time::{Duration, Instant},
};

use belljar_contract::Stream;
use belljar_wire::{Event, RunCommand};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::{
    json_line::{JsonLine, LastLine},
    launch::RunningShell,
    lines::LineBuffer,
    refusals::RefusedCommands,
    state::MAX_STATE_BYTES,
    stderr::{StderrRewriter, StderrTail},
};
use crate::HostLink;

/// Bytes that are read at once; the pipe holds as many.
const CHUNK_BYTES: usize = 64 << 10;
/// The beginning of a line waits this long for its end.
const FLUSH_AFTER: Duration = Duration::from_millis(20);
/// After bash has ended: silence of this length means that all is tail. It delays only runs whose children
/// still hold the streams, and a busy machine lets a child wait for some 20 ms before it speaks;
const SILENCE: Duration = Duration::from_millis(50);
/// and this is the end in any case.
const GRACE: Duration = Duration::from_millis(200);

/// How long a session's shell has to end by itself when its time is up.
const KILL_DELAY: Duration = Duration::from_millis(50);

/// A bash that has ended: its status, and the facts that its output shows.
#[derive(Debug)]
pub(super) struct ShellExit {
    pub(super) status: ExitStatus,
    /// It was ended because its time was up; only in a session. In a single run the host does that.
    pub(super) is_overdue: bool,
    /// The state that a session's shell has written for the next one.
    pub(super) left: Option<Vec<u8>>,
    pub(super) last_line: LastLine,
    pub(super) tail: StderrTail,
    pub(super) refusals: RefusedCommands,
}

/// Forwards the output of bash until it has ended.
pub(super) fn pump(
    mut running: RunningShell,
    run: &RunCommand,
    host: &HostLink,
) -> io::Result<ShellExit> {
    let group = i32::try_from(running.child.id()).ok().and_then(Pid::from_raw);
    let mut limit = run.session.then(|| TimeLimit::new(run, group));
    let mut pump = Pump {
        stdout: running.child.stdout.take().map(OwnedFd::from),
        stderr: running.child.stderr.take().map(OwnedFd::from),
        refused: Some(running.refused),
        left: running.state.take(),
        process: open_process(running.child.id())?,
        forward: Forwarder::new(run, host),
        chunk: vec![0; CHUNK_BYTES],
    };
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        let timeout = match ended {
            Some((_, end)) => Some(SILENCE.min(end.saturating_duration_since(Instant::now()))),
            None => pump.forward.is_pending().then_some(FLUSH_AFTER),
        };
        let left = limit.as_mut().filter(|_| ended.is_none()).map(TimeLimit::enforce);
        let timeout = timeout.into_iter().chain(left.flatten()).min();
        let step = pump.step(timeout, ended.is_some())?;
        if step == PumpStep::Ended {
            ended = Some((running.child.wait()?, Instant::now() + GRACE));
        }
        match ended {
            Some((status, end))
                if pump.is_closed() || step == PumpStep::Silence || Instant::now() >= end =>
            {
                return pump.finish(status, limit);
            }
            None if step == PumpStep::Silence => pump.forward.flush()?,
            Some(_) | None => {}
        }
    }
}

/// The time a session's shell may take, and the processes that end with it.
#[derive(Debug)]
struct TimeLimit {
    end: Option<Instant>,
    group: Option<Pid>,
    is_overdue: bool,
}

impl TimeLimit {
    fn new(run: &RunCommand, group: Option<Pid>) -> Self {
        let end = Instant::now().checked_add(Duration::from_millis(run.limits.wall_ms));
        Self { end, group, is_overdue: false }
    }

    /// Asks all processes to end when the time is up, and kills them a moment later. Returns the
    /// time until the next step.
    fn enforce(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.end? <= now {
            self.signal(if self.is_overdue { Signal::KILL } else { Signal::TERM });
            self.is_overdue = true;
            self.end = now.checked_add(KILL_DELAY);
        }
        Some(self.end?.saturating_duration_since(now))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails if no process is left.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Ends the groups of processes a shell has left, those that are still there.
pub(super) fn end_groups(leaders: &[i32]) {
    for group in leaders.iter().copied().filter(|leader| *leader > 1).filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A descriptor that is readable once the process has ended.
fn open_process(id: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// The outcome of one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PumpStep {
    /// Bytes were read from at least one source.
    Read,
    /// Nothing arrived before the timeout.
    Silence,
    /// The process has ended.
    Ended,
}

struct Pump<'a> {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    refused: Option<OwnedFd>,
    left: Option<OwnedFd>,
    process: OwnedFd,
    forward: Forwarder<'a>,
    chunk: Vec<u8>,
}

impl Pump<'_> {
    fn is_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Waits for something to read, and reads it once from wherever it is.
    fn step(&mut self, timeout: Option<Duration>, has_ended: bool) -> io::Result<PumpStep> {
        let ready = self.wait(timeout, has_ended)?;
        let [stdout, stderr, refused, left, process] = ready;
        if ready == [false; 5] {
            return Ok(PumpStep::Silence);
        }
        let Self { forward, chunk, .. } = self;
        if refused {
            read_from(&mut self.refused, chunk, |bytes| forward.refused(bytes))?;
        }
        if left {
            read_from(&mut self.left, chunk, |bytes| forward.left(bytes))?;
        }
        if stdout {
            read_from(&mut self.stdout, chunk, |bytes| forward.stdout(bytes))?;
        }
        if stderr {
            read_from(&mut self.stderr, chunk, |bytes| forward.stderr(bytes))?;
        }
        Ok(if process { PumpStep::Ended } else { PumpStep::Read })
    }

    /// The run is over: kills its remaining processes.
    fn finish(mut self, status: ExitStatus, limit: Option<TimeLimit>) -> io::Result<ShellExit> {
        if let Some(limit) = &limit {
            limit.signal(Signal::KILL);
        }
        // All of the state was written before the shell ended.
        (self.stdout, self.stderr) = (None, None);
        while self.left.is_some() && self.step(Some(Duration::ZERO), true)? == PumpStep::Read {}
        self.forward.finish(status, limit.is_some_and(|limit| limit.is_overdue))
    }

    /// Which of stdout, stderr, refusals, the state and the process has something to read.
    fn wait(&self, timeout: Option<Duration>, has_ended: bool) -> io::Result<[bool; 5]> {
        let process = (!has_ended).then_some(&self.process);
        let [stdout, stderr] = [self.stdout.as_ref(), self.stderr.as_ref()];
        let sources = [stdout, stderr, self.refused.as_ref(), self.left.as_ref(), process];
        let mut fds: Vec<_> = sources
            .iter()
            .flatten()
            .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN))
            .collect();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            // Nothing is lost: the next wait is as long again.
            Err(Errno::INTR) => return self.wait(None, has_ended),
            Err(error) => return Err(error.into()),
        }
        let mut found = fds.iter().map(|fd| !fd.revents().is_empty());
        Ok(sources.map(|source| source.is_some() && found.next().unwrap_or(false)))
    }
}

/// Reads once; a source that has come to its end is closed.
fn read_from(
    source: &mut Option<OwnedFd>,
    chunk: &mut [u8],
    take: impl FnOnce(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let Some(fd) = source else { return Ok(()) };
    match rustix::io::read(fd, &mut *chunk) {
        Ok(0) => *source = None,
        Ok(count) => take(chunk.get(..count).unwrap_or_default())?,
        Err(Errno::INTR | Errno::AGAIN) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Sends the bytes to the host, and keeps those that the end of the run needs.
struct Forwarder<'a> {
    host: &'a HostLink,
    rewriter: StderrRewriter<'a>,
    out_lines: LineBuffer,
    error_lines: LineBuffer,
    /// The same bytes, in lines that are whole however they were printed: a program may write its
    /// message in pieces, with time between them.
    whole_error_lines: LineBuffer,
    last_line: JsonLine,
    tail: StderrTail,
    refusals: RefusedCommands,
    left: Option<Vec<u8>>,
}

impl<'a> Forwarder<'a> {
    fn new(run: &'a RunCommand, host: &'a HostLink) -> Self {
        Self {
            host,
            rewriter: StderrRewriter::new(run),
            out_lines: LineBuffer::default(),
            error_lines: LineBuffer::default(),
            whole_error_lines: LineBuffer::default(),
            last_line: JsonLine::new(run.limits.result_bytes as usize),
            tail: StderrTail::default(),
            refusals: RefusedCommands::default(),
            left: None,
        }
    }

    /// The state of a session's shell, cut one byte after the most that is kept.
    fn left(&mut self, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.get_or_insert_default();
        let room = (MAX_STATE_BYTES + 1).saturating_sub(left.len());
        left.extend(bytes.iter().take(room));
        Ok(())
    }

    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.last_line.push(bytes);
        let host = self.host;
        self.out_lines.push(bytes, |text| print(host, Stream::Stdout, text))
    }

    fn stderr(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self { host, rewriter, tail, refusals, .. } = self;
        self.whole_error_lines
            .push(bytes, |line| read_error_line(host, rewriter, tail, refusals, line))?;
        self.error_lines.push(bytes, |text| print_error(host, rewriter, text))
    }

    fn refused(&mut self, bytes: &[u8]) -> io::Result<()> {
        for attempt in self.refusals.read(bytes) {
            self.host.send(&Event::Denied { attempt })?;
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        self.out_lines.is_pending() || self.error_lines.is_pending()
    }

    /// Prints the beginnings of lines without waiting for their ends.
    fn flush(&mut self) -> io::Result<()> {
        let Self { host, rewriter, .. } = self;
        self.out_lines.flush(|text| print(host, Stream::Stdout, text))?;
        self.error_lines.flush(|text| print_error(host, rewriter, text))
    }

    fn finish(mut self, status: ExitStatus, is_overdue: bool) -> io::Result<ShellExit> {
        self.flush()?;
        let Self { host, rewriter, mut tail, mut refusals, last_line, left, .. } = self;
        self.whole_error_lines
            .flush(|line| read_error_line(host, &rewriter, &mut tail, &mut refusals, line))?;
        Ok(ShellExit { status, is_overdue, left, last_line: last_line.finish(), tail, refusals })
    }
}

fn print(host: &HostLink, stream: Stream, text: &[u8]) -> io::Result<()> {
    host.send(&Event::Print { stream, text: text.to_vec() })
}

fn print_error(host: &HostLink, rewriter: &StderrRewriter<'_>, text: &[u8]) -> io::Result<()> {
    let cleaned = rewriter.as_if_a_file(text);
    print(host, Stream::Stderr, cleaned.as_deref().unwrap_or(text))
}

/// Keeps a line of standard error for the end of the run, and reports the attempt that it is about.
fn read_error_line(
    host: &HostLink,
    rewriter: &StderrRewriter<'_>,
    tail: &mut StderrTail,
    refusals: &mut RefusedCommands,
    line: &[u8],
) -> io::Result<()> {
    let cleaned = rewriter.as_if_a_file(line);
    let line = cleaned.as_deref().unwrap_or(line);
    line.split(|byte| *byte == b'\n').for_each(|line| tail.push(line));
    match refusals.scan_line(line, rewriter) {
        Some(attempt) => host.send(&Event::Denied { attempt }),
        None => Ok(()),
    }
}
