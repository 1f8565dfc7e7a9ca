//! Search speed: latency of a search, time to build an index, and time to load the embedding table.

use std::{collections::HashSet, time::Instant};

use anyhow::Context as _;
use belljar_search::{Document, Index, Query, VectorTable};

use super::{
    super::{Bench, random::SeededRandom, row::BenchRow, stats::Times},
    data::{QuestionSet, SearchTool},
    quality::K,
};

const BENCH: &str = "search speed";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// How often to repeat steps that happen once per program.
const FEW: usize = 20;
const THINGS: [&str; 12] = [
    "file", "mail", "commit", "invoice", "weather", "route", "image", "ticket", "stock", "song",
    "calendar", "page",
];
const VERBS: [&str; 8] = ["read", "send", "list", "create", "search", "delete", "convert", "plan"];

/// Measures searching, building, saving and loading.
pub(super) fn measure(bench: &Bench<'_>, sets: &[QuestionSet]) -> anyhow::Result<Vec<BenchRow>> {
    let mut start = Times::default();
    for _ in 0..FEW {
        let began = Instant::now();
        let table = VectorTable::load();
        start.add(began.elapsed());
        anyhow::ensure!(!table.is_empty(), "the embedding table is empty");
    }
    let mut rows = vec![BenchRow::timed(BENCH, "belljar table at the start", VERSION, &start)];
    let made_up = made_up();
    let mut tools: Vec<&SearchTool> = match sets {
        [] => made_up.iter().collect(),
        sets => sets.iter().flat_map(|set| &set.tools).collect(),
    };
    // Sets may share tools, and an index holds each tool once.
    let mut seen = HashSet::new();
    tools.retain(|tool| seen.insert((&tool.server, &tool.name)));
    let asked = questions(sets);
    for size in SIZES {
        bench.progress.show(&format!("search: {size} tools"));
        rows.extend(at(size, &tools, &asked, bench)?);
    }
    Ok(rows)
}

fn at(
    size: usize,
    tools: &[&SearchTool],
    asked: &[String],
    bench: &Bench<'_>,
) -> anyhow::Result<Vec<BenchRow>> {
    let documents = (0..size).zip(tools.iter().cycle());
    let servers: Vec<String> = documents
        .clone()
        .map(|(at, tool)| format!("{} {}", tool.server, at / tools.len()))
        .collect();
    // Only the index is timed, not the creation of its input.
    let documents: Vec<Document<'_>> = documents
        .zip(&servers)
        .map(|((_, tool), server)| Document { server, ..tool.document() })
        .collect();
    let began = Instant::now();
    let index = Index::new(documents);
    let built = began.elapsed();
    let count = index.len();
    let name = |what: &str| format!("belljar {what}, {count} tools");
    let mut searches = Times::default();
    for question in asked {
        let began = Instant::now();
        index.search(&Query::new(question, K));
        searches.add(began.elapsed());
    }
    let file = bench.scratch.path().join("tools.index");
    index.save(&file).context("cannot write an index")?;
    let began = Instant::now();
    let loaded = Index::load(&file)?;
    let mut load = Times::default();
    load.add(began.elapsed());
    anyhow::ensure!(loaded.len() == count, "the index that was read differs from the one written");
    let rate = count as f64 / built.as_secs_f64();
    Ok(vec![
        BenchRow::timed(BENCH, &name("search"), VERSION, &searches),
        BenchRow {
            n: 1,
            p50_ms: Some(built.as_secs_f64() * 1e3),
            rate_per_s: Some(rate),
            ..BenchRow::new(BENCH, &name("making the index"), VERSION)
        },
        BenchRow::timed(BENCH, &name("loading it"), VERSION, &load),
    ])
}

/// Some questions of every set, or generated ones.
fn questions(sets: &[QuestionSet]) -> Vec<String> {
    const OF_EACH: usize = 100;
    if sets.is_empty() {
        let mut random = SeededRandom::new(7);
        let sentence =
            |_| format!("{} the {} of today", random.one_of(&VERBS), random.one_of(&THINGS));
        return (0..OF_EACH).map(sentence).collect();
    }
    let some = sets.iter().flat_map(|set| set.questions.iter().take(OF_EACH));
    some.map(|question| question.query.clone()).collect()
}

fn made_up() -> Vec<SearchTool> {
    let mut random = SeededRandom::new(11);
    let tool = |number| {
        let (verb, thing) = (random.one_of(&VERBS), random.one_of(&THINGS));
        let other = random.one_of(&THINGS);
        SearchTool::new(
            &format!("{thing}-server-{}", number % 40),
            &format!("{verb}_{thing}_{number}"),
            &format!("Lets a program {verb} one {thing} or more, with its {other}, as a list"),
        )
    };
    (0..2_000).map(tool).collect()
}
