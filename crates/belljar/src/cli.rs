//! The command line: reads arguments and files, calls `belljar-project`, prints the outcome.
//!
//! The only part of Belljar that reads the environment, the home or the current directory. Exit
//! status: 0 success, 1 a failed run, 2 invalid arguments, 128 + n a signal.

mod access;
mod approvals;
mod arguments;
mod artifacts;
mod audit;
mod backup;
mod blob;
mod demo;
mod doctor;
mod gc;
mod launch;
mod live_output;
mod project;
mod report;
mod resume;
mod run;
mod runs;
mod serve;
mod session;
mod signals;
mod source;
mod suggestions;
mod terminal;
mod tools;
mod workflow;

use std::{
    env,
    error::Error,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use belljar_project::{
    Project,
    config::{ConfigLocations, ProjectSettings},
};
use clap::{CommandFactory as _, Parser as _};
use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

use arguments::{ApprovalsArguments, Arguments, CliCommand};
use terminal::{
    json_text::{Layout, lay_out},
    style::{self, TextRole, TextStyle},
    visible::{for_stream, visible},
};

const USAGE_ERROR: u8 = 2;
/// Names the state directory, as `--state-dir` does.
const STATE_VARIABLE: &str = "BELLJAR_STATE_DIR";

/// Runs the program and returns its exit status.
pub(crate) fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(mut error) => {
            suggestions::improve(&mut error, Arguments::command());
            error.exit()
        }
    };
    style::choose(arguments.color);
    start_logging(arguments.verbose);
    match execute(arguments) {
        Ok(code) => code,
        // The reader closed the pipe; that is not an error of ours.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let style = TextStyle::of_stderr();
            let message = for_stream(&format!("{error:#}"), style).into_owned();
            let _ = writeln!(io::stderr(), "{}: {message}", style.paint(TextRole::Bad, "error"));
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn execute(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let config = arguments.config.as_deref();
    let mut locations = locations_of_this_process(arguments.state_dir.as_deref())?;
    if let CliCommand::Approvals(ApprovalsArguments { project: Some(at), .. }) = &arguments.command
    {
        // The directory as the system names it, without links: a project is known by that name.
        env::set_current_dir(at)
            .with_context(|| format!("cannot use the project in {}", at.display()))?;
        locations.current = env::current_dir().ok();
    }
    let settings = || {
        print_untrusted_files(&locations);
        ProjectSettings::load(config, &locations)
    };
    let project = || anyhow::Ok(Project::find(&locations, &settings()?)?);
    // For commands that may call tools.
    let with_tools = || {
        let settings = settings()?;
        print_ignored_rules(&settings);
        anyhow::Ok(settings)
    };
    match arguments.command {
        CliCommand::Run(run) => run::run(&run, &with_tools()?, &locations),
        CliCommand::Session(command) => session::session(&command, &project()?),
        CliCommand::Workflow(command) => workflow::workflow(&command, &with_tools()?, &locations),
        CliCommand::Resume(resume) => resume::resume(&resume, &with_tools()?, &locations),
        CliCommand::Runs(runs) => runs::runs(&runs, &project()?),
        CliCommand::Blob(blob) => blob::blob(&blob, &project()?),
        CliCommand::Tools(tools) => tools::tools(&tools, &with_tools()?, &locations),
        CliCommand::Approvals(approvals) => approvals::approvals(&approvals, &project()?),
        CliCommand::Audit(audit) => audit::audit(&audit, &project()?),
        CliCommand::Gc(gc) => gc::gc(gc, &settings()?, &locations),
        CliCommand::Backup(backup) => backup::backup(&backup, &project()?),
        CliCommand::Serve(serve) => {
            let settings = with_tools()?;
            serve::serve(&serve, &settings, &locations, &Project::find(&locations, &settings)?)
        }
        CliCommand::Demo(demo) => demo::demo(demo),
        CliCommand::DemoServer => demo::serve(),
        // A broken project must not keep `doctor` from examining the machine.
        CliCommand::Doctor(doctor) => doctor::doctor(doctor, project()),
    }
}

/// Names the configuration files that are ignored because they belong to another user. A person may
/// wonder where their servers are.
fn print_untrusted_files(locations: &ConfigLocations) {
    let style = TextStyle::of_stderr();
    for file in locations.untrusted_files() {
        let text = for_stream(&file.to_string(), style).into_owned();
        let _ = writeln!(io::stderr(), "{} {text}", style.paint(TextRole::Dim, "note:"));
    }
}

/// Names the allow rules that do not apply.
fn print_ignored_rules(settings: &ProjectSettings) {
    for rule in &settings.tools.ignored_rules {
        let _ = writeln!(io::stderr(), "{}", visible(&rule.to_string()));
    }
}

/// The directories that this process searches for configuration, and its environment.
fn locations_of_this_process(state: Option<&Path>) -> anyhow::Result<ConfigLocations> {
    // The base-directory specification says that relative paths are ignored.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = match state {
        Some(state) => Some(state.to_owned()),
        None => env::var_os(STATE_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from),
    };
    let state = state.map(std::path::absolute).transpose();
    Ok(ConfigLocations {
        current: env::current_dir().ok(),
        state: state.context("cannot make the path of the state directory absolute")?,
        home: absolute("HOME"),
        config_home: absolute("XDG_CONFIG_HOME"),
        state_home: absolute("XDG_STATE_HOME"),
        // A configuration is text, so variables that are not UTF-8 cannot be part of it.
        variables: env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
    })
}

/// Logs go to standard error, and only on request: setting them up slows the start.
fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).init();
}

/// A runtime on the calling thread: nothing here needs more, and threads slow the start.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Prints one JSON document to standard output.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let text = lay_out(&serde_json::to_string(value)?, Layout::Expanded, TextStyle::of_stdout());
    Ok(writeln!(io::stdout(), "{text}")?)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause: &(dyn Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
