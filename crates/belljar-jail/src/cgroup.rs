//! A control group per cell, where the system has delegated a subtree to this host.
//!
//! cgroup v2 bounds memory and processes of a whole cell at once, and reports when it has killed
//! for memory. A host can use it only if it is alone in its own group and the group has both
//! controllers; the reason why not is for `doctor` and for results.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::CellLimits;

/// The controllers a cell's group needs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The prefix of our groups' names, so that those of a killed host can be found.
const CELL_PREFIX: &str = "belljar-cell-";
const HOST_PREFIX: &str = "belljar-host-";

/// A subtree this host may divide among its cells.
#[derive(Debug)]
pub struct Delegation {
    root: PathBuf,
    host: u32,
    /// Groups that could not be removed yet, because their cells were still dying.
    emptying: Arc<Mutex<Vec<PathBuf>>>,
}

/// The group of one cell. Dropping it removes it once the cell is gone.
#[derive(Debug)]
pub struct Leaf {
    path: PathBuf,
    emptying: Arc<Mutex<Vec<PathBuf>>>,
}

impl Delegation {
    /// Takes over the group the calling process is in, if it is this process's alone.
    ///
    /// The error is a sentence for people: why cells get no group here.
    pub fn of_this_process() -> Result<Self, String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let mounts = read("/proc/self/mountinfo")?;
        let mount = find_mount(&mounts).ok_or("no cgroup v2 is mounted")?;
        let groups = read("/proc/self/cgroup")?;
        let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let group = group.ok_or("this process is in no cgroup v2 group")?;
        let mut root = mount.join(group.trim_start_matches('/'));
        let own = format!("{HOST_PREFIX}{}", std::process::id());
        // Taken over before: the host has moved down already.
        if root.file_name().is_some_and(|name| name == own.as_str()) {
            root.pop();
        }
        Self::take_over(&root, std::process::id())
    }

    fn take_over(root: &Path, pid: u32) -> Result<Self, String> {
        let read = |name: &str| {
            let path = root.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let available = read("cgroup.controllers")?;
        let has = |list: &str, wanted: &str| list.split_whitespace().any(|name| name == wanted);
        if let Some(missing) = CONTROLLERS.into_iter().find(|name| !has(&available, name)) {
            return Err(format!("the {missing} controller is not delegated to this group"));
        }
        let others = read("cgroup.procs")?;
        let others = others.lines().filter(|line| *line != pid.to_string()).count();
        let enabled = read("cgroup.subtree_control")?;
        let delegation = Self { root: root.to_owned(), host: pid, emptying: Arc::default() };
        if !CONTROLLERS.into_iter().all(|name| has(&enabled, name)) {
            if others > 0 {
                return Err(format!("{others} other processes are in this group"));
            }
            delegation.divide().map_err(|error| format!("the group is not writable: {error}"))?;
        }
        let unwritable = |error| format!("cannot create a group beneath this one: {error}");
        delegation.try_making_a_group().map_err(unwritable)?;
        delegation.remove_orphans();
        Ok(delegation)
    }

    /// A group with processes of its own cannot have children with limits: the host moves down.
    fn divide(&self) -> io::Result<()> {
        let own = self.root.join(format!("{HOST_PREFIX}{}", self.host));
        fs::create_dir(&own)?;
        fs::write(own.join("cgroup.procs"), self.host.to_string())?;
        let enable = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
        fs::write(self.root.join("cgroup.subtree_control"), enable)
    }

    /// The group may belong to another user, however its controllers are set.
    fn try_making_a_group(&self) -> io::Result<()> {
        let probe = self.root.join(format!("{CELL_PREFIX}{}-probe", self.host));
        fs::create_dir(&probe)?;
        fs::remove_dir(&probe)
    }

    /// Removes the groups of cells that have ended, as far as they are empty by now.
    pub fn remove_emptied(&self) {
        lock(&self.emptying).retain(|path| fs::remove_dir(path).is_err() && path.exists());
    }

    /// Removes the groups of hosts that are gone; those still in use cannot be removed.
    fn remove_orphans(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let of_host = name.strip_prefix(CELL_PREFIX).or(name.strip_prefix(HOST_PREFIX));
            let host = of_host.and_then(|rest| rest.split('-').next());
            if host.is_some_and(|host| !Path::new("/proc").join(host).exists()) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }

    /// Makes a group with these limits and puts the processes into it.
    pub fn hold(&self, number: u64, limits: &CellLimits, pids: &[u32]) -> io::Result<Leaf> {
        self.remove_emptied();
        let path = self.root.join(format!("{CELL_PREFIX}{}-{number}", self.host));
        let leaf = Leaf { path, emptying: self.emptying.clone() };
        fs::create_dir(&leaf.path)?;
        leaf.limit(limits)?;
        for pid in pids {
            fs::write(leaf.path.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(leaf)
    }
}

impl Leaf {
    /// Changes the limits of the group, also while its cell runs.
    pub fn limit(&self, limits: &CellLimits) -> io::Result<()> {
        // Keeper and guest exist before any guest code, and files in /tmp count, too.
        let memory = limits.memory_bytes.saturating_add(limits.disk_bytes).saturating_add(64 << 20);
        fs::write(self.path.join("memory.max"), memory.to_string())?;
        let swap = self.path.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0")?;
        }
        fs::write(self.path.join("pids.max"), (limits.processes + 2).to_string())
    }

    /// CPU time of all processes that were ever in this group, unwaited children included.
    pub fn cpu_time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(self.path.join("cpu.stat")).ok()?;
        let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        used.trim().parse().ok().map(Duration::from_micros)
    }

    /// Whether the kernel has killed a process of this group because memory ran out.
    pub fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|kills| kills.trim() != "0")
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // Busy while the last process dies; then it is tried again later.
        if fs::remove_dir(&self.path).is_err() {
            lock(&self.emptying).push(self.path.clone());
        }
    }
}

fn lock(paths: &Mutex<Vec<PathBuf>>) -> MutexGuard<'_, Vec<PathBuf>> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find_mount(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests;
