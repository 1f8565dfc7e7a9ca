//! A server that runs as a process on this machine, under a supervisor that ends it with the host.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belljar_jail::{
    control, process_tree,
    process_tree::{PROCESS_TREE_ARGUMENT, ProcessTreeCommand, ProcessTreeReport},
};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::{
    io::{AsyncReadExt, Interest},
    net::{UnixDatagram, unix::pipe},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use super::{
    error::StartError,
    liveness::Liveness,
    window::{ServerLog, one_line},
};

/// Enough to start a program on any working machine.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a server may take to exit after its input was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the supervisor may take to end everything.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);
/// Fewer reads for big answers, where the machine allows it.
const PIPE_BYTES: usize = 1 << 20;
/// A line of a server's log is cut after this.
const LOG_LINE_BYTES: usize = 2000;
/// How many lines are kept to explain why a server did not start.
const LAST_LINES: usize = 20;

/// The program to start, and how.
pub(super) struct ServerCommand<'a> {
    pub(super) launcher: &'a Path,
    pub(super) server: &'a str,
    pub(super) command: &'a str,
    pub(super) arguments: &'a [String],
    pub(super) environment: BTreeMap<String, String>,
    pub(super) directory: &'a Path,
}

/// A running server. Dropping it ends the server and everything it started, without waiting.
#[derive(Debug)]
pub(super) struct Process {
    /// When this end is closed, for whatever reason, the supervisor ends everything.
    socket: Arc<UnixDatagram>,
    attendant: JoinHandle<()>,
    last_lines: LastLines,
}

/// The last lines a server has written to its standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

/// The host's ends of a server's pipes.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) from_server: pipe::Receiver,
    pub(super) to_server: pipe::Sender,
}

impl Process {
    /// Starts a server and waits until it runs. When it ends, `liveness` stops.
    pub(super) async fn start(
        start: ServerCommand<'_>,
        liveness: Arc<Liveness>,
    ) -> Result<(Self, Pipes), StartError> {
        let failed = |error: io::Error| {
            StartError::new(format!("cannot start its supervisor process: {error}"))
        };
        let (socket, child) = start_supervisor(&start).map_err(failed)?;
        let (tell, begun) = oneshot::channel();
        let attendant = tokio::spawn(attend(socket.clone(), child, tell, liveness));
        let last_lines = LastLines::default();
        let process = Self { socket, attendant, last_lines };
        let (pipes, errors) = order(&process.socket, &start).map_err(failed)?;
        let log = Log::new(start.server, process.last_lines.clone());
        tokio::spawn(log.follow(errors));
        match timeout(START_TIMEOUT, begun).await {
            Ok(Ok(ProcessTreeReport::Started)) => Ok((process, pipes)),
            Ok(Ok(ProcessTreeReport::NotStarted { not_found, message })) => {
                Err(not_started(&start, not_found, &message))
            }
            Ok(Ok(ProcessTreeReport::Refused { message, remedy })) => {
                Err(StartError::new(message).with_hint(remedy))
            }
            Ok(Ok(ProcessTreeReport::Ended { status })) => Err(StartError::new(status)),
            Ok(Err(_)) => Err(StartError::new("its supervisor process ended")),
            Err(_) => Err(StartError::new(format!(
                "it did not start within {} s",
                START_TIMEOUT.as_secs()
            ))),
        }
    }

    /// The last lines it wrote to its standard error.
    pub(super) fn last_lines(&self) -> String {
        self.last_lines.text()
    }

    /// Waits for a server whose input was closed to exit, and kills it if it does not.
    pub(super) async fn end(mut self) {
        if timeout(EXIT_TIMEOUT, &mut self.attendant).await.is_err() {
            self.hang_up();
            let _ = timeout(KILL_TIMEOUT, &mut self.attendant).await;
        }
    }

    /// The supervisor takes the end of the stream as the end of the host.
    fn hang_up(&self) {
        let _ = rustix::net::shutdown(&*self.socket, rustix::net::Shutdown::Both);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Other holders of the socket keep it open; a shutdown reaches the supervisor all the same.
        self.hang_up();
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that starts supervisors")]
fn start_supervisor(start: &ServerCommand<'_>) -> io::Result<(Arc<UnixDatagram>, Child)> {
    let (ours, theirs) = control::pair()?;
    let ours = std::os::unix::net::UnixDatagram::from(ours);
    ours.set_nonblocking(true)?;
    let socket = Arc::new(UnixDatagram::from_std(ours)?);
    let child = std::process::Command::new(start.launcher)
        .arg0("belljar")
        .args([PROCESS_TREE_ARGUMENT, start.server])
        // Ctrl-C in a terminal goes to the host's process group; the host decides what it means.
        .process_group(0)
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((socket, child))
}

/// Receives the reports of the supervisor until it ends, and reaps it.
async fn attend(
    socket: Arc<UnixDatagram>,
    mut child: Child,
    tell: oneshot::Sender<ProcessTreeReport>,
    liveness: Arc<Liveness>,
) {
    if let Ok(Some(first)) = receive(&socket).await {
        let _ = tell.send(first);
    }
    while let Ok(Some(report)) = receive(&socket).await {
        if let ProcessTreeReport::Ended { status } = report {
            liveness.stop(format!("it ended with {status}"));
        }
    }
    // The other end is closed.
    let _ = tokio::task::spawn_blocking(move || child.wait()).await;
}

/// Sends the supervisor the command, and returns the host's ends of the pipes.
fn order(socket: &UnixDatagram, start: &ServerCommand<'_>) -> io::Result<(Pipes, pipe::Receiver)> {
    let (input, to_server) = new_pipe()?;
    let (from_server, output) = new_pipe()?;
    let (errors, error_output) = new_pipe()?;
    let command = ProcessTreeCommand {
        program: PathBuf::from(start.command),
        arguments: start.arguments.to_vec(),
        environment: start.environment.clone(),
        directory: Some(start.directory.to_owned()),
    };
    process_tree::order(socket, &command, [input, output, error_output])?;
    let pipes = Pipes {
        from_server: pipe::Receiver::from_owned_fd(from_server)?,
        to_server: pipe::Sender::from_owned_fd(to_server)?,
    };
    Ok((pipes, pipe::Receiver::from_owned_fd(errors)?))
}

fn new_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let _ = fcntl_setpipe_size(&read, PIPE_BYTES);
    Ok((read, write))
}

async fn receive(socket: &UnixDatagram) -> io::Result<Option<ProcessTreeReport>> {
    socket.async_io(Interest::READABLE, || process_tree::receive_report(socket)).await
}

fn not_started(start: &ServerCommand<'_>, not_found: bool, message: &str) -> StartError {
    let command = start.command;
    let error = StartError::new(format!("`{command}` could not be started: {message}"));
    if !start.directory.is_dir() {
        return error.with_hint("its `cwd` is not a directory");
    }
    if not_found {
        return error.with_hint(format!(
            "install `{command}`, or give its full path as `command` of the server"
        ));
    }
    error.with_hint(format!("check that `{command}` is a program you may execute"))
}

/// Logs what a server writes to its standard error, line by line, within bounds.
struct Log {
    lines: ServerLog,
    last_lines: LastLines,
    line: Vec<u8>,
}

impl Log {
    fn new(server: &str, last_lines: LastLines) -> Self {
        Self { lines: ServerLog::new(server), last_lines, line: Vec::new() }
    }

    async fn follow(mut self, mut errors: pipe::Receiver) {
        let mut buffer = vec![0; 8192];
        while let Ok(bytes @ 1..) = errors.read(&mut buffer).await {
            for byte in buffer.get(..bytes).unwrap_or_default() {
                self.take(*byte);
            }
        }
        self.end_line();
    }

    fn take(&mut self, byte: u8) {
        if byte == b'\n' {
            self.end_line();
        } else if self.line.len() < LOG_LINE_BYTES {
            self.line.push(byte);
        }
    }

    fn end_line(&mut self) {
        let line = one_line(&String::from_utf8_lossy(&self.line));
        self.line.clear();
        if line.is_empty() {
            return;
        }
        self.lines.line(|| line.clone());
        self.last_lines.push(line);
    }
}

impl LastLines {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
