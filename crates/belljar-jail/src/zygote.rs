//! The zygote: a confined, warm process that only ever clones cells.
//!
//! The process that calls [`serve`] becomes two. The *warden* stays outside the new
//! namespaces and does nothing but end the zygote when the host goes away. The zygote proper is
//! pid 1 of its own pid namespace, so whatever ends it ends every cell.

use std::{
    cell::Cell,
    ffi::OsString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{CWD, Mode, OFlags, openat},
    io::{Errno, FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, Signal, WaitId, WaitIdOptions, set_parent_process_death_signal, setsid, waitid,
    },
    thread::{
        CapabilitySet, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_no_new_privs,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    ConfineError, ConfinedCell, Guest, Guests, Mechanism, ZygotePlan,
    cell::{
        CONFINED, CellOrder, CellTemplate, Filters, close_all_but, drop_capabilities,
        wait_until_confined,
    },
    certificates, code_pages,
    control::{self, Ids, ZygoteOrder, ZygoteReply},
    error::MechanismContext,
    identity::{self, OuterIds},
    landlock::AllowedPath,
    mounts::{self, RootContents},
    rlimits::{self, InheritedMemory},
    seccomp::{SeccompPolicy, SeccompProgram},
    sys::{
        self,
        process::{CloneSide, assert_single_threaded, exit_now, inherited_descriptor},
        signals::{EndedChildren, ended_children_are},
    },
    trees,
};

/// Directories whose files every user may read anyway.
const PUBLIC: [&str; 6] = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/opt"];

/// Becomes a zygote that takes orders from standard input, a packet socket.
///
/// `warm` is called once the zygote is confined. The calling process must be single-threaded and
/// have nothing left to do: this never returns.
pub fn serve<G: Guest>(warm: impl FnOnce() -> Result<G, String>) -> ! {
    let _ = begin(|_| Ok(Vec::new()), |stage| stage.make_cells(warm));
    exit_now(0)
}

/// A program of the view that takes over a confined zygote, and calls [`resume`].
#[derive(Debug)]
pub struct Successor {
    /// The path of the program: one of `files`, or a path on the host, which is added to the view.
    pub path: PathBuf,
    /// Its arguments. One more is added, for [`resume`].
    pub arguments: Vec<OsString>,
    /// The whole environment of the program.
    pub environment: Vec<(&'static str, &'static str)>,
    /// Files to put into its root, by path.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Becomes a zygote whose guests are programs: once confined, the process executes another program,
/// which is found within its root and continues as the zygote.
pub fn serve_by(successor: impl FnOnce() -> Result<Successor, String>) -> ! {
    let found = Cell::new(None);
    let _ = begin(
        |plan| {
            let mut successor = successor()?;
            let files = std::mem::take(&mut successor.files);
            let is_seen = plan.view().trees.iter().any(|tree| successor.path.starts_with(tree));
            if !is_seen && !files.iter().any(|(path, _)| *path == successor.path) {
                plan.view_mut().trees.push(successor.path.clone());
            }
            found.set(Some(successor));
            Ok(files)
        },
        |stage| stage.hand_to(found.take()),
    );
    exit_now(0)
}

/// Continues as the zygote in the program that [`serve_by`] has executed, given its last argument.
pub fn resume<G: Guest>(argument: &str, warm: impl FnOnce() -> Result<G, String>) -> ! {
    let _ = try_resume(argument, warm);
    exit_now(0)
}

fn try_resume<G: Guest>(
    argument: &str,
    warm: impl FnOnce() -> Result<G, String>,
) -> io::Result<()> {
    let Handover { plan, ids, control } = serde_json::from_str(argument)?;
    let control = inherited_descriptor(control).ok_or(io::ErrorKind::NotFound)?;
    let guest = match warm() {
        Ok(guest) => guest,
        Err(message) => return control::send(&control, &ZygoteReply::NotWarm { message }, &[]),
    };
    ConfinedZygote { plan, ids, control }.make_cells(|| Ok(guest))
}

/// A zygote that is confined except for its filter.
#[derive(Debug)]
struct ConfinedZygote {
    plan: ZygotePlan,
    ids: Ids,
    control: OwnedFd,
}

/// A [`ConfinedZygote`] as it goes to a [`Successor`].
#[derive(Debug, Serialize, Deserialize)]
struct Handover {
    plan: ZygotePlan,
    ids: Ids,
    control: RawFd,
}

fn begin(
    files: impl FnOnce(&mut ZygotePlan) -> Result<Vec<(PathBuf, Vec<u8>)>, String>,
    proceed: impl FnOnce(ConfinedZygote) -> io::Result<()>,
) -> io::Result<()> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let (mut plan, attached) = match control::receive_order(&control)? {
        Some((ZygoteOrder::Confine(plan), attached)) => (plan, attached.into_iter().next()),
        Some((ZygoteOrder::Detach { trees, cells }, _)) => {
            return trees::hand_over(&control, &trees, cells);
        }
        Some((ZygoteOrder::MakeCell { .. }, _)) | None => return Ok(()),
    };
    let files = match files(&mut plan) {
        Ok(files) => files,
        Err(message) => return control::send(&control, &ZygoteReply::NotWarm { message }, &[]),
    };
    let mut contents = RootContents { files, links: plan.view().links.clone(), trees: Vec::new() };
    if let Err(error) = certificates::add_to(&mut contents, &mut plan, attached) {
        let message = format!("could not read the machine's certificates: {error}");
        return control::send(&control, &ZygoteReply::NotWarm { message }, &[]);
    }
    match confine(&plan, &control, &mut contents) {
        Err(error) => refuse(&control, &error),
        Ok(None) => Ok(()),
        Ok(Some(ids)) => proceed(ConfinedZygote { plan, ids, control }),
    }
}

/// Puts every layer in force but the filter. `None` in the warden, when it is all over.
fn confine(
    plan: &ZygotePlan,
    control: &OwnedFd,
    contents: &mut RootContents,
) -> Result<Option<Ids>, ConfineError> {
    let (from_warden, to_zygote) = pipe_with(PipeFlags::CLOEXEC).during(Mechanism::PidNamespace)?;
    let keep = [control, &from_warden, &to_zygote];
    let (cloned, ids) = enter_namespaces(plan, keep, contents)?;
    match cloned {
        CloneSide::Parent { pidfd, pid } => {
            drop(from_warden);
            let _ = watch_over(plan, control, &pidfd, pid, to_zygote);
            Ok(None)
        }
        CloneSide::Child => {
            drop(to_zygote);
            confine_zygote(plan, from_warden, contents)?;
            Ok(Some(ids))
        }
    }
}

impl ConfinedZygote {
    fn hand_to(self, successor: Option<Successor>) -> io::Result<()> {
        let Self { plan, ids, control } = self;
        let Some(Successor { path, arguments, environment, .. }) = successor else { return Ok(()) };
        fcntl_setfd(&control, FdFlags::empty())?;
        let handover = Handover { plan, ids, control: control.as_raw_fd() };
        let handover = serde_json::to_string(&handover)?;
        #[expect(clippy::disallowed_methods, reason = "it starts nothing: it becomes the program")]
        let error =
            Command::new(&path).args(arguments).arg(handover).env_clear().envs(environment).exec();
        let message = format!("could not start {}: {error}", path.display());
        control::send(&control, &ZygoteReply::NotWarm { message }, &[])
    }

    fn make_cells<G: Guest>(self, warm: impl FnOnce() -> Result<G, String>) -> io::Result<()> {
        let Self { plan, ids, control } = self;
        let guests = plan.guests();
        if plan.asks_for(Mechanism::Seccomp) {
            let policy = SeccompPolicy::zygote(guests).listening(plan.network());
            let filter = SeccompProgram::compile(&policy);
            if let Err(error) = sys::seccomp::load(&filter).during(Mechanism::Seccomp) {
                return refuse(&control, &error);
            }
        }
        match warm() {
            Err(message) => control::send(&control, &ZygoteReply::NotWarm { message }, &[]),
            Ok(guest) => make_cells(&control, plan, ids, guest),
        }
    }
}

/// Standard streams that guests inherit lead nowhere.
pub(crate) fn silence_standard_streams() -> io::Result<()> {
    let null = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn refuse(control: &OwnedFd, error: &ConfineError) -> io::Result<()> {
    let message = error.source.to_string();
    control::send(control, &ZygoteReply::Refused { mechanism: error.mechanism, message }, &[])
}

fn enter_namespaces(
    plan: &ZygotePlan,
    keep: [&OwnedFd; 3],
    contents: &mut RootContents,
) -> Result<(CloneSide, Ids), ConfineError> {
    assert_single_threaded().during(Mechanism::PidNamespace)?;
    silence_standard_streams().during(Mechanism::ClosedDescriptors)?;
    close_all_but(keep.map(AsRawFd::as_raw_fd).to_vec()).during(Mechanism::ClosedDescriptors)?;
    if let Some(ids) = identity::private_ids() {
        // Root sees the whole tree only as long as it is root.
        contents.trees = detach_view(plan, Some(ids)).during(Mechanism::ReadOnlyRoot)?;
    }
    identity::drop_root().during(Mechanism::UnprivilegedUser)?;
    rlimits::size_stack(plan.guests()).during(Mechanism::ResourceLimits)?;
    let cells = identity::own_ids();
    let ids = OuterIds::current();
    sys::process::unshare_user().during(Mechanism::UserNamespace)?;
    ids.map_inside().during(Mechanism::UserNamespace)?;
    set_no_new_privs(true).during(Mechanism::NoNewPrivileges)?;
    let optional = [
        (Mechanism::NetworkNamespace, libc::CLONE_NEWNET),
        (Mechanism::IpcNamespace, libc::CLONE_NEWIPC),
        (Mechanism::UtsNamespace, libc::CLONE_NEWUTS),
        (Mechanism::CgroupNamespace, libc::CLONE_NEWCGROUP),
    ];
    let asked = optional.iter().filter(|(mechanism, _)| plan.asks_for(*mechanism));
    let always = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let flags = asked.fold(always, |flags, (_, flag)| flags | flag);
    let cloned = sys::process::clone(flags).during(Mechanism::MountNamespace)?;
    Ok((cloned, cells))
}

/// Detaches the host's software that the plan shows, and devices with it.
fn detach_view(plan: &ZygotePlan, owner: Option<Ids>) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    if plan.guests() == Guests::Script {
        return Ok(Vec::new());
    }
    let mut detached = Vec::new();
    let in_place = plan.view().trees.iter().map(|path| (path, path));
    let moved = plan.view().moved.iter().map(|(from, to)| (from, to));
    for (path, target) in in_place.chain(moved) {
        // Files that every user may read need no id map; a private home does, if the file system
        // supports it.
        let owner = owner.filter(|_| !PUBLIC.iter().any(|public| path.starts_with(public)));
        let mapped = owner.map(|owner| trees::detach(path, mounts::SOFTWARE, Some(owner)));
        let tree = match mapped {
            Some(Ok(tree)) => tree,
            Some(Err(_)) | None => {
                trees::detach(path, mounts::SOFTWARE, None).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                })?
            }
        };
        detached.push((target.clone(), tree));
    }
    for (path, device) in mounts::DEVICES {
        let tree = trees::detach(Path::new(device), mounts::DEVICE, None)
            .map_err(|error| io::Error::new(error.kind(), format!("{device}: {error}")))?;
        detached.push((path.into(), tree));
    }
    Ok(detached)
}

fn confine_zygote(
    plan: &ZygotePlan,
    from_warden: OwnedFd,
    contents: &mut RootContents,
) -> Result<(), ConfineError> {
    // Belt to the warden's braces: should the warden be killed, so is this.
    set_parent_process_death_signal(Some(Signal::KILL)).during(Mechanism::PidNamespace)?;
    // A session of its own: no terminal, and no signal meant for the host's process group.
    setsid().during(Mechanism::PidNamespace)?;
    // When memory runs out everywhere, the kernel should kill cells first.
    fs::write("/proc/self/oom_score_adj", "1000").during(Mechanism::ResourceLimits)?;
    if plan.asks_for(Mechanism::UtsNamespace) {
        rustix::system::sethostname(b"belljar").during(Mechanism::UtsNamespace)?;
    }
    if plan.asks_for(Mechanism::ReadOnlyRoot) {
        if contents.trees.is_empty() {
            contents.trees = detach_view(plan, None).during(Mechanism::ReadOnlyRoot)?;
        }
        mounts::pivot_to_minimal_root(plan.guests(), contents).during(Mechanism::ReadOnlyRoot)?;
        contents.trees.clear();
    }
    ended_children_are(EndedChildren::Reaped).during(Mechanism::PidNamespace)?;
    if plan.asks_for(Mechanism::Capabilities) {
        drop_bounding_set().during(Mechanism::Capabilities)?;
        drop_capabilities().during(Mechanism::Capabilities)?;
    }
    wait_until_confined(&from_warden).during(Mechanism::PidNamespace)
}

fn drop_bounding_set() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            // Past the last capability this kernel knows.
            Err(Errno::INVAL) => break,
            other => other?,
        }
    }
    Ok(())
}

fn make_cells<G: Guest>(
    control: &OwnedFd,
    plan: ZygotePlan,
    ids: Ids,
    mut guest: G,
) -> io::Result<()> {
    let (guests, network) = (plan.guests(), plan.network());
    let mut template = CellTemplate {
        inherited: InheritedMemory::current(guests)?,
        filters: Filters {
            guest: SeccompProgram::compile(&SeccompPolicy::guest(guests).connecting(network)),
            keeper: SeccompProgram::compile(&SeccompPolicy::keeper()),
        },
        session_filters: Filters {
            guest: SeccompProgram::compile(
                &SeccompPolicy::session_guest(guests).connecting(network),
            ),
            keeper: SeccompProgram::compile(&SeccompPolicy::session_keeper()),
        },
        places: match guests {
            Guests::Script => Vec::new(),
            Guests::Programs => AllowedPath::of_view(plan.view()),
        },
        plan,
    };
    assert_single_threaded()?;
    control::send(control, &ZygoteReply::Ready { ids }, &[])?;
    let mut is_first = true;
    while let Some((order, trees)) = control::receive_order(control)? {
        let ZygoteOrder::MakeCell { serial, limits, grants, kind } = order else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let order = CellOrder { limits, grants, trees, kind };
        match template.make(&order, &mut guest) {
            Ok(cell) => {
                let fds = [cell.guest.as_fd(), cell.keeper.as_fd(), cell.pidfd.as_fd()];
                control::send(control, &ZygoteReply::Cell { serial }, &fds)?;
            }
            Err(error) => {
                let message = error.to_string();
                control::send(control, &ZygoteReply::NoCell { serial, message }, &[])?;
            }
        }
        if is_first {
            is_first = false;
            guest.warm_further();
            assert_single_threaded()?;
            if guests == Guests::Script {
                // Only faster, if it can be had.
                let _ = code_pages::gather_from(G::confined as fn(&mut G, ConfinedCell) as usize);
            }
            template.inherited = InheritedMemory::current(guests)?;
        }
    }
    Ok(())
}

/// The warden: ends the zygote when the host is gone, and itself when the zygote is.
fn watch_over(
    plan: &ZygotePlan,
    control: &OwnedFd,
    zygote: &OwnedFd,
    pid: Pid,
    to_zygote: OwnedFd,
) -> io::Result<()> {
    if let Err(error) = confine_warden(plan) {
        sys::process::kill_by_pidfd(zygote)?;
        return refuse(control, &error);
    }
    // The zygote continues only once its warden is confined. One that is just saying why it cannot
    // has closed its end; let it finish.
    let _ = rustix::io::write(&to_zygote, &[CONFINED]);
    drop(to_zygote);
    loop {
        // Asking for nothing still reports a hang-up, and leaves the orders to the zygote.
        let mut ready =
            [PollFd::new(control, PollFlags::empty()), PollFd::new(zygote, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    sys::process::kill_by_pidfd(zygote)?;
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
    Ok(())
}

fn confine_warden(plan: &ZygotePlan) -> Result<(), ConfineError> {
    drop_capabilities().during(Mechanism::Capabilities)?;
    if plan.asks_for(Mechanism::Seccomp) {
        sys::seccomp::load(&SeccompProgram::compile(&SeccompPolicy::warden()))
            .during(Mechanism::Seccomp)?;
    }
    Ok(())
}
