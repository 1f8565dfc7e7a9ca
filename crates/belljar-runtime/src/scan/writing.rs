//! Has what was written looked through when the cell that wrote it has ended, however it ends.

use std::{
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, watch};

use super::{TakenBack, WrittenTree};
use crate::files::wait_until_dead;

/// How long a tree is looked through that a session may still write to.
const LIVE: Duration = Duration::from_secs(30);

/// Trees that are written to, and who looks through them.
#[derive(Debug, Clone)]
pub(crate) struct Trees {
    pub(crate) list: Arc<[WrittenTree]>,
    /// Names that the host obeys.
    pub(crate) reserved: Arc<[OsString]>,
    /// Each look that nobody waits for has a place of these.
    pub(crate) looking: Arc<Semaphore>,
}

/// Trees that a cell writes to. When it is dropped, what the cell has made is taken back as soon as the
/// cell is dead.
#[derive(Debug)]
pub(crate) struct Writing {
    trees: Trees,
    /// `None` once it was looked through.
    keeper: Option<io::Result<OwnedFd>>,
    over: watch::Sender<()>,
}

impl Trees {
    /// Takes back what the cell of this keeper has made. Nothing, if nothing is written to.
    pub(crate) fn written_by(&self, keeper: io::Result<OwnedFd>) -> Option<Writing> {
        let over = watch::channel(()).0;
        (!self.list.is_empty()).then(|| Writing { trees: self.clone(), keeper: Some(keeper), over })
    }

    /// Takes back what was made until now, while more may be.
    pub(crate) async fn take_back_live(&self) -> TakenBack {
        if self.list.is_empty() {
            return TakenBack::default();
        }
        let trees = self.clone();
        let until = Instant::now() + LIVE;
        finished(tokio::task::spawn_blocking(move || trees.look(Some(until))).await)
    }

    fn look(&self, until: Option<Instant>) -> TakenBack {
        let mut taken = TakenBack::default();
        for tree in self.list.iter() {
            taken.append(tree.take_back(&self.reserved, until));
        }
        taken
    }

    fn look_once_dead(&self, keeper: io::Result<OwnedFd>) -> TakenBack {
        match keeper.and_then(|keeper| wait_until_dead(&keeper)) {
            Ok(()) => self.look(None),
            Err(error) => {
                let mut taken = self.look(Some(Instant::now() + LIVE));
                taken.fault(format!("more may have been written since: {error}"));
                taken
            }
        }
    }
}

impl Writing {
    /// Takes it back now: the cell is about to end.
    pub(crate) async fn take_back(mut self) -> TakenBack {
        let Some(keeper) = self.keeper.take() else { return TakenBack::default() };
        let trees = self.trees.clone();
        finished(tokio::task::spawn_blocking(move || trees.look_once_dead(keeper)).await)
    }

    /// Closed once all is taken back.
    pub(crate) fn over(&self) -> watch::Receiver<()> {
        self.over.subscribe()
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        let trees = self.trees.clone();
        let place = trees.looking.clone().try_acquire_owned();
        let over = std::mem::replace(&mut self.over, watch::channel(()).0);
        // A thread of its own: this may be the end of the runtime.
        let look = move || {
            tell(trees.look_once_dead(keeper));
            drop((over, place));
        };
        if let Err(error) = std::thread::Builder::new().name("take-back".to_owned()).spawn(look) {
            tracing::error!(%error, "what was written was not looked through");
        }
    }
}

fn tell(taken: TakenBack) {
    let has_failed = !taken.faults.list.is_empty();
    for line in taken.into_lines() {
        if has_failed {
            tracing::error!("{line}");
        } else {
            tracing::warn!("{line}");
        }
    }
}

fn finished(looked: Result<TakenBack, tokio::task::JoinError>) -> TakenBack {
    looked.unwrap_or_else(|error| {
        let mut taken = TakenBack::default();
        taken.fault(format!("what was written was not looked through: {error}"));
        taken
    })
}
