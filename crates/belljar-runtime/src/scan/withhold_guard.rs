//! Withholds in the trees of a cell when the cell has ended, however it ends.

use std::{
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, watch};

use super::{WithholdReport, WrittenTree};
use crate::files::wait_until_dead;

/// How long a walk may take in a tree that a session may still write to.
const LIVE: Duration = Duration::from_secs(30);

/// The trees that a cell may write to.
#[derive(Debug, Clone)]
pub(crate) struct WrittenTrees {
    pub(crate) list: Arc<[WrittenTree]>,
    /// Names that the host obeys wherever they are.
    pub(crate) reserved: Arc<[OsString]>,
    /// Held by each walk that runs in the background, so that the host can wait for all of them.
    pub(crate) background: Arc<Semaphore>,
}

/// Guards the trees that a cell writes to. When the guard is dropped, a background thread withholds what the
/// cell has made, as soon as the cell is dead.
#[derive(Debug)]
pub(crate) struct WithholdGuard {
    trees: WrittenTrees,
    /// `None` once the trees are done.
    keeper: Option<io::Result<OwnedFd>>,
    done: watch::Sender<()>,
}

impl WrittenTrees {
    /// Guards the trees against the cell of this keeper; `None` if there is no tree.
    pub(crate) fn guard(&self, keeper: io::Result<OwnedFd>) -> Option<WithholdGuard> {
        let done = watch::channel(()).0;
        (!self.list.is_empty()).then(|| WithholdGuard {
            trees: self.clone(),
            keeper: Some(keeper),
            done,
        })
    }

    /// Withholds what was made until now, while guests may still write.
    pub(crate) async fn withhold_live(&self) -> WithholdReport {
        if self.list.is_empty() {
            return WithholdReport::default();
        }
        let trees = self.clone();
        let until = Instant::now() + LIVE;
        joined(tokio::task::spawn_blocking(move || trees.withhold(Some(until))).await)
    }

    fn withhold(&self, until: Option<Instant>) -> WithholdReport {
        let mut report = WithholdReport::default();
        for tree in self.list.iter() {
            report.append(tree.withhold(&self.reserved, until));
        }
        report
    }

    fn withhold_once_dead(&self, keeper: io::Result<OwnedFd>) -> WithholdReport {
        match keeper.and_then(|keeper| wait_until_dead(&keeper)) {
            Ok(()) => self.withhold(None),
            Err(error) => {
                let mut report = self.withhold(Some(Instant::now() + LIVE));
                report.fault(format!("the cell may have written more since: {error}"));
                report
            }
        }
    }
}

impl WithholdGuard {
    /// Withholds now, with the caller waiting: the cell is about to end.
    pub(crate) async fn withhold(mut self) -> WithholdReport {
        let Some(keeper) = self.keeper.take() else { return WithholdReport::default() };
        let trees = self.trees.clone();
        joined(tokio::task::spawn_blocking(move || trees.withhold_once_dead(keeper)).await)
    }

    /// A channel that closes once the trees are done.
    pub(crate) fn done(&self) -> watch::Receiver<()> {
        self.done.subscribe()
    }
}

impl Drop for WithholdGuard {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        let trees = self.trees.clone();
        let permit = trees.background.clone().try_acquire_owned();
        let done = std::mem::replace(&mut self.done, watch::channel(()).0);
        // A thread of its own, because the async runtime may be about to end.
        let withhold = move || {
            trace(trees.withhold_once_dead(keeper));
            drop((done, permit));
        };
        if let Err(error) = std::thread::Builder::new().name("withhold".to_owned()).spawn(withhold)
        {
            tracing::error!(%error, "could not check what a cell wrote to granted trees");
        }
    }
}

fn trace(report: WithholdReport) {
    let has_failed = !report.faults.list.is_empty();
    for line in report.into_lines() {
        if has_failed {
            tracing::error!("{line}");
        } else {
            tracing::warn!("{line}");
        }
    }
}

fn joined(walked: Result<WithholdReport, tokio::task::JoinError>) -> WithholdReport {
    walked.unwrap_or_else(|error| {
        let mut report = WithholdReport::default();
        report.fault(format!("could not check what the run wrote: {error}"));
        report
    })
}
