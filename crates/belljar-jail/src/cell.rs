//! One cell: a keeper and a guest, cloned from a zygote into namespaces of their own.
//!
//! The guest is handed over only when every layer of the plan is in force, the keeper's own
//! confinement included; any failure is reported over the guest's socket and ends the cell.

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    panic::{AssertUnwindSafe, catch_unwind},
};

use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};

use crate::{
    CellLimits, ConfineError, Mechanism, ZygotePlan, control,
    error::During,
    identity::OuterIds,
    keeper, landlock, mounts,
    rlimits::{self, Inherited},
    seccomp::Program,
    sys::{
        self,
        process::{Cloned, close_between, close_from, exit_now},
        signals::{EndedChildren, child_signal_descriptor, ended_children_are, unblock_all},
    },
};

/// What a cell's guest process does.
pub trait Guest {
    /// Every layer is in force: talk to the host, run the code. The process ends on return.
    fn confined(&mut self, cell: Confined);

    /// A layer could not be put in force: tell the host. The process ends on return.
    fn refused(&mut self, socket: UnixStream, error: &ConfineError);

    /// In the zygote, once, after its first cell: prepares what the first cell could do without,
    /// for the benefit of all later ones.
    fn warm_further(&mut self) {}
}

/// A guest process inside its cell.
#[derive(Debug)]
pub struct Confined {
    /// The one way out.
    pub socket: UnixStream,
    /// The process's own limits.
    pub limits: OwnLimits,
}

/// The limits of the process that holds it.
#[derive(Debug)]
pub struct OwnLimits {
    /// `None` when the plan leaves limits out.
    inherited: Option<Inherited>,
}

impl OwnLimits {
    /// Lowers them. Never raises one.
    pub fn lower(&self, limits: &CellLimits) -> io::Result<()> {
        self.inherited.map_or(Ok(()), |inherited| rlimits::apply(limits, inherited))
    }
}

/// What a zygote needs to make cells.
#[derive(Debug)]
pub(crate) struct CellTemplate {
    pub(crate) plan: ZygotePlan,
    pub(crate) inherited: Inherited,
    pub(crate) filter: Program,
    pub(crate) keeper_filter: Program,
}

/// The host's ends of a new cell.
#[derive(Debug)]
pub(crate) struct CellHandles {
    pub(crate) guest: OwnedFd,
    pub(crate) keeper: OwnedFd,
    pub(crate) pidfd: OwnedFd,
}

/// The cell's own ends.
struct Ends {
    guest: UnixStream,
    keeper: OwnedFd,
}

impl CellTemplate {
    /// Clones a cell. Returns in the zygote only.
    pub(crate) fn make(
        &self,
        limits: &CellLimits,
        guest: &mut impl Guest,
    ) -> io::Result<CellHandles> {
        let (guest_host, guest_cell) = UnixStream::pair()?;
        let (keeper_host, keeper_cell) = control::pair()?;
        let ids = OuterIds::current();
        match sys::process::clone(self.namespaces())? {
            Cloned::Parent { pidfd, .. } => {
                Ok(CellHandles { guest: guest_host.into(), keeper: keeper_host, pidfd })
            }
            Cloned::Child => {
                drop((guest_host, keeper_host));
                let ends = Ends { guest: guest_cell, keeper: keeper_cell };
                // Unwinding must not reach the zygote's loop, which this process is a copy of.
                let _ = catch_unwind(AssertUnwindSafe(|| self.keep(limits, ids, ends, guest)));
                exit_now(0)
            }
        }
    }

    fn namespaces(&self) -> libc::c_int {
        let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        if self.plan.asks_for(Mechanism::IpcNamespace) {
            flags |= libc::CLONE_NEWIPC;
        }
        flags
    }

    /// Pid 1: prepares the cell, starts the guest, watches.
    fn keep(&self, limits: &CellLimits, ids: OuterIds, ends: Ends, guest: &mut impl Guest) {
        let prepared = self.prepare(limits, ids, &ends);
        let (ended_children, keeper_is_confined, tell_guest) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return guest.refused(ends.guest, &error),
        };
        match sys::process::clone(0).during(Mechanism::PidNamespace) {
            Err(error) => guest.refused(ends.guest, &error),
            Ok(Cloned::Child) => {
                drop((ends.keeper, ended_children, tell_guest));
                self.become_guest(limits, ends.guest, &keeper_is_confined, guest);
                exit_now(0)
            }
            Ok(Cloned::Parent { pid, pidfd }) => {
                drop((keeper_is_confined, pidfd));
                if let Err(error) = keeper::confine(&self.plan, &self.keeper_filter) {
                    return guest.refused(ends.guest, &error);
                }
                // The guest has its own copy. Of the two, only it may hold its socket: the host
                // must see the end of the stream when the guest ends.
                drop(ends.guest);
                let _ = rustix::io::write(&tell_guest, &[CONFINED]);
                drop(tell_guest);
                let _ = keeper::watch(&ends.keeper, &ended_children, pid);
            }
        }
    }

    fn prepare(
        &self,
        limits: &CellLimits,
        ids: OuterIds,
        ends: &Ends,
    ) -> Result<(OwnedFd, OwnedFd, OwnedFd), ConfineError> {
        ids.map_inside().during(Mechanism::UserNamespace)?;
        if self.plan.asks_for(Mechanism::ClosedDescriptors) {
            let keep = [ends.guest.as_raw_fd(), ends.keeper.as_raw_fd()];
            close_all_but(keep).during(Mechanism::ClosedDescriptors)?;
            own_standard_streams().during(Mechanism::ClosedDescriptors)?;
        }
        if self.plan.asks_for(Mechanism::PrivateTmp) {
            mounts::mount_private_tmp(limits.disk_bytes, limits.inodes)
                .during(Mechanism::PrivateTmp)?;
        }
        if self.plan.asks_for(Mechanism::PrivateProc) {
            mounts::mount_private_proc().during(Mechanism::PrivateProc)?;
        }
        ended_children_are(EndedChildren::WaitedFor).during(Mechanism::PidNamespace)?;
        let ended_children = child_signal_descriptor().during(Mechanism::PidNamespace)?;
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .during(Mechanism::PidNamespace)?;
        Ok((ended_children, read, write))
    }

    /// Pid 2: locks itself down, waits for the keeper to have done so too, and is handed over.
    fn become_guest(
        &self,
        limits: &CellLimits,
        socket: UnixStream,
        keeper_is_confined: &impl AsFd,
        guest: &mut impl Guest,
    ) {
        match self.confine_guest(limits, &socket, keeper_is_confined) {
            Ok(()) => {
                let asked = self.plan.asks_for(Mechanism::ResourceLimits);
                let limits = OwnLimits { inherited: asked.then_some(self.inherited) };
                guest.confined(Confined { socket, limits });
            }
            Err(error) => guest.refused(socket, &error),
        }
    }

    fn confine_guest(
        &self,
        limits: &CellLimits,
        socket: &UnixStream,
        keeper_is_confined: &impl AsFd,
    ) -> Result<(), ConfineError> {
        unblock_all().during(Mechanism::PidNamespace)?;
        let plan = &self.plan;
        if plan.asks_for(Mechanism::Capabilities) {
            drop_capabilities().during(Mechanism::Capabilities)?;
        }
        if plan.asks_for(Mechanism::Undumpable) {
            set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Mechanism::Undumpable)?;
        }
        if plan.asks_for(Mechanism::ResourceLimits) {
            rlimits::apply(limits, self.inherited).during(Mechanism::ResourceLimits)?;
        }
        if plan.asks_for(Mechanism::Landlock) {
            landlock::restrict().during(Mechanism::Landlock)?;
        }
        wait_until_told(keeper_is_confined).during(Mechanism::PidNamespace)?;
        if plan.asks_for(Mechanism::ClosedDescriptors) {
            close_all_but([socket.as_raw_fd()]).during(Mechanism::ClosedDescriptors)?;
        }
        if plan.asks_for(Mechanism::Seccomp) {
            sys::seccomp::load(&self.filter).during(Mechanism::Seccomp)?;
        }
        Ok(())
    }
}

/// Gives up every capability; with `no_new_privs` there is no way to get one back.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, sets)?)
}

/// What a process says down a pipe once it is confined itself.
pub(crate) const CONFINED: u8 = 1;

/// Waits until the process at the other end of a pipe has said that it is confined.
pub(crate) fn wait_until_told(pipe: &impl AsFd) -> io::Result<()> {
    let mut said = [0];
    rustix::io::read(pipe, &mut said)?;
    if said == [CONFINED] { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Standard streams of the cell's own: an open file that cells share has one set of flags, locks
/// and times, and through those two guests could talk past the host. Reading gives the end of the
/// stream, writing is refused.
fn own_standard_streams() -> io::Result<()> {
    let (nothing, _) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

/// Closes everything but the standard streams (which lead nowhere) and these.
pub(crate) fn close_all_but<const N: usize>(mut keep: [RawFd; N]) -> io::Result<()> {
    keep.sort_unstable();
    let mut first = 3;
    for kept in keep {
        if kept > first {
            close_between(first, kept - 1)?;
        }
        first = kept + 1;
    }
    close_from(first)
}
