//! Every attempt in every mode, and its control.

use std::io;

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

/// Who runs the host and where its cells come from.
#[derive(Debug, Clone, Copy)]
struct Mode {
    name: &'static str,
    root: bool,
    pool_size: usize,
}

const MODES: [Mode; 4] = [
    Mode { name: "root_pooled", root: true, pool_size: 2 },
    Mode { name: "root_fresh", root: true, pool_size: 0 },
    Mode { name: "user_pooled", root: false, pool_size: 2 },
    Mode { name: "user_fresh", root: false, pool_size: 0 },
];

/// What a control answers where the kernel was built without what it needs.
pub(crate) const UNAVAILABLE_HERE: &[i32] = &[libc::ENOSYS];

/// One trial per mode and mechanism, and the controls.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (mechanism, attempts) in MECHANISMS {
        for mode in MODES {
            let name = format!("{}::{mechanism}", mode.name);
            trials.push(Trial::test(name, move || inside(mode, attempts)));
        }
        let name = format!("controls::{mechanism}");
        trials.push(Trial::test(name, move || controls(attempts)));
    }
    trials.push(Trial::test("controls::names_are_unique", names_are_unique));
    trials
}

/// Probes find an attempt by its name.
fn names_are_unique() -> Result<(), Failed> {
    let attempts = MECHANISMS.iter().flat_map(|(_, attempts)| *attempts);
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
    let spec = Spec { pool_size: mode.pool_size, ..Spec::full(names) };
    let verdicts = host::run(who, &spec)?;
    let checked = attempts.iter().zip(&verdicts).map(|(attempt, verdict)| verdict.check(attempt));
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
/// cell. Where it must, by `BELLJAR_REQUIRE_SANDBOX`, the question is not asked.
pub(crate) fn can_sandbox() -> bool {
    let asked = || spawn::this_program(spawn::ordinary(), &["__can_sandbox"])?.status();
    std::env::var_os("BELLJAR_REQUIRE_SANDBOX").is_some()
        || asked().is_ok_and(|status| status.success())
}

/// The `__can_sandbox` role.
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    let entered = call!(SYS_unshare, libc::CLONE_NEWUSER);
    entered.map(drop).map_err(io::Error::from_raw_os_error)
}

/// A trial that says loudly that it was not made.
pub(crate) fn skipped(trial: Trial) -> Trial {
    let name = trial.name().to_owned();
    Trial::test(name.clone(), move || {
        eprintln!("!!! SKIPPED: {name}: no user namespaces here; see `belljar doctor`.");
        Ok(())
    })
}

/// The answer of a trial that only root can make.
pub(crate) fn needs_root<T>(what: &str) -> Result<Option<T>, Failed> {
    if std::env::var_os("BELLJAR_REQUIRE_SANDBOX").is_some() {
        return Err(format!("{what} needs root, and BELLJAR_REQUIRE_SANDBOX is set").into());
    }
    eprintln!("!!! SKIPPED: {what} needs root. Set BELLJAR_REQUIRE_SANDBOX=1 to make this fail.");
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
        match control::run(attempt, &bait) {
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
