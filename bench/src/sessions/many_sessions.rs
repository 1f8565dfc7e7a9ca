//! Many sessions at once, of every language, each of them answering.

use std::time::Duration;

use anyhow::ensure;
use belljar_contract::Language;
use belljar_project::{Session, allow_many_descriptors};

use super::{
    super::{
        memory::MemoryUse,
        processes::{Family, MemoryShare, memory_of},
        warm_host_of,
    },
    session_error,
};
use crate::row::BenchRow;

/// The number of sessions.
const SESSIONS: usize = 300;
/// Host → warden → zygote → keeper → guest: the processes of cells start at this depth.
const CELLS_FROM: usize = 3;
/// Time for the processes to become idle before they are measured.
const SETTLE: Duration = Duration::from_millis(500);

const SNIPPETS: [(Language, &str, &str); 3] = [
    (Language::TypeScript, "x = 1; x", "x + 1"),
    (Language::Python, "x = 1\nx", "x + 1"),
    (Language::Bash, "x=1; echo $x", "echo $((x + 1))"),
];

/// Opens the sessions, makes two calls in each, and measures their memory.
pub(super) fn measure() -> anyhow::Result<BenchRow> {
    allow_many_descriptors();
    let (runtime, sandbox) = warm_host_of([])?;
    let memory = runtime.block_on(async {
        let mut sessions: Vec<(Session, &str)> = Vec::new();
        for (language, set, next) in SNIPPETS.into_iter().cycle().take(SESSIONS) {
            let session = sandbox.session(language).open().await.map_err(session_error)?;
            let result = session.run(set).await;
            ensure!(result.success && result.result.get() == "1", "{:?}", result.error);
            sessions.push((session, next));
        }
        for (session, next) in &sessions {
            let result = session.run(*next).await;
            ensure!(result.success && result.result.get() == "2", "{:?}", result.error);
        }
        tokio::time::sleep(SETTLE).await;
        let family = Family::now();
        let all: Vec<MemoryShare> = family.at_least(0).map(memory_of).collect();
        let cells: Vec<MemoryShare> = family.at_least(CELLS_FROM).map(memory_of).collect();
        for (session, _) in &sessions {
            session.destroy().await;
        }
        anyhow::Ok(memory_use(&all, &cells))
    })?;
    runtime.block_on(sandbox.shutdown());
    let case = format!("belljar, {SESSIONS} sessions at once");
    let row = BenchRow::new("sessions", &case, env!("CARGO_PKG_VERSION"));
    Ok(BenchRow { n: SESSIONS as u64, memory: Some(memory), ..row })
}

fn memory_use(all: &[MemoryShare], cells: &[MemoryShare]) -> MemoryUse {
    let private: u64 = cells.iter().map(|memory| memory.private).sum();
    MemoryUse {
        total_mb: (all.iter().map(|memory| memory.share).sum::<u64>() as f64 / 1e5).round() / 10.0,
        private_each_mb: (private as f64 / SESSIONS as f64 / 1e4).round() / 100.0,
        exact: all.iter().all(|memory| memory.exact),
    }
}
