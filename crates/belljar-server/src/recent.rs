//! The latest runs that have ended, with their results, for clients that ask again. Bounded in
//! number and in bytes; the oldest go first. Durable runs are in the store as well.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use belljar_contract::{RunId, RunStatus};
use bytes::Bytes;

use crate::records::RunInfo;

const MAX_RUNS: usize = 1_000;
const MAX_BYTES: usize = 64 << 20;

/// Which results a caller accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultFilter {
    /// Only results that nothing can change any more.
    Final,
    /// Also those of runs that were stopped; a durable one may have been resumed since.
    Any,
}

/// Runs that have ended, with their results.
#[derive(Debug, Default)]
pub(crate) struct RecentRuns {
    inner: Mutex<RecentResults>,
}

#[derive(Debug, Default)]
struct RecentResults {
    by_id: HashMap<RunId, (RunInfo, Bytes)>,
    order: VecDeque<RunId>,
    bytes: usize,
}

impl RecentRuns {
    /// Adds a result, and drops the oldest ones beyond the bounds.
    pub(crate) fn save(&self, run: RunInfo, result: Bytes) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let id = run.id.clone();
        inner.bytes += result.len();
        if let Some((_, before)) = inner.by_id.insert(id.clone(), (run, result)) {
            inner.bytes -= before.len();
        } else {
            inner.order.push_back(id);
        }
        while inner.order.len() > MAX_RUNS || inner.bytes > MAX_BYTES {
            let Some(oldest) = inner.order.pop_front() else { break };
            if let Some((_, result)) = inner.by_id.remove(&oldest) {
                inner.bytes -= result.len();
            }
        }
    }

    /// The canonical result of a run.
    pub(crate) fn result(&self, id: &RunId, which: ResultFilter) -> Option<Bytes> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (run, result) = inner.by_id.get(id)?;
        let is_final = matches!(run.status, RunStatus::Completed | RunStatus::Failed);
        (is_final || which == ResultFilter::Any).then(|| result.clone())
    }

    /// All of them, without their results.
    pub(crate) fn list(&self) -> Vec<RunInfo> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.by_id.values().map(|(run, _)| run.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize) -> RunInfo {
        RunInfo {
            id: format!("run_{number}").into(),
            status: RunStatus::Completed,
            work: belljar_contract::Language::Python.into(),
            durable: false,
            started_ms: 0,
            finished_ms: None,
        }
    }

    #[test]
    fn e3_the_oldest_results_go_first() {
        let recent = RecentRuns::default();
        for number in 0..MAX_RUNS + 10 {
            recent.save(run(number), Bytes::from_static(b"{}"));
        }
        assert_eq!(recent.list().len(), MAX_RUNS);
        assert_eq!(recent.result(&"run_9".into(), ResultFilter::Final), None);
        assert_eq!(
            recent.result(&"run_10".into(), ResultFilter::Final),
            Some(Bytes::from_static(b"{}"))
        );
        recent.save(run(5_000), Bytes::from(vec![b' '; MAX_BYTES]));
        assert_eq!(recent.list().len(), 1);
        recent.save(run(5_001), Bytes::from(vec![b' '; MAX_BYTES + 1]));
        assert_eq!(recent.list().len(), 0);
    }
}
