//! `search`: quality and speed of tool search by intent.
//!
//! Quality needs questions with known answers (`--data`). It has one row for each question set and
//! search method, then averages: over all questions, and over every second question (the second, the
//! fourth, …). Weights are to be chosen on the others; whether a set was used for that at all, this
//! program cannot know. Speed is measured on the same tools, repeated under other server names, or on
//! generated tools.

mod data;
mod plain;
mod quality;
mod speed;

use anyhow::Context as _;

use super::{Bench, row::BenchRow};
use data::QuestionSet;
use quality::{Half, SearchMethod, answers};

pub(super) use quality::Quality;

/// Measures quality, if there are questions, and speed.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let sets = match &bench.arguments.data {
        Some(directory) => QuestionSet::all(directory).context("cannot read the questions")?,
        None => Vec::new(),
    };
    if sets.is_empty() {
        let reason = "no questions with known answers; pass --data DIR with one directory per set";
        bench.omissions.left_out("search quality", reason);
    }
    let mut rows = quality(bench, &sets);
    rows.extend(speed::measure(bench, &sets)?);
    Ok(rows)
}

fn quality(bench: &Bench<'_>, sets: &[QuestionSet]) -> Vec<BenchRow> {
    let (mut of_sets, mut all, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for set in sets {
        for way in SearchMethod::ALL {
            bench.progress.show(&format!("search: {}, {}", set.name, way.name()));
            let Some(answers) = answers(set, way) else { continue };
            let name = format!("search {}", set.name);
            of_sets.push(row(&name, way, answers.len(), Half::Both.mean(&answers)));
            if way != SearchMethod::Hinted {
                all.push((way, answers.len(), Half::Both.mean(&answers)));
                second.push((way, answers.len() / 2, Half::EverySecond.mean(&answers)));
            }
        }
    }
    of_sets.extend(averages("search average", &all));
    of_sets.extend(averages("search average, every second question", &second));
    of_sets
}

/// The mean over question sets; every set has the same weight.
fn averages(name: &str, of_sets: &[(SearchMethod, usize, Quality)]) -> Vec<BenchRow> {
    let average = |way: SearchMethod| {
        let of_way = || of_sets.iter().filter(move |(other, ..)| *other == way);
        let questions = of_way().map(|(_, count, _)| count).sum();
        let mean = Quality::mean(of_way().map(|(.., quality)| *quality));
        of_way().next().map(|_| row(name, way, questions, mean))
    };
    SearchMethod::ALL.into_iter().filter_map(average).collect()
}

fn row(name: &str, way: SearchMethod, questions: usize, quality: Quality) -> BenchRow {
    BenchRow {
        n: questions as u64,
        quality: Some(quality),
        ..BenchRow::new(name, way.name(), env!("CARGO_PKG_VERSION"))
    }
}
