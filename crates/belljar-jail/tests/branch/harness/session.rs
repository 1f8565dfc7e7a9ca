//! A host of one session's cell, as small as it can be: no pool, no timers, one call at a time.

#![expect(clippy::wildcard_enum_match_arm, reason = "whatever else is said is an error here")]

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Child, Command as Process, Stdio},
    rc::Rc,
    time::Duration,
};

use belljar_contract::Language;
use belljar_jail::{
    CellGrants, CellKind, CellLimits, KeeperReport, NetworkAccess, ZygotePlan,
    control::{self, Ids, ZygoteOrder, ZygoteReply},
    receive_answer, request_branch, request_branch_files, request_drop, request_first_guest,
    session::{FIRST_BRANCH, branch_sockets, receive_greeting, send_descriptors},
};
use belljar_wire::{
    Caps, Command, Event, GuestGrants, GuestLimits, RunCommand, read_message, write_message,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt::{Timeout, set_socket_timeout},
};

const CAPS: Caps = Caps { body_bytes: 1 << 20, text_bytes: 1 << 16 };
/// Longer than anything here takes; a test that waits for more has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Limits nothing here reaches.
pub(crate) const LIMITS: CellLimits = CellLimits {
    memory_bytes: 256 << 20,
    cpu_seconds: 60,
    processes: 8,
    open_files: 64,
    disk_bytes: 64 << 20,
    inodes: 4096,
};

/// The fault in words.
pub(crate) type Result<T> = std::result::Result<T, String>;

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A running zygote. Dropping it ends it and its cells.
#[derive(Debug)]
struct Zygote {
    control: Option<OwnedFd>,
    ids: Ids,
    process: Child,
}

/// A running session's cell. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) keeper: OwnedFd,
    pub(crate) keeper_pidfd: OwnedFd,
    pub(crate) ids: Ids,
    /// That of its network, if it has one. Nobody accepts on it.
    pub(crate) listener: Option<OwnedFd>,
    zygote: Rc<Zygote>,
}

/// The host's connection to one branch's guest.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) socket: UnixStream,
    pub(crate) number: u64,
    pub(crate) pidfd: OwnedFd,
}

/// The parts from which a cell is made.
#[derive(Debug)]
pub(crate) struct Setup {
    /// How this program becomes the zygote.
    pub(crate) zygote: Vec<String>,
    pub(crate) plan: ZygotePlan,
    pub(crate) limits: CellLimits,
    pub(crate) grants: CellGrants,
}

impl Cell {
    /// Starts a zygote and has it make a session's cell.
    pub(crate) fn start(setup: &Setup) -> Result<(Self, Branch)> {
        let (control, process) = spawn(&setup.zygote).map_err(told)?;
        control::send(&control, &ZygoteOrder::Confine(setup.plan.clone()), &[]).map_err(told)?;
        let ids = match control::receive(&control).map_err(told)? {
            Some((ZygoteReply::Ready { ids }, _)) => ids,
            other => return Err(format!("the zygote is not ready: {other:?}")),
        };
        Self::of(Rc::new(Zygote { control: Some(control), ids, process }), setup)
    }

    /// Another cell of the same zygote.
    pub(crate) fn beside(&self, setup: &Setup) -> Result<(Self, Branch)> {
        Self::of(self.zygote.clone(), setup)
    }

    fn of(zygote: Rc<Zygote>, setup: &Setup) -> Result<(Self, Branch)> {
        let (Setup { limits, grants, .. }, ids) = (setup, zygote.ids);
        let control = zygote.control.as_ref().ok_or("the zygote is gone")?;
        let trees = detach(&setup.zygote, grants, ids)?;
        let (serial, limits, grants) = (1, *limits, grants.clone());
        let order = ZygoteOrder::MakeCell { serial, limits, grants, kind: CellKind::Session };
        let trees: Vec<_> = trees.iter().map(AsFd::as_fd).collect();
        control::send(control, &order, &trees).map_err(told)?;
        let Some((ZygoteReply::Cell { .. }, fds)) = control::receive(control).map_err(told)? else {
            return Err("no cell".to_owned());
        };
        let Ok([guest, keeper, keeper_pidfd]) = <[OwnedFd; 3]>::try_from(fds) else {
            return Err("not the descriptors of a cell".to_owned());
        };
        set_socket_timeout(&keeper, Timeout::Recv, Some(PATIENCE)).map_err(told)?;
        let listener = match setup.plan.network() {
            NetworkAccess::None => None,
            NetworkAccess::Proxy => Some(receive_listener(&keeper)?),
        };
        let mut cell = Self { keeper, keeper_pidfd, ids, listener, zygote };
        let mut socket = patient(UnixStream::from(guest))?;
        match hear(&mut socket)? {
            Event::Ready => {}
            other => return Err(format!("{other:?}")),
        }
        let [pidfd] =
            cell.ask(|keeper| request_first_guest(keeper))?.1.try_into().map_err(|_| "no pidfd")?;
        Ok((cell, Branch { socket, number: FIRST_BRANCH, pidfd }))
    }

    /// Makes a second branch of one; on failure the first goes on.
    pub(crate) fn branch(&mut self, parent: &mut Branch) -> Result<Branch> {
        self.branch_until_reroot(parent, |_, _| Ok(()))
    }

    /// The same, with something in between: when there are two, and one has to re-root yet.
    pub(crate) fn branch_until_reroot(
        &mut self,
        parent: &mut Branch,
        between: impl FnOnce(&mut Branch, &mut Branch) -> Result<()>,
    ) -> Result<Branch> {
        let copied = copy(parent)?;
        let (report, trees) = self.ask(|keeper| request_branch(keeper, parent.number))?;
        let (number, trees) = match (report, <[OwnedFd; 2]>::try_from(trees)) {
            (KeeperReport::Branched { child }, Ok(trees)) => (child, trees),
            (KeeperReport::NotBranched { message }, _) => {
                if let Ok((_, pidfd)) = copied {
                    belljar_jail::kill_by_pidfd(&pidfd).map_err(told)?;
                    wait_for_end(&pidfd)?;
                    reroot(parent, None)?;
                }
                return Err(message);
            }
            other => return Err(format!("{other:?}")),
        };
        let [child_tree, parent_tree] = trees;
        let (socket, pidfd) = match copied {
            Ok(copy) => copy,
            Err(message) => {
                reroot(parent, Some(&parent_tree))?;
                self.drop_branch(number)?;
                return Err(message);
            }
        };
        let mut branch = Branch { socket, number, pidfd };
        send_descriptors(&branch.socket, &[child_tree.as_fd()]).map_err(told)?;
        drop(child_tree);
        match hear(&mut branch.socket)? {
            Event::Ready => {}
            other => return Err(format!("the copy said {other:?}")),
        }
        between(parent, &mut branch)?;
        reroot(parent, Some(&parent_tree))?;
        Ok(branch)
    }

    /// Ends one branch alone and forgets its files.
    pub(crate) fn end(&mut self, branch: Branch) -> Result<()> {
        belljar_jail::kill_by_pidfd(&branch.pidfd).map_err(told)?;
        wait_for_end(&branch.pidfd)?;
        self.drop_branch(branch.number)
    }

    fn drop_branch(&mut self, number: u64) -> Result<()> {
        match self.ask(|keeper| request_drop(keeper, number))?.0 {
            KeeperReport::Dropped => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// A handle on a branch's `/work`.
    pub(crate) fn files(&mut self, branch: &Branch) -> Result<OwnedFd> {
        match self.ask(|keeper| request_branch_files(keeper, branch.number))? {
            (KeeperReport::Work, fds) => fds.into_iter().next().ok_or("no handle".to_owned()),
            (other, _) => Err(format!("{other:?}")),
        }
    }

    /// Asks the keeper, and passes over what it says about guests that have ended.
    fn ask(
        &mut self,
        request: impl FnOnce(&OwnedFd) -> io::Result<()>,
    ) -> Result<(KeeperReport, Vec<OwnedFd>)> {
        request(&self.keeper).map_err(told)?;
        loop {
            match receive_answer(&self.keeper).map_err(told)? {
                Some((KeeperReport::Ended { .. }, _)) => {}
                Some(answer) => return Ok(answer),
                None => return Err("the keeper is gone".to_owned()),
            }
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // The warden takes the end of the stream as the end of the host.
        self.control = None;
        let _ = self.process.wait();
    }
}

impl Branch {
    /// Runs code in this branch: its value, or its error's message.
    pub(crate) fn run(&mut self, code: &str) -> Result<String> {
        self.run_with(code, Vec::new())
    }

    /// The same with a context.
    pub(crate) fn run_with(&mut self, code: &str, context: Vec<u8>) -> Result<String> {
        self.begin(code, context)?;
        loop {
            match hear(&mut self.socket)? {
                Event::Done(done) => return String::from_utf8(done.value).map_err(told),
                Event::Failed(error) => return Err(error.message),
                Event::Print { .. } | Event::Artifact { .. } | Event::Denied { .. } => {}
                other => return Err(format!("{other:?}")),
            }
        }
    }

    /// Runs code up to the first text it prints.
    pub(crate) fn run_up_to_print(&mut self, code: &str, context: Vec<u8>) -> Result<String> {
        self.begin(code, context)?;
        match hear(&mut self.socket)? {
            Event::Print { text, .. } => String::from_utf8(text).map_err(told),
            other => Err(format!("{other:?}")),
        }
    }

    fn begin(&mut self, code: &str, context: Vec<u8>) -> Result<()> {
        let run = RunCommand {
            language: Language::TypeScript,
            file_name: "main.ts".to_owned(),
            arguments: Vec::new(),
            limits: GuestLimits {
                memory_bytes: LIMITS.memory_bytes,
                wall_ms: 20_000,
                cpu_ms: 20_000,
                result_bytes: 1 << 20,
                processes: 8,
                open_files: 64,
            },
            grants: GuestGrants::default(),
            code: code.to_owned(),
            context,
            durable: None,
            session: true,
        };
        write_message(&mut self.socket, &Command::Run(run)).map_err(told)
    }
}

/// The listener of a cell's network, which is the first thing that its keeper sends.
fn receive_listener(keeper: &OwnedFd) -> Result<OwnedFd> {
    match receive_answer(keeper).map_err(told)? {
        Some((KeeperReport::Listener, fds)) => fds.into_iter().next().ok_or("no listener".into()),
        other => Err(format!("not a listener: {other:?}")),
    }
}

/// Waits until the process behind a pidfd has ended.
pub(crate) fn wait_for_end(pidfd: &OwnedFd) -> Result<()> {
    if ends_within(pidfd, PATIENCE) { Ok(()) } else { Err("it lives on".to_owned()) }
}

/// Whether the process behind a pidfd ends within this time, and its keeper has seen it.
pub(crate) fn ends_within(pidfd: &OwnedFd, time: Duration) -> bool {
    // A hang-up, which is told without being asked for.
    let mut ready = [PollFd::new(pidfd, PollFlags::empty())];
    let time = Timespec::try_from(time).ok();
    poll(&mut ready, time.as_ref()) == Ok(1)
}

/// Has a guest clone itself: the copy's socket and pidfd, or why there is none.
pub(crate) fn copy(parent: &mut Branch) -> Result<Result<(UnixStream, OwnedFd)>> {
    let (host, guest) = branch_sockets().map_err(told)?;
    write_message(&mut parent.socket, &Command::Branch).map_err(told)?;
    send_descriptors(&parent.socket, &[guest.as_fd()]).map_err(told)?;
    drop(guest);
    match hear(&mut parent.socket)? {
        Event::Branched => {}
        Event::NotBranched { message } => return Ok(Err(message)),
        other => return Err(format!("{other:?}")),
    }
    let host = patient(host)?;
    let pidfd = receive_greeting(&host).map_err(told)?;
    Ok(Ok((host, pidfd)))
}

/// Has a guest go on in a tree; without one, where it is.
pub(crate) fn reroot(branch: &mut Branch, tree: Option<&OwnedFd>) -> Result<()> {
    write_message(&mut branch.socket, &Command::Reroot).map_err(told)?;
    let tree: Vec<_> = tree.into_iter().map(AsFd::as_fd).collect();
    send_descriptors(&branch.socket, &tree).map_err(told)?;
    match hear(&mut branch.socket)? {
        Event::Rerooted => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn hear(socket: &mut UnixStream) -> Result<Event> {
    read_message(socket, CAPS).map_err(|error| format!("{error}: {error:?}"))
}

fn patient(socket: UnixStream) -> Result<UnixStream> {
    socket.set_read_timeout(Some(PATIENCE)).map_err(told)?;
    Ok(socket)
}

/// Detaches what is granted, by a process of its own.
fn detach(zygote: &[String], grants: &CellGrants, cells: Ids) -> Result<Vec<OwnedFd>> {
    if grants.trees.is_empty() {
        return Ok(Vec::new());
    }
    let (control, mut child) = spawn(zygote).map_err(told)?;
    let order = ZygoteOrder::Detach { trees: grants.trees.clone(), cells };
    control::send(&control, &order, &[]).map_err(told)?;
    let answer = control::receive(&control).map_err(told)?;
    drop(control);
    let _ = child.wait();
    match answer {
        Some((ZygoteReply::Trees, fds)) => Ok(fds),
        other => Err(format!("{other:?}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place here that starts zygotes")]
fn spawn(arguments: &[String]) -> io::Result<(OwnedFd, Child)> {
    let (ours, theirs) = control::pair()?;
    set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE))?;
    let child = Process::new("/proc/self/exe")
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((ours, child))
}
