//! Processes, descriptors and mounts that a host leaves behind. The tests of other crates use this file too.

use crate::descendants::descendants;

/// The traces that a leaking run would leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) descriptors: usize,
    pub(crate) mounts: usize,
    pub(crate) processes: usize,
}

/// The footprint of this process and everything it has started.
pub(crate) fn footprint() -> Footprint {
    let count = |path: &str| std::fs::read_dir(path).expect(path).count();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    Footprint {
        descriptors: count("/proc/self/fd"),
        mounts: mounts.lines().count(),
        processes: descendants(std::process::id()).len(),
    }
}

/// Waits until a condition holds; fails after about ten seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// The footprint once it does not change any more: pools are full, ended cells are gone.
///
/// A cell that is being replaced loses its processes before the host closes its descriptors, so a single
/// count may be too high.
pub(crate) async fn at_rest() -> Footprint {
    let mut last = footprint();
    for _ in 0..40 {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let now = footprint();
        if now == last {
            return now;
        }
        last = now;
    }
    panic!("never at rest: {last:?}");
}
