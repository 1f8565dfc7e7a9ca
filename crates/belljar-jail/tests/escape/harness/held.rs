//! A cell held open, so that root can look at it from outside.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    os::unix::fs::MetadataExt,
    process::{Child, Stdio},
    time::Duration,
};

use super::{
    host::{Spec, Verdict},
    processes::{self, Tree},
    spawn::{self, Who},
};

/// A host whose one cell has done what it can inside and waits.
#[derive(Debug)]
pub(crate) struct HeldCell {
    host: Child,
    mark: String,
    pub(crate) tree: Tree,
    /// Keeper and guest of the cell that holds; others are parked.
    pub(crate) cell: (i32, i32),
    /// The findings of the probe inside.
    pub(crate) said: String,
}

/// When a cell is to be held, among the attempts of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    First,
    Last,
}

/// The end of a host that was to hold a cell.
#[derive(Debug)]
pub(crate) enum StartOutcome {
    Held(HeldCell),
    /// It ended by itself.
    Ended(Vec<Verdict>),
}

/// Where the probe leaves its note; the pid in its own namespace is always 2.
const NOTE: &str = "tmp/holding";

/// Starts a host as somebody; returns when its cell holds, or when it has ended.
pub(crate) fn start(who: Who, spec: Spec) -> Result<StartOutcome, String> {
    start_at(who, spec, When::First)
}

/// The same, and when the cell is held. With files to grant, they are granted to it.
pub(crate) fn start_at(who: Who, mut spec: Spec, when: When) -> Result<StartOutcome, String> {
    let mark = processes::new_mark();
    spec.zygote.push(mark.clone());
    let hold = if spec.home.is_some() { "hold_with_grants" } else { "hold" };
    let at = if when == When::First { 0 } else { spec.attempts.len() };
    spec.attempts.insert(at, hold.to_owned());
    let text = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
    let mut host = spawn::this_program(who, &["__host", &text])
        .and_then(|mut command| command.stdout(Stdio::piped()).spawn())
        .map_err(|error| format!("could not start a host: {error}"))?;
    let started = processes::until(Duration::from_secs(30), || {
        if let Ok(Some(_)) = host.try_wait() {
            return Some(None);
        }
        let tree = Tree::find(&mark)?;
        let note = |cell: &(i32, i32)| {
            let note = fs::read_to_string(format!("/proc/{}/root/{NOTE}", cell.1)).ok()?;
            Some((*cell, note))
        };
        let held = tree.cells.iter().find_map(note)?;
        Some(Some((tree, held)))
    });
    match started {
        Some(Some((tree, (cell, said)))) => {
            Ok(StartOutcome::Held(HeldCell { host, mark, tree, cell, said }))
        }
        Some(None) => Ok(StartOutcome::Ended(verdicts(&mut host))),
        None => {
            let _ = host.kill();
            let _ = host.wait();
            Err("neither a cell nor an end within 30 s".to_owned())
        }
    }
}

fn verdicts(host: &mut Child) -> Vec<Verdict> {
    let mut lines = String::new();
    let _ = host.stdout.take().map(|mut out| out.read_to_string(&mut lines));
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

impl HeldCell {
    /// The mounts of the host itself.
    pub(crate) fn mounts_of_host(&self) -> Result<String, String> {
        let path = format!("/proc/{}/mountinfo", self.host.id());
        fs::read_to_string(path).map_err(|error| error.to_string())
    }

    /// How many processes there are of the zygote, everything in its cells included.
    pub(crate) fn count(&self) -> usize {
        processes::marked(&self.mark).len()
    }

    /// Whether all its processes are still there. What was seen of them before is true then: a process
    /// that ends has no command line before it has lost anything else.
    pub(crate) fn is_whole(&self) -> bool {
        let now = processes::marked(&self.mark);
        let is_there = |pid: i32| now.iter().any(|(other, _)| *other == pid);
        let cells = self.tree.cells.iter().flat_map(|(keeper, guest)| [*keeper, *guest]);
        [self.tree.warden, self.tree.zygote].into_iter().chain(cells).all(is_there)
    }

    /// Waits for the host to end by itself, and checks that nothing is left.
    pub(crate) fn finish(mut self) -> Result<Vec<Verdict>, String> {
        let ended = processes::until(Duration::from_secs(20), || self.host.try_wait().ok()?);
        let verdicts = if ended.is_some() { verdicts(&mut self.host) } else { Vec::new() };
        self.end()?;
        if ended.is_some() { Ok(verdicts) } else { Err("the host did not end".to_owned()) }
    }

    /// Kills the host and checks that nothing is left.
    pub(crate) fn end(mut self) -> Result<(), String> {
        let _ = self.host.kill();
        let _ = self.host.wait();
        if processes::soon(|| processes::marked(&self.mark).is_empty()) {
            Ok(())
        } else {
            Err(format!("still there: {:?}", processes::marked(&self.mark)))
        }
    }
}

/// Root's view of a process, without everything that differs from run to run.
pub(crate) type Facts = BTreeMap<String, String>;

/// Lines of `status` that say how a process is confined.
const STATUS: &[&str] = &[
    "Uid",
    "Gid",
    "Groups",
    "Threads",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
];

/// Namespaces a cell shares with nobody outside.
pub(crate) const NAMESPACES: &[&str] = &["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// Looks at a process.
pub(crate) fn facts(pid: i32) -> Result<Facts, String> {
    let read = |file: &str| {
        fs::read_to_string(format!("/proc/{pid}/{file}"))
            .map_err(|error| format!("{file}: {error}"))
    };
    let mut facts = Facts::new();
    for line in read("status")?.lines() {
        if let Some((key, value)) = line.split_once(':').filter(|(key, _)| STATUS.contains(key)) {
            facts.insert(key.to_owned(), ids_out(value));
        }
    }
    for kind in NAMESPACES {
        let link = |of: &str| fs::read_link(format!("/proc/{of}/ns/{kind}")).ok();
        let own = link(&pid.to_string()) != link("self");
        facts.insert(format!("namespace {kind}"), if own { "own" } else { "shared" }.to_owned());
    }
    for line in read("limits")?.lines().skip(1) {
        let (name, values) = line.split_at_checked(26).ok_or("odd limits")?;
        let values: Vec<&str> = values.split_whitespace().take(2).collect();
        facts.insert(format!("limit {}", name.trim()), values.join(" "));
    }
    let mounts = read("mountinfo")?;
    facts.insert("mounts".to_owned(), mounts.lines().map(mount_out).collect());
    facts.insert("descriptors".to_owned(), descriptors(pid)?);
    let owner = fs::metadata(format!("/proc/{pid}/environ")).map(|file| file.uid());
    facts.insert("undumpable".to_owned(), (owner.ok() == Some(0)).to_string());
    Ok(facts)
}

/// Ids of a root host's own range differ from zygote to zygote; where the kernel refuses those,
/// `nobody` stands in.
fn ids_out(value: &str) -> String {
    let private = |id: &str| {
        id.parse().is_ok_and(|id: u32| (1_900_000_000..u32::MAX).contains(&id) || id == 65_534)
    };
    let ids = value.split_whitespace().map(|id| if private(id) { "private" } else { id });
    ids.collect::<Vec<_>>().join(" ")
}

/// Mount point, options, type and options of the file system.
fn mount_out(line: &str) -> String {
    let fields: Vec<&str> = line.split(' ').collect();
    let kind = fields.iter().position(|field| *field == "-").unwrap_or_default();
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    let options = field(kind + 3).split(',').filter(|option| {
        !option.starts_with("uid=") && !option.starts_with("gid=") && !option.starts_with("inode")
    });
    let options = options.collect::<Vec<_>>().join(",");
    // Software that is not mapped to the guest's user is a stranger's to it, and as read-only.
    let attributes = field(5).replace(",idmapped", "");
    format!("{} {attributes} {} {options}\n", field(4), field(kind + 1))
}

fn descriptors(pid: i32) -> Result<String, String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| error.to_string())?;
    let mut kinds: Vec<String> = entries
        .flatten()
        .map(|entry| {
            let target = fs::read_link(entry.path()).unwrap_or_default().display().to_string();
            let standard =
                entry.file_name().to_str().is_some_and(|fd| matches!(fd, "0" | "1" | "2"));
            let kind = target.split(":[").next().unwrap_or_default();
            if standard { format!("standard {kind}") } else { kind.to_owned() }
        })
        .collect();
    kinds.sort();
    Ok(kinds.join(", "))
}
