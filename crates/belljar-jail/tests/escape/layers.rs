//! Every layer of a cell's processes, as root reads it from `/proc` outside.

use std::fs;

use libtest_mimic::{Failed, Trial};

use crate::{
    harness::{
        held::{self, Facts, NAMESPACES, StartOutcome},
        host::Spec,
        spawn::{self, Who},
    },
    modes::{needs_root, report},
};

const NO_CAPABILITY: &str = "0000000000000000";
/// CAP_SYS_ADMIN, over the cell's own mounts.
const MOUNTING: &str = "0000000000200000";

pub(crate) fn trials() -> Vec<Trial> {
    let root = Trial::test("layers::root", || seen_from_outside(Who::Same, "private"));
    let user = Trial::test("layers::user", || {
        seen_from_outside(Who::Other(spawn::ORDINARY), &spawn::ORDINARY.to_string())
    });
    vec![root, user]
}

fn seen_from_outside(who: Who, id: &str) -> Result<(), Failed> {
    if !spawn::is_root() {
        return needs_root::<()>("looking into cells").map(|_| ());
    }
    let held = match held::start(who, Spec::full([] as [&str; 0]))? {
        StartOutcome::Held(held) => held,
        StartOutcome::Ended(verdicts) => return Err(format!("no cell: {verdicts:?}").into()),
    };
    let tree = &held.tree;
    let [(keeper, guest)] = tree.cells[..] else { return Err("not one cell".into()) };
    let mut failures = Vec::new();
    for (name, pid) in
        [("warden", tree.warden), ("zygote", tree.zygote), ("keeper", keeper), ("guest", guest)]
    {
        let facts = held::facts(pid)?;
        let wrong = expected(name, id).into_iter().filter_map(|(key, wanted)| {
            let seen = facts.get(&key).map_or("nothing", String::as_str);
            (seen != wanted).then(|| format!("{name}: {key} is {seen}, not {wanted}"))
        });
        failures.extend(wrong);
        failures.extend(bad_mounts(name, &facts));
    }
    let root = fs::read_dir(format!("/proc/{guest}/root"))?;
    let mut names: Vec<_> = root.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    if names != ["proc", "tmp", "work"] {
        failures.push(format!("the guest's root holds {names:?}"));
    }
    if held.said != "landlock holds" {
        failures.push(format!("the guest says: {}", held.said));
    }
    failures.extend(held.end().err());
    report(failures)
}

/// The state that each process must have.
fn expected(process: &str, id: &str) -> Facts {
    let four = |id: &str| [id; 4].join(" ");
    let mut facts: Vec<(String, String)> = [
        ("Uid", four(id)),
        ("Gid", four(id)),
        ("Groups", String::new()),
        ("Threads", "1".to_owned()),
        ("NoNewPrivs", "1".to_owned()),
        ("Seccomp", "2".to_owned()),
        ("CapInh", NO_CAPABILITY.to_owned()),
        ("CapAmb", NO_CAPABILITY.to_owned()),
        ("CapEff", if process == "keeper" { MOUNTING } else { NO_CAPABILITY }.to_owned()),
        ("CapPrm", if process == "keeper" { MOUNTING } else { NO_CAPABILITY }.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec();
    // The warden stays behind, in everything but its user namespace.
    let own = NAMESPACES.iter().filter(|kind| process != "warden" || **kind == "user");
    facts.extend(own.map(|kind| (format!("namespace {kind}"), "own".to_owned())));
    // A new user namespace starts with a full bounding set, so a cell's is not empty again; what
    // it bounds is what `execve` may add, and with no_new_privs that is nothing.
    if process == "zygote" {
        facts.push(("CapBnd".to_owned(), NO_CAPABILITY.to_owned()));
    }
    if matches!(process, "keeper" | "guest") {
        facts.push(("undumpable".to_owned(), "true".to_owned()));
    }
    if process == "guest" {
        let streams = "socket, standard pipe, standard pipe, standard pipe";
        facts.push(("descriptors".to_owned(), streams.to_owned()));
        facts.extend(limits());
    }
    facts.into_iter().collect()
}

/// Those of a run that asked for nothing in particular.
fn limits() -> impl Iterator<Item = (String, String)> {
    let limits = [
        ("Max core file size", "1 1"),
        ("Max locked memory", "0 0"),
        ("Max msgqueue size", "0 0"),
        ("Max nice priority", "0 0"),
        ("Max realtime priority", "0 0"),
        ("Max pending signals", "64 64"),
        ("Max stack size", "67108864 67108864"),
        ("Max open files", "256 256"),
        ("Max processes", "33 33"),
        ("Max cpu time", "31 31"),
    ];
    limits.into_iter().map(|(name, value)| (format!("limit {name}"), value.to_owned()))
}

/// Nothing a cell sees is executable, a device or setuid; its root is read-only.
fn bad_mounts(process: &str, facts: &Facts) -> Vec<String> {
    if process == "warden" {
        return Vec::new();
    }
    let mounts = facts.get("mounts").map_or("", String::as_str);
    let is_bad = |line: &&str| {
        let mut fields = line.split(' ');
        let (point, options) = (fields.next(), fields.next().unwrap_or_default());
        let has = |option: &str| options.split(',').any(|at| at == option);
        !(has("nosuid") && has("nodev") && has("noexec")) || (point == Some("/") && !has("ro"))
    };
    mounts.lines().filter(is_bad).map(|line| format!("{process}: mount {line}")).collect()
}
