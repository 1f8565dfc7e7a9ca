//! The notices of `serve` on standard error: how to connect, what code can call, and which servers do not work.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use anyhow::Context as _;
use belljar_project::Project;
use belljar_server::HttpServer;
use belljar_tools::{Bridge, Catalogue, UpstreamError};

use crate::cli::{
    project::command_in,
    terminal::{
        style::{TextRole, TextStyle},
        visible::visible,
    },
    tools::print_failures,
};

/// Longer than in a search: a server may have to be downloaded first.
const LISTED: Duration = Duration::from_secs(90);

/// Tells a person who started the server by hand that it waits for a client.
pub(super) fn print_stdio(project: &Project) {
    if !io::stdin().is_terminal() {
        return;
    }
    let command = command_in(project);
    let _ = writeln!(
        io::stderr(),
        "serving MCP on standard input and output, for one client, which starts it itself with:\n  \
         {command} serve\n\
         docs/clients.md has the configuration of common clients; `belljar serve --http 8420` serves \
         over HTTP; Ctrl-C ends this server"
    );
}

/// Names the address and the token of an HTTP server; on a terminal, also how to use them.
pub(super) fn print_address(server: &HttpServer, token: &str) -> anyhow::Result<()> {
    let style = TextStyle::of_stderr();
    let base = format!("http://{}", server.address());
    let address = style.paint(TextRole::Strong, &format!("{base}/mcp"));
    let mut text = format!("listening on {address}; the bearer token is in {token}\n");
    if style.is_terminal() {
        text.push_str(&format!(
            "MCP clients: {base}/mcp, others: {base}/v1 (described at {base}/openapi.json); both with \
             the header\n  Authorization: Bearer TOKEN\nCtrl-C ends this server\n"
        ));
    }
    io::stderr().write_all(text.as_bytes()).context("cannot write to standard error")
}

/// Names the servers that do not work, as soon as that is known, and on a terminal also the tools of the
/// others. Servers whose tools are known from earlier are not started.
pub(super) fn watch_servers(bridge: Option<&Bridge>) {
    let Some(bridge) = bridge.cloned() else { return };
    tokio::spawn(async move {
        let (catalogue, failures) = bridge.catalogue_within(LISTED).await;
        let broken: Vec<UpstreamError> = failures.into_iter().filter(is_broken).collect();
        if io::stderr().is_terminal() {
            let _ = writeln!(io::stderr(), "{}", tools_text(&catalogue, &broken));
        }
        for server in broken.iter().map(UpstreamError::server) {
            let _ = writeln!(io::stderr(), "MCP server {} does not work:", visible(server));
        }
        let _ = print_failures(&broken);
    });
}

/// How many tools code can call, of which servers.
fn tools_text(catalogue: &Catalogue, broken: &[UpstreamError]) -> String {
    let count = |server: &str| catalogue.tools_of(server).count();
    let servers = catalogue.servers().map(|name| format!("{} ({})", visible(name), count(name)));
    let servers: Vec<String> = servers.collect();
    if servers.is_empty() {
        let why = match broken {
            [] => "no MCP servers are configured in .mcp.json or belljar.toml",
            [..] => "no MCP server works",
        };
        return format!("code can call no tools: {why}");
    }
    format!("code can call the tools of {}; `belljar tools list` lists them", servers.join(", "))
}

/// Whether the failure is the server's own, not the end of this host.
fn is_broken(failure: &UpstreamError) -> bool {
    !matches!(failure, UpstreamError::ShutDown { .. })
}
