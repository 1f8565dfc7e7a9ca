//! A host whose zygotes are a real program.

use std::sync::Arc;

use belljar_contract::{EngineName, Limits, RunRequest, RunResult};
use belljar_runtime::{Host, HostConfig, ZygotePlan, ZygoteProgram};

use crate::{descendants::descendants, zygote::zygote};

/// Starts a host with this many parked cells.
pub(crate) async fn host(pool_size: usize) -> Host {
    Host::start(HostConfig {
        engines: Arc::new(ZygoteProgram { path: zygote(), arguments: vec!["__zygote".to_owned()] }),
        ready: vec![EngineName::QuickJs],
        plan: ZygotePlan::full(),
        pool_size,
        maximum: Limits::MAXIMUM,
        protected: Vec::new(),
        reserved_names: Vec::new(),
    })
    .await
    .expect("this machine can confine a zygote")
}

/// Runs TypeScript with the default limits.
pub(crate) async fn run(host: &Host, code: &str) -> RunResult {
    host.run(RunRequest::typescript(code)).await
}

/// What a run that leaks would leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) descriptors: usize,
    pub(crate) mounts: usize,
    pub(crate) processes: usize,
}

/// That of this process and everything it has started.
pub(crate) fn footprint() -> Footprint {
    let count = |path: &str| std::fs::read_dir(path).expect(path).count();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    Footprint {
        descriptors: count("/proc/self/fd"),
        mounts: mounts.lines().count(),
        processes: descendants(std::process::id()).len(),
    }
}

/// Waits until a condition holds; fails after ten seconds.
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
/// A cell that is being replaced has lost its processes before the host has closed what it held of
/// it, so a single look may see more than there is.
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
