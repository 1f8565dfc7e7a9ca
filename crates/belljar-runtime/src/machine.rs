//! The memory of this machine, and the limits that follow from it.

use std::fs;

use belljar_contract::Limits;

/// The most a run may ask for on this machine, unless the operator sets other maxima: limits that cost
/// memory are at most a share of the machine's.
pub fn maximum_limits_here() -> Limits {
    memory_bytes().map_or(Limits::MAXIMUM, |bytes| Limits::MAXIMUM.on_a_machine_with(bytes))
}

/// The memory of this machine, or of the container it runs in if that has less.
fn memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let total = total_bytes(&meminfo)?;
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    Some(group.trim().parse::<u64>().map_or(total, |group| group.min(total)))
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_the_machine_says_what_it_has() {
        assert_eq!(
            total_bytes("MemTotal:       24684028 kB\nMemFree: 1 kB\n"),
            Some(25_276_444_672)
        );
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
        assert!(memory_bytes().is_some_and(|bytes| bytes > 64 << 20));
        assert_eq!(maximum_limits_here().excess(&Limits::MAXIMUM), None);
    }
}
