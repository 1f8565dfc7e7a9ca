//! Starting commands under supervisors, as root or an ordinary user, and finding their processes.
#![expect(clippy::disallowed_methods, reason = "the suite starts its own roles")]

use std::{
    fs,
    io::{self, BufRead, BufReader},
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use belljar_jail::{
    control,
    process_tree::{self, PROCESS_TREE_ARGUMENT, ProcessTreeCommand, ProcessTreeReport},
};
use libtest_mimic::Failed;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};
use tempfile::TempDir;

use crate::skip::skip;

/// An unused id: what this suite means by an ordinary user.
const ORDINARY: u32 = 61_997;

/// The user of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    Ordinary,
}

impl Who {
    /// Whether the runner can be that. Where it must, by `BELLJAR_REQUIRE_SANDBOX`, it fails if
    /// not.
    pub(crate) fn is_possible(self) -> Result<bool, Failed> {
        if self == Self::Ordinary || is_root() {
            return Ok(true);
        }
        skip("this test needs root");
        Ok(false)
    }

    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::Ordinary if is_root() => ORDINARY,
            Self::Ordinary | Self::Root => rustix::process::getuid().as_raw(),
        }
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

static COPY: OnceLock<PathBuf> = OnceLock::new();

/// Makes a copy of this program that ordinary users can start, wherever this one lies.
pub(crate) fn prepare() -> io::Result<TempDir> {
    let directory =
        tempfile::Builder::new().prefix("belljar-process-tree-").tempdir_in("/var/tmp")?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    let path = directory.path().join("process_tree");
    fs::copy("/proc/self/exe", &path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    COPY.get_or_init(|| path);
    Ok(directory)
}

/// Where this program is for processes of its roles.
fn this_program() -> &'static Path {
    COPY.get().map_or(Path::new("/proc/self/exe"), PathBuf::as_path)
}

fn role(who: Who, arguments: &[&str]) -> Command {
    let mut command = Command::new(this_program());
    command.args(arguments).env_clear().current_dir("/").stderr(Stdio::null());
    if who == Who::Ordinary && is_root() {
        command.gid(ORDINARY).uid(ORDINARY);
    }
    command
}

/// A host-like process of its own, with one command and the command's daemon.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) mark: String,
    pub(crate) process: Child,
}

impl Owner {
    /// Starts it and waits until all of them run.
    pub(crate) fn start(who: Who) -> Result<Self, Failed> {
        let mark = new_mark();
        let mut command = role(who, &["__owner", &mark]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = process.stdout.take().ok_or("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line != "ready\n" {
            return Err(format!("the owner said {line:?}").into());
        }
        // The daemon has been started, but may not be the daemon yet.
        soon(|| marked(&mark).len() == 5);
        Ok(Self { mark, process })
    }

    /// The process between it and the supervisor.
    pub(crate) fn outer(&self) -> Result<Pid, Failed> {
        let children = marked(&self.mark).into_iter();
        let own = i32::try_from(self.process.id())?;
        let mut outer = children.filter(|(_, parent)| *parent == own).map(|(pid, _)| pid);
        outer.next().and_then(Pid::from_raw).ok_or_else(|| "no outer process".into())
    }
}

/// A command under its supervisor, held by this process.
#[derive(Debug)]
pub(crate) struct SupervisedCommand {
    pub(crate) process: Child,
    pub(crate) socket: Option<OwnedFd>,
    stdout: BufReader<ChildStdout>,
}

impl SupervisedCommand {
    /// This program in one of its roles.
    pub(crate) fn start(who: Who, name: &str, arguments: &[&str]) -> io::Result<Self> {
        Self::start_program(who, name, &this_program().to_string_lossy(), arguments)
    }

    /// The same as whoever this process is.
    pub(crate) fn start_here(name: &str, arguments: &[&str]) -> io::Result<Self> {
        Self::start_program(Who::Root, name, "/proc/self/exe", arguments)
    }

    /// The same for any program of the machine.
    pub(crate) fn start_program(
        who: Who,
        name: &str,
        program: &str,
        arguments: &[&str],
    ) -> io::Result<Self> {
        Self::start_by(role(who, &[PROCESS_TREE_ARGUMENT, name]), name, program, arguments)
    }

    /// A program on a machine that lets nobody have another pid namespace.
    pub(crate) fn start_where_it_is_forbidden() -> io::Result<Self> {
        let script = "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$0\" \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]);
        command.arg(this_program()).args([PROCESS_TREE_ARGUMENT, "forbidden"]);
        Self::start_by(command, "forbidden", "/bin/true", &[])
    }

    fn start_by(
        mut command: Command,
        name: &str,
        program: &str,
        arguments: &[&str],
    ) -> io::Result<Self> {
        let (ours, theirs) = control::pair()?;
        // A descriptor that is not closed on its own must be closed by the keeper.
        let stray = fs::File::open("/dev/null")?;
        fcntl_setfd(&stray, FdFlags::empty())?;
        let process = command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn()?;
        let (input, _) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, output) = pipe_with(PipeFlags::CLOEXEC)?;
        let null = fs::OpenOptions::new().write(true).open("/dev/null")?;
        let command = ProcessTreeCommand {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            environment: [("MARK".to_owned(), name.to_owned())].into(),
            directory: None,
        };
        process_tree::order(&ours, &command, [input, output, null.into()])?;
        let stdout = BufReader::new(ChildStdout::from(stdout));
        Ok(Self { process, socket: Some(ours), stdout })
    }

    pub(crate) fn report(&mut self) -> io::Result<Option<ProcessTreeReport>> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        process_tree::receive_report(socket)
    }

    pub(crate) fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line)
    }
}

/// Every process with this mark as an argument, as `(pid, parent)`. One that has ended but was not
/// reaped has no command line.
pub(crate) fn marked(mark: &str) -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == mark.as_bytes())
    };
    pids.filter(has_mark).filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Polls until something is true, or ten seconds have gone by.
pub(crate) fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A mark no other process has.
pub(crate) fn new_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("tree-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
