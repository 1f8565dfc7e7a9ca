//! `belljar serve`: an MCP server over standard streams or HTTP, the latter with the HTTP API.
//!
//! Over standard streams only protocol messages go to standard output. Over HTTP the address and
//! the path of the token are printed to standard error once the server listens.

mod grants;
mod notice;
mod telemetry;

use std::{io, io::Write as _, net::SocketAddr, process::ExitCode, sync::Arc};

use anyhow::anyhow;
use belljar_contract::RunError;
use belljar_project::{
    ClientPermissions, ExecutablePermissions, HiddenPaths, Project, ProjectBackend,
    RecordCollector, Sandbox, WorkflowServiceOptions, allow_many_descriptors,
    config::{ConfigLocations, ProjectSettings},
};
use belljar_server::{
    Auth, BearerToken, Gateway, HttpConfig, HttpServer, ServerOptions, Traces, conformance,
    serve_http, serve_stdio,
};
use belljar_tools::Glob;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{
    access::commit_names,
    arguments::{LogFormat, ServeArguments},
    project::executor,
    session::AddressFile,
    signals::SignalListener,
    terminal::{
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// Default budget of an answer to a model, in tokens.
const MAX_OUTPUT_TOKENS: u32 = 2_000;
/// File with the bearer token, in the state directory.
const TOKEN_FILE: &str = "token";
/// File with the key that seals data which clients hand back, in the state directory.
const SEAL_FILE: &str = "seal";

/// Serves until a signal comes or the client disconnects.
pub(crate) fn serve(
    arguments: &ServeArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let permissions = permissions(arguments, settings, locations, project)?;
    // Each session and each client needs some.
    allow_many_descriptors();
    if let Some(format) = arguments.log {
        start_logging(format);
    }
    // Runs of several clients are parallel.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        let mut signals = SignalListener::listen()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = start(arguments, (settings, locations), project, permissions, stop);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            served = &mut serving => served.map(|()| ExitCode::SUCCESS),
            signal = signals.received() => {
                stopped.cancel();
                tokio::select! {
                    served = serving => served?,
                    again = signals.received() => print_forced_stop(again.name()),
                    () = tokio::time::sleep(arguments.stop_within) => {
                        print_forced_stop("the stop took too long");
                    }
                }
                Ok(ExitCode::from(signal.exit_status()))
            }
        }
    });
    // A pending read of standard input cannot be cancelled and must not keep the process alive.
    runtime.shutdown_background();
    code
}

/// Reports that the graceful stop is cut short. Cells end with the process in any case.
fn print_forced_stop(why: &str) {
    let _ = writeln!(io::stderr(), "ending at once: {why}");
}

/// Logs requests and errors. With `--verbose` a log exists already.
fn start_logging(format: LogFormat) {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(LevelFilter::INFO);
    // The MCP library logs whatever a server or client sends.
    let quiet =
        Targets::new().with_default(LevelFilter::INFO).with_target("rmcp", LevelFilter::ERROR);
    let _ = match format {
        LogFormat::Text => log.finish().with(quiet).try_init(),
        LogFormat::Json => log.json().finish().with(quiet).try_init(),
    };
}

async fn start(
    arguments: &ServeArguments,
    (settings, locations): (&ProjectSettings, &ConfigLocations),
    project: &Project,
    permissions: ClientPermissions,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    // The state directory must exist before it is protected, so that the first run cannot see it.
    project.state()?;
    let sandbox = Sandbox::builder()
        .pool(arguments.pool)
        .maximum(settings.maximum)
        .engines(settings.engines.clone())
        .protect(project.protected())
        .reserve_names(Project::RESERVED_NAMES)
        .build()
        .await?;
    let executor = executor(project, sandbox)?;
    if let Some(store) = executor.store() {
        // A host that cannot write its store is useless.
        store.writable()?;
    }
    let backend = Arc::new(ProjectBackend::new(executor.clone(), permissions).await);
    let background = stop.child_token();
    let _ended = background.clone().drop_guard();
    // A host that cannot listen leaves the workflows and records of the project alone.
    let begin = || {
        let (adopting, until) = (backend.clone(), background.clone());
        tokio::spawn(async move { adopting.adopt_workflows(until).await });
        if let Some(store) = executor.store().cloned() {
            let collector =
                RecordCollector::new(store, settings.retention.clone(), locations.scratch());
            let until = background.clone();
            tokio::spawn(async move { collector.run(until).await });
        }
    };
    notice::watch_servers(executor.bridge());
    let served = match arguments.http {
        None => {
            let gateway = Gateway::new(backend.clone(), ServerOptions::default());
            print_left_out_tools(&gateway)?;
            notice::print_stdio(project);
            begin();
            adopt_runs(&gateway);
            serve_stdio(gateway, stop).await.map_err(Into::into)
        }
        Some(address) => {
            let backend = backend.clone();
            serve_at(arguments, project, backend, (address, begin), stop).await
        }
    };
    backend.leave_workflows().await;
    backend.end_sessions().await;
    executor.shutdown().await;
    served
}

async fn serve_at(
    arguments: &ServeArguments,
    project: &Project,
    backend: Arc<ProjectBackend>,
    (address, begin): (SocketAddr, impl FnOnce()),
    stop: CancellationToken,
) -> anyhow::Result<()> {
    AddressFile::remove_stale(&project.state()?);
    let path = project.state()?.join(TOKEN_FILE);
    let token = BearerToken::at(&path)?;
    // A separate key: a client with the token cannot forge what the server has sealed.
    let seal = BearerToken::at(&project.state()?.join(SEAL_FILE))?;
    let secret = Some(seal.reveal().as_bytes().to_vec());
    let traces = telemetry::collector()?.map(Traces::to);
    let options = ServerOptions { secret, traces: traces.clone(), ..ServerOptions::default() };
    let gateway = Gateway::new(backend, options);
    print_left_out_tools(&gateway)?;
    let adopting = gateway.clone();
    let auth = if arguments.conformance { Auth::Open } else { Auth::Token(token) };
    let mut config = HttpConfig::new(address, auth);
    config.allowed.hosts.clone_from(&arguments.allow_host);
    config.allowed.origins.clone_from(&arguments.allow_origin);
    let server: HttpServer = match arguments.conformance {
        true => conformance::serve_http(gateway, config).await?,
        false => serve_http(gateway, config).await?,
    };
    begin();
    adopt_runs(&adopting);
    // `belljar session` finds the host by this file.
    let _found_by = AddressFile::write(&project.state()?, server.address())?;
    notice::print_address(&server, &path.display().to_string())?;
    stop.cancelled().await;
    server.shutdown().await;
    if let Some(traces) = traces {
        traces.flush().await;
    }
    Ok(())
}

/// Names the tools that could not be passed through.
fn print_left_out_tools(gateway: &Gateway<ProjectBackend>) -> anyhow::Result<()> {
    let style = TextStyle::of_stderr();
    for fault in gateway.left_out() {
        let warning = style.paint(TextRole::Bad, "warning");
        writeln!(io::stderr(), "{warning}: {}", visible(&fault.to_string()))?;
    }
    Ok(())
}

/// Resumes abandoned durable runs for as long as this host serves.
fn adopt_runs(gateway: &Gateway<ProjectBackend>) {
    let gateway = gateway.clone();
    tokio::spawn(async move { gateway.resume_runs().await });
}

fn permissions(
    arguments: &ServeArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
    project: &Project,
) -> anyhow::Result<ClientPermissions> {
    let tools = project.tools();
    let workflows = settings.workflows.serve.then(|| WorkflowServiceOptions {
        code: settings.workflows.code,
        scratch: locations.scratch(),
        hidden: HiddenPaths {
            names: Project::RESERVED_NAMES.map(str::to_owned).to_vec(),
            paths: project.protected(),
        },
        max_running: settings.workflows.max_running,
        max_queued: settings.workflows.max_queued,
    });
    Ok(ClientPermissions {
        limits: settings.limits(arguments.limits.given()),
        grants: grants::allowed(arguments, &settings.grants, &locations.variables)?,
        hosts: grants::hosts(arguments, &settings.net, &locations.variables)?,
        commit_executable: ExecutablePermissions {
            always: settings.commit_executable.clone(),
            on_request: commit_names(&arguments.commit_executable)
                .map_err(|refused| with_hint(&refused))?,
        },
        max_output_tokens: tools.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS),
        cache: tools.cache,
        caller: match arguments.http {
            Some(_) => "mcp over http".to_owned(),
            None => "mcp over stdio".to_owned(),
        },
        pass_through: arguments.pass_through.iter().map(Glob::new).collect(),
        workflows,
    })
}

/// An error with its hint, in the form of `belljar run`.
fn with_hint(refused: &RunError) -> anyhow::Error {
    match &refused.hint {
        Some(hint) => anyhow!("{}\nhint: {hint}", refused.message),
        None => anyhow!("{}", refused.message),
    }
}
