//! The command line: reads arguments and files, calls the façade, writes what came of it.
//!
//! The only part of Belljar that looks at the environment, the home or the current directory.
//! Exit status: 0 success, 1 a run that failed, 2 arguments that make no sense, 128 + n a signal.

mod approval_text;
mod approvals;
mod arguments;
mod artifacts;
mod asking;
mod audit;
mod backup;
mod blob;
mod code_frame;
mod columns;
mod demo;
mod dice;
mod doctor;
mod gc;
mod granted;
mod interrupt;
mod json_text;
mod launch;
mod log_lines;
mod look;
mod moments;
mod patience;
mod project;
mod report;
mod resume;
mod run;
mod runs;
mod serve;
mod session;
mod source;
mod telemetry;
mod tool_grants;
mod tools;
mod visible;
mod workflow;

use std::{
    env,
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use belljar_project::config::{ConfigLocations, ProjectSettings};
use clap::Parser as _;
use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

use arguments::{Arguments, Command};
use json_text::{Layout, lay_out};
use look::{Look, Role};
use project::Project;

const USAGE_ERROR: u8 = 2;

/// Runs the program to its exit status.
pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_logging(arguments.verbose);
    match execute(arguments) {
        Ok(code) => code,
        // Whoever read our output has seen enough; that is no failure of ours.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let look = Look::of_stderr();
            let message = visible::for_stream(&format!("{error:#}"), look).into_owned();
            let _ = writeln!(io::stderr(), "{}: {message}", look.paint(Role::Bad, "error"));
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn execute(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let config = arguments.config.as_deref();
    let places = places_of_this_process();
    let settings = || {
        print_untrusted_files(&places);
        ProjectSettings::load(config, &places)
    };
    let project = || Project::find(&places, &settings()?);
    // For whatever may call tools.
    let with_tools = || {
        let settings = settings()?;
        tell_not_counted(&settings);
        anyhow::Ok(settings)
    };
    match arguments.command {
        Command::Run(run) => run::run(&run, &with_tools()?, &places),
        Command::Session(command) => session::session(&command, &project()?),
        Command::Workflow(command) => workflow::workflow(&command, &with_tools()?, &places),
        Command::Resume(resume) => resume::resume(&resume, &with_tools()?, &places),
        Command::Runs(runs) => runs::runs(&runs, &project()?),
        Command::Blob(blob) => blob::blob(&blob, &project()?),
        Command::Tools(tools) => tools::tools(&tools, &with_tools()?, &places),
        Command::Approvals(approvals) => approvals::approvals(&approvals, &project()?),
        Command::Audit(audit) => audit::audit(&audit, &project()?),
        Command::Gc(gc) => gc::gc(gc, &settings()?, &places),
        Command::Backup(backup) => backup::backup(&backup, &project()?),
        Command::Serve(serve) => {
            let settings = with_tools()?;
            serve::serve(&serve, &settings, &places, &Project::find(&places, &settings)?)
        }
        Command::Demo(demo) => demo::demo(demo),
        Command::DemoServer => demo::serve(),
        // What is wrong with a project is no reason not to examine the machine.
        Command::Doctor(doctor) => doctor::doctor(doctor, project().ok().as_ref()),
    }
}

/// What lies here and is passed over. Whoever wonders why their servers are gone has to know.
fn print_untrusted_files(places: &ConfigLocations) {
    let look = Look::of_stderr();
    for stranger in places.untrusted_files() {
        let text = visible::for_stream(&stranger.to_string(), look).into_owned();
        let _ = writeln!(io::stderr(), "{} {text}", look.paint(Role::Dim, "note:"));
    }
}

/// Says which rules do not count, where a person sees it.
fn tell_not_counted(settings: &ProjectSettings) {
    for not_counted in &settings.tools.not_counted {
        let _ = writeln!(io::stderr(), "{}", visible::visible(&not_counted.to_string()));
    }
}

/// The places of this process.
fn places_of_this_process() -> ConfigLocations {
    // The base-directory specification says that a relative path here is to be ignored.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    ConfigLocations {
        current: env::current_dir().ok(),
        home: absolute("HOME"),
        config_home: absolute("XDG_CONFIG_HOME"),
    }
}

/// Logs go to standard error, and only when asked for: setting them up costs a cold start.
fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).init();
}

/// A runtime on the calling thread: nothing here needs more, and threads cost a cold start.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// One document of JSON on standard output.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let text = lay_out(&serde_json::to_string(value)?, Layout::Expanded, Look::of_stdout());
    Ok(writeln!(io::stdout(), "{text}")?)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause: &(dyn Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
