//! Following a running bash to its end: what it prints goes to the host as it is read, and
//! nothing is kept but the last lines.
//!
//! The run ends with bash itself. What its children in the background still print is read while
//! it keeps coming, for a moment; then it is no longer part of the run.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    process::ExitStatus,
    time::{Duration, Instant},
};

use belljar_wire::{Event, RunCommand, Stream};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    json_line::{JsonLine, LastLine},
    launch::Running,
    lines::Lines,
    refusals::Refusals,
    said::{Said, as_if_a_file},
};
use crate::HostLink;

/// Read at once; the pipe holds as much.
const CHUNK_BYTES: usize = 64 << 10;
/// The beginning of a line waits this long for its end.
const FLUSH_AFTER: Duration = Duration::from_millis(20);
/// After bash has ended: silence of this length means that all is said,
const SILENCE: Duration = Duration::from_millis(20);
/// and this is the end in any case.
const GRACE: Duration = Duration::from_millis(200);

/// All that is known of a bash that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) last_line: LastLine,
    pub(super) said: Said,
    pub(super) refusals: Refusals,
}

/// Forwards what bash prints until it has ended.
pub(super) fn pump(mut running: Running, run: &RunCommand, host: &HostLink) -> io::Result<Ended> {
    let mut pump = Pump {
        stdout: running.child.stdout.take().map(OwnedFd::from),
        stderr: running.child.stderr.take().map(OwnedFd::from),
        refused: Some(running.refused),
        process: open_process(running.child.id())?,
        forward: Forward::new(run, host),
        chunk: vec![0; CHUNK_BYTES],
    };
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        let patience = match ended {
            Some((_, end)) => Some(SILENCE.min(end.saturating_duration_since(Instant::now()))),
            None => pump.forward.is_pending().then_some(FLUSH_AFTER),
        };
        let step = pump.step(patience, ended.is_some())?;
        if step == Step::Ended {
            ended = Some((running.child.wait()?, Instant::now() + GRACE));
        }
        match ended {
            Some((status, _)) if pump.is_closed() || step == Step::Silence => {
                pump.forward.flush()?;
                return Ok(pump.forward.finish(status));
            }
            Some((status, end)) if Instant::now() >= end => {
                pump.forward.flush()?;
                return Ok(pump.forward.finish(status));
            }
            None if step == Step::Silence => pump.forward.flush()?,
            Some(_) | None => {}
        }
    }
}

/// A descriptor that is readable once the process has ended.
fn open_process(id: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// What came of one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Something was read.
    Read,
    /// Nothing was there to read for a while.
    Silence,
    /// The process has ended.
    Ended,
}

struct Pump<'a> {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    refused: Option<OwnedFd>,
    process: OwnedFd,
    forward: Forward<'a>,
    chunk: Vec<u8>,
}

impl Pump<'_> {
    fn is_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Waits for something to read, and reads it once from wherever it is.
    fn step(&mut self, patience: Option<Duration>, has_ended: bool) -> io::Result<Step> {
        let ready = self.wait(patience, has_ended)?;
        let [stdout, stderr, refused, process] = ready;
        if ready == [false; 4] {
            return Ok(Step::Silence);
        }
        let Self { forward, chunk, .. } = self;
        if refused {
            read_from(&mut self.refused, chunk, |bytes| forward.refused(bytes))?;
        }
        if stdout {
            read_from(&mut self.stdout, chunk, |bytes| forward.stdout(bytes))?;
        }
        if stderr {
            read_from(&mut self.stderr, chunk, |bytes| forward.stderr(bytes))?;
        }
        Ok(if process { Step::Ended } else { Step::Read })
    }

    /// Which of stdout, stderr, refusals and the process has something to say.
    fn wait(&self, patience: Option<Duration>, has_ended: bool) -> io::Result<[bool; 4]> {
        let process = (!has_ended).then_some(&self.process);
        let sources = [self.stdout.as_ref(), self.stderr.as_ref(), self.refused.as_ref(), process];
        let mut fds: Vec<_> = sources
            .iter()
            .flatten()
            .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN))
            .collect();
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut fds, patience.as_ref()) {
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

/// Sends what was read, and remembers what the end of the run will want to know.
struct Forward<'a> {
    host: &'a HostLink,
    file_name: &'a str,
    out_lines: Lines,
    error_lines: Lines,
    last_line: JsonLine,
    said: Said,
    refusals: Refusals,
}

impl<'a> Forward<'a> {
    fn new(run: &'a RunCommand, host: &'a HostLink) -> Self {
        Self {
            host,
            file_name: &run.file_name,
            out_lines: Lines::default(),
            error_lines: Lines::default(),
            last_line: JsonLine::new(run.limits.result_bytes as usize),
            said: Said::default(),
            refusals: Refusals::default(),
        }
    }

    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.last_line.push(bytes);
        let host = self.host;
        self.out_lines.push(bytes, |text| print(host, Stream::Stdout, text))
    }

    fn stderr(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self { host, file_name, said, refusals, .. } = self;
        self.error_lines.push(bytes, |text| print_error(host, file_name, said, refusals, text))
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

    fn flush(&mut self) -> io::Result<()> {
        let Self { host, file_name, said, refusals, .. } = self;
        self.out_lines.flush(|text| print(host, Stream::Stdout, text))?;
        self.error_lines.flush(|text| print_error(host, file_name, said, refusals, text))
    }

    fn finish(self, status: ExitStatus) -> Ended {
        let Self { last_line, said, refusals, .. } = self;
        Ended { status, last_line: last_line.finish(), said, refusals }
    }
}

fn print(host: &HostLink, stream: Stream, text: &[u8]) -> io::Result<()> {
    host.send(&Event::Print { stream, text: text.to_vec() })
}

fn print_error(
    host: &HostLink,
    file_name: &str,
    said: &mut Said,
    refusals: &mut Refusals,
    text: &[u8],
) -> io::Result<()> {
    let cleaned = as_if_a_file(text, file_name);
    let text = cleaned.as_deref().unwrap_or(text);
    text.split(|byte| *byte == b'\n').for_each(|line| said.push(line));
    if let Some(attempt) = refusals.look_at(text, file_name) {
        host.send(&Event::Denied { attempt })?;
    }
    print(host, Stream::Stderr, text)
}
