//! Every system call of the set-up, made to fail: the run is refused, never carried out weaker.

use std::io;

use belljar_jail::{Guests, Mechanism};
use libtest_mimic::{Failed, Trial};

use crate::{
    harness::{
        home::Home,
        host::{self, Spec, Verdict},
        raw::{self, call},
        spawn::{self, Who},
    },
    modes::{needs_root, report},
};

/// The condition on an argument for a call to fail.
#[derive(Clone, Copy)]
enum When {
    Always,
    Is { argument: u8, value: u32 },
    IsNot { argument: u8, value: u32 },
}

/// A call that fails, from the start of the zygote's program on.
struct Fault {
    /// The call, or one operation of it.
    name: &'static str,
    number: libc::c_long,
    /// Which operation, for calls of many.
    when: When,
    /// Only a root host makes it.
    root_only: bool,
    /// Only what is needed for programs makes it.
    programs_only: bool,
}

const fn fault(name: &'static str, number: libc::c_long) -> Fault {
    Fault { name, number, when: When::Always, root_only: false, programs_only: false }
}

const fn when(name: &'static str, number: libc::c_long, argument: u8, value: u32) -> Fault {
    Fault { when: When::Is { argument, value }, ..fault(name, number) }
}

const FAULTS: &[Fault] = &[
    Fault { programs_only: true, ..fault("open_tree", libc::SYS_open_tree) },
    Fault { programs_only: true, ..fault("mount_setattr", libc::SYS_mount_setattr) },
    Fault { programs_only: true, ..fault("symlinkat", libc::SYS_symlinkat) },
    fault("setsid", libc::SYS_setsid),
    Fault { root_only: true, ..fault("setgroups", libc::SYS_setgroups) },
    Fault { root_only: true, ..fault("setresgid", libc::SYS_setresgid) },
    Fault { root_only: true, ..fault("setresuid", libc::SYS_setresuid) },
    fault("unshare", libc::SYS_unshare),
    fault("clone3", libc::SYS_clone3),
    fault("sethostname", libc::SYS_sethostname),
    fault("mount", libc::SYS_mount),
    fault("fsopen", libc::SYS_fsopen),
    fault("fsconfig", libc::SYS_fsconfig),
    fault("fsmount", libc::SYS_fsmount),
    fault("move_mount", libc::SYS_move_mount),
    fault("pivot_root", libc::SYS_pivot_root),
    fault("umount2", libc::SYS_umount2),
    fault("chdir", libc::SYS_chdir),
    fault("mkdirat", libc::SYS_mkdirat),
    fault("capset", libc::SYS_capset),
    // Asking for a limit never fails; setting one may.
    Fault {
        when: When::IsNot { argument: 2, value: 0 },
        ..fault("prlimit64", libc::SYS_prlimit64)
    },
    fault("close_range", libc::SYS_close_range),
    fault("signalfd4", libc::SYS_signalfd4),
    fault("pipe2", libc::SYS_pipe2),
    fault("socketpair", libc::SYS_socketpair),
    fault("landlock_create_ruleset", libc::SYS_landlock_create_ruleset),
    fault("landlock_add_rule", libc::SYS_landlock_add_rule),
    fault("landlock_restrict_self", libc::SYS_landlock_restrict_self),
    fault("seccomp", libc::SYS_seccomp),
    when("no_new_privs", libc::SYS_prctl, 0, libc::PR_SET_NO_NEW_PRIVS as u32),
    when("parent_death_signal", libc::SYS_prctl, 0, libc::PR_SET_PDEATHSIG as u32),
    when("undumpable", libc::SYS_prctl, 0, libc::PR_SET_DUMPABLE as u32),
    when("bounding_set", libc::SYS_prctl, 0, libc::PR_CAPBSET_DROP as u32),
    when("ambient_set", libc::SYS_prctl, 0, libc::PR_CAP_AMBIENT as u32),
];

/// The error every fault gives: no call takes it for anything but a refusal.
const ERRNO: i32 = libc::EPERM;

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |fault: &'static Fault| {
        Trial::test(format!("faults::{}", fault.name), move || {
            leads_to_refusal(fault, Guests::Script)
        })
    };
    let of_programs = |fault: &'static Fault| {
        Trial::test(format!("faults::programs_{}", fault.name), move || {
            leads_to_refusal(fault, Guests::Programs)
        })
    };
    let of_scripts = FAULTS.iter().filter(|fault| !fault.programs_only);
    of_scripts.map(trial).chain(FAULTS.iter().map(of_programs)).collect()
}

fn leads_to_refusal(fault: &Fault, guests: Guests) -> Result<(), Failed> {
    let mut who = Vec::new();
    if spawn::is_root() {
        who.push(Who::Same);
    } else if fault.root_only {
        return needs_root::<()>(fault.name).map(|_| ());
    }
    if !fault.root_only {
        who.push(spawn::ordinary());
    }
    let mut failures = Vec::new();
    for who in who {
        let errno = ERRNO.to_string();
        let wrap =
            |role: &str| ["__fault", fault.name, &errno, "--", role].map(str::to_owned).to_vec();
        let verdicts = match guests {
            Guests::Script => {
                let zygote = wrap("__zygote");
                host::run(who, &Spec { zygote, ..Spec::full(["honest_frame"]) })?
            }
            Guests::Programs => {
                let home = Home::lay(who, "nothing to find here")?;
                let (zygote, granted) = (wrap("__programs"), Some(home.path().to_owned()));
                let spec = Spec::of_programs(["honest_frame_with_grants"]);
                host::run(who, &Spec { zygote, home: granted, ..spec })?
            }
        };
        let refused = |verdict: &Verdict| match guests {
            Guests::Script => refused(verdict),
            Guests::Programs => refused(verdict).or_else(|_| not_granted(verdict)),
        };
        failures.extend(verdicts.iter().filter_map(|verdict| refused(verdict).err()));
    }
    report(failures)
}

/// A refusal names what could not be put in force, and nothing ran.
pub(crate) fn refused(verdict: &Verdict) -> Result<(), String> {
    let Some(error) = &verdict.error else { return Err(format!("it ran: {verdict}")) };
    let names =
        |mechanism: &&str| error.message.starts_with(&format!("could not put {mechanism} in"));
    let named = Mechanism::ALL.iter().map(|mechanism| mechanism.as_str()).chain(["cell"]);
    if error.kind != "SandboxError" || verdict.tier != "refused" {
        return Err(format!("not refused: {verdict} (tier {})", verdict.tier));
    }
    if named.into_iter().any(|mechanism| names(&mechanism)) {
        Ok(())
    } else {
        Err(format!("refused, but names no mechanism: {verdict}"))
    }
}

/// Nothing ran either if a grant could not be had.
fn not_granted(verdict: &Verdict) -> Result<(), String> {
    let code = verdict.error.as_ref().map_or("", |error| &error.code);
    if verdict.report.is_none() && verdict.tier == "refused" && code == "permission.file" {
        return Ok(());
    }
    Err(format!("neither refused nor not granted: {verdict} (tier {})", verdict.tier))
}

/// Whether a call is one of those that confine, but for limits, of which there are many.
pub(crate) fn confines(number: i32) -> bool {
    let named = FAULTS.iter().any(|fault| fault.number == i64::from(number));
    named && i64::from(number) != libc::SYS_prlimit64
}

/// The `__fault` role: makes a call fail for good (or, with errno 0, do nothing and say it did),
/// then becomes this program in another role.
pub(crate) fn main(name: &str, errno: &str, rest: &[&str]) -> io::Result<()> {
    let fault = FAULTS.iter().find(|fault| fault.name == name).ok_or(io::ErrorKind::NotFound)?;
    let errno: u32 = errno.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    call!(SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        .map_err(io::Error::from_raw_os_error)?;
    raw::load_filter(&mut filter(fault, errno), 0).map_err(io::Error::from_raw_os_error)?;
    Err(spawn::become_role(rest))
}

/// Number, then perhaps an argument's low half, decide.
fn filter(fault: &Fault, errno: u32) -> Vec<libc::sock_filter> {
    let instruction = |code: u16, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let (load, equal, give) = (0x20, 0x15, 0x06);
    let number = u32::try_from(fault.number).unwrap_or(u32::MAX);
    let mut filter = vec![instruction(load, 0, 0, 0)];
    let mut test = |argument: u8, value, jt, jf| {
        filter.extend([
            instruction(equal, 0, 3, number),
            instruction(load, 0, 0, 16 + 8 * u32::from(argument)),
            instruction(equal, jt, jf, value),
        ]);
    };
    match fault.when {
        When::Is { argument, value } => test(argument, value, 0, 1),
        When::IsNot { argument, value } => test(argument, value, 1, 0),
        When::Always => filter.push(instruction(equal, 0, 1, number)),
    }
    filter.push(instruction(give, 0, 0, libc::SECCOMP_RET_ERRNO | errno));
    filter.push(instruction(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    filter
}
