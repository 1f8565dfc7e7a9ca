//! Cells of programs as root sees them from outside: how their mounts are, that none of them is
//! joined to the host's, and that nothing a guest has started is left of it.

use std::fs;

use libtest_mimic::{Failed, Trial};

use crate::{
    harness::{
        held::{self, HeldCell, StartOutcome, When},
        home::{Home, MINE, ONE, READ, WRITE},
        host::Spec,
        spawn::{self, Who},
    },
    modes::{needs_root, report},
};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, who) in [("root", Who::Same), ("user", Who::Other(spawn::ORDINARY))] {
        let test = |what: &str, test: fn(Who) -> Result<(), Failed>| {
            Trial::test(format!("cells::{what}_{name}"), move || {
                if spawn::is_root() { test(who) } else { needs_root::<()>("a look").map(|_| ()) }
            })
        };
        trials.push(test("of_programs_without_grants_as", without_grants));
        trials.push(test("of_programs_with_grants_as", with_grants));
        trials.push(test("with_daemons_as", daemons));
    }
    trials.push(Trial::test("cells::mounts_stay_apart_from_the_host", || {
        if spawn::is_root() { apart() } else { needs_root::<()>("mounting").map(|_| ()) }
    }));
    trials
}

fn hold(who: Who, spec: Spec, when: When) -> Result<HeldCell, String> {
    match held::start_at(who, spec, when)? {
        StartOutcome::Held(held) => Ok(held),
        StartOutcome::Ended(verdicts) => Err(format!("no cell: {verdicts:?}")),
    }
}

fn without_grants(who: Who) -> Result<(), Failed> {
    let held = hold(who, Spec::of_programs([] as [&str; 0]), When::First)?;
    let (keeper, guest) = held.cell;
    let mut failures = bad_mounts(guest, &[])?;
    failures.extend(bad_mounts(keeper, &[])?);
    failures.extend(bad_facts(guest)?);
    if held.said != "landlock holds" {
        failures.push(format!("the guest says: {}", held.said));
    }
    failures.extend(held.end().err());
    report(failures)
}

fn with_grants(who: Who) -> Result<(), Failed> {
    let home = Home::lay(who, "nothing to find here")?;
    let spec = Spec { home: Some(home.path().to_owned()), ..Spec::of_programs([] as [&str; 0]) };
    let held = hold(who, spec, When::First)?;
    let (_, guest) = held.cell;
    let path = |name: &str| home.path().join(name).display().to_string();
    let granted = [
        (path(READ), "ro"),
        (path(ONE), "ro"),
        (path(WRITE), "rw"),
        (format!("{}/sub", path(WRITE)), "ro"),
        (path(MINE), "rw"),
        ("/work".to_owned(), "rw"),
    ];
    let mut failures = bad_mounts(guest, &granted)?;
    failures.extend(bad_facts(guest)?);
    failures.extend(held.end().err());
    failures.extend(home.damage()?);
    report(failures)
}

/// Everything in sight is nosuid, and nodev but for the devices; what programs are not started from
/// is noexec; everything is read-only but the cell's own and what was granted for writing; nothing
/// is joined to a mount elsewhere.
fn bad_mounts(pid: i32, granted: &[(String, &str)]) -> Result<Vec<String>, String> {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo"));
    let mounts = mounts.map_err(|error| error.to_string())?;
    let mut failures = Vec::new();
    let mut missing: Vec<&String> = granted.iter().map(|(path, _)| path).collect();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (point, options) = (fields[4], fields[5]);
        let has = |option: &str| options.split(',').any(|at| at == option);
        // The workspace itself lies beneath its layer, so the last one counts.
        let grant = granted.iter().find(|(path, _)| path == point);
        let own = point == "/tmp" || point == "/work" || point == "/proc";
        let wrong = [
            (!has("nosuid"), "setuid files"),
            (!has("nodev") && !point.starts_with("/dev/"), "devices"),
            (!has("noexec") && (own || grant.is_some()), "programs"),
            (has("rw") && !own && grant.is_none_or(|(_, mode)| *mode == "ro"), "writing"),
            (fields[6] != "-", "joined to another mount"),
        ];
        let wrong = wrong.iter().filter(|(is, _)| *is);
        failures.extend(wrong.map(|(_, what)| format!("{what}: {line}")));
        missing.retain(|path| *path != point);
    }
    failures.extend(missing.iter().map(|path| format!("{path} is not mounted")));
    Ok(failures)
}

fn bad_facts(guest: i32) -> Result<Vec<String>, String> {
    let facts = held::facts(guest)?;
    let none = "0000000000000000";
    let wanted = [
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("CapEff", none),
        ("CapPrm", none),
        ("CapInh", none),
        ("CapAmb", none),
        ("Groups", ""),
        ("undumpable", "true"),
        ("descriptors", "socket, standard pipe, standard pipe, standard pipe"),
        ("limit Max core file size", "1 1"),
        ("limit Max processes", "33 33"),
        ("limit Max open files", "256 256"),
        ("limit Max locked memory", "0 0"),
        ("limit Max pending signals", "64 64"),
        ("limit Max stack size", "8388608 8388608"),
    ];
    let namespaces = held::NAMESPACES.iter().map(|kind| (format!("namespace {kind}"), "own"));
    let wanted = wanted.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(namespaces);
    let wrong = wanted.filter_map(|(key, wanted)| {
        let seen = facts.get(&key).map_or("nothing", String::as_str);
        (seen != wanted).then(|| format!("{key} is {seen}, not {wanted}"))
    });
    Ok(wrong.collect())
}

/// When the next cell is held, nothing is there of the one before.
fn daemons(who: Who) -> Result<(), Failed> {
    let spec = Spec::of_programs(["leave_daemons"]);
    let held = hold(who, spec, When::Last)?;
    // Warden, zygote, keeper and guest. A cell takes a moment to end.
    let gone = crate::harness::processes::soon(|| held.count() == 4);
    let mut failures = Vec::new();
    if !gone {
        failures.push(format!("{} processes are there, not 4", held.count()));
    }
    failures.extend(held.end().err());
    report(failures)
}

/// On most machines mounts are shared: a mount within a copy would appear in the original.
fn apart() -> Result<(), Failed> {
    let home = Home::lay(Who::Same, "nothing to find here")?;
    let granted = Some(home.path().to_owned());
    let spec =
        Spec { home: granted, mounts_are_shared: true, ..Spec::of_programs([] as [&str; 0]) };
    let held = hold(Who::Same, spec, When::First)?;
    let mounts = held.mounts_of_host()?;
    let mut failures = Vec::new();
    // Control: they are shared there.
    if !mounts.lines().any(|line| line.contains(" shared:")) {
        failures.push("no mount of the host is shared".to_owned());
    }
    let within = home.path().display().to_string();
    let new = mounts.lines().filter(|line| line.contains(&within));
    failures.extend(new.map(|line| format!("on the host: {line}")));
    let (_, guest) = held.cell;
    let joined = fs::read_to_string(format!("/proc/{guest}/mountinfo"))?;
    let joined = joined.lines().filter(|line| line.split(' ').nth(6) != Some("-"));
    failures.extend(joined.map(|line| format!("in the cell: {line}")));
    failures.extend(held.end().err());
    report(failures)
}
