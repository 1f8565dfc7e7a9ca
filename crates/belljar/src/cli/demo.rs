//! `belljar demo`: the story in one command. A thousand commits go in, a small answer comes out, and
//! what a model would have had to read is counted.

mod commits;

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Context as _;
use belljar::{RunRequest, RunResult, Sandbox};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    arguments::DemoArguments,
    json_text::{Layout, lay_out},
    look::{Look, Role},
    print_json,
    quantity::grouped,
    report::{self, Shown, milliseconds},
    run, runtime,
};

const CODE: &str = include_str!("demo/summarise.ts");

/// The usual rule of thumb for English and JSON.
const BYTES_PER_TOKEN: u64 = 4;

/// Wide enough for each of the answer's lists to be one line.
const ANSWER_WIDTH: usize = 136;

/// What the demo found, for programs.
#[derive(Debug, Serialize)]
struct Figures<'a> {
    commits: usize,
    bytes_in: u64,
    bytes_out: u64,
    tokens_in: u64,
    tokens_out: u64,
    saved_percent: f64,
    answer: &'a RawValue,
    run: &'a RunResult,
}

impl<'a> Figures<'a> {
    fn new(bytes_in: usize, run: &'a RunResult) -> Self {
        let (bytes_in, bytes_out) = (bytes_in as u64, run.result.get().len() as u64);
        Self {
            commits: commits::COMMITS,
            bytes_in,
            bytes_out,
            tokens_in: bytes_in.div_ceil(BYTES_PER_TOKEN),
            tokens_out: bytes_out.div_ceil(BYTES_PER_TOKEN),
            saved_percent: percent_saved(bytes_in, bytes_out),
            answer: &run.result,
            run,
        }
    }
}

/// Runs the demo.
pub(crate) fn demo(arguments: DemoArguments) -> anyhow::Result<ExitCode> {
    let context = to_raw_value(&commits::repository()).context("could not make the commits")?;
    let bytes_in = context.get().len();
    let request = RunRequest { context: Some(context), ..RunRequest::typescript(CODE) };
    let result = runtime()?.block_on(async {
        match Sandbox::builder().pool(1).build().await {
            Ok(sandbox) => {
                let result = sandbox.run_request(request).await;
                sandbox.shutdown().await;
                result
            }
            Err(error) => run::refused(&error),
        }
    });
    if arguments.json {
        print_json(&Figures::new(bytes_in, &result))?;
    } else if result.success {
        let text = story(&Figures::new(bytes_in, &result), Look::of_stdout());
        io::stdout().write_all(text.as_bytes())?;
    } else {
        let shown = Shown { code: CODE, name: "summarise.ts" };
        let text = report::about(&result, shown, Look::of_stderr());
        io::stderr().write_all(text.as_bytes())?;
    }
    Ok(if result.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn story(figures: &Figures<'_>, look: Look) -> String {
    let mut text = String::new();
    let heading = |title: &str| look.paint(Role::Strong, title);
    let _ = writeln!(
        text,
        "{} {} commits, {:.1} MB of JSON: more than a model can read\n",
        heading("The data:"),
        grouped(figures.commits as u64),
        figures.bytes_in as f64 / 1e6
    );
    let _ = writeln!(text, "{} what the agent wrote\n", heading("The code:"));
    for line in CODE.lines() {
        let line = if line.is_empty() { String::new() } else { format!("  {line}") };
        let _ = writeln!(text, "{}", look.paint(Role::Dim, &line));
    }
    let _ = writeln!(text, "\n{} what the model gets to read\n", heading("The answer:"));
    let wide = Look { width: ANSWER_WIDTH, ..look };
    for line in lay_out(figures.answer.get(), Layout::Fitted, wide).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\n{}", sums(figures, look));
    text
}

fn sums(figures: &Figures<'_>, look: Look) -> String {
    let row = |name: &str, bytes: u64, tokens: u64| {
        format!("  {name:<5}{:>10} bytes {:>9} tokens", grouped(bytes), grouped(tokens))
    };
    let metrics = figures.run.metrics;
    let isolation = &figures.run.isolation;
    let saved = format!("{:.2} % saved", figures.saved_percent);
    [
        row("in", figures.bytes_in, figures.tokens_in),
        format!(
            "{}   {}",
            row("out", figures.bytes_out, figures.tokens_out),
            look.paint(Role::Good, &saved)
        ),
        String::new(),
        format!(
            "  {} from request to answer, in a cell of its own: {} isolation ({})",
            look.paint(Role::Strong, &milliseconds(metrics.startup_ms + metrics.execution_ms)),
            isolation.tier,
            isolation.engine
        ),
        look.paint(Role::Dim, &format!("  {}", isolation.layers.join(", "))),
    ]
    .join("\n")
}

fn percent_saved(bytes_in: u64, bytes_out: u64) -> f64 {
    let kept = bytes_out as f64 / bytes_in.max(1) as f64;
    // Two decimals, as shown; the JSON should say the same.
    ((1.0 - kept) * 10_000.0).round() / 100.0
}

#[cfg(test)]
mod tests;
