//! Retention (O1): removes records that are over and old, and the oldest ones when the store is too
//! large.
//!
//! It works in small steps, so that a host can serve its clients meanwhile. Records that are still
//! needed stay whatever their age: resumable runs, runs that an unfinished workflow needs, pending
//! approvals, referenced values, unfinished workflows.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use belljar_config::Retention;
use belljar_contract::RunId;
use belljar_store::{Prune, PruneReport, RecordKind, ShrinkMode, Store, StoreError};
use belljar_workflow::SqliteWorkflowStore;
use tokio_util::sync::CancellationToken;

use crate::{
    now_ms,
    workflows::{forget_workflow, runs_of_intent},
};

/// How often a host sweeps.
const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// Every so many sweeps one is thorough.
const THOROUGH_EVERY: u32 = 10;
/// Which of these sweeps is thorough: not the first, which runs while the host starts.
const THOROUGH_LOOK: u32 = 1;
/// Records that one step removes.
const STEP_RECORDS: u32 = 100;
/// Pages that one step returns to the file system.
const STEP_PAGES: u32 = 256;
/// Most pages that one sweep returns.
const SWEEP_PAGES: u64 = 256 * 1024;
/// However full the store is, younger records stay.
const LEAST_AGE: Duration = Duration::from_mins(5);
/// How often ages may be halved when the store is too large: 90 days become minutes.
const HALVINGS: u32 = 16;
/// Largest file that a host rewrites so that it can shrink in steps.
const REWRITTEN_BYTES: u64 = 64 << 20;

/// Kinds removed by age, in this order: records before the values they refer to.
const KINDS_BY_AGE: [RecordKind; 9] = [
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

/// The number of removed records, or of those that would be removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectionReport {
    /// By kind; kinds without removals are missing.
    pub removed: BTreeMap<RecordKind, PruneReport>,
    /// How often ages were halved because the store was too large.
    pub halvings: u32,
    /// The store is still too large: what is left is needed, or kept for ever.
    pub too_large: bool,
}

/// How thoroughly records are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Records that an index finds.
    Quick,
    /// Also journals, and values without references, which need a search.
    Thorough,
}

/// Removes records by age and size.
#[derive(Debug, Clone)]
pub struct RecordCollector {
    store: Store,
    retention: Retention,
    /// Directory of files that workflow tasks leave behind.
    scratch: PathBuf,
}

impl RecordCollector {
    /// A collector for a store; `scratch` is the directory of files that its workflow tasks leave
    /// behind.
    pub fn new(store: Store, retention: Retention, scratch: impl Into<PathBuf>) -> Self {
        Self { store, retention, scratch: scratch.into() }
    }

    /// Sweeps regularly until `stop` is cancelled.
    pub async fn run(&self, stop: CancellationToken) {
        self.make_shrinkable().await;
        // At once too: a host that never lives for a minute would never remove anything.
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
                    tracing::warn!(error, "cannot remove old records");
                }
            }
        }
    }

    /// Removes old records, returns their pages to the file system and empties the log.
    pub async fn collect(&self, sweep: Sweep, now_ms: i64) -> Result<CollectionReport, StoreError> {
        let mut collected = CollectionReport::default();
        for kind in KINDS_BY_AGE {
            let is_searched = matches!(kind, RecordKind::Journals | RecordKind::Blobs);
            if sweep == Sweep::Thorough || !is_searched {
                self.remove_old(kind, 0, now_ms, &mut collected).await?;
            }
        }
        self.shrink_to_max_size(now_ms, &mut collected).await?;
        // Includes pages freed by a sweep that was interrupted before this step.
        let released = self.release_pages().await?;
        if released > 0 || !collected.removed.is_empty() {
            // Deleted values must not stay in the log. Readers are not disturbed.
            self.store.empty_log().await?;
        }
        Ok(collected)
    }

    /// The records that [`collect`](Self::collect) would remove by age.
    pub async fn would_collect(&self, now_ms: i64) -> Result<CollectionReport, StoreError> {
        let mut collected = CollectionReport::default();
        let needed_runs = self.needed_runs().await?;
        for kind in KINDS_BY_AGE {
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

    /// Rewrites a small file of an older version, so that it can shrink from now on.
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
            tracing::warn!(error, "cannot rewrite the store, so its file does not shrink");
        }
    }

    /// The size that counts. The audit is removed by age only, or a client could fill the store to
    /// erase its traces. So its size does not count either: no removal of other records could make
    /// room for it.
    async fn bytes_without_audit(&self) -> Result<u64, StoreError> {
        let (used, audit) = (self.store.used_bytes().await?, self.store.audit_bytes().await?);
        Ok(used.saturating_sub(audit))
    }

    /// Halves ages until the store, without the audit, fits.
    async fn shrink_to_max_size(
        &self,
        now_ms: i64,
        collected: &mut CollectionReport,
    ) -> Result<(), StoreError> {
        let Some(most) = self.retention.max_size else { return Ok(()) };
        // The total first: it is cheaper to read and almost always small enough.
        if self.store.used_bytes().await? <= most || self.bytes_without_audit().await? <= most {
            return Ok(());
        }
        // Slightly less than allowed, so that the next sweep does not start again.
        let enough = most / 10 * 9;
        for halvings in 1..=HALVINGS {
            collected.halvings = halvings;
            for kind in KINDS_BY_AGE.into_iter().filter(|kind| *kind != RecordKind::Audit) {
                self.remove_old(kind, halvings, now_ms, collected).await?;
            }
            if self.bytes_without_audit().await? <= enough {
                return Ok(());
            }
        }
        collected.too_large = self.bytes_without_audit().await? > most;
        Ok(())
    }

    /// Removes old records of one kind in small steps.
    async fn remove_old(
        &self,
        kind: RecordKind,
        halvings: u32,
        now_ms: i64,
        collected: &mut CollectionReport,
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
            // Lets other tasks run.
            tokio::task::yield_now().await;
        }
    }

    async fn forget_workflows(&self, before_ms: i64) -> Result<PruneReport, StoreError> {
        let store = SqliteWorkflowStore::new(self.store.clone());
        let mut records = 0;
        for id in self.store.workflows_ended_before(before_ms, STEP_RECORDS).await? {
            // A workflow that is in use is left for the next sweep.
            records += u64::from(forget_workflow(&store, &id, &self.scratch).await.is_ok());
        }
        Ok(PruneReport { records, bytes: 0 })
    }

    /// Runs whose outcome an unfinished workflow has not read yet, however old they are.
    async fn needed_runs(&self) -> Result<Arc<BTreeSet<RunId>>, StoreError> {
        let open = self.store.open_workflow_intents().await?;
        Ok(Arc::new(open.iter().flat_map(|key| runs_of_intent(key)).collect()))
    }

    /// The time before which records of a kind are removed; `None` keeps them.
    fn cutoff(&self, kind: RecordKind, halvings: u32, now_ms: i64) -> Option<i64> {
        if kind == RecordKind::Cache {
            // Each cached answer has its own expiry.
            return Some(now_ms);
        }
        let age = *self.retention.ages.get(&kind)?;
        let age = match halvings {
            0 => age,
            _ => (age / 2_u32.saturating_pow(halvings)).max(LEAST_AGE.min(age)),
        };
        Some(now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns free pages to the file system; the result is how many.
    async fn release_pages(&self) -> Result<u64, StoreError> {
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
