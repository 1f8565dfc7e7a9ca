//! `sessions`: a call in a live session, checkpoint, fork and rollback, with little and with much
//! state, and the memory of many sessions.

mod many_sessions;
mod over_http;

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use belljar_contract::{Language, RunError};
use belljar_project::{Sandbox, Session};
use tokio::runtime::Runtime;

use super::{Bench, expect_value, row::BenchRow, stats::Times, warm_host_of};

/// Calls that do not count, to warm up.
const WARM_UP: u32 = 20;
/// Each size of the state is timed with this fraction of the requested number.
const CURVE_SHARE: u32 = 10;
/// Time for the host to clean up after an ended guest; it is not part of any measurement.
const REST: Duration = Duration::from_millis(5);
/// Sizes of the state in memory, in MB.
const CURVE: [u64; 3] = [10, 50, 200];

/// Runs all session benchmarks.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let n = bench.arguments.n;
    let (runtime, sandbox) = warm_host_of([])?;
    let mut rows = Vec::new();
    for (language, name) in [(Language::TypeScript, "typescript"), (Language::Python, "python")] {
        bench.progress.show(&format!("sessions: {name}"));
        rows.extend(on(&runtime, small(sandbox.clone(), language, name, n))?);
    }
    for megabytes in CURVE {
        bench.progress.show(&format!("sessions: {megabytes} MB of state"));
        let n = (n / CURVE_SHARE).max(5);
        rows.extend(on(&runtime, with_state(sandbox.clone(), megabytes, n))?);
    }
    runtime.block_on(sandbox.shutdown());
    bench.progress.show("sessions: over HTTP");
    rows.extend(over_http::measure(bench, n)?);
    bench.progress.show("sessions: many at once");
    rows.push(many_sessions::measure()?);
    Ok(rows)
}

/// Measures on a task of the runtime, as a host calls it; waiting on another thread would add time.
fn on(
    runtime: &Runtime,
    measured: impl Future<Output = anyhow::Result<Vec<BenchRow>>> + Send + 'static,
) -> anyhow::Result<Vec<BenchRow>> {
    runtime.block_on(runtime.spawn(measured))?
}

fn session_error(error: RunError) -> anyhow::Error {
    let hint = error.hint.unwrap_or_default();
    anyhow::anyhow!("{} {hint}", error.message)
}

fn row(case: &str, times: &Times) -> BenchRow {
    BenchRow::timed("sessions", case, env!("CARGO_PKG_VERSION"), times)
}

/// Measures a session with almost no state.
async fn small(
    sandbox: Sandbox,
    language: Language,
    name: &str,
    n: u32,
) -> anyhow::Result<Vec<BenchRow>> {
    let session = sandbox.session(language).open().await.map_err(session_error)?;
    let set = session.run("x = 1").await;
    ensure!(set.success, "a run failed: {:?}", set.error);
    let mut calls = Times::default();
    for round in 0..n + WARM_UP {
        let began = Instant::now();
        let result = session.run("x + 1").await;
        let time = began.elapsed();
        expect_value(&result, "2")?;
        if round >= WARM_UP {
            calls.add(time);
        }
    }
    let branches = BranchTimes::measure(&session, n / 2, ("x = 2", "x")).await?;
    let mut rows = vec![row(&format!("belljar {name} call in a session"), &calls)];
    rows.extend(branches.rows(&format!("{name} session")));
    session.destroy().await;
    Ok(rows)
}

/// Measures a session with this much state.
async fn with_state(sandbox: Sandbox, megabytes: u64, n: u32) -> anyhow::Result<Vec<BenchRow>> {
    let session =
        sandbox.session(Language::Python).memory(2 << 30).open().await.map_err(session_error)?;
    let fill =
        format!("x = 1\nstate = bytearray(b'belljar!' * ({megabytes} * 125_000))\nlen(state)");
    let filled = session.run(fill).await;
    expect_value(&filled, &(megabytes * 1_000_000).to_string())?;
    let branches = BranchTimes::measure(&session, n, ("x = 2", "x")).await?;
    session.destroy().await;
    Ok(branches.rows(&format!("python session of {megabytes} MB")))
}

/// Times of the operations on branches.
#[derive(Debug, Default)]
struct BranchTimes {
    checkpoint: Times,
    fork: Times,
    rollback: Times,
}

impl BranchTimes {
    async fn measure(
        session: &Session,
        n: u32,
        (change, read): (&str, &str),
    ) -> anyhow::Result<Self> {
        let mut times = Self::default();
        let mut last = None;
        for _ in 0..n {
            let began = Instant::now();
            let taken = session.checkpoint().await.map_err(session_error)?;
            times.checkpoint.add(began.elapsed());
            last = Some(taken.id);
            tokio::time::sleep(REST).await;
        }
        for _ in 0..n {
            let began = Instant::now();
            let forked = session.fork(1).await.map_err(session_error)?;
            times.fork.add(began.elapsed());
            for fork in forked {
                fork.destroy().await;
            }
            tokio::time::sleep(REST).await;
        }
        let last = last.context("no checkpoint was taken")?;
        for _ in 0..n {
            ensure!(session.run(change).await.success, "a run failed");
            let began = Instant::now();
            session.rollback(&last).await.map_err(session_error)?;
            times.rollback.add(began.elapsed());
            // This run waits until the session has its checkpoint again; the caller of a rollback
            // does not.
            expect_value(&session.run(read).await, "1")?;
        }
        Ok(times)
    }

    fn rows(&self, of: &str) -> Vec<BenchRow> {
        vec![
            row(&format!("belljar {of}, checkpoint"), &self.checkpoint),
            row(&format!("belljar {of}, fork"), &self.fork),
            row(&format!("belljar {of}, rollback"), &self.rollback),
        ]
    }
}
