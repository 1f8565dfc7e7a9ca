//! The keeper: pid 1 of a cell. It mounts, reaps and reports, and never runs guest code.
//!
//! When its socket closes, because the host is done with the cell or is gone, it ends; and with
//! pid 1 the kernel ends everything else in the cell.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
    process::{DumpableBehavior, Pid, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    CellKind, ConfineError, Mechanism, ZygotePlan, control,
    error::MechanismContext,
    mounts::{self, LayeredWork, NewBranch, SessionRoot},
    seccomp::SeccompProgram,
    sys,
};

/// The capabilities that a session's keeper needs to mount overlays later: an overlay works in its
/// layers with the credentials it was mounted with.
const OVERLAYS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::CHOWN);

/// How long tidying waits after branching: longer than two guests take to enter their new trees,
/// which tidying would delay.
const TIDY_DELAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A request of the host to a keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum KeeperRequest {
    /// Changes the size of `/work` and `/tmp`.
    Resize { bytes: u64, inodes: u64 },
    /// Asks for a handle on the guest's layer of `/work`.
    Work,
    /// Asks for a handle on the first branch's guest. This and the rest are for sessions only.
    FirstGuest,
    /// Splits one branch's tree into two.
    Branch { branch: u64 },
    /// Drops the files of a branch whose guest is dead.
    DropBranch { branch: u64 },
    /// Asks for a handle on a branch's `/work`, as the branch sees it.
    BranchFiles { branch: u64 },
}

/// A report of a keeper to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum KeeperReport {
    /// A handle on the guest's layer of `/work` is attached.
    Work,
    /// The handle on `/work` could not be opened.
    NoWork {
        /// The error of the operating system.
        message: String,
    },
    /// A handle on the first branch's guest is attached.
    FirstGuest,
    /// The branch's tree is frozen, and two new ones replace it. They are attached: first that of
    /// the new branch, then the one the old branch moves to.
    Branched {
        /// The number of the new branch.
        child: u64,
    },
    /// The branch was not split, and is unchanged.
    NotBranched {
        /// The reason, for the person or code that asked for the branch.
        message: String,
    },
    /// The files of the branch are dropped.
    Dropped,
    /// `/work` and `/tmp` have the size that was asked for.
    Resized,
    /// `/work` and `/tmp` could not be resized.
    NotResized {
        /// The error of the operating system.
        message: String,
    },
    /// The listener of the cell's network is attached. It is the first report, of cells that have a
    /// network.
    Listener,
    /// The guest has ended.
    Ended {
        /// Its exit status or the signal that killed it.
        end: GuestEnd,
        /// CPU time it used in its life, in microseconds.
        cpu_us: u64,
        /// The most memory it was ever resident with.
        peak_memory_bytes: u64,
    },
}

/// How a guest ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum GuestEnd {
    /// It ended itself with this exit status.
    Exited(i32),
    /// A signal of this number killed it.
    Killed(i32),
}

/// Asks a keeper, from the host, for another size of `/work` and `/tmp`; the answer is a report.
pub fn request_resize(keeper: impl AsFd, bytes: u64, inodes: u64) -> io::Result<()> {
    send_packet(keeper, &KeeperRequest::Resize { bytes, inodes })
}

/// Asks a keeper, from the host, for a handle on the guest's layer of `/work`.
pub fn request_work(keeper: impl AsFd) -> io::Result<()> {
    send_packet(keeper, &KeeperRequest::Work)
}

/// Asks a session's keeper for a pidfd of the first branch's guest.
pub fn request_first_guest(keeper: impl AsFd) -> io::Result<()> {
    send_packet(keeper, &KeeperRequest::FirstGuest)
}

/// Asks a session's keeper to make two trees of one branch. The answer is
/// [`KeeperReport::Branched`] or [`KeeperReport::NotBranched`].
///
/// From the answer on until the branch's guest has said that it goes on in its new tree, no other
/// request may be made.
pub fn request_branch(keeper: impl AsFd, branch: u64) -> io::Result<()> {
    send_packet(keeper, &KeeperRequest::Branch { branch })
}

/// Informs a session's keeper that the guest of a branch is dead. The answer is
/// [`KeeperReport::Dropped`].
pub fn request_drop(keeper: impl AsFd, branch: u64) -> io::Result<()> {
    send_packet(keeper, &KeeperRequest::DropBranch { branch })
}

/// Asks a session's keeper for a handle on a branch's `/work`, as the branch sees it; for
/// [`BranchFiles`](crate::workspace::BranchFiles). The answer is [`KeeperReport::Work`].
pub fn request_branch_files(keeper: impl AsFd, branch: u64) -> io::Result<()> {
    send_packet(keeper, &KeeperRequest::BranchFiles { branch })
}

/// A keeper's next report, and all handles that come with it; `None` when it is gone.
pub fn receive_answer(keeper: impl AsFd) -> io::Result<Option<(KeeperReport, Vec<OwnedFd>)>> {
    control::receive(keeper)
}

/// A keeper's next report, and the handle that may come with it; `None` when it is gone.
pub fn receive_report(keeper: impl AsFd) -> io::Result<Option<(KeeperReport, Option<OwnedFd>)>> {
    let received = control::receive(keeper)?;
    Ok(received.map(|(report, fds)| (report, fds.into_iter().next())))
}

/// Confines the keeper itself: it keeps one capability, over its own mounts, and gets a filter. A
/// session's keeper keeps those over its own files as well.
pub(crate) fn confine(
    plan: &ZygotePlan,
    kind: CellKind,
    filter: &SeccompProgram,
) -> Result<(), ConfineError> {
    let mounting = match kind {
        CellKind::Single => CapabilitySet::SYS_ADMIN,
        CellKind::Session => CapabilitySet::SYS_ADMIN | OVERLAYS,
    };
    let sets = CapabilitySets {
        effective: mounting,
        permitted: mounting,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).during(Mechanism::Capabilities)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Mechanism::Undumpable)?;
    if plan.asks_for(Mechanism::Seccomp) {
        sys::seccomp::load(filter).during(Mechanism::Seccomp)?;
    }
    Ok(())
}

/// How a cell keeps its guest's files.
#[derive(Debug)]
pub(crate) enum CellFiles {
    /// In the cell's own `/work`.
    Plain,
    /// In a layer over its workspace.
    Layered(LayeredWork),
    /// In the branches of a session.
    Session(Box<SessionRoot>),
}

/// The guest process that a keeper has started.
#[derive(Debug)]
pub(crate) struct GuestProcess {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Serves the cell until the host closes its socket. The guest's files can still be asked for after
/// the guest has ended.
pub(crate) fn watch(
    socket: &OwnedFd,
    ended_children: &OwnedFd,
    guest: &GuestProcess,
    mut files: CellFiles,
) -> io::Result<()> {
    // When there is something to tidy: how long to wait for a request before that.
    let mut untidy = None;
    loop {
        let mut ready =
            [PollFd::new(socket, PollFlags::IN), PollFd::new(ended_children, PollFlags::IN)];
        match poll(&mut ready, untidy.as_ref()) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        let [from_host, children] = ready.map(|fd| !fd.revents().is_empty());
        if children && let Some(report) = reap(ended_children, guest.pid)? {
            send_packet(socket, &report)?;
        }
        let mut is_branching = false;
        if from_host {
            let Some(request) = receive_packet::<KeeperRequest>(socket)? else { return Ok(()) };
            answer(socket, &request, guest, &mut files)?;
            is_branching = matches!(request, KeeperRequest::Branch { .. });
        }
        if let CellFiles::Session(root) = &mut files
            && (from_host || untidy.is_some())
        {
            let is_put_off = is_branching && untidy.is_none();
            untidy = if is_put_off { Some(TIDY_DELAY) } else { root.tidy().then_some(AT_ONCE) };
        }
    }
}

fn answer(
    socket: &OwnedFd,
    request: &KeeperRequest,
    guest: &GuestProcess,
    files: &mut CellFiles,
) -> io::Result<()> {
    match (request, files) {
        (&KeeperRequest::Resize { bytes, inodes }, _) => {
            let report = match mounts::resize_scratch(bytes, inodes) {
                Ok(()) => KeeperReport::Resized,
                Err(error) => KeeperReport::NotResized { message: error.to_string() },
            };
            send_packet(socket, &report)
        }
        (KeeperRequest::Work, CellFiles::Layered(LayeredWork { changes })) => {
            control::send(socket, &KeeperReport::Work, &[changes.as_fd()])
        }
        (KeeperRequest::Work, CellFiles::Plain) => hand_over(socket, mounts::open_work()),
        (KeeperRequest::FirstGuest, _) => {
            control::send(socket, &KeeperReport::FirstGuest, &[guest.pidfd.as_fd()])
        }
        (request, CellFiles::Session(root)) => answer_session(socket, request, root),
        (_, CellFiles::Plain | CellFiles::Layered(_)) => {
            let message = "this cell has no branches".to_owned();
            send_packet(socket, &KeeperReport::NotBranched { message })
        }
    }
}

fn answer_session(
    socket: &OwnedFd,
    request: &KeeperRequest,
    root: &mut SessionRoot,
) -> io::Result<()> {
    match *request {
        KeeperRequest::Branch { branch } => match root.branch(branch) {
            Ok(NewBranch { child, child_tree, parent_tree }) => {
                let trees = [child_tree.as_fd(), parent_tree.as_fd()];
                control::send(socket, &KeeperReport::Branched { child }, &trees)
            }
            Err(error) => not_branched(socket, &error),
        },
        KeeperRequest::DropBranch { branch } => match root.drop_branch(branch) {
            Ok(()) => send_packet(socket, &KeeperReport::Dropped),
            Err(error) => not_branched(socket, &error),
        },
        KeeperRequest::BranchFiles { branch } => hand_over(socket, root.work(branch)),
        // The files of a session belong to its branches.
        KeeperRequest::Work => hand_over(socket, Err(io::ErrorKind::Unsupported.into())),
        KeeperRequest::Resize { .. } | KeeperRequest::FirstGuest => Ok(()),
    }
}

fn not_branched(socket: &OwnedFd, error: &io::Error) -> io::Result<()> {
    send_packet(socket, &KeeperReport::NotBranched { message: error.to_string() })
}

fn hand_over(socket: &OwnedFd, work: io::Result<OwnedFd>) -> io::Result<()> {
    match work {
        Ok(work) => control::send(socket, &KeeperReport::Work, &[work.as_fd()]),
        Err(error) => send_packet(socket, &KeeperReport::NoWork { message: error.to_string() }),
    }
}

/// Reaps all ended children, orphans included; reports if the guest is among them.
fn reap(ended_children: &OwnedFd, guest: Pid) -> io::Result<Option<KeeperReport>> {
    let mut signal = [0; 128];
    rustix::io::read(ended_children, &mut signal)?;
    let mut report = None;
    while let Some(reaped) = sys::process::reap_ended_child() {
        if reaped.pid == guest {
            let end = if libc::WIFSIGNALED(reaped.status) {
                GuestEnd::Killed(libc::WTERMSIG(reaped.status))
            } else {
                GuestEnd::Exited(libc::WEXITSTATUS(reaped.status))
            };
            let cpu_us = u64::try_from(reaped.cpu.as_micros()).unwrap_or(u64::MAX);
            let peak_memory_bytes = reaped.peak_memory_bytes;
            report = Some(KeeperReport::Ended { end, cpu_us, peak_memory_bytes });
        }
    }
    Ok(report)
}

fn send_packet(socket: impl AsFd, message: &impl Serialize) -> io::Result<()> {
    send(socket, &serde_json::to_vec(message)?, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_packet<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<M>> {
    let mut packet = [0; 512];
    let (bytes, _) = recv(socket, &mut packet, RecvFlags::empty())?;
    match packet.get(..bytes) {
        None | Some([]) => Ok(None),
        Some(packet) => Ok(Some(serde_json::from_slice(packet)?)),
    }
}
