//! The keeper: pid 1 of a cell. It mounts, reaps and reports, and never runs guest code.
//!
//! When its socket closes, because the host is done with the cell or is gone, it ends; and with
//! pid 1 the kernel ends everything else in the cell.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
    process::{DumpableBehavior, Pid, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    ConfineError, Mechanism, ZygotePlan, control,
    error::During,
    mounts::{self, LayeredWork},
    seccomp::Program,
    sys,
};

/// Host → keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum Request {
    /// Another size of `/work` and `/tmp`.
    Resize { bytes: u64, inodes: u64 },
    /// A handle on what the guest has written to `/work`.
    Work,
}

/// Keeper → host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum KeeperReport {
    /// A handle on what the guest has written to `/work` is attached.
    Work,
    /// There is no such handle.
    NoWork {
        /// What the system said.
        message: String,
    },
    /// `/work` and `/tmp` have the size that was asked for.
    Resized,
    /// `/work` and `/tmp` could not be resized.
    NotResized {
        /// What the system said.
        message: String,
    },
    /// The guest has ended.
    Ended {
        /// How.
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
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Asks a keeper, from the host, for another size of `/work` and `/tmp`; the answer is a report.
pub fn request_resize(keeper: impl AsFd, bytes: u64, inodes: u64) -> io::Result<()> {
    send_packet(keeper, &Request::Resize { bytes, inodes })
}

/// Asks a keeper, from the host, for a handle on what the guest has written to `/work`.
pub fn request_work(keeper: impl AsFd) -> io::Result<()> {
    send_packet(keeper, &Request::Work)
}

/// A keeper's next report, and the handle that may come with it; `None` when it is gone.
pub fn receive_report(keeper: impl AsFd) -> io::Result<Option<(KeeperReport, Option<OwnedFd>)>> {
    let received = control::receive(keeper)?;
    Ok(received.map(|(report, fds)| (report, fds.into_iter().next())))
}

/// Confines the keeper itself: one capability, over its own mounts, and a filter.
pub(crate) fn confine(plan: &ZygotePlan, filter: &Program) -> Result<(), ConfineError> {
    let mounting = CapabilitySet::SYS_ADMIN;
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

/// Serves the cell until the host lets go of it. What the guest left can still be asked for when it
/// has ended.
pub(crate) fn watch(
    socket: &OwnedFd,
    ended_children: &OwnedFd,
    guest: Pid,
    layered: Option<LayeredWork>,
) -> io::Result<()> {
    loop {
        let mut ready =
            [PollFd::new(socket, PollFlags::IN), PollFd::new(ended_children, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        let [from_host, children] = ready.map(|fd| !fd.revents().is_empty());
        if children && let Some(report) = reap(ended_children, guest)? {
            send_packet(socket, &report)?;
        }
        if from_host {
            match receive_packet::<Request>(socket)? {
                None => return Ok(()),
                Some(request) => answer(socket, &request, layered.as_ref())?,
            }
        }
    }
}

fn answer(socket: &OwnedFd, request: &Request, layered: Option<&LayeredWork>) -> io::Result<()> {
    match *request {
        Request::Resize { bytes, inodes } => {
            let report = match mounts::resize_scratch(bytes, inodes) {
                Ok(()) => KeeperReport::Resized,
                Err(error) => KeeperReport::NotResized { message: error.to_string() },
            };
            send_packet(socket, &report)
        }
        Request::Work => {
            if let Some(LayeredWork { changes }) = layered {
                return control::send(socket, &KeeperReport::Work, &[changes.as_fd()]);
            }
            match mounts::open_work() {
                Ok(work) => control::send(socket, &KeeperReport::Work, &[work.as_fd()]),
                Err(error) => {
                    send_packet(socket, &KeeperReport::NoWork { message: error.to_string() })
                }
            }
        }
    }
}

/// Reaps whatever ended, orphans included; reports if the guest is among them.
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
