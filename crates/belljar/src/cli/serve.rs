//! `belljar serve`: Belljar as an MCP server, over standard streams or HTTP, there with a plain API.
//!
//! Over standard streams nothing but the protocol goes to standard output. Over HTTP the address
//! and where the token is are said on standard error, once it listens.

mod telemetry;

use std::{env, io, io::Write as _, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context as _, anyhow};
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
    access::{commit_names, existing},
    arguments::{LogFormat, ServeArguments},
    project::executor,
    session::AddressFile,
    signals::SignalListener,
    terminal::{
        style::{TextRole, TextStyle},
        visible::visible,
    },
};

/// The most an answer costs a client that does not say what it can afford.
const MAX_OUTPUT_TOKENS: u32 = 10_000;
/// The file with the token, in the project's state.
const TOKEN_FILE: &str = "token";
/// The file with the key of what clients are given to bring back, there too.
const SEAL_FILE: &str = "seal";

/// Serves until told to stop, or until the client goes away.
pub(crate) fn serve(
    arguments: &ServeArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
    project: &Project,
) -> anyhow::Result<ExitCode> {
    let permissions = permissions(arguments, settings, locations, project)?;
    // Each session and each client has some.
    allow_many_descriptors();
    if let Some(format) = arguments.log {
        start_logging(format);
    }
    // Runs of several clients go on side by side.
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
                    () = tokio::time::sleep(arguments.stop_within) => print_forced_stop("it took too long"),
                }
                Ok(ExitCode::from(signal.exit_status()))
            }
        }
    });
    // A read of standard input cannot be given up, and must not keep the process.
    runtime.shutdown_background();
    code
}

/// Says that what should have ended politely did not. Cells end with the process in any case.
fn print_forced_stop(why: &str) {
    let _ = writeln!(io::stderr(), "ending at once: {why}");
}

/// Requests as they are answered, and what went wrong. With `--verbose` there is a log already.
fn start_logging(format: LogFormat) {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(LevelFilter::INFO);
    // The library of the protocol logs whatever a server or a client makes it log.
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
    // There before it is protected, so that it is from the first run on.
    project.state()?;
    let sandbox = Sandbox::builder()
        .pool(arguments.pool)
        .maximum(settings.maximum)
        .protect(project.protected())
        .reserve_names(Project::RESERVED_NAMES)
        .build()
        .await?;
    let executor = executor(project, sandbox)?;
    if let Some(store) = executor.store() {
        // A host that can keep nothing is of no use.
        store.writable()?;
    }
    let backend = Arc::new(ProjectBackend::new(executor.clone(), permissions).await);
    let (adopting, adopts) = (backend.clone(), stop.child_token());
    let _ended = adopts.clone().drop_guard();
    let until = adopts.clone();
    tokio::spawn(async move { adopting.adopt_workflows(until).await });
    if let Some(store) = executor.store().cloned() {
        let collector =
            RecordCollector::new(store, settings.retention.clone(), locations.scratch());
        let stop = adopts.clone();
        tokio::spawn(async move { collector.run(stop).await });
    }
    let served = match arguments.http {
        None => {
            let gateway = Gateway::new(backend.clone(), ServerOptions::default());
            print_left_out_tools(&gateway)?;
            adopt_runs(&gateway);
            serve_stdio(gateway, stop).await.map_err(Into::into)
        }
        Some(address) => serve_at(arguments, project, backend.clone(), address, stop).await,
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
    address: SocketAddr,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let path = project.state()?.join(TOKEN_FILE);
    let token = BearerToken::at(&path)?;
    // A key of its own: who is given the token cannot make up what the server has sealed.
    let seal = BearerToken::at(&project.state()?.join(SEAL_FILE))?;
    let secret = Some(seal.reveal().as_bytes().to_vec());
    let traces = telemetry::collector()?.map(Traces::to);
    let options = ServerOptions { secret, traces: traces.clone(), ..ServerOptions::default() };
    let gateway = Gateway::new(backend, options);
    print_left_out_tools(&gateway)?;
    adopt_runs(&gateway);
    let auth = if arguments.conformance { Auth::Open } else { Auth::Token(token) };
    let mut config = HttpConfig::new(address, auth);
    config.allowed.hosts.clone_from(&arguments.allow_host);
    config.allowed.origins.clone_from(&arguments.allow_origin);
    let server: HttpServer = match arguments.conformance {
        true => conformance::serve_http(gateway, config).await?,
        false => serve_http(gateway, config).await?,
    };
    // Whoever types `belljar session` here finds the host by it.
    let _found_by = AddressFile::write(&project.state()?, server.address())?;
    print_address(&server, &path.display().to_string())?;
    stop.cancelled().await;
    server.shutdown().await;
    if let Some(traces) = traces {
        traces.flush().await;
    }
    Ok(())
}

/// Names the tools that were to be passed through and are not.
fn print_left_out_tools(gateway: &Gateway<ProjectBackend>) -> anyhow::Result<()> {
    let style = TextStyle::of_stderr();
    for fault in gateway.left_out() {
        let warning = style.paint(TextRole::Bad, "warning");
        writeln!(io::stderr(), "{warning}: {}", visible(&fault.to_string()))?;
    }
    Ok(())
}

/// Goes on with durable runs that nobody has, for as long as this host serves.
fn adopt_runs(gateway: &Gateway<ProjectBackend>) {
    let gateway = gateway.clone();
    tokio::spawn(async move { gateway.resume_runs().await });
}

fn print_address(server: &HttpServer, token: &str) -> anyhow::Result<()> {
    let style = TextStyle::of_stderr();
    let address = format!("http://{}/mcp", server.address());
    let address = style.paint(TextRole::Strong, &address);
    writeln!(io::stderr(), "listening on {address}; the bearer token is in {token}")
        .context("standard error is gone")
}

fn permissions(
    arguments: &ServeArguments,
    settings: &ProjectSettings,
    locations: &ConfigLocations,
    project: &Project,
) -> anyhow::Result<ClientPermissions> {
    let here = env::current_dir().context("cannot read the current directory")?;
    let existing = |flag: &str, paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| existing(&here, flag, path));
        paths.collect::<Result<Vec<_>, _>>().map_err(|refused| with_hint(&refused))
    };
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
        limits: settings.limits(&arguments.limits.given()),
        readable: existing("--read", &arguments.read)?,
        writable: existing("--write", &arguments.write)?,
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

/// Why nothing is served, as `belljar run` would say it.
fn with_hint(refused: &RunError) -> anyhow::Error {
    match &refused.hint {
        Some(hint) => anyhow!("{}\nhint: {hint}", refused.message),
        None => anyhow!("{}", refused.message),
    }
}
