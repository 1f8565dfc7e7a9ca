//! The zygote: a confined, warm process that only ever clones cells.
//!
//! Two processes come of the one that calls [`serve`]. The *warden* stays outside the new
//! namespaces and does nothing but end the zygote when the host goes away. The zygote proper is
//! pid 1 of its own pid namespace, so whatever ends it ends every cell.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, Signal, WaitId, WaitIdOptions, set_parent_process_death_signal, setsid, waitid,
    },
    thread::{
        CapabilitySet, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_no_new_privs,
    },
};

use crate::{
    ConfineError, Guest, Mechanism, ZygotePlan,
    cell::{CONFINED, CellTemplate, close_all_but, drop_capabilities, wait_until_told},
    control::{self, Answer, Order},
    error::During,
    identity::{self, OuterIds},
    mounts,
    rlimits::{self, Inherited},
    seccomp::{Policy, Program},
    sys::{
        self,
        process::{Cloned, assert_single_threaded, exit_now},
        signals::{EndedChildren, ended_children_are},
    },
};

/// Becomes a zygote that takes orders from standard input, a packet socket.
///
/// `warm` is called once the zygote is confined. The calling process must be single-threaded and
/// have nothing left to do: this never returns.
pub fn serve<G: Guest>(warm: impl FnOnce() -> Result<G, String>) -> ! {
    let _ = try_serve(warm);
    exit_now(0)
}

fn try_serve<G: Guest>(warm: impl FnOnce() -> Result<G, String>) -> io::Result<()> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let Some((Order::Confine(plan), _)) = control::receive::<Order>(&control)? else {
        return Ok(());
    };
    let (told_by_warden, tell_zygote) =
        match pipe_with(PipeFlags::CLOEXEC).during(Mechanism::PidNamespace) {
            Ok(ends) => ends,
            Err(error) => return refuse(&control, &error),
        };
    match enter_namespaces(&plan, [&control, &told_by_warden, &tell_zygote]) {
        Err(error) => refuse(&control, &error),
        Ok(Cloned::Parent { pidfd, pid }) => {
            drop(told_by_warden);
            watch_over(&plan, &control, &pidfd, pid, tell_zygote)
        }
        Ok(Cloned::Child) => {
            drop(tell_zygote);
            match confine_zygote(&plan, told_by_warden) {
                Err(error) => refuse(&control, &error),
                Ok(()) => match warm() {
                    Err(message) => control::send(&control, &Answer::NotWarm { message }, &[]),
                    Ok(guest) => make_cells(&control, plan, guest),
                },
            }
        }
    }
}

/// What guests inherit as standard streams leads nowhere.
fn silence_standard_streams() -> io::Result<()> {
    let null = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn refuse(control: &OwnedFd, error: &ConfineError) -> io::Result<()> {
    let message = error.source.to_string();
    control::send(control, &Answer::Refused { mechanism: error.mechanism, message }, &[])
}

fn enter_namespaces(plan: &ZygotePlan, keep: [&OwnedFd; 3]) -> Result<Cloned, ConfineError> {
    assert_single_threaded().during(Mechanism::PidNamespace)?;
    silence_standard_streams().during(Mechanism::ClosedDescriptors)?;
    close_all_but(keep.map(AsRawFd::as_raw_fd)).during(Mechanism::ClosedDescriptors)?;
    identity::drop_root().during(Mechanism::UnprivilegedUser)?;
    rlimits::raise_stack().during(Mechanism::ResourceLimits)?;
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
    sys::process::clone(flags).during(Mechanism::MountNamespace)
}

fn confine_zygote(plan: &ZygotePlan, told_by_warden: OwnedFd) -> Result<(), ConfineError> {
    // Belt to the warden's braces: should the warden be killed, so is this.
    set_parent_process_death_signal(Some(Signal::KILL)).during(Mechanism::PidNamespace)?;
    // A session of its own: no terminal, and no signal meant for the host's process group.
    setsid().during(Mechanism::PidNamespace)?;
    // When memory runs out everywhere, cells are what to kill first.
    fs::write("/proc/self/oom_score_adj", "1000").during(Mechanism::ResourceLimits)?;
    if plan.asks_for(Mechanism::UtsNamespace) {
        rustix::system::sethostname(b"belljar").during(Mechanism::UtsNamespace)?;
    }
    if plan.asks_for(Mechanism::ReadOnlyRoot) {
        mounts::pivot_to_minimal_root().during(Mechanism::ReadOnlyRoot)?;
    }
    ended_children_are(EndedChildren::Reaped).during(Mechanism::PidNamespace)?;
    if plan.asks_for(Mechanism::Capabilities) {
        drop_bounding_set().during(Mechanism::Capabilities)?;
        drop_capabilities().during(Mechanism::Capabilities)?;
    }
    wait_until_told(&told_by_warden).during(Mechanism::PidNamespace)?;
    if plan.asks_for(Mechanism::Seccomp) {
        sys::seccomp::load(&Program::compile(&Policy::zygote())).during(Mechanism::Seccomp)?;
    }
    Ok(())
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

fn make_cells<G: Guest>(control: &OwnedFd, plan: ZygotePlan, mut guest: G) -> io::Result<()> {
    let filter = Program::compile(&Policy::script());
    let keeper_filter = Program::compile(&Policy::keeper());
    let mut template =
        CellTemplate { plan, inherited: Inherited::current()?, filter, keeper_filter };
    assert_single_threaded()?;
    control::send(control, &Answer::Ready, &[])?;
    let mut is_first = true;
    while let Some((order, _)) = control::receive::<Order>(control)? {
        let Order::MakeCell { serial, limits } = order else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match template.make(&limits, &mut guest) {
            Ok(cell) => {
                let fds = [cell.guest.as_fd(), cell.keeper.as_fd(), cell.pidfd.as_fd()];
                control::send(control, &Answer::Cell { serial }, &fds)?;
            }
            Err(error) => {
                let message = error.to_string();
                control::send(control, &Answer::NoCell { serial, message }, &[])?;
            }
        }
        if is_first {
            is_first = false;
            guest.warm_further();
            assert_single_threaded()?;
            template.inherited = Inherited::current()?;
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
    tell_zygote: OwnedFd,
) -> io::Result<()> {
    if let Err(error) = confine_warden(plan) {
        sys::process::kill_by_pidfd(zygote)?;
        return refuse(control, &error);
    }
    // The zygote goes on only once its warden is confined.
    // One that is just saying why it cannot has closed its end; let it finish.
    let _ = rustix::io::write(&tell_zygote, &[CONFINED]);
    drop(tell_zygote);
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
        sys::seccomp::load(&Program::compile(&Policy::warden())).during(Mechanism::Seccomp)?;
    }
    Ok(())
}
