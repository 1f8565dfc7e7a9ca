//! Answers that may be given again (H2): same code, same inputs, same tools, and nothing but
//! reading in between.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use belljar_runtime::{ErrorCode, Isolation, RunError, RunResult, Status, Truncated, unrun};
use belljar_tools::{ApprovalNotice, Bridge, CallObserver, Tool, ToolReach};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{Execution, Executor, now_ms, stored::StoredRequest};

/// What a question is known by.
#[derive(Debug)]
pub(super) struct CacheKey(String);

/// An answer as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    result: Box<RawValue>,
    stdout: String,
    stderr: String,
    logs: Vec<String>,
    lossy: bool,
    truncated: Truncated,
    state: Box<RawValue>,
    /// The tools that were called, as they were then.
    tools: BTreeSet<String>,
}

impl CacheKey {
    /// The key of a question that may be answered from memory; files are never part of one. What
    /// decided about its calls is: nobody is told what would be denied by now.
    pub(super) fn of(execution: &Execution, bridge: Option<&Bridge>) -> Option<Self> {
        let grants = &execution.request.grants;
        let has_files = execution.request.workspace.is_some()
            || !grants.read.is_empty()
            || !grants.write.is_empty();
        if execution.cache.is_none() || has_files {
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
        Some(Self(hex(&hash.finalize())))
    }
}

impl Executor {
    /// An answer from memory, if there is one and its tools are what they were.
    pub(super) async fn cached(
        &self,
        execution: &Execution,
        key: Option<&CacheKey>,
    ) -> Option<RunResult> {
        let (store, CacheKey(key)) = (self.store.as_ref()?, key?);
        execution.cache?;
        let kept = store.cache_get(key, now_ms()).await.ok()??;
        let kept: Kept = serde_json::from_slice(&kept).ok()?;
        if !kept.tools.is_empty() {
            let (catalogue, _) = self.bridge.as_ref()?.catalogue().await;
            let now: BTreeSet<String> = catalogue.tools().iter().map(version).collect();
            if !kept.tools.is_subset(&now) {
                return None;
            }
        }
        let nothing_ran = unrun(Status::Failed, RunError::new(ErrorCode::RunAborted, ""));
        let isolation = Isolation { tier: "cached", ..nothing_ran.isolation.clone() };
        Some(RunResult {
            status: Status::Completed,
            success: true,
            result: kept.result,
            stdout: kept.stdout,
            stderr: kept.stderr,
            logs: kept.logs,
            exit_code: 0,
            error: None,
            isolation,
            cached: true,
            lossy: kept.lossy,
            truncated: kept.truncated,
            state: kept.state,
            ..nothing_ran
        })
    }

    /// Keeps an answer, if it may be given again.
    pub(super) async fn keep(
        &self,
        key: Option<CacheKey>,
        ttl: Option<Duration>,
        used: &Used,
        result: &RunResult,
    ) {
        let (Some(store), Some(CacheKey(key)), Some(ttl)) = (&self.store, key, ttl) else { return };
        let has_artifacts = !result.artifacts.is_empty() || !result.changes.is_empty();
        if !result.success || has_artifacts || !used.may_be_kept.load(Ordering::SeqCst) {
            return;
        }
        let kept = Kept {
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
            tracing::warn!(error = &error as &dyn std::error::Error, "an answer was not kept");
        }
    }
}

/// The tools a run called, and whether all they did was to read, and without asking.
#[derive(Debug)]
pub(super) struct Used {
    tools: Mutex<BTreeSet<String>>,
    may_be_kept: AtomicBool,
    further: Arc<dyn CallObserver>,
}

impl Used {
    /// Notes what is used, and passes on what is heard.
    pub(super) fn hearing_for(further: Arc<dyn CallObserver>) -> Self {
        Self { tools: Mutex::default(), may_be_kept: AtomicBool::new(true), further }
    }
}

impl CallObserver for Used {
    fn run_begins(&self, run_id: &str) {
        self.further.run_begins(run_id);
    }

    fn approval_waits(&self, notice: &ApprovalNotice) {
        // A person said yes to one call, not to what comes after it.
        self.may_be_kept.store(false, Ordering::SeqCst);
        self.further.approval_waits(notice);
    }

    fn approval_over(&self, id: &str) {
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

/// A tool as it is described now: another description is another version.
fn version(tool: &Tool) -> String {
    let text = serde_json::to_string(tool).unwrap_or_default();
    format!("{} {}", tool.qualified_name(), hex(&Sha256::digest(text)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
