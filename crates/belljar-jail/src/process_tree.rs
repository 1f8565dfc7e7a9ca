//! Commands of the host whose whole process tree ends with the host, such as MCP servers.
//!
//! A process group is not enough for that: what a command detaches, as `npx`, `uvx` and daemons do,
//! leaves the group and outlives a host that was killed. So each command runs under a supervisor
//! that is pid 1 of its own pid namespace and ends when its socket closes; with pid 1 the kernel
//! ends everything else in the namespace.
//!
//! This confines nothing: such a command is as trusted as the host, and has the host's files, user
//! and network. The program is started again as `belljar __upstream NAME` with one end of a
//! [`pair`](crate::control::pair) as its standard input. Over that it gets an order with the
//! command's three streams attached; reports come back the same way. Its command line and
//! environment hold only the name, so they show no secret of the command.

use std::{
    collections::BTreeMap,
    fmt, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{Pid, Signal, WaitId, WaitIdOptions, set_parent_process_death_signal, waitid},
};
use serde::{Deserialize, Serialize};

use crate::{
    Mechanism,
    cell::close_all_but,
    control, examine,
    identity::OuterIds,
    sys::{
        self,
        process::{CloneSide, assert_single_threaded, exit_now},
    },
    zygote::silence_standard_streams,
};

/// The hidden first argument that makes a program supervise a command. A second one, a name, is
/// for people who list processes.
pub const PROCESS_TREE_ARGUMENT: &str = "__upstream";
/// The exit status when the command could not be supervised.
const FAILED: i32 = 70;

/// A command to supervise. Host → supervisor, with standard input, output and error attached.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTreeCommand {
    /// A path, or a name to look for on the `PATH` in `environment`.
    pub program: PathBuf,
    /// The arguments of the program, without its name.
    pub arguments: Vec<String>,
    /// The whole environment: nothing is inherited from the host.
    pub environment: BTreeMap<String, String>,
    /// The directory it starts in; the host's own if there is none.
    pub directory: Option<PathBuf>,
}

/// Values may be secrets; names and numbers are enough to tell commands apart.
impl fmt::Debug for ProcessTreeCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProcessTreeCommand")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("environment", &self.environment.keys())
            .field("directory", &self.directory)
            .finish()
    }
}

/// A report of a supervisor to the host about its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ProcessTreeReport {
    /// The command was started and runs.
    Started,
    /// The command could not be started.
    NotStarted {
        /// Whether there is no such program, or no such directory to start it in.
        not_found: bool,
        /// The error of the operating system.
        message: String,
    },
    /// This machine does not let the command's processes be tied to the host.
    Refused {
        /// The error of the operating system.
        message: String,
        /// The remedy, if there is one.
        remedy: String,
    },
    /// The command has ended, and with it everything it left behind.
    Ended {
        /// As people write it: `exit status: 1`, `signal: 9 (SIGKILL)`.
        status: String,
    },
}

/// Sends a command from the host to its supervisor.
///
/// `streams` become standard input, output and error of the command. The command and all it ever
/// starts end when the host's end of `socket` is closed, for whatever reason.
pub fn order(
    socket: impl AsFd,
    command: &ProcessTreeCommand,
    streams: [OwnedFd; 3],
) -> io::Result<()> {
    let [input, output, error] = &streams;
    control::send(socket, command, &[input.as_fd(), output.as_fd(), error.as_fd()])
}

/// The next report; `None` when the command's supervisor is gone.
pub fn receive_report(socket: impl AsFd) -> io::Result<Option<ProcessTreeReport>> {
    Ok(control::receive(socket)?.map(|(report, _)| report))
}

/// Supervises a command, if the program was started for that, and then never returns. Must be the
/// first thing `main` does: no thread may exist yet.
pub fn serve_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == PROCESS_TREE_ARGUMENT) {
        serve()
    }
}

/// Supervises the command that arrives over standard input. Never returns.
pub fn serve() -> ! {
    let status = match try_serve() {
        Ok(status) => status,
        Err(_) => FAILED,
    };
    exit_now(status)
}

/// The outer process, outside of the new namespaces: ends the supervisor when the host is gone, and
/// itself when the supervisor is.
fn try_serve() -> io::Result<i32> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let Some((command, streams)) = control::receive_large::<ProcessTreeCommand>(&socket)? else {
        return Ok(0);
    };
    let streams: [OwnedFd; 3] =
        streams.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut keep: Vec<_> = streams.iter().map(AsRawFd::as_raw_fd).collect();
    keep.push(socket.as_raw_fd());
    close_all_but(keep)?;
    silence_standard_streams()?;
    assert_single_threaded()?;
    match enter_namespaces() {
        Err(error) => {
            let remedy = examine::remedy(Mechanism::UserNamespace).to_owned();
            let message = format!("cannot create a pid namespace for the command: {error}");
            send(&socket, &ProcessTreeReport::Refused { message, remedy })?;
            Ok(FAILED)
        }
        Ok(CloneSide::Child) => exit_now(supervise(socket, command, streams)),
        Ok(CloneSide::Parent { pid, pidfd }) => {
            drop(streams);
            watch_over(&socket, &pidfd, pid)
        }
    }
}

/// A copy of this process that is pid 1 of a new pid namespace. Other users than root need a user
/// namespace for that, in which their ids stay the same.
fn enter_namespaces() -> io::Result<CloneSide> {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    match sys::process::clone(flags) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let ids = OuterIds::current();
            sys::process::unshare_user()?;
            ids.map_to_themselves()?;
            sys::process::clone(flags)
        }
        other => other,
    }
}

fn watch_over(socket: &OwnedFd, supervisor: &OwnedFd, pid: Pid) -> io::Result<i32> {
    loop {
        // Asking for nothing still reports a hang-up.
        let mut ready =
            [PollFd::new(socket, PollFlags::empty()), PollFd::new(supervisor, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    sys::process::kill_by_pidfd(supervisor)?;
    let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)?;
    Ok(ended.and_then(|ended| ended.exit_status()).unwrap_or(FAILED))
}

/// The supervisor. Returns the status it is to end with.
fn supervise(socket: OwnedFd, command: ProcessTreeCommand, streams: [OwnedFd; 3]) -> i32 {
    try_supervise(&socket, command, streams).unwrap_or(FAILED)
}

fn try_supervise(
    socket: &OwnedFd,
    command: ProcessTreeCommand,
    streams: [OwnedFd; 3],
) -> io::Result<i32> {
    // Belt to the outer process's braces: should that be killed, so is this.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    show_own_processes();
    let ended_children = sys::signals::child_signal_descriptor()?;
    // Only the command may hold its streams: while the supervisor had a copy, they would not end.
    let child = match start(command, streams) {
        Ok(child) => child,
        Err(error) => {
            let not_found = error.kind() == io::ErrorKind::NotFound;
            send(socket, &ProcessTreeReport::NotStarted { not_found, message: error.to_string() })?;
            return Ok(FAILED);
        }
    };
    send(socket, &ProcessTreeReport::Started)?;
    loop {
        let mut ready =
            [PollFd::new(socket, PollFlags::IN), PollFd::new(&ended_children, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        let [host_is_gone, children] = ready.map(|fd| !fd.revents().is_empty());
        if children && let Some(status) = reap(&ended_children, child)? {
            send(socket, &ProcessTreeReport::Ended { status: status.to_string() })?;
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()));
        }
        // The host sends nothing after its order.
        if host_is_gone {
            return Ok(0);
        }
    }
}

/// Lets the command find itself in `/proc` under the number it has here. Where the machine masks
/// parts of `/proc` and so forbids another one, `/proc/self` still leads to the right place.
fn show_own_processes() {
    let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ =
        mount_change("/", downstream).and_then(|()| mount("proc", "/proc", "proc", flags, None));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts commands of the host's own"
)]
fn start(command: ProcessTreeCommand, [input, output, error]: [OwnedFd; 3]) -> io::Result<Pid> {
    let mut started = Command::new(&command.program);
    started.args(&command.arguments).env_clear().envs(&command.environment);
    started.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(error));
    // No terminal signal is meant for it.
    started.process_group(0);
    if let Some(directory) = &command.directory {
        started.current_dir(directory);
    }
    let child = started.spawn()?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reaps all ended children, orphans included; returns the status of the command if it is among
/// them.
fn reap(ended_children: &OwnedFd, command: Pid) -> io::Result<Option<ExitStatus>> {
    let mut signal = [0; 128];
    rustix::io::read(ended_children, &mut signal)?;
    let mut status = None;
    while let Some(reaped) = sys::process::reap_ended_child() {
        if reaped.pid == command {
            status = Some(ExitStatus::from_raw(reaped.status));
        }
    }
    Ok(status)
}

fn send(socket: &OwnedFd, report: &ProcessTreeReport) -> io::Result<()> {
    control::send(socket, report, &[])
}
