//! `belljar demo`: code calls a tool of an MCP server, reads a thousand commits and returns a small
//! answer. The demo shows how much a model would have had to read instead.

mod commits;
mod random;
mod server;
mod setup;

use std::{fmt::Write as _, io, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use belljar_contract::RunResult;
use belljar_project::{
    TokenSavings,
    config::quantity::{grouped, milliseconds},
};
use serde::Serialize;
use serde_json::value::RawValue;
use setup::DemoRun;

use super::{
    arguments::DemoArguments,
    print_json, report,
    report::{FrameSource, PrintedParts},
    runtime,
    terminal::{
        json_text::{Layout, lay_out},
        style::{TextRole, TextStyle},
    },
};

const CODE: &str = include_str!("demo/summarise.ts");

/// Wide enough for each list of the answer to fit on one line.
const ANSWER_WIDTH: usize = 136;

/// The demo's figures in the JSON output.
#[derive(Debug, Serialize)]
struct Figures<'a> {
    commits: usize,
    #[serde(flatten)]
    saving: TokenSavings,
    /// Type declaration of the tool, as the code sees it.
    tool: String,
    answer: &'a RawValue,
    run: &'a RunResult,
}

/// Runs `belljar demo`: one run that reads much and returns little, with the sizes of both.
pub(crate) fn demo(arguments: DemoArguments) -> anyhow::Result<ExitCode> {
    let DemoRun { types, run, stop } = runtime()?.block_on(setup::perform(CODE))?;
    let data = serde_json::to_string(&commits::repository())
        .context("cannot serialize the demo's data")?;
    let figures = Figures {
        commits: commits::COMMITS,
        saving: TokenSavings::new(data.len(), run.result.get().len()),
        tool: types,
        answer: &run.result,
        run: &run,
    };
    if arguments.json {
        print_json(&figures)?;
    } else if run.success {
        let text = story(&figures, TextStyle::of_stdout());
        io::stdout().write_all(text.as_bytes())?;
    } else {
        let shown = FrameSource { code: CODE, name: "summarise.ts" };
        let text = report::about(&run, shown, PrintedParts::NONE, TextStyle::of_stderr());
        io::stderr().write_all(text.as_bytes())?;
    }
    Ok(match stop {
        Some(stop) => ExitCode::from(stop.exit_status()),
        None if run.success => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// Runs the demo's MCP server, which the demo starts as a child process.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    runtime()?.block_on(server::serve())?;
    Ok(ExitCode::SUCCESS)
}

fn story(figures: &Figures<'_>, style: TextStyle) -> String {
    let mut text = String::new();
    let heading = |title: &str| style.paint(TextRole::Strong, title);
    let quote = |text: &mut String, quoted: &str| {
        for line in quoted.lines() {
            let line = if line.is_empty() { String::new() } else { format!("  {line}") };
            let _ = writeln!(text, "{}", style.paint(TextRole::Dim, &line));
        }
    };
    let _ = writeln!(text, "{} as the code sees it, from its MCP server\n", heading("The tool:"));
    quote(&mut text, &figures.tool);
    let _ = writeln!(
        text,
        "\n{} {} commits, {:.1} MB of JSON: more than a model can read\n",
        heading("The data:"),
        grouped(figures.commits as u64),
        figures.saving.bytes_in as f64 / 1e6
    );
    let _ = writeln!(text, "{} what the agent wrote\n", heading("The code:"));
    quote(&mut text, CODE);
    let _ = writeln!(text, "\n{} what the model reads instead\n", heading("The answer:"));
    let wide = TextStyle { width: ANSWER_WIDTH, ..style };
    for line in lay_out(figures.answer.get(), Layout::Fitted, wide).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\n{}", sums(figures, style));
    text
}

fn sums(figures: &Figures<'_>, style: TextStyle) -> String {
    let row = |name: &str, bytes: u64, tokens: u64| {
        format!("  {name:<5}{:>10} bytes {:>9} tokens", grouped(bytes), grouped(tokens))
    };
    let saving = figures.saving;
    let metrics = figures.run.metrics;
    let isolation = &figures.run.isolation;
    let saved = format!("{:.2} % saved", saving.saved_percent);
    [
        row("in", saving.bytes_in, saving.tokens_in),
        format!(
            "{}   {}",
            row("out", saving.bytes_out, saving.tokens_out),
            style.paint(TextRole::Good, &saved)
        ),
        String::new(),
        format!(
            "  {} from request to answer, including the tool call, in a fresh cell: {} isolation \
             ({})",
            style.paint(TextRole::Strong, &milliseconds(metrics.startup_ms + metrics.execution_ms)),
            isolation.tier,
            isolation.engine
        ),
        style.paint(TextRole::Dim, &format!("  {}", isolation.layers.join(", "))),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests;
