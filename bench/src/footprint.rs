//! Resources that a host holds while it works, and whether they grow.

use std::{cmp::Ordering, fmt};

use serde::{Deserialize, Serialize};

use super::processes::{self, Family};

/// Resources held at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ResourceUsage {
    /// Resident memory of host, zygote and cells. A shared page counts once per process.
    pub(super) memory_mb: f64,
    pub(super) open_files: usize,
    pub(super) mounts: usize,
    pub(super) processes: usize,
}

impl ResourceUsage {
    /// Resources that this process and its descendants hold now.
    pub(super) fn now() -> Self {
        let family = Family::now();
        Self {
            memory_mb: family.resident() as f64 / 1e6,
            open_files: processes::open_files(),
            mounts: processes::mounts(),
            processes: family.len(),
        }
    }
}

/// Resource use over the whole benchmark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Footprint {
    pub(super) start: ResourceUsage,
    pub(super) end: ResourceUsage,
    pub(super) most: ResourceUsage,
    pub(super) samples: usize,
    /// Whether nothing grows: apart from noise, the later half holds no more than the earlier half.
    pub(super) flat: bool,
}

impl Footprint {
    /// `start` and `end` are samples of an idle host; `working` are samples of a busy one, in
    /// order.
    pub(super) fn new(start: ResourceUsage, working: &[ResourceUsage], end: ResourceUsage) -> Self {
        let (early, late) = working.split_at(working.len() / 2);
        Self {
            start,
            end,
            most: most(working),
            samples: working.len(),
            flat: settled(&start, &end) && no_growth(&median(early), &median(late)),
        }
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.flat { "flat" } else { "GROWING" };
        let (start, most, end) = (&self.start, &self.most, &self.end);
        write!(
            formatter,
            "{verdict} (idle before → most → idle after, {} samples): memory {:.0} → {:.0} → {:.0} \
             MB, files {} → {} → {}, mounts {} → {} → {}, processes {} → {} → {}",
            self.samples,
            start.memory_mb,
            most.memory_mb,
            end.memory_mb,
            start.open_files,
            most.open_files,
            end.open_files,
            start.mounts,
            most.mounts,
            end.mounts,
            start.processes,
            most.processes,
            end.processes
        )
    }
}

/// Whether an idle host holds no more than before. Memory may grow by what the allocator keeps.
fn settled(start: &ResourceUsage, end: &ResourceUsage) -> bool {
    end.open_files <= start.open_files
        && end.mounts <= start.mounts
        && end.processes <= start.processes
        && end.memory_mb <= start.memory_mb * 1.1 + 8.0
}

/// Compares medians: single samples swing with the number of cells alive at that moment.
fn no_growth(early: &ResourceUsage, late: &ResourceUsage) -> bool {
    let within = |early: usize, late: usize| late <= early + early / 5 + 8;
    within(early.open_files, late.open_files)
        && late.mounts <= early.mounts
        && within(early.processes, late.processes)
        && late.memory_mb <= early.memory_mb * 1.1 + 4.0
}

fn most(held: &[ResourceUsage]) -> ResourceUsage {
    held.iter().fold(ResourceUsage::default(), |most, held| ResourceUsage {
        memory_mb: most.memory_mb.max(held.memory_mb),
        open_files: most.open_files.max(held.open_files),
        mounts: most.mounts.max(held.mounts),
        processes: most.processes.max(held.processes),
    })
}

/// The median of each figure on its own.
fn median(held: &[ResourceUsage]) -> ResourceUsage {
    ResourceUsage {
        memory_mb: middle(held.iter().map(|held| held.memory_mb), f64::total_cmp),
        open_files: middle(held.iter().map(|held| held.open_files), Ord::cmp),
        mounts: middle(held.iter().map(|held| held.mounts), Ord::cmp),
        processes: middle(held.iter().map(|held| held.processes), Ord::cmp),
    }
}

fn middle<T: Copy + Default>(
    figures: impl Iterator<Item = T>,
    order: impl Fn(&T, &T) -> Ordering,
) -> T {
    let mut figures: Vec<T> = figures.collect();
    figures.sort_by(order);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
