//! `json`: 10 MB of JSON as input, parsed, filtered and grouped into a small answer.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use belljar_contract::RunRequest;
use belljar_project::Sandbox;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Bench, random::SeededRandom, row::BenchRow, stats::Times, warm_host};

/// `json` times a tenth as many runs as `start`: each takes hundreds of times as long.
pub(super) const FEWER: u32 = 10;
pub(super) const WARM_UP: usize = 3;
const BYTES: usize = 10_000_000;
const DATA_FILE: &str = "records.json";

/// The code that every runtime runs; `records` holds the parsed input.
pub(super) const WORK: &str = "const groups = {};
for (const record of records.filter((r) => r.status === 'paid' && r.amount > 100)) {
  const group = (groups[record.region] ??= { count: 0, total: 0 });
  group.count += 1;
  group.total += record.amount;
}
const answer = Object.entries(groups).sort((a, b) => b[1].total - a[1].total).slice(0, 3);
";

#[derive(Serialize)]
struct SampleRecord {
    id: usize,
    region: &'static str,
    status: &'static str,
    amount: usize,
    customer: String,
    note: &'static str,
}

/// Measures the time from request to result with 10 MB of input.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let n = bench.arguments.n.div_ceil(FEWER);
    let data = data(bench)?;
    let (runtime, sandbox) = warm_host()?;
    let mut ours = Times::default();
    let mut answer = String::new();
    for _ in 0..WARM_UP {
        answer = runtime.block_on(run(&sandbox, &data))?.1;
    }
    let mut theirs = DenoTimes::new(bench)?;
    for round in 0..n {
        bench.progress.show(&format!("json: round {} of {n}", round + 1));
        let (time, _) = runtime.block_on(run(&sandbox, &data))?;
        ours.add(time);
        theirs.round(bench, data.get().as_bytes(), &answer)?;
    }
    runtime.block_on(sandbox.shutdown());
    let mut rows =
        vec![BenchRow::timed("json", "belljar typescript", env!("CARGO_PKG_VERSION"), &ours)];
    rows.extend(theirs.into_rows(bench, "json"));
    Ok(rows)
}

async fn run(sandbox: &Sandbox, data: &RawValue) -> anyhow::Result<(Duration, String)> {
    let code = format!("const records = context;\n{WORK}return answer;");
    let request = RunRequest { context: Some(data.to_owned()), ..RunRequest::typescript(code) };
    let began = Instant::now();
    let result = sandbox.run_request(request).await;
    let time = began.elapsed();
    match result.error {
        None => Ok((time, result.result.get().to_owned())),
        Some(error) => bail!("the run failed: {}", error.message),
    }
}

/// Deno on the same data, read from its standard input.
pub(super) struct DenoTimes {
    cold_script: std::path::PathBuf,
    warm_script: std::path::PathBuf,
    cold: Times,
    warm: Times,
}

impl DenoTimes {
    pub(super) fn new(bench: &Bench<'_>) -> anyhow::Result<Self> {
        let read = "const records = JSON.parse(await new Response(Deno.stdin.readable).text());\n";
        let script = format!("{read}{WORK}console.log(JSON.stringify(answer));\n");
        Ok(Self {
            cold_script: bench.file("json_cold.js", &script)?,
            warm_script: bench.file("json_warm.js", &format!("console.log('ready');\n{script}"))?,
            cold: Times::default(),
            warm: Times::default(),
        })
    }

    /// Times a new process and a pre-started one, once each.
    pub(super) fn round(
        &mut self,
        bench: &Bench<'_>,
        data: &[u8],
        expected: &str,
    ) -> anyhow::Result<()> {
        let Some(deno) = &bench.peers.deno else { return Ok(()) };
        let waiting = deno.warm(&self.warm_script)?;
        let (cold, first) = deno.cold(&self.cold_script, data)?;
        let (warm, second) = waiting.answer(data)?;
        ensure!(first == expected && second == expected, "deno answered {first:?}, {second:?}");
        self.cold.add(cold);
        self.warm.add(warm);
        Ok(())
    }

    /// Rows for a benchmark of this name, one per case.
    pub(super) fn into_rows(self, bench: &Bench<'_>, name: &str) -> Vec<BenchRow> {
        let Some(deno) = &bench.peers.deno else { return Vec::new() };
        vec![
            BenchRow::timed(name, "deno warm", &deno.version, &self.warm),
            BenchRow::timed(name, "deno cold", &deno.version, &self.cold),
        ]
    }
}

/// The records: from `--data`, else 10 MB of generated ones.
pub(super) fn data(bench: &Bench<'_>) -> anyhow::Result<Box<RawValue>> {
    let Some(directory) = &bench.arguments.data else { return made_up() };
    let path = directory.join(DATA_FILE);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    RawValue::from_string(text).with_context(|| format!("{} is not JSON", path.display()))
}

fn made_up() -> anyhow::Result<Box<RawValue>> {
    let mut random = SeededRandom::new(0x5eed);
    let mut text = "[".to_owned();
    for id in 0.. {
        let record = SampleRecord {
            id,
            region: random.one_of(&["north", "south", "east", "west", "centre"]),
            status: random.one_of(&["paid", "paid", "open", "void"]),
            amount: random.below(5_000),
            customer: format!("customer-{}", random.below(20_000)),
            note: random.one_of(&["", "gift", "second delivery on the same day", "call first"]),
        };
        text.push_str(&serde_json::to_string(&record)?);
        if text.len() >= BYTES {
            break;
        }
        text.push(',');
    }
    text.push(']');
    Ok(RawValue::from_string(text)?)
}
