//! The memory of several processes together: measurements that are too slow for every sample.

use super::process::{MemoryReading, ProcessGone, field, of_any_thread};

/// The kernel memory for one mapping and its first owner of pages.
const MAPPING_BYTES: u64 = 448;
/// The additional kernel memory for each process that this one was forked from, and those before
/// it.
const ANCESTOR_BYTES: u64 = 64;
/// The kernel's default limit on mappings: a process that cannot be read is taken to have so many.
const MOST_MAPPINGS: u64 = 65_530;

/// A process, and how many forks it may be away from the cell's guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkedProcess {
    /// Its pid on the host.
    pub pid: u32,
    /// The most forks there may be between the guest and it.
    pub forks: u32,
}

/// The memory of these processes together, in bytes: a shared page counts once. A process whose
/// sharing cannot be read is taken to share nothing.
pub fn held_together(processes: &[ForkedProcess]) -> u64 {
    processes.iter().map(|process| share(process.pid)).sum()
}

fn share(pid: u32) -> u64 {
    let rollup = match of_any_thread(pid, "smaps_rollup") {
        Ok(rollup) => rollup,
        Err(ProcessGone) => return 0,
    };
    let held = MemoryReading::of(pid);
    let share = rollup.and_then(|rollup| {
        let parts = ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];
        parts.iter().map(|name| field(&rollup, name)).sum::<Option<u64>>()
    });
    match (share, &held) {
        (Some(share), MemoryReading::Status(status)) => {
            share.saturating_add(field(status, "VmPTE:").unwrap_or_default())
        }
        _ => held.bytes().unwrap_or(u64::MAX >> 16),
    }
}

/// An estimate of the kernel's own memory for the mappings of these processes, in bytes.
///
/// Each mapping of a process refers to all the processes it was forked from: the cost of a chain of
/// forks grows with the square of its length, and no other number shows it.
pub fn kernel_bytes(processes: &[ForkedProcess]) -> u64 {
    let of_one = |process: &ForkedProcess| {
        let each = MAPPING_BYTES + ANCESTOR_BYTES * u64::from(process.forks);
        mappings(process.pid).saturating_mul(each)
    };
    processes.iter().map(of_one).sum()
}

fn mappings(pid: u32) -> u64 {
    match of_any_thread(pid, "maps") {
        Ok(Some(maps)) => maps.lines().count() as u64,
        Ok(None) => MOST_MAPPINGS,
        Err(ProcessGone) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_what_the_kernel_holds_for_mappings_grows_with_each_fork() {
        let own = |forks| [ForkedProcess { pid: std::process::id(), forks }];
        let (none, many) = (kernel_bytes(&own(0)), kernel_bytes(&own(28)));
        assert!(none >= 10 * MAPPING_BYTES, "{none}");
        assert!(many > 4 * none, "{many}");
        // No process has so high a number.
        assert_eq!(kernel_bytes(&[ForkedProcess { pid: 1 << 22, forks: 9 }]), 0);
    }

    #[test]
    fn bug_11_what_one_process_holds_is_about_what_is_counted_for_it() {
        let pid = std::process::id();
        let counted = MemoryReading::of(pid).bytes().expect("this process tells");
        let together = held_together(&[ForkedProcess { pid, forks: 0 }]);
        assert!(together > 0 && together <= counted * 2, "{together} of {counted}");
        assert_eq!(held_together(&[ForkedProcess { pid: 1 << 22, forks: 0 }]), 0);
    }
}
