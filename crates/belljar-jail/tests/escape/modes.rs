//! Every attempt in every mode, and its control.

use std::io;

use belljar_jail::{Guests, NetworkAccess};
use libtest_mimic::{Failed, Trial};

use crate::harness::{
    attempt::{Attempt, MECHANISMS, Setting},
    bait::Bait,
    control,
    host::{self, Spec},
    outcome::{Conclusion, Outcome},
    raw::call,
    spawn::{self, Who},
};
use crate::{network, programs, skip::skip};

/// The user of the host, and the source of its cells.
#[derive(Debug, Clone, Copy)]
struct Mode {
    name: &'static str,
    root: bool,
    pool_size: usize,
    guests: Guests,
    network: NetworkAccess,
}

const fn mode(name: &'static str, root: bool, pool_size: usize, guests: Guests) -> Mode {
    Mode { name, root, pool_size, guests, network: NetworkAccess::None }
}

/// Cells of programs that have a proxy.
const fn with_proxy(name: &'static str, root: bool, pool_size: usize) -> Mode {
    Mode { network: NetworkAccess::Proxy, ..mode(name, root, pool_size, Guests::Programs) }
}

const MODES: [Mode; 12] = [
    mode("root_pooled", true, 2, Guests::Script),
    mode("root_fresh", true, 0, Guests::Script),
    mode("user_pooled", false, 2, Guests::Script),
    mode("user_fresh", false, 0, Guests::Script),
    mode("programs_root_pooled", true, 2, Guests::Programs),
    mode("programs_root_fresh", true, 0, Guests::Programs),
    mode("programs_user_pooled", false, 2, Guests::Programs),
    mode("programs_user_fresh", false, 0, Guests::Programs),
    with_proxy("proxy_root_pooled", true, 2),
    with_proxy("proxy_root_fresh", true, 0),
    with_proxy("proxy_user_pooled", false, 2),
    with_proxy("proxy_user_fresh", false, 0),
];

/// The answer of a control where the kernel lacks the feature that it needs.
pub(crate) const UNAVAILABLE_HERE: &[i32] = &[libc::ENOSYS];

/// Attempts by what they are aimed at.
type Table = &'static [(&'static str, &'static [Attempt])];
/// Whether they are made in a mode.
type Has = fn(&Mode) -> bool;

/// One trial per mode and mechanism, and the controls.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let of_programs = |mode: &Mode| mode.guests == Guests::Programs;
    let tables: [(Table, Has); 4] = [
        (MECHANISMS, |_| true),
        (programs::MECHANISMS, of_programs),
        // A cell that is granted something is never a parked one.
        (programs::GRANTED, |mode| mode.pool_size == 0),
        (network::WITH_PROXY, |mode| mode.network == NetworkAccess::Proxy),
    ];
    for (table, has) in tables {
        for (mechanism, attempts) in table {
            for mode in MODES.into_iter().filter(has) {
                let name = format!("{}::{mechanism}", mode.name);
                trials.push(Trial::test(name, move || inside(mode, attempts)));
            }
            let name = format!("controls::{mechanism}");
            trials.push(Trial::test(name, move || controls(attempts)));
        }
    }
    trials.push(Trial::test("controls::names_are_unique", names_are_unique));
    trials
}

/// Probes find an attempt by its name.
fn names_are_unique() -> Result<(), Failed> {
    let tables = [MECHANISMS, programs::MECHANISMS, programs::GRANTED, network::WITH_PROXY];
    let tables = tables.into_iter().flatten();
    let attempts = tables.flat_map(|(_, attempts)| *attempts);
    let mut names: Vec<&str> = attempts.map(|attempt| attempt.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    eprintln!("{all} attempts");
    if names.len() == all { Ok(()) } else { Err("two attempts have one name".into()) }
}

/// Nothing gets out, and the host still works afterwards.
fn inside(mode: Mode, attempts: &'static [Attempt]) -> Result<(), Failed> {
    let Some(who) = who(mode)? else { return Ok(()) };
    let names = attempts.iter().map(|attempt| attempt.name).chain(["honest_frame"]);
    let spec = match mode.guests {
        Guests::Script => Spec::full(names),
        Guests::Programs => Spec::of_programs(names),
    };
    let plan = spec.plan.clone().with_network(mode.network);
    let spec = Spec { pool_size: mode.pool_size, plan, ..spec };
    let verdicts = host::run(who, &spec)?;
    let checked = attempts.iter().zip(&verdicts);
    let checked =
        checked.map(|(attempt, verdict)| verdict.check(attempt, mode.guests, mode.network));
    let mut failures: Vec<String> = checked.filter_map(Result::err).collect();
    let weak = verdicts.iter().filter(|verdict| verdict.tier != "full");
    failures.extend(weak.map(|verdict| format!("{}: tier {}", verdict.name, verdict.tier)));
    let last = verdicts.last().filter(|last| last.outcome().is_some_and(Outcome::has_succeeded));
    if last.is_none() {
        failures.push("afterwards the host could not run an honest probe".to_owned());
    }
    report(failures)
}

/// Root modes need a root runner: without one they fail, or are skipped loudly.
fn who(mode: Mode) -> Result<Option<Who>, Failed> {
    match (mode.root, spawn::is_root()) {
        (true, true) => Ok(Some(Who::Same)),
        (false, _) => Ok(Some(spawn::ordinary())),
        (true, false) => needs_root(mode.name),
    }
}

/// Whether this machine lets an ordinary user make a user namespace, without which there is no
/// cell.
pub(crate) fn can_sandbox() -> bool {
    let asked = || spawn::this_program(spawn::ordinary(), &["__can_sandbox"])?.status();
    asked().is_ok_and(|status| status.success())
}

/// The role that finds out whether this user may make a user namespace.
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    let entered = call!(SYS_unshare, libc::CLONE_NEWUSER);
    entered.map(drop).map_err(io::Error::from_raw_os_error)
}

/// A trial that says loudly that it was not made.
pub(crate) fn skipped(trial: Trial) -> Trial {
    let name = trial.name().to_owned();
    Trial::test(name.clone(), move || {
        skip(&format!("{name} needs user namespaces; see `belljar doctor`"));
        Ok(())
    })
}

/// The answer of a trial that only root can make.
pub(crate) fn needs_root<T>(what: &str) -> Result<Option<T>, Failed> {
    skip(&format!("{what} needs root"));
    Ok(None)
}

/// Outside, in the weakest setting that should do, every attempt succeeds.
fn controls(attempts: &'static [Attempt]) -> Result<(), Failed> {
    let (bait, _laid) = Bait::lay(spawn::ordinary())?;
    let mut failures = Vec::new();
    for attempt in attempts {
        if attempt.control == Setting::Root && !spawn::is_root() {
            needs_root::<()>(attempt.name)?;
            continue;
        }
        let outcome = if programs::is_on_files(attempt) {
            control::run_on_files(attempt)
        } else {
            control::run(attempt, &bait)
        };
        match outcome {
            Ok(Outcome { outcome: Conclusion::Succeeded, .. }) => {}
            Ok(Outcome { errno: Some(errno), .. }) if UNAVAILABLE_HERE.contains(&errno) => {
                eprintln!("{}: this kernel has no such thing to attack", attempt.name);
            }
            Ok(outcome) => failures.push(format!("{}: {outcome}", attempt.name)),
            Err(error) => failures.push(format!("{}: {error}", attempt.name)),
        }
    }
    report(failures)
}

/// A failure that lists all of them.
pub(crate) fn report(failures: Vec<String>) -> Result<(), Failed> {
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} failed:\n  {}", failures.len(), failures.join("\n  ")).into())
}
