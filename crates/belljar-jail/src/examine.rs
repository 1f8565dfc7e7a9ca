//! Tries each layer in a process of its own, to find out which ones this machine can enforce (I3).

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::thread::set_no_new_privs;
use serde::{Deserialize, Serialize};

use crate::{
    Guests, Mechanism,
    cell::drop_capabilities,
    cgroup::Delegation,
    identity,
    identity::OuterIds,
    landlock,
    mounts::{self, RootContents},
    rlimits,
    seccomp::{SeccompPolicy, SeccompProgram},
    sys::{
        self,
        process::{CloneSide, exit_now},
    },
};

/// The hidden first argument that makes a program examine the machine.
pub const EXAMINE_ARGUMENT: &str = "__examine";

/// One layer, and whether this machine can enforce it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The name of the layer, as in [`Mechanism::as_str`].
    pub layer: String,
    /// Whether the layer works on this machine.
    pub state: FindingState,
    /// The finding of the trial, e.g. `ABI 7`, or the system's error.
    pub detail: String,
    /// The remedy for the operator if it does not work.
    pub remedy: Option<String>,
}

/// The outcome of the trial of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// The trial of the layer succeeded.
    Works,
    /// Not available; `detail` names the substitute in force.
    Substituted,
    /// The trial failed: runs are refused on this machine.
    Missing,
}

type Trial = fn() -> io::Result<String>;

/// Every layer with the way it is tried. The order is that of [`Mechanism::ALL`].
const TRIALS: [(Mechanism, Trial); 18] = [
    (Mechanism::UnprivilegedUser, try_dropping_root),
    (Mechanism::UserNamespace, || enter_user_namespace().map(|()| String::new())),
    (Mechanism::MountNamespace, || try_namespace(libc::CLONE_NEWNS)),
    (Mechanism::PidNamespace, || try_namespace(libc::CLONE_NEWPID)),
    (Mechanism::NetworkNamespace, || try_namespace(libc::CLONE_NEWNET)),
    (Mechanism::IpcNamespace, || try_namespace(libc::CLONE_NEWIPC)),
    (Mechanism::UtsNamespace, || try_namespace(libc::CLONE_NEWUTS)),
    (Mechanism::CgroupNamespace, || try_namespace(libc::CLONE_NEWCGROUP)),
    (Mechanism::ReadOnlyRoot, || in_new_root(|| Ok(String::new()))),
    (Mechanism::PrivateTmp, || in_new_root(|| mounts::scratch_for_trial().map(quiet))),
    (Mechanism::PrivateProc, || {
        in_new_root(|| mounts::mount_private_proc(Guests::Script, "/proc").map(quiet))
    }),
    (Mechanism::Capabilities, || drop_capabilities().map(quiet)),
    (Mechanism::NoNewPrivileges, || Ok(set_no_new_privs(true).map(quiet)?)),
    (Mechanism::ResourceLimits, || rlimits::forbid_core_dumps().map(quiet)),
    (Mechanism::Undumpable, try_undumpable),
    (Mechanism::ClosedDescriptors, || sys::process::close_from(1000).map(quiet)),
    (Mechanism::Landlock, || landlock::restrict_to_tmp().map(|abi| format!("ABI {abi}"))),
    (Mechanism::Seccomp, try_seccomp),
];

/// Tries every layer but the control group, prints the findings to standard output as JSON, and
/// ends the process, which must be single-threaded.
pub fn print_and_exit() -> ! {
    let tried = TRIALS.iter().map(|(mechanism, trial)| finding(*mechanism, in_child(*trial)));
    let findings: Vec<Finding> = tried.collect();
    let findings = serde_json::to_vec(&findings).unwrap_or_default();
    let _ = io::stdout().write_all(&findings);
    exit_now(0)
}

fn finding(mechanism: Mechanism, tried: Result<String, String>) -> Finding {
    let layer = mechanism.as_str().to_owned();
    match tried {
        Ok(detail) => Finding { layer, state: FindingState::Works, detail, remedy: None },
        Err(detail) => {
            let remedy = Some(remedy(mechanism).to_owned());
            Finding { layer, state: FindingState::Missing, detail, remedy }
        }
    }
}

/// Whether cells of the calling process get a control group of their own.
pub fn memory_cgroup(delegation: &Result<Delegation, String>) -> Finding {
    let (state, detail, remedy) = match delegation {
        Ok(_) => (FindingState::Works, "cgroup v2, delegated".to_owned(), None),
        Err(reason) => (
            FindingState::Substituted,
            format!("{reason}; rlimits and sampling by the host are used instead"),
            Some(
                "recommended for untrusted code, because only a control group bounds the kernel's \
                 own memory: start belljar with `systemd-run --user --scope -p Delegate=yes`"
                    .into(),
            ),
        ),
    };
    Finding { layer: "memory-cgroup".to_owned(), state, detail, remedy }
}

/// Runs a trial in a copy of this process, so that nothing it does sticks.
fn in_child(trial: Trial) -> Result<String, String> {
    let say = |error: io::Error| error.to_string();
    let (read, write) = rustix::pipe::pipe().map_err(|errno| errno.to_string())?;
    match sys::process::clone(0).map_err(say)? {
        CloneSide::Child => {
            drop(read);
            let text = match trial() {
                Ok(detail) => format!("+{detail}"),
                Err(error) => format!("-{error}"),
            };
            let _ = File::from(write).write_all(text.as_bytes());
            exit_now(0)
        }
        CloneSide::Parent { pid, .. } => {
            drop(write);
            let mut text = String::new();
            File::from(read).read_to_string(&mut text).map_err(say)?;
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            match text.split_at_checked(1) {
                Some(("+", detail)) => Ok(detail.to_owned()),
                Some((_, error)) => Err(error.to_owned()),
                None => Err("the trial process died".to_owned()),
            }
        }
    }
}

fn quiet(_: ()) -> String {
    String::new()
}

fn try_dropping_root() -> io::Result<String> {
    let was_root = rustix::process::getuid().is_root();
    identity::drop_root()?;
    let uid = rustix::process::getuid().as_raw();
    Ok(if was_root { format!("root becomes uid {uid}") } else { format!("already uid {uid}") })
}

fn enter_user_namespace() -> io::Result<()> {
    // A root that cannot become another user is a finding of its own, not of every layer.
    let _ = identity::drop_root();
    let ids = OuterIds::current();
    sys::process::unshare_user()?;
    ids.map_inside()
}

fn try_namespace(flag: libc::c_int) -> io::Result<String> {
    enter_user_namespace()?;
    in_namespaces(flag, || Ok(String::new()))
}

fn in_new_root(then: fn() -> io::Result<String>) -> io::Result<String> {
    enter_user_namespace()?;
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    in_namespaces(flags, move || {
        mounts::pivot_to_minimal_root(Guests::Script, &RootContents::default())?;
        then()
    })
}

fn in_namespaces(
    flags: libc::c_int,
    then: impl FnOnce() -> io::Result<String>,
) -> io::Result<String> {
    let (read, write) = rustix::pipe::pipe()?;
    match sys::process::clone(flags)? {
        CloneSide::Child => {
            let code = then().map_or_else(|error| error.raw_os_error().unwrap_or(-1), |_| 0);
            let _ = File::from(write).write_all(&code.to_le_bytes());
            exit_now(0)
        }
        CloneSide::Parent { pid, .. } => {
            drop(write);
            let mut code = [0; 4];
            File::from(read).read_exact(&mut code)?;
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            match i32::from_le_bytes(code) {
                0 => Ok(String::new()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }
}

fn try_undumpable() -> io::Result<String> {
    let behaviour = rustix::process::DumpableBehavior::NotDumpable;
    Ok(rustix::process::set_dumpable_behavior(behaviour).map(quiet)?)
}

fn try_seccomp() -> io::Result<String> {
    set_no_new_privs(true)?;
    let program = SeccompProgram::compile(&SeccompPolicy::zygote(Guests::Script));
    sys::seccomp::load(&program)?;
    Ok(format!("{} instructions", program.instructions().len()))
}

/// The remedy for a missing layer.
pub(crate) fn remedy(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::UserNamespace => {
            "allow unprivileged user namespaces: `sysctl -w user.max_user_namespaces=15000`; on \
             Debian also `kernel.unprivileged_userns_clone=1`; on Ubuntu \
             `kernel.apparmor_restrict_unprivileged_userns=0` or an AppArmor profile for belljar; \
             in Docker `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
        }
        Mechanism::MountNamespace
        | Mechanism::PidNamespace
        | Mechanism::NetworkNamespace
        | Mechanism::IpcNamespace
        | Mechanism::UtsNamespace
        | Mechanism::CgroupNamespace
        | Mechanism::ReadOnlyRoot
        | Mechanism::PrivateTmp => {
            "needs user namespaces first (see userns); the kernel must have this kind of namespace \
             built in, and in a container its seccomp profile must let clone and mount calls through"
        }
        Mechanism::PrivateProc => {
            "parts of /proc are masked here, as in a container: in Docker add \
             `--security-opt systempaths=unconfined`"
        }
        Mechanism::Landlock => {
            "needs a kernel of 5.19 or newer with Landlock (ABI 2) enabled: add `landlock` to the \
             `lsm=` boot parameter"
        }
        Mechanism::Seccomp => "the kernel needs CONFIG_SECCOMP_FILTER",
        Mechanism::UnprivilegedUser => {
            "root cannot become another user here, as in a rootless container: map a range of ids \
             into it, or start belljar as an ordinary user"
        }
        Mechanism::Capabilities
        | Mechanism::NoNewPrivileges
        | Mechanism::ResourceLimits
        | Mechanism::Undumpable
        | Mechanism::ClosedDescriptors => {
            "an outer sandbox forbids this: run belljar outside it, or let the call through"
        }
    }
}
