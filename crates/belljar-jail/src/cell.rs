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
    process::{DumpableBehavior, set_dumpable_behavior, setsid},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};

use crate::{
    CellGrants, CellKind, CellLimits, ConfineError, Guests, Mechanism, NetworkAccess, TreeAccess,
    ZygotePlan,
    branch::{Brancher, enter_tree},
    certificates::CERTIFICATE_BUNDLE,
    control,
    error::MechanismContext,
    identity::OuterIds,
    keeper::{self, CellFiles, GuestProcess},
    landlock::{self, AllowedPath, PathAccess},
    mounts::{self, MAX_BRANCHES, SessionRoot},
    network,
    rlimits::{self, InheritedMemory},
    seccomp::SeccompProgram,
    sys::{
        self,
        process::{CloneSide, close_between, close_from, exit_now},
        signals::{EndedChildren, child_signal_descriptor, ended_children_are, unblock_all},
    },
};

/// The code of a cell's guest process.
pub trait Guest {
    /// Called with every layer in force: talks to the host, runs the code. The process ends on
    /// return.
    fn confined(&mut self, cell: ConfinedCell);

    /// Called when a layer could not be put in force: reports it to the host. The process ends on
    /// return.
    fn refused(&mut self, socket: UnixStream, error: &ConfineError);

    /// Called in the zygote, before each clone of a cell.
    fn before_clone(&mut self) {}

    /// Called in the zygote, after each clone, whether it succeeded or not.
    fn after_clone(&mut self) {}

    /// Called in the zygote, once, after its first cell: prepares what the first cell can do
    /// without and later ones benefit from.
    fn warm_further(&mut self) {}
}

/// A confined cell, as its guest process gets it.
#[derive(Debug)]
pub struct ConfinedCell {
    /// The only connection out of the cell.
    pub socket: UnixStream,
    /// Lets the process lower its own limits.
    pub limits: OwnLimits,
    /// Present in a session's cell: its guest may branch between runs.
    pub brancher: Option<Brancher>,
}

/// The limits of the process that holds it.
#[derive(Debug)]
pub struct OwnLimits {
    /// `None` when the plan leaves limits out.
    inherited: Option<InheritedMemory>,
}

impl OwnLimits {
    /// Lowers them. Never raises one. `/tmp` is sized by the keeper, so the limits of files are left
    /// as they are.
    pub fn lower(
        &self,
        memory_bytes: u64,
        cpu_seconds: u64,
        processes: u64,
        open_files: u64,
    ) -> io::Result<()> {
        let (disk_bytes, inodes) = (u64::MAX, u64::MAX);
        let limits =
            CellLimits { memory_bytes, cpu_seconds, processes, open_files, disk_bytes, inodes };
        self.inherited.map_or(Ok(()), |inherited| rlimits::apply(&limits, inherited))
    }
}

/// The parts that a zygote needs to make cells.
#[derive(Debug)]
pub(crate) struct CellTemplate {
    pub(crate) plan: ZygotePlan,
    pub(crate) inherited: InheritedMemory,
    pub(crate) filters: Filters,
    pub(crate) session_filters: Filters,
    /// Where guests may read and execute the host's software.
    pub(crate) places: Vec<AllowedPath>,
}

/// The filters of a cell.
#[derive(Debug)]
pub(crate) struct Filters {
    pub(crate) guest: SeccompProgram,
    pub(crate) keeper: SeccompProgram,
}

/// The order for one cell.
#[derive(Debug)]
pub(crate) struct CellOrder {
    pub(crate) limits: CellLimits,
    pub(crate) grants: CellGrants,
    /// The granted trees, detached.
    pub(crate) trees: Vec<OwnedFd>,
    pub(crate) kind: CellKind,
}

/// The state of a keeper that has mounted its cell and not yet started the guest.
struct PreparedKeeper {
    ended_children: OwnedFd,
    from_keeper: OwnedFd,
    to_guest: OwnedFd,
    files: CellFiles,
}

/// The host's ends of a new cell.
#[derive(Debug)]
pub(crate) struct CellHandles {
    pub(crate) guest: OwnedFd,
    pub(crate) keeper: OwnedFd,
    pub(crate) pidfd: OwnedFd,
}

/// The cell's ends of the two sockets.
struct CellEnds {
    guest: UnixStream,
    keeper: OwnedFd,
}

impl CellTemplate {
    /// Clones a cell. Returns in the zygote only.
    pub(crate) fn make(
        &self,
        order: &CellOrder,
        guest: &mut impl Guest,
    ) -> io::Result<CellHandles> {
        let (guest_host, guest_cell) = UnixStream::pair()?;
        let (keeper_host, keeper_cell) = control::pair()?;
        let ids = OuterIds::current();
        guest.before_clone();
        let cloned = sys::process::clone(self.namespaces());
        if !matches!(cloned, Ok(CloneSide::Child)) {
            guest.after_clone();
        }
        match cloned? {
            CloneSide::Parent { pidfd, .. } => {
                Ok(CellHandles { guest: guest_host.into(), keeper: keeper_host, pidfd })
            }
            CloneSide::Child => {
                drop((guest_host, keeper_host));
                let ends = CellEnds { guest: guest_cell, keeper: keeper_cell };
                // Unwinding must not reach the zygote's loop, which this process is a copy of.
                let _ = catch_unwind(AssertUnwindSafe(|| self.run_keeper(order, ids, ends, guest)));
                exit_now(0)
            }
        }
    }

    fn namespaces(&self) -> libc::c_int {
        let mut flags = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        if self.plan.asks_for(Mechanism::IpcNamespace) {
            flags |= libc::CLONE_NEWIPC;
        }
        match self.plan.network() {
            NetworkAccess::None => {}
            NetworkAccess::Proxy => flags |= libc::CLONE_NEWNET,
        }
        flags
    }

    /// Pid 1: prepares the cell, starts the guest, watches.
    fn run_keeper(&self, order: &CellOrder, ids: OuterIds, ends: CellEnds, guest: &mut impl Guest) {
        let prepared = match self.prepare(order, ids, &ends) {
            Ok(prepared) => prepared,
            Err(error) => return guest.refused(ends.guest, &error),
        };
        let PreparedKeeper { ended_children, from_keeper, to_guest, files } = prepared;
        match sys::process::clone(0).during(Mechanism::PidNamespace) {
            Err(error) => guest.refused(ends.guest, &error),
            Ok(CloneSide::Child) => {
                drop((ends.keeper, ended_children, to_guest));
                self.become_guest(order, ends.guest, &from_keeper, files, guest);
                exit_now(0)
            }
            Ok(CloneSide::Parent { pid, pidfd }) => {
                drop(from_keeper);
                let filter = &self.filters(order.kind).keeper;
                if let Err(error) = keeper::confine(&self.plan, order.kind, filter) {
                    return guest.refused(ends.guest, &error);
                }
                // The guest has its own copy. Of the two, only it may hold its socket: the host
                // must see the end of the stream when the guest ends.
                drop(ends.guest);
                let _ = rustix::io::write(&to_guest, &[CONFINED]);
                drop(to_guest);
                let started = GuestProcess { pid, pidfd };
                let _ = keeper::watch(&ends.keeper, &ended_children, &started, files);
            }
        }
    }

    fn prepare(
        &self,
        order: &CellOrder,
        ids: OuterIds,
        ends: &CellEnds,
    ) -> Result<PreparedKeeper, ConfineError> {
        ids.map_inside().during(Mechanism::UserNamespace)?;
        if self.plan.asks_for(Mechanism::ClosedDescriptors) {
            let mut keep = vec![ends.guest.as_raw_fd(), ends.keeper.as_raw_fd()];
            keep.extend(self.places.iter().map(|place| place.as_fd().as_raw_fd()));
            keep.extend(order.trees.iter().map(AsRawFd::as_raw_fd));
            close_all_but(keep).during(Mechanism::ClosedDescriptors)?;
            own_standard_streams().during(Mechanism::ClosedDescriptors)?;
        }
        match self.plan.network() {
            NetworkAccess::None => {}
            NetworkAccess::Proxy => {
                let handed_over = network::hand_over_listener(&ends.keeper);
                handed_over.during(Mechanism::NetworkNamespace)?;
            }
        }
        let files = self.mount_own(order)?;
        ended_children_are(EndedChildren::WaitedFor).during(Mechanism::PidNamespace)?;
        let ended_children = child_signal_descriptor().during(Mechanism::PidNamespace)?;
        let (from_keeper, to_guest) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .during(Mechanism::PidNamespace)?;
        Ok(PreparedKeeper { ended_children, from_keeper, to_guest, files })
    }

    /// The cell's own mounts.
    fn mount_own(&self, order: &CellOrder) -> Result<CellFiles, ConfineError> {
        let CellOrder { limits, grants, trees, .. } = order;
        let mount_proc = |at| match self.plan.asks_for(Mechanism::PrivateProc) {
            true => mounts::mount_private_proc(self.plan.guests(), at),
            false => Ok(()),
        };
        if order.kind == CellKind::Session {
            let finish = || match self.plan.guests() {
                // A script has no use for it, and Landlock cannot tell it from the cell's own
                // files.
                Guests::Script => Ok(()),
                Guests::Programs => mounts::mount_session_proc("proc"),
            };
            let root = SessionRoot::make(&self.plan, limits, grants, trees, finish);
            return Ok(CellFiles::Session(Box::new(root.during(Mechanism::ReadOnlyRoot)?)));
        }
        if !grants.is_empty() {
            let layered = mounts::enter_granted_root(limits, grants, trees, || mount_proc("proc"))
                .during(Mechanism::ReadOnlyRoot)?;
            return Ok(layered.map_or(CellFiles::Plain, CellFiles::Layered));
        }
        if self.plan.asks_for(Mechanism::PrivateTmp) {
            mounts::mount_scratch(limits.disk_bytes, limits.inodes)
                .during(Mechanism::PrivateTmp)?;
        }
        mount_proc("/proc").during(Mechanism::PrivateProc)?;
        Ok(CellFiles::Plain)
    }

    /// Pid 2: confines itself, waits until the keeper is confined too, and hands over to the guest.
    fn become_guest(
        &self,
        order: &CellOrder,
        socket: UnixStream,
        from_keeper: &impl AsFd,
        files: CellFiles,
        guest: &mut impl Guest,
    ) {
        match self.confine_guest(order, &socket, from_keeper, files) {
            Ok(()) => {
                let asked = self.plan.asks_for(Mechanism::ResourceLimits);
                let limits = OwnLimits { inherited: asked.then_some(self.inherited) };
                let brancher =
                    (order.kind == CellKind::Session).then(|| Brancher::new(self.plan.guests()));
                guest.confined(ConfinedCell { socket, limits, brancher });
            }
            Err(error) => guest.refused(socket, &error),
        }
    }

    fn confine_guest(
        &self,
        order: &CellOrder,
        socket: &UnixStream,
        from_keeper: &impl AsFd,
        files: CellFiles,
    ) -> Result<(), ConfineError> {
        if let CellFiles::Session(root) = &files {
            let tree = root.tree(SessionRoot::FIRST).during(Mechanism::ReadOnlyRoot)?;
            enter_tree(tree).during(Mechanism::ReadOnlyRoot)?;
        }
        drop(files);
        unblock_all().during(Mechanism::PidNamespace)?;
        // A cell is born into its zygote's process group, and a signal to a group knows no
        // namespace.
        setsid().during(Mechanism::PidNamespace)?;
        let plan = &self.plan;
        if plan.asks_for(Mechanism::Capabilities) {
            match order.kind {
                CellKind::Single => drop_capabilities(),
                CellKind::Session => keep_capabilities(CapabilitySet::SYS_CHROOT),
            }
            .during(Mechanism::Capabilities)?;
        }
        if plan.asks_for(Mechanism::Undumpable) {
            set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Mechanism::Undumpable)?;
        }
        if plan.asks_for(Mechanism::ResourceLimits) {
            let limits = order.process_limits();
            rlimits::apply(&limits, self.inherited).during(Mechanism::ResourceLimits)?;
        }
        if plan.asks_for(Mechanism::Landlock) {
            self.restrict_files(order).during(Mechanism::Landlock)?;
        }
        wait_until_confined(from_keeper).during(Mechanism::PidNamespace)?;
        if plan.asks_for(Mechanism::ClosedDescriptors) {
            close_all_but(vec![socket.as_raw_fd()]).during(Mechanism::ClosedDescriptors)?;
        }
        if plan.asks_for(Mechanism::Seccomp) {
            let filter = &self.filters(order.kind).guest;
            sys::seccomp::load(filter).during(Mechanism::Seccomp)?;
        }
        Ok(())
    }

    fn filters(&self, kind: CellKind) -> &Filters {
        match kind {
            CellKind::Single => &self.filters,
            CellKind::Session => &self.session_filters,
        }
    }

    fn restrict_files(&self, order: &CellOrder) -> io::Result<()> {
        let mut own = match order.kind {
            CellKind::Single => self.own_places(&order.grants)?,
            // Of the trees of later branches only the root is known now, by the file it is. What is
            // read-only in there is so by its mount, and nothing of the guest's can be executed.
            CellKind::Session => vec![AllowedPath::at("/", PathAccess::Own)?],
        };
        for (_, program) in &order.grants.commands {
            own.push(AllowedPath::at(program, PathAccess::Execute)?);
        }
        let places: Vec<&AllowedPath> = self.places.iter().chain(&own).collect();
        landlock::restrict(&places, self.plan.network()).map(drop)
    }

    fn own_places(&self, grants: &CellGrants) -> io::Result<Vec<AllowedPath>> {
        let mut own = vec![
            AllowedPath::at("/tmp", PathAccess::Own)?,
            AllowedPath::at("/work", PathAccess::Own)?,
        ];
        if self.plan.guests() == Guests::Programs && !grants.is_empty() {
            // A root of the cell's own, to be listed like the zygote's.
            own.push(AllowedPath::at("/", PathAccess::List)?);
        }
        if grants.authority.is_some() {
            own.push(AllowedPath::at(CERTIFICATE_BUNDLE, PathAccess::Read)?);
        }
        for tree in &grants.trees {
            let reach = match (tree.access, tree.is_directory) {
                (TreeAccess::Read, _) => PathAccess::Read,
                (TreeAccess::Workspace, _) | (TreeAccess::Write, true) => PathAccess::Own,
                (TreeAccess::Write, false) => PathAccess::OwnFile,
            };
            own.push(AllowedPath::at(tree.target(), reach)?);
        }
        Ok(own)
    }
}

impl CellOrder {
    /// The limits of the guest's process. The branches of a session are counted together, so there
    /// is room for all of them.
    fn process_limits(&self) -> CellLimits {
        let branches = match self.kind {
            CellKind::Single => 0,
            CellKind::Session => MAX_BRANCHES as u64,
        };
        let processes = self.limits.processes.saturating_add(branches);
        CellLimits { processes, ..self.limits }
    }
}

/// Gives up every capability; with `no_new_privs` there is no way to get one back.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    keep_capabilities(CapabilitySet::empty())
}

/// Gives up every capability but these, which no program it starts has.
fn keep_capabilities(kept: CapabilitySet) -> io::Result<()> {
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// The byte a process writes to a pipe once it is confined itself.
pub(crate) const CONFINED: u8 = 1;

/// Waits until the process at the other end of a pipe reports that it is confined.
pub(crate) fn wait_until_confined(pipe: &impl AsFd) -> io::Result<()> {
    let mut said = [0];
    rustix::io::read(pipe, &mut said)?;
    if said == [CONFINED] { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Standard streams of the cell's own: an open file that cells share has one set of flags, locks
/// and times, and through those two guests could talk past the host. Reading gives the end of the
/// stream, writing is refused.
pub(crate) fn own_standard_streams() -> io::Result<()> {
    let (nothing, _) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

/// Closes everything but the standard streams (which lead nowhere) and these.
pub(crate) fn close_all_but(mut keep: Vec<RawFd>) -> io::Result<()> {
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
