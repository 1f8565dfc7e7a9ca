//! The decisions, on trees of plain files: which group is taken over, and what a leaf gets.

use std::{fs, path::Path, time::Duration};

use super::{Delegation, find_mount};
use crate::CellLimits;

const LIMITS: CellLimits = CellLimits {
    memory_bytes: 512 << 20,
    cpu_seconds: 1,
    processes: 32,
    open_files: 16,
    disk_bytes: 256 << 20,
    inodes: 10,
};

fn group(controllers: &str, processes: &str, enabled: &str) -> tempfile::TempDir {
    let group = tempfile::tempdir().unwrap();
    fs::write(group.path().join("cgroup.controllers"), controllers).unwrap();
    fs::write(group.path().join("cgroup.procs"), processes).unwrap();
    fs::write(group.path().join("cgroup.subtree_control"), enabled).unwrap();
    group
}

fn read(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).unwrap()
}

#[test]
fn a_group_without_the_memory_controller_is_not_taken() {
    let root = group("cpu hugetlb\n", "7\n", "");
    let error = Delegation::take_over(root.path(), 7).unwrap_err();
    assert_eq!(error, "the memory controller is not delegated to this group");
}

#[test]
fn a_group_shared_with_others_is_not_taken() {
    let root = group("memory pids\n", "7\n8\n9\n", "");
    let error = Delegation::take_over(root.path(), 7).unwrap_err();
    assert_eq!(error, "2 other processes are in this group");
}

#[test]
fn a_group_of_its_own_is_divided() {
    let root = group("cpu memory pids\n", "7\n", "");
    // A real group makes this file by itself.
    Delegation::take_over(root.path(), 7).unwrap();
    assert_eq!(read(root.path(), "cgroup.subtree_control"), "+memory +pids");
    assert_eq!(read(root.path(), "belljar-host-7/cgroup.procs"), "7");
}

#[test]
fn a_leaf_bounds_memory_and_processes_of_its_cell() {
    let root = group("memory pids\n", "7\n8\n", "memory pids\n");
    let delegation = Delegation::take_over(root.path(), 7).unwrap();
    let leaf = delegation.hold(5, &LIMITS, &[41]).unwrap();
    let bytes = (512u64 + 256 + 64) << 20;
    assert_eq!(read(root.path(), "belljar-cell-7-5/memory.max"), bytes.to_string());
    assert_eq!(read(root.path(), "belljar-cell-7-5/pids.max"), "34");
    assert_eq!(read(root.path(), "belljar-cell-7-5/cgroup.procs"), "41");
    assert!(!leaf.ran_out_of_memory());
    fs::write(root.path().join("belljar-cell-7-5/memory.events"), "oom 1\noom_kill 1\n").unwrap();
    assert!(leaf.ran_out_of_memory());
}

/// Of processes too that nobody waited for and no sample saw (S7).
#[test]
fn s7_a_leaf_tells_the_cpu_time_of_its_whole_cell() {
    let root = group("memory pids\n", "7\n8\n", "memory pids\n");
    let delegation = Delegation::take_over(root.path(), 7).unwrap();
    let leaf = delegation.hold(5, &LIMITS, &[41]).unwrap();
    assert_eq!(leaf.cpu_time(), None);
    let stat = "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n";
    fs::write(root.path().join("belljar-cell-7-5/cpu.stat"), stat).unwrap();
    assert_eq!(leaf.cpu_time(), Some(Duration::from_micros(1_234_567)));
}

#[test]
fn the_cgroup2_mount_is_found_among_others() {
    let mounts = "30 25 0:26 / /sys/fs/cgroup ro - tmpfs none rw\n\
                  31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n\
                  32 30 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 none rw\n";
    assert_eq!(find_mount(mounts).unwrap(), Path::new("/sys/fs/cgroup/unified"));
    assert_eq!(find_mount("1 0 0:1 / / rw - ext4 /dev/vda rw\n"), None);
}

#[test]
fn groups_of_dead_hosts_are_removed_and_those_of_living_ones_stay() {
    let root = group("memory pids\n", "7\n", "memory pids\n");
    let (dead, alive) =
        ("belljar-cell-4294967-1", format!("belljar-cell-{}-1", std::process::id()));
    for name in [dead, &*alive, "somebody-else"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    Delegation::take_over(root.path(), 7).unwrap();
    assert!(!root.path().join(dead).exists());
    assert!(root.path().join(alive).exists());
    assert!(root.path().join("somebody-else").exists());
}

#[test]
fn a_group_nothing_can_be_made_in_is_not_taken() {
    let root = group("memory pids\n", "7\n8\n", "memory pids\n");
    // A file in the probe's place stands for a directory that is not ours to write.
    fs::write(root.path().join("belljar-cell-7-probe"), "").unwrap();
    let error = Delegation::take_over(root.path(), 7).unwrap_err();
    assert_eq!(error, "cannot create a group beneath this one: File exists (os error 17)");
}
