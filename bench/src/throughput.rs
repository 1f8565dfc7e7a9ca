//! `throughput`: runs per second over a longer time, and whether resource use grows meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::ensure;
use belljar_contract::RunRequest;
use belljar_project::Sandbox;

use super::{
    Bench, expect_value,
    footprint::{Footprint, ResourceUsage},
    peers::Peer,
    row::BenchRow,
    stats::Times,
    warm_host,
};

const CONCURRENCY: usize = 4;
const PEER_CONCURRENCY: usize = 2;
const WARM_UP: usize = 500;
/// Peers are measured for a shorter time: only Belljar must show that nothing grows.
const PEER_SECONDS: u64 = 10;
const SAMPLE: Duration = Duration::from_secs(1);

/// Measures sustained runs per second.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let seconds = bench.arguments.seconds;
    let mut rows = vec![ours(bench, Duration::from_secs(seconds))?];
    if let Some(deno) = &bench.peers.deno {
        bench.progress.show("throughput: deno cold");
        let time = Duration::from_secs(seconds.min(PEER_SECONDS));
        let script = bench.file("throughput.js", "console.log(1+1)\n")?;
        let (times, rate) = peer(deno, &script, time)?;
        let row = BenchRow::timed("throughput", "deno cold", &deno.version, &times);
        rows.push(BenchRow { rate_per_s: Some(rate), ..row });
    }
    Ok(rows)
}

fn ours(bench: &Bench<'_>, time: Duration) -> anyhow::Result<BenchRow> {
    let (runtime, sandbox) = warm_host()?;
    let (times, rate, footprint) = runtime.block_on(async {
        for _ in 0..WARM_UP {
            run(&sandbox).await?;
        }
        let start = at_rest().await;
        let stop = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let lanes: Vec<_> =
            (0..CONCURRENCY).map(|_| tokio::spawn(lane(sandbox.clone(), stop.clone()))).collect();
        let working = watch(bench, began, time).await;
        stop.store(true, Ordering::Relaxed);
        let mut times = Times::default();
        for lane in lanes {
            times.extend(lane.await??);
        }
        let rate = times.count() as f64 / began.elapsed().as_secs_f64();
        let end = at_rest().await;
        anyhow::Ok((times, rate, Footprint::new(start, &working, end)))
    })?;
    runtime.block_on(sandbox.shutdown());
    let row =
        BenchRow::timed("throughput", "belljar typescript", env!("CARGO_PKG_VERSION"), &times);
    Ok(BenchRow { rate_per_s: Some(rate), footprint: Some(footprint), ..row })
}

/// Resource use once the pool is full again and ended cells are reaped.
async fn at_rest() -> ResourceUsage {
    tokio::time::sleep(SAMPLE).await;
    ResourceUsage::now()
}

async fn watch(bench: &Bench<'_>, began: Instant, time: Duration) -> Vec<ResourceUsage> {
    let mut samples = Vec::new();
    while began.elapsed() < time {
        let left = time.saturating_sub(began.elapsed());
        bench.progress.show(&format!("throughput: {} s left", left.as_secs()));
        tokio::time::sleep(SAMPLE.min(left)).await;
        samples.push(ResourceUsage::now());
    }
    samples
}

async fn lane(sandbox: Sandbox, stop: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        times.push(run(&sandbox).await?);
    }
    Ok(times)
}

async fn run(sandbox: &Sandbox) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let result = sandbox.run_request(RunRequest::typescript("1+1")).await;
    expect_value(&result, "2")?;
    Ok(began.elapsed())
}

fn peer(peer: &Peer, script: &std::path::Path, time: Duration) -> anyhow::Result<(Times, f64)> {
    let began = Instant::now();
    let lane = || -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::new();
        while began.elapsed() < time {
            let (time, output) = peer.cold(script, &[])?;
            ensure!(output == "2", "{} answered {output:?}", peer.name);
            times.push(time);
        }
        Ok(times)
    };
    let lanes: Vec<anyhow::Result<Vec<Duration>>> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..PEER_CONCURRENCY).map(|_| scope.spawn(lane)).collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|_| anyhow::bail!("a worker thread panicked")))
            .collect()
    });
    let mut times = Times::default();
    for lane in lanes {
        times.extend(lane?);
    }
    let rate = times.count() as f64 / began.elapsed().as_secs_f64();
    Ok((times, rate))
}
