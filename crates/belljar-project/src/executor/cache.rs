//! Results that may be reused (H2): for the same code, inputs and tools, if all calls only read.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use belljar_contract::{
    ApprovalId, EngineName, Isolation, RunId, RunResult, RunStatus, Tier, Truncation, hex,
};
use belljar_store::Store;
use belljar_tools::{ApprovalNotice, Bridge, CallObserver, PreparedRun, Tool, ToolReach};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{Execution, Executor, finish::OpenRun, now_ms, stored::StoredRequest};

/// Identifies a request in the cache.
#[derive(Debug)]
pub(super) struct CacheKey(String);

/// The stored form of a result.
#[derive(Debug, Serialize, Deserialize)]
struct CachedAnswer {
    result: Box<RawValue>,
    stdout: String,
    stderr: String,
    logs: Vec<String>,
    lossy: bool,
    truncated: Truncation,
    state: Box<RawValue>,
    /// The tools that were called, with their versions at that time.
    tools: BTreeSet<String>,
}

impl CacheKey {
    /// The key of a request that may be answered from the cache; requests with files or hosts have none. The
    /// tool policy is part of the key, so that a call which is denied by now is not answered.
    pub(super) fn of(execution: &Execution, bridge: Option<&Bridge>) -> Option<Self> {
        if execution.request.has_host_files() || !execution.request.grants.net.is_empty() {
            return None;
        }
        let stored =
            StoredRequest::of(&execution.request, &execution.tools, execution.max_output_tokens);
        let mut hash = Sha256::new();
        hash.update(env!("CARGO_PKG_VERSION"));
        hash.update([0]);
        hash.update(bridge.map(Bridge::rules).unwrap_or_default());
        hash.update([0]);
        hash.update(&execution.request.code);
        hash.update([0]);
        hash.update(serde_json::to_string(&stored).ok()?);
        Some(Self(hex::encode(&hash.finalize())))
    }
}

impl Executor {
    /// The cached result of a request that may be answered from the cache. If there is none yet, the
    /// run gets a place for it, valid for `ttl`, and its calls are watched.
    pub(super) async fn cached(
        &self,
        execution: &mut Execution,
        ttl: Duration,
        run: &mut OpenRun,
    ) -> Option<RunResult> {
        let store = self.store.as_ref()?;
        let key = CacheKey::of(execution, self.bridge.as_ref())?;
        let kept = store.cache_get(&key.0, now_ms()).await.ok().flatten();
        if let Some(kept) = kept
            && let Some(result) = self.read_cached(&kept, execution.request.engine()).await
        {
            return Some(result);
        }
        let used = Arc::new(UsedTools::hearing_for(execution.observer.clone()));
        execution.observer = used.clone();
        run.cache = Some(CacheSlot { key, ttl, used });
        None
    }

    /// A cached result, if its tools have not changed.
    async fn read_cached(&self, kept: &[u8], engine: EngineName) -> Option<RunResult> {
        let kept: CachedAnswer = serde_json::from_slice(kept).ok()?;
        if !kept.tools.is_empty() {
            let (catalogue, _) = self.bridge.as_ref()?.catalogue().await;
            let now: BTreeSet<String> = catalogue.tools().iter().map(version).collect();
            if !kept.tools.is_subset(&now) {
                return None;
            }
        }
        Some(RunResult {
            status: RunStatus::Completed,
            success: true,
            result: kept.result,
            stdout: kept.stdout,
            stderr: kept.stderr,
            logs: kept.logs,
            exit_code: 0,
            isolation: Isolation { tier: Tier::Cached, engine, ..Isolation::default() },
            cached: true,
            lossy: kept.lossy,
            truncated: kept.truncated,
            state: kept.state,
            ..RunResult::default()
        })
    }
}

/// The place of a run's result in the cache, if it may be reused.
#[derive(Debug)]
pub(super) struct CacheSlot {
    pub(super) key: CacheKey,
    pub(super) ttl: Duration,
    pub(super) used: Arc<UsedTools>,
}

impl CacheSlot {
    /// Saves a result that may be reused. It is saved in full, because each caller has its own budget.
    pub(super) async fn save(self, store: &Store, result: &RunResult) {
        let Self { key: CacheKey(key), ttl, used } = self;
        let has_artifacts = !result.artifacts.is_empty() || !result.changes.is_empty();
        let has_artifacts = has_artifacts || !result.unreturned.files.is_empty();
        if !result.success || has_artifacts || !used.may_be_kept.load(Ordering::SeqCst) {
            return;
        }
        let kept = CachedAnswer {
            result: result.result.clone(),
            stdout: result.stdout.clone(),
            stderr: result.stderr.clone(),
            logs: result.logs.clone(),
            lossy: result.lossy,
            truncated: result.truncated,
            state: result.state.clone(),
            tools: used.tools.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let Ok(value) = serde_json::to_vec(&kept) else { return };
        let now = now_ms();
        let expires = now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        if let Err(error) = store.cache_put(&key, value, expires, now).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot save a result in the cache"
            );
        }
    }
}

/// The tools a run called, and whether all calls only read and needed no approval.
#[derive(Debug)]
pub(super) struct UsedTools {
    tools: Mutex<BTreeSet<String>>,
    may_be_kept: AtomicBool,
    further: Arc<dyn CallObserver>,
}

impl UsedTools {
    /// Records each call and forwards it to the inner observer.
    pub(super) fn hearing_for(further: Arc<dyn CallObserver>) -> Self {
        Self { tools: Mutex::default(), may_be_kept: AtomicBool::new(true), further }
    }
}

impl CallObserver for UsedTools {
    fn run_begins(&self, run_id: &RunId) {
        self.further.run_begins(run_id);
    }

    fn run_prepared(&self, run: PreparedRun<'_>) {
        self.further.run_prepared(run);
    }

    fn approval_waits(&self, notice: &ApprovalNotice) {
        // A person approved this call only, not later ones.
        self.may_be_kept.store(false, Ordering::SeqCst);
        self.further.approval_waits(notice);
    }

    fn approval_over(&self, id: &ApprovalId) {
        self.further.approval_over(id);
    }

    fn call_begins(&self, tool: &Tool, reach: ToolReach) {
        if reach != ToolReach::ReadOnly {
            self.may_be_kept.store(false, Ordering::SeqCst);
        }
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).insert(version(tool));
        self.further.call_begins(tool, reach);
    }

    fn call_ends(&self, tool: &str, is_ok: bool, duration: Duration) {
        self.further.call_ends(tool, is_ok, duration);
    }
}

/// The tool's name with a hash of its description: another description is another version.
fn version(tool: &Tool) -> String {
    let text = serde_json::to_string(tool).unwrap_or_default();
    format!("{} {}", tool.qualified_name(), hex::encode(&Sha256::digest(text)))
}
