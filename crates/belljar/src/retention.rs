//! What is kept for how long (O1): what is over and old goes, and so does what is oldest when the
//! store gets too large.
//!
//! Everything is done in small steps, so that a host serves its clients meanwhile. What is still
//! needed stays whatever its age: runs that can be resumed, runs an unfinished workflow will ask
//! for, approvals that wait, values anything refers to, workflows that have not ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use belljar_flow::Embedded;
use belljar_store::{Prune, PruneReport, RecordKind, ShrinkMode, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    flows::{forget_workflow, runs_of_intent},
    now_ms,
};

/// What ages are counted in.
const DAY: Duration = Duration::from_hours(24);
/// How often a host looks whether something may go.
const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// Every so many times it also looks through what takes longer to look through.
const THOROUGH_EVERY: u32 = 10;
/// Which time of these: not the first, which is while the host starts.
const THOROUGH_LOOK: u32 = 1;
/// Records that one step removes.
const STEP_RECORDS: u32 = 100;
/// Pages that one step gives back to the file system.
const STEP_PAGES: u32 = 256;
/// Pages that one sweep gives back at most.
const SWEEP_PAGES: u64 = 256 * 1024;
/// However full the store is, nothing younger goes.
const LEAST_AGE: Duration = Duration::from_mins(5);
/// How often ages are halved when the store is too large: 90 days become minutes.
const HALVINGS: u32 = 16;
/// A file that cannot shrink in steps yet is rewritten by a host if it is no larger than this.
const REWRITTEN_BYTES: u64 = 64 << 20;

/// What goes by age, in this order: what refers to values before the values.
const SWEPT: [RecordKind; 9] = [
    RecordKind::Workflows,
    RecordKind::Runs,
    RecordKind::Approvals,
    RecordKind::Events,
    RecordKind::Audit,
    RecordKind::Sessions,
    RecordKind::Cache,
    RecordKind::Journals,
    RecordKind::Blobs,
];

/// For how long what is over is kept, and how much in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// By kind; a kind that is not here is kept for ever.
    pub ages: BTreeMap<RecordKind, Duration>,
    /// The most bytes of the store without the audit. Over that, ages are halved until it fits.
    pub max_size: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        let days = [
            (RecordKind::Runs, 30),
            (RecordKind::Journals, 7),
            (RecordKind::Events, 7),
            (RecordKind::Audit, 90),
            (RecordKind::Approvals, 90),
            (RecordKind::Blobs, 7),
            (RecordKind::Sessions, 30),
            (RecordKind::Workflows, 30),
        ];
        let ages = days.into_iter().map(|(kind, days)| (kind, DAY * days)).collect();
        Self { ages, max_size: Some(4 << 30) }
    }
}

/// What went, or would go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    /// By kind, where there was any.
    pub removed: BTreeMap<RecordKind, PruneReport>,
    /// Ages were halved so often because the store was too large.
    pub halvings: u32,
    /// The store is still larger than it should be: what is left is needed, or kept for ever.
    pub too_large: bool,
}

/// How much is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// What an index finds.
    Quick,
    /// Also what has to be searched for: journals, and values nothing refers to.
    Thorough,
}

/// Removes what a retention says may go.
#[derive(Debug, Clone)]
pub struct Collector {
    store: Store,
    retention: Retention,
    /// Where tasks of workflows leave files.
    scratch: PathBuf,
}

impl Collector {
    /// For a store; `scratch` is where tasks of its workflows leave files.
    pub fn new(store: Store, retention: Retention, scratch: impl Into<PathBuf>) -> Self {
        Self { store, retention, scratch: scratch.into() }
    }

    /// Looks after the store until it is told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        self.make_shrinkable().await;
        // At once, too: a host that never lives for a minute would never remove anything.
        let mut pause = Duration::ZERO;
        for look in (0..THOROUGH_EVERY).cycle() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = SWEEP_EVERY;
            let sweep = if look == THOROUGH_LOOK { Sweep::Thorough } else { Sweep::Quick };
            match self.collect(sweep, now_ms()).await {
                Ok(collected) if collected.too_large => {
                    tracing::warn!("the store is larger than [retention] max_size allows");
                }
                Ok(_) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "old records were not removed");
                }
            }
        }
    }

    /// Removes what may go, gives its room back, and empties the log.
    pub async fn collect(&self, sweep: Sweep, now_ms: i64) -> Result<Collected, StoreError> {
        let mut collected = Collected::default();
        for kind in SWEPT {
            let is_searched = matches!(kind, RecordKind::Journals | RecordKind::Blobs);
            if sweep == Sweep::Thorough || !is_searched {
                self.remove(kind, 0, now_ms, &mut collected).await?;
            }
        }
        self.make_fit(now_ms, &mut collected).await?;
        // Also what another freed that was ended before it came to this.
        let given_back = self.give_back().await?;
        if given_back > 0 || !collected.removed.is_empty() {
            // Deleted values are not in the log either then. Whoever is reading it is not disturbed.
            self.store.empty_log().await?;
        }
        Ok(collected)
    }

    /// What [`collect`](Self::collect) would remove by age.
    pub async fn would_collect(&self, now_ms: i64) -> Result<Collected, StoreError> {
        let mut collected = Collected::default();
        let needed_runs = self.needed_runs().await?;
        for kind in SWEPT {
            let Some(before_ms) = self.cutoff(kind, 0, now_ms) else { continue };
            let removed = if kind == RecordKind::Workflows {
                let old = self.store.workflows_ended_before(before_ms, u32::MAX).await?;
                PruneReport { records: old.len() as u64, bytes: 0 }
            } else {
                let (needed_runs, limit) = (Arc::clone(&needed_runs), u32::MAX);
                let prune = Prune { kind, before_ms, limit, needed_runs };
                self.store.count_prunable(prune).await?
            };
            if removed.records > 0 {
                collected.removed.insert(kind, removed);
            }
        }
        let used = self.bytes_without_audit().await?;
        collected.too_large = self.retention.max_size.is_some_and(|most| used > most);
        Ok(collected)
    }

    /// Rewrites a small file of an older version, so that it shrinks from now on.
    async fn make_shrinkable(&self) {
        let rewritten = async {
            let is_small = self.store.used_bytes().await? <= REWRITTEN_BYTES;
            if is_small && self.store.shrink_mode().await? == ShrinkMode::AfterCompacting {
                self.store.compact().await?;
            }
            Ok::<(), StoreError>(())
        };
        if let Err(error) = rewritten.await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the store was not rewritten, so its file does not shrink");
        }
    }

    /// What counts for the size. The audit goes by age alone: whoever fills the store would erase what
    /// they did. So it does not count either, or everything else would go for it, in vain.
    async fn bytes_without_audit(&self) -> Result<u64, StoreError> {
        let (used, audit) = (self.store.used_bytes().await?, self.store.audit_bytes().await?);
        Ok(used.saturating_sub(audit))
    }

    /// Halves ages until the store, without the audit, is no larger than it should be.
    async fn make_fit(&self, now_ms: i64, collected: &mut Collected) -> Result<(), StoreError> {
        let Some(most) = self.retention.max_size else { return Ok(()) };
        // The whole is looked at first: that is cheaper, and almost always enough.
        if self.store.used_bytes().await? <= most || self.bytes_without_audit().await? <= most {
            return Ok(());
        }
        // A little less than allowed, so that it is not done again at once.
        let enough = most / 10 * 9;
        for halvings in 1..=HALVINGS {
            collected.halvings = halvings;
            for kind in SWEPT.into_iter().filter(|kind| *kind != RecordKind::Audit) {
                self.remove(kind, halvings, now_ms, collected).await?;
            }
            if self.bytes_without_audit().await? <= enough {
                return Ok(());
            }
        }
        collected.too_large = self.bytes_without_audit().await? > most;
        Ok(())
    }

    /// Removes what is old of a kind, step by step.
    async fn remove(
        &self,
        kind: RecordKind,
        halvings: u32,
        now_ms: i64,
        collected: &mut Collected,
    ) -> Result<(), StoreError> {
        let Some(before_ms) = self.cutoff(kind, halvings, now_ms) else { return Ok(()) };
        let needed_runs =
            if kind == RecordKind::Runs { self.needed_runs().await? } else { Arc::default() };
        loop {
            let step = if kind == RecordKind::Workflows {
                self.forget_workflows(before_ms).await?
            } else {
                let (needed_runs, limit) = (Arc::clone(&needed_runs), STEP_RECORDS);
                self.store.prune(Prune { kind, before_ms, limit, needed_runs }).await?
            };
            if step.records == 0 {
                return Ok(());
            }
            let all = collected.removed.entry(kind).or_default();
            all.records += step.records;
            all.bytes += step.bytes;
            // Others have their turn.
            tokio::task::yield_now().await;
        }
    }

    async fn forget_workflows(&self, before_ms: i64) -> Result<PruneReport, StoreError> {
        let engine = Embedded::new(self.store.clone());
        let mut records = 0;
        for id in self.store.workflows_ended_before(before_ms, STEP_RECORDS).await? {
            // One that somebody is at is left for another time.
            records += u64::from(forget_workflow(&engine, &id, &self.scratch).await.is_ok());
        }
        Ok(PruneReport { records, bytes: 0 })
    }

    /// Runs whose outcome an unfinished workflow has not taken yet, however long ago they ended.
    async fn needed_runs(&self) -> Result<Arc<BTreeSet<String>>, StoreError> {
        let open = self.store.open_workflow_intents().await?;
        Ok(Arc::new(open.iter().flat_map(|key| runs_of_intent(key)).collect()))
    }

    /// Before when records of a kind go, if they do.
    fn cutoff(&self, kind: RecordKind, halvings: u32, now_ms: i64) -> Option<i64> {
        if kind == RecordKind::Cache {
            // Each answer has an end of its own.
            return Some(now_ms);
        }
        let age = *self.retention.ages.get(&kind)?;
        let age = match halvings {
            0 => age,
            _ => (age / 2_u32.saturating_pow(halvings)).max(LEAST_AGE.min(age)),
        };
        Some(now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Gives free pages back to the file system; how many.
    async fn give_back(&self) -> Result<u64, StoreError> {
        let mut pages = 0;
        while pages < SWEEP_PAGES {
            let step = self.store.shrink(STEP_PAGES).await?;
            if step == 0 {
                break;
            }
            pages += step;
            tokio::task::yield_now().await;
        }
        Ok(pages)
    }
}
