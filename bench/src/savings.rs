//! `savings`: how much less a model reads with Belljar, on three large results of real MCP servers:
//! a log of 20 MB, 200,000 database rows, and a history of 20,000 commits.
//!
//! The size without Belljar is that of the same call made directly through the same bridge.

mod data;

use std::path::Path;

use anyhow::{Context as _, ensure};
use belljar_contract::{EngineName, Limits, RunRequest};
use belljar_project::{RunDurability, RunResultExt as _, TokenSavings};
use belljar_tools::{RawServer, ServerSpec};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    Bench,
    row::BenchRow,
    tool_host,
    tool_host::{TOOL_TIMEOUT, ToolHost},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A case with one large result.
struct SavingsCase {
    name: &'static str,
    /// The server's name in code, and its program as `scripts/servers` installs it.
    server: &'static str,
    program: &'static str,
    /// The tool that returns the result, and the code that reduces it to the answer.
    tool: &'static str,
    code: &'static str,
    /// Creates the data in a directory and returns the arguments of the server and of the tool.
    make: fn(&Bench<'_>, &Path) -> anyhow::Result<ServerData>,
    /// The field of the answer with the count, and the correct count.
    counted: (&'static str, u64),
}

/// Generated data, as arguments for the server and for the tool.
struct ServerData {
    server: Vec<String>,
    tool: Value,
}

const CASES: [SavingsCase; 3] = [
    SavingsCase {
        name: "belljar filesystem, log of 20 MB",
        server: "filesystem",
        program: "npm/node_modules/.bin/mcp-server-filesystem",
        tool: "read_text_file",
        code: include_str!("savings/log.ts"),
        make: data::log,
        counted: ("lines", data::LOG_LINES),
    },
    SavingsCase {
        name: "belljar sqlite, 200,000 rows",
        server: "sqlite",
        program: "sqlite/bin/mcp-server-sqlite",
        tool: "read_query",
        code: include_str!("savings/rows.ts"),
        make: data::database,
        counted: ("rows", data::ROWS),
    },
    SavingsCase {
        name: "belljar git, 20,000 commits",
        server: "git",
        program: "python/bin/mcp-server-git",
        tool: "git_log",
        code: include_str!("savings/commits.ts"),
        make: data::repository,
        counted: ("commits", data::COMMITS),
    },
];

/// Measures each of the three cases whose server is installed.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<BenchRow>> {
    let mut rows = Vec::new();
    for case in &CASES {
        if bench.arguments.servers.join(case.program).exists() {
            bench.progress.show(&format!("savings: {}", case.name));
            rows.push(case.measure(bench).context(case.name)?);
        } else {
            let reason = "its MCP server is not installed; install it with scripts/servers";
            bench.omissions.left_out(case.name, reason);
        }
    }
    Ok(rows)
}

impl SavingsCase {
    fn measure(&self, bench: &Bench<'_>) -> anyhow::Result<BenchRow> {
        let directory = bench.scratch.path().join(self.server);
        std::fs::create_dir_all(&directory)?;
        let ServerData { server, tool } = (self.make)(bench, &directory)?;
        let spec = self.spec(bench, server)?;
        let around = (directory.as_path(), None);
        let host = ToolHost::new([EngineName::QuickJs], None, vec![spec], around)?;
        let bytes_in = self.read_by_hand(&host, &tool)?;
        let request = RunRequest {
            context: Some(to_raw_value(&tool)?),
            limits: Limits { timeout: TOOL_TIMEOUT, tool_timeout: TOOL_TIMEOUT, ..Limits::DEFAULT },
            ..RunRequest::typescript(self.code)
        };
        let (time, result) = host.run(request, RunDurability::IfAsked)?;
        host.end();
        let answer: Value = result.value()?;
        let (counted, right) = self.counted;
        ensure!(answer.get(counted) == Some(&json!(right)), "the answer is wrong: {answer}");
        Ok(BenchRow {
            n: 1,
            p50_ms: Some(time.as_secs_f64() * 1e3),
            saving: Some(TokenSavings::new(bytes_in, result.result.get().len())),
            ..BenchRow::new("savings", self.name, VERSION)
        })
    }

    fn spec(&self, bench: &Bench<'_>, arguments: Vec<String>) -> anyhow::Result<ServerSpec> {
        let program = std::path::absolute(bench.arguments.servers.join(self.program))?;
        let raw = RawServer {
            command: Some(program.to_string_lossy().into_owned()),
            args: arguments,
            timeout: Some(TOOL_TIMEOUT.as_secs()),
            ..RawServer::default()
        };
        tool_host::spec(self.server, raw, bench.scratch.path())
    }

    /// The size of the result, in bytes, for a client that calls the tool without code.
    fn read_by_hand(&self, host: &ToolHost, arguments: &Value) -> anyhow::Result<usize> {
        let name = format!("{}__{}", self.server, self.tool);
        let answer = host.runtime.block_on(host.call(&name, arguments))?;
        Ok(answer.len())
    }
}
