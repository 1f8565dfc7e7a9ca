//! Figures from `/proc` about this process and its descendants.

use std::{collections::BTreeMap, fs, process, time::Duration};

const PAGE: u64 = 4096;

/// This process and its descendants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Family {
    /// Process id → depth below this process.
    members: BTreeMap<u32, usize>,
}

/// Memory of one process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MemoryShare {
    /// Its proportional share of the pages it uses, or its full resident size where the system does
    /// not report shares.
    pub(super) share: u64,
    /// Memory that no other process shares.
    pub(super) private: u64,
    /// Whether the system reports exact shares.
    pub(super) exact: bool,
}

impl Family {
    /// The current descendants of this process.
    pub(super) fn now() -> Self {
        let parents = parents();
        let mut members = BTreeMap::from([(process::id(), 0)]);
        // A child may have a lower id than its parent: repeat until a pass adds nothing.
        loop {
            let found: Vec<(u32, usize)> = parents
                .iter()
                .filter(|(pid, _)| !members.contains_key(pid))
                .filter_map(|(pid, parent)| Some((*pid, members.get(parent)? + 1)))
                .collect();
            if found.is_empty() {
                return Self { members };
            }
            members.extend(found);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Processes at this depth or deeper.
    pub(super) fn at_least(&self, distance: usize) -> impl Iterator<Item = u32> {
        self.members.iter().filter(move |(_, far)| **far >= distance).map(|(pid, _)| *pid)
    }

    /// Resident memory of all processes; a shared page counts once per process.
    pub(super) fn resident(&self) -> u64 {
        self.members.keys().map(|pid| statm(*pid).map_or(0, |(resident, _)| resident)).sum()
    }
}

/// Memory of a process; zero if it has ended.
pub(super) fn memory_of(pid: u32) -> MemoryShare {
    exact_memory(pid).unwrap_or_else(|| {
        let (resident, shared) = statm(pid).unwrap_or_default();
        // A zombie has no memory, so zero is exact.
        let exact = resident == 0;
        MemoryShare { share: resident, private: resident.saturating_sub(shared), exact }
    })
}

fn exact_memory(pid: u32) -> Option<MemoryShare> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()
    };
    let private = field("Private_Clean:")? + field("Private_Dirty:")?;
    Some(MemoryShare { share: field("Pss:")? << 10, private: private << 10, exact: true })
}

/// Resident and shared size in bytes.
fn statm(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((resident * PAGE, shared * PAGE))
}

/// All processes of the system with their parents.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name in parentheses may itself contain spaces and parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The number of files this process has open.
pub(super) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// The number of mounts visible to this process.
pub(super) fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").map_or(0, |text| text.lines().count())
}

/// CPU time of this process's descendants that have been waited for.
pub(super) fn cpu_of_children() -> Duration {
    cpu("/proc/self/stat", 13)
}

/// CPU time of a running process and its threads.
pub(super) fn cpu_of(pid: u32) -> Duration {
    cpu(&format!("/proc/{pid}/stat"), 11)
}

/// The sum of two neighbouring fields of a `stat` file, counted after the name, in ticks.
fn cpu(path: &str, first: usize) -> Duration {
    let stat = fs::read_to_string(path).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, after_name)| after_name);
    let fields = fields.split_ascii_whitespace().skip(first).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}
