//! Whatever ends the host, or any process below it, and whenever: nothing is left of its cells, no
//! process, no mount, no file.

use std::{
    collections::BTreeSet, fs, io, os::unix::fs::MetadataExt, path::PathBuf, time::Duration,
};

use belljar_contract::Limits;
use belljar_jail::Guests;
use belljar_runtime::{Host, RunOptions};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    harness::{
        bait::Bait,
        held::{self, HeldCell, StartOutcome},
        home::{self, Home},
        host::{self, Spec},
        outcome::Outcome,
        processes,
        spawn::{self, Who},
    },
    modes::{needs_root, report},
};

/// Ids nobody else in the suite uses, so that whatever has one is a survivor. One for each test that
/// looks for some: tests run side by side.
const OF_SCRIPTS: u32 = 61_996;
const OF_PROGRAMS: u32 = 61_995;
const VICTIM: u32 = 61_994;
const KILLS: u64 = 40;
/// Long enough for a host to have made some dozens of cells.
const LONGEST_LIFE_MS: u64 = 60;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (of, guests, user) in [
        ("", Guests::Script, OF_SCRIPTS),
        ("programs_with_grants_of_", Guests::Programs, OF_PROGRAMS),
    ] {
        let root = format!("survivors::of_{of}a_root_host");
        trials.push(Trial::test(root, move || hosts_killed(Who::Same, guests)));
        let ordinary = format!("survivors::of_{of}an_ordinary_host");
        trials.push(Trial::test(ordinary, move || hosts_killed(Who::Other(user), guests)));
    }
    for victim in ["warden", "zygote", "keeper", "guest"] {
        for (mode, pool_size) in [("fresh", 0), ("pooled", 2)] {
            let name = format!("survivors::of_a_killed_{victim}_{mode}");
            trials.push(Trial::test(name, move || process_killed(victim, pool_size)));
        }
    }
    trials
}

fn hosts_killed(who: Who, guests: Guests) -> Result<(), Failed> {
    if !spawn::is_root() {
        return needs_root::<()>("killing hosts of others").map(|_| ());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let files = foreign_files();
    // Belongs to the runner: what is left of a host is to be seen, not what it was granted.
    let home = Home::lay(Who::Same, "nothing to find here")?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(home.path().join(home::WRITE), open)?;
    let granted = home.path().display().to_string();
    let longest = if guests == Guests::Programs { 3 * LONGEST_LIFE_MS } else { LONGEST_LIFE_MS };
    let mut failures = Vec::new();
    let mut moment = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..KILLS {
        // A small generator with a fixed seed: the same moments in every run.
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let life = Duration::from_micros((moment >> 33) % (longest * 1000));
        let mark = processes::new_mark();
        let role = if guests == Guests::Programs { "__churn_programs" } else { "__churn" };
        let mut host = spawn::this_program(who, &[role, &mark, &granted])?.spawn()?;
        std::thread::sleep(life);
        host.kill()?;
        host.wait()?;
        if !processes::soon(|| processes::marked(&mark).is_empty()) {
            let left = processes::marked(&mark);
            failures.push(format!("killed after {life:?}: {left:?} are left"));
        }
    }
    if let Who::Other(user) = who
        && !processes::soon(|| processes_of(user).is_empty())
    {
        failures.push(format!("processes of the host's user: {:?}", processes_of(user)));
    }
    if fs::read_to_string("/proc/self/mountinfo")? != mounts {
        failures.push("the mounts have changed".to_owned());
    }
    let new: Vec<_> = foreign_files().difference(&files).cloned().collect();
    if !new.is_empty() {
        failures.push(format!("files are left: {new:?}"));
    }
    report(failures)
}

/// Files of ids that only cells and the killed hosts have, where programs leave such things.
fn foreign_files() -> BTreeSet<PathBuf> {
    let entries = ["/tmp", "/var/tmp", "/dev/shm", "/run"].into_iter().flat_map(fs::read_dir);
    let entries = entries.flatten().flatten();
    let foreign = entries.filter(|entry| {
        let owner = entry.metadata().map_or(0, |file| file.uid());
        [OF_SCRIPTS, OF_PROGRAMS].contains(&owner) || (1_900_000_000..u32::MAX).contains(&owner)
    });
    foreign.map(|entry| entry.path()).collect()
}

fn processes_of(user: u32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (entry.metadata().ok()?.uid() == user).then_some(pid)
    });
    pids.collect()
}

/// The run in flight ends with an error that blames nobody else, the next one works.
fn process_killed(victim: &str, pool_size: usize) -> Result<(), Failed> {
    if !spawn::is_root() {
        return needs_root::<()>("killing processes of others").map(|_| ());
    }
    let mut failures = Vec::new();
    for who in [Who::Same, Who::Other(VICTIM)] {
        let spec = Spec { pool_size, ..Spec::full(["honest_frame", "honest_frame"]) };
        let StartOutcome::Held(held) = held::start(who, spec)? else {
            return Err("no cell to begin with".into());
        };
        kill(victim, &held)?;
        let verdicts = held.finish()?;
        let [lost, next, after] = &verdicts[..] else {
            return Err(format!("not three verdicts: {verdicts:?}").into());
        };
        let code = lost.error.as_ref().map_or("", |error| &error.code);
        let expected: &[&str] = match victim {
            "warden" | "zygote" => &["sandbox.zygote_lost"],
            _ => &["sandbox.crashed"],
        };
        if !expected.contains(&code) {
            failures.push(format!("{who:?}: the run in flight ended as {lost}"));
        }
        for next in [next, after] {
            if !next.outcome().is_some_and(Outcome::has_succeeded) {
                failures.push(format!("{who:?}: the next run ended as {next}"));
            }
        }
    }
    report(failures)
}

fn kill(victim: &str, held: &HeldCell) -> Result<(), String> {
    // The cell that holds is the one with the note; parked ones have none.
    let (keeper, guest) = held.cell;
    let pid = match victim {
        "warden" => held.tree.warden,
        "zygote" => held.tree.zygote,
        "keeper" => keeper,
        _ => guest,
    };
    let pid = Pid::from_raw(pid).ok_or("no such process")?;
    kill_process(pid, Signal::KILL).map_err(|errno| errno.to_string())
}

/// The `__churn` roles: a host that makes and ends cells as fast as it can, busy and idle ones.
pub(crate) fn main(mark: &str, granted: &str, guests: Guests) -> io::Result<()> {
    let none = [] as [&str; 0];
    let spec = match guests {
        Guests::Script => Spec::full(none),
        Guests::Programs => Spec::of_programs(none),
    };
    let spec = Spec { pool_size: 2, ..spec };
    let zygote = [spec.zygote.clone(), vec![mark.to_owned()]].concat();
    let nothing = Bait { home: granted.into(), ..Bait::nothing() };
    let config = host::config(&Spec { zygote, ..spec }, &nothing);
    host::runtime()?.block_on(async {
        let host = Host::start(config).await.map_err(io::Error::other)?;
        let code: &[&str] = match guests {
            Guests::Script => &["honest_frame", "spin_without_end", "hold"],
            Guests::Programs => &["honest_frame_with_grants", "leave_daemons", "hold_with_grants"],
        };
        let churns: Vec<_> = code
            .iter()
            .map(|code| tokio::spawn(churn(host.clone(), code, nothing.clone())))
            .collect();
        for churn in churns {
            let _ = churn.await;
        }
        Ok(())
    })
}

async fn churn(host: Host, code: &'static str, bait: Bait) {
    // A grant takes a while to get there.
    let life = Duration::from_millis(if bait.home.is_absolute() { 40 } else { 5 });
    loop {
        let limits = Limits { timeout: life, ..Limits::DEFAULT };
        let enough = tokio::time::sleep(life);
        let _ =
            host.run_with(host::request(code, &bait, limits), RunOptions::default(), enough).await;
    }
}
