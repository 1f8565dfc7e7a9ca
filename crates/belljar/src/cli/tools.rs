//! `belljar tools`: lists, describes, searches and calls the tools of a project's MCP servers.

mod call;
mod describe;
mod list;
mod search;

use std::{
    future::Future,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

use belljar_project::config::{ConfigLocations, ProjectSettings};
use belljar_project::{Acceptance, Project};
use belljar_runtime::ToolFault;
use belljar_store::Store;
use belljar_tools::{Bridge, Catalogue, UpstreamError};

use super::{
    arguments::{ToolsAcceptArguments, ToolsCommand},
    project::open_store,
    runtime,
    signals::SignalListener,
    terminal::{
        progress::with_progress,
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// How long servers may take to list their tools. Longer than in a running host: most of them are
/// only just being started.
const LISTED: Duration = Duration::from_secs(30);

/// How to configure the first server.
const NO_SERVERS: &str = "\
add servers to .mcp.json, or under [mcp_servers] in belljar.toml, for example in .mcp.json:
  {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}}";

/// Runs `belljar tools`: lists, describes, searches and calls tools, without a sandbox.
pub(crate) fn tools(
    command: &ToolsCommand,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
) -> anyhow::Result<ExitCode> {
    let project = Project::find(locations, settings)?;
    if !project.has_servers() {
        writeln!(io::stderr(), "no MCP servers are configured; {NO_SERVERS}")?;
    }
    if let ToolsCommand::Accept(arguments) = command {
        return accept(arguments, &project);
    }
    let access = ToolAccess::open(&project)?;
    runtime()?.block_on(async {
        let mut signals = SignalListener::listen()?;
        let work = async {
            match command {
                ToolsCommand::Accept(arguments) => accept(arguments, &project),
                ToolsCommand::List(arguments) => list::list(arguments, settings, &access).await,
                ToolsCommand::Describe(arguments) => describe::describe(arguments, &access).await,
                ToolsCommand::Types(arguments) => describe::types(arguments, &access).await,
                ToolsCommand::Call(arguments) => {
                    call::call(arguments, settings, &project, &access).await
                }
                ToolsCommand::Search(arguments) => search::search(arguments, &access).await,
            }
        };
        let done = tokio::select! {
            done = work => done,
            signal = signals.received() => Ok(ExitCode::from(signal.exit_status())),
        };
        tokio::select! {
            () = access.close() => {}
            _ = signals.received() => {}
        }
        done
    })
}

/// Accepts a server of the project, or takes that back.
fn accept(arguments: &ToolsAcceptArguments, project: &Project) -> anyhow::Result<ExitCode> {
    let server = &arguments.server;
    let (accepts, text) = match arguments.retract {
        false => (
            Acceptance::Accepted,
            "is accepted with its present configuration: its read-only tools no longer ask",
        ),
        true => (Acceptance::Retracted, "is no longer accepted"),
    };
    project.accept(server, accepts)?;
    writeln!(io::stdout(), "server {} {text}", visible(server))?;
    Ok(ExitCode::SUCCESS)
}

/// The servers, and the store for approvals and audit.
#[derive(Debug)]
struct ToolAccess {
    bridge: Bridge,
    /// `None` without servers: then there is nothing to store.
    store: Option<Store>,
}

impl ToolAccess {
    fn open(project: &Project) -> anyhow::Result<Self> {
        let store = project.has_servers().then(|| open_store(project)).transpose()?;
        Ok(Self { bridge: project.bridge(store.clone())?, store })
    }

    /// Waits for work that may start servers, and says so if it takes long.
    async fn waiting<T>(&self, work: impl Future<Output = T>) -> T {
        let notice = || format!("starting MCP servers: {}", self.bridge.servers().join(", "));
        with_progress(notice, work).await
    }

    /// The tools of one server or of all, and the servers that failed.
    async fn catalogue(&self, server: Option<&str>) -> (Catalogue, Vec<UpstreamError>) {
        let Some(server) = server else {
            return self.waiting(self.bridge.catalogue_within(LISTED)).await;
        };
        match self.waiting(self.bridge.catalogue_of(server)).await {
            Ok(catalogue) => (catalogue, Vec::new()),
            Err(error) => (Catalogue::new(Vec::new()), vec![error]),
        }
    }

    async fn close(&self) {
        self.bridge.shutdown().await;
        if let Some(store) = &self.store {
            let _ = store.flush().await;
        }
    }
}

/// Prints the servers that failed, with the reasons.
pub(super) fn print_failures(failures: &[UpstreamError]) -> io::Result<()> {
    let style = TextStyle::of_stderr();
    for failure in failures {
        writeln!(
            io::stderr(),
            "{}: {}",
            style.paint(TextRole::Bad, "error"),
            visible(&failure.to_string())
        )?;
        if let UpstreamError::NotStarted { log, .. } = failure {
            for line in log.lines() {
                writeln!(io::stderr(), "  | {}", visible(line))?;
            }
        }
        if let Some(hint) = failure.hint() {
            print_hint(&hint, style)?;
        }
    }
    Ok(())
}

/// Prints why a call failed.
fn print_fault(fault: &ToolFault) -> io::Result<()> {
    let style = TextStyle::of_stderr();
    let kind = format!("{:?}", fault.code.kind());
    let (kind, message) = (style.paint(TextRole::Bad, &kind), visible(&fault.message));
    writeln!(io::stderr(), "{kind}: {message} ({})", fault.code.as_str())?;
    fault.hint.as_ref().map_or(Ok(()), |hint| print_hint(hint, style))
}

fn print_hint(hint: &str, style: TextStyle) -> io::Result<()> {
    writeln!(io::stderr(), "{}: {}", style.paint(TextRole::Accent, "hint"), visible(hint))
}

/// The first line of a description.
fn first_line(text: Option<&str>) -> String {
    let line = text.unwrap_or_default().trim().lines().next().unwrap_or_default();
    visible(line).replace('\t', " ")
}
