//! `start`: from request to result of `1+1`, one run after the other.
//!
//! In the case `belljar typescript` the host has had 3 ms to park a new cell, just as a pre-started
//! peer is already waiting. `back to back` sends the next request at once and so measures how fast
//! cells are replaced.
//!
//! Belljar and the peers take turns, so that a busy moment of the machine affects all of them.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use belljar_contract::RunRequest;
use belljar_project::Sandbox;

use super::{
    Bench, expect_value,
    peers::{Peer, time_program},
    program,
    rounds::{Frequency, share},
    row::BenchRow,
    stats::Times,
    warm_host,
};

const WARM_UP: u32 = 50;
const ROUNDS: u32 = 50;

/// Long enough for the host to remove the used cell and park another one.
const REST: Duration = Duration::from_millis(3);

const CODE: &str = "1+1";
/// The script of a pre-started Deno: it waits for code, runs it once and exits.
pub(super) const WARM_SCRIPT: &str = "console.log('ready');
const code = await new Response(Deno.stdin.readable).text();
console.log(await new Function('return (async () => (' + code + '))()')());
";

/// Measures the time from request to result.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let n = bench.arguments.n;
    let rounds = ROUNDS.min(n);
    let script = bench.file("one_plus_one.js", "console.log(1+1)\n")?;
    let warm_script = bench.file("warm.js", WARM_SCRIPT)?;
    let (runtime, sandbox) = warm_host()?;
    runtime.block_on(runs(&sandbox, WARM_UP, Pace::BackToBack))?;

    let mut cases = Cases::new(bench);
    for round in 0..rounds {
        bench.progress.show(&format!("start: round {} of {rounds}", round + 1));
        let ours = share(n, round, rounds);
        let theirs = share(Frequency::Less.of(n), round, rounds);
        let times = runtime.block_on(runs(&sandbox, ours, Pace::BackToBack))?;
        cases.back_to_back.extend(times);
        let times = runtime.block_on(runs(&sandbox, ours, Pace::Apart))?;
        cases.apart.extend(times);
        cases.peers_round(theirs, &script, &warm_script)?;
    }
    runtime.block_on(sandbox.shutdown());
    Ok(cases.into_rows())
}

/// The pause before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// None: parking new cells competes with running code.
    BackToBack,
    /// Long enough that each request finds a full pool, just as a pre-started peer is already
    /// waiting.
    Apart,
}

async fn runs(sandbox: &Sandbox, n: u32, pace: Pace) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..n {
        if pace == Pace::Apart {
            tokio::time::sleep(REST).await;
        }
        let request = RunRequest::typescript(CODE);
        let began = Instant::now();
        let result = sandbox.run_request(request).await;
        times.push(began.elapsed());
        expect_value(&result, "2")?;
    }
    Ok(times)
}

/// The times of each case.
struct Cases<'a> {
    bench: &'a Bench<'a>,
    back_to_back: Times,
    apart: Times,
    one_shot: Times,
    deno_warm: Times,
    cold: Vec<(&'a Peer, Times)>,
}

impl<'a> Cases<'a> {
    fn new(bench: &'a Bench<'a>) -> Self {
        Self {
            bench,
            back_to_back: Times::default(),
            apart: Times::default(),
            one_shot: Times::default(),
            deno_warm: Times::default(),
            cold: bench.peers.found().map(|peer| (peer, Times::default())).collect(),
        }
    }

    fn peers_round(&mut self, n: u32, script: &Path, warm_script: &Path) -> anyhow::Result<()> {
        let deno = self.bench.peers.deno.as_ref();
        let waiting = deno
            .map(|deno| (0..n).map(|_| deno.warm(warm_script)).collect::<Result<Vec<_>, _>>())
            .transpose()?;
        let belljar = program::belljar()?;
        for _ in 0..n {
            let arguments = ["run", "-c", "return 1", "--json"];
            let (time, output) = time_program(&belljar, &arguments)?;
            ensure!(output.contains("\"success\": true"), "the one-shot run failed: {output}");
            self.one_shot.add(time);
            for (peer, times) in &mut self.cold {
                let (time, output) = peer.cold(script, &[])?;
                ensure!(output == "2", "{} answered {output:?}", peer.name);
                times.add(time);
            }
        }
        for waiting in waiting.into_iter().flatten() {
            let (time, output) = waiting.answer(CODE.as_bytes())?;
            ensure!(output == "2", "the pre-started deno answered {output:?}");
            self.deno_warm.add(time);
        }
        Ok(())
    }

    fn into_rows(self) -> Vec<BenchRow> {
        let version = env!("CARGO_PKG_VERSION");
        let mut rows = vec![
            BenchRow::timed("start", "belljar typescript", version, &self.apart),
            BenchRow::timed(
                "start",
                "belljar typescript, back to back",
                version,
                &self.back_to_back,
            ),
            BenchRow::timed("start", "belljar one-shot", version, &self.one_shot),
        ];
        if let Some(deno) = &self.bench.peers.deno {
            rows.push(BenchRow::timed("start", "deno warm", &deno.version, &self.deno_warm));
        }
        for (peer, times) in &self.cold {
            rows.push(BenchRow::timed(
                "start",
                &format!("{} cold", peer.name),
                &peer.version,
                times,
            ));
        }
        rows
    }
}
