//! The command line: reads arguments and files, calls the façade, writes what came of it.
//!
//! The only part of Belljar that looks at the environment, the home or the current directory.
//! Exit status: 0 success, 1 a run that failed, 2 arguments that make no sense, 128 + n a signal.

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
mod project;
mod report;
mod resume;
mod run;
mod runs;
mod serve;
mod session;
mod signals;
mod source;
mod terminal;
mod tools;
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

use arguments::{Arguments, CliCommand};
use project::find_project;
use terminal::{
    json_text::{Layout, lay_out},
    style::{TextRole, TextStyle},
    visible::{for_stream, visible},
};

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
            let style = TextStyle::of_stderr();
            let message = for_stream(&format!("{error:#}"), style).into_owned();
            let _ = writeln!(io::stderr(), "{}: {message}", style.paint(TextRole::Bad, "error"));
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn execute(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let config = arguments.config.as_deref();
    let locations = locations_of_this_process();
    let settings = || {
        print_untrusted_files(&locations);
        ProjectSettings::load(config, &locations)
    };
    let project = || find_project(&locations, &settings()?);
    // For whatever may call tools.
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
            serve::serve(&serve, &settings, &locations, &find_project(&locations, &settings)?)
        }
        CliCommand::Demo(demo) => demo::demo(demo),
        CliCommand::DemoServer => demo::serve(),
        // What is wrong with a project is no reason not to examine the machine.
        CliCommand::Doctor(doctor) => doctor::doctor(doctor, project().ok().as_ref()),
    }
}

/// What lies here and is passed over. Whoever wonders why their servers are gone has to know.
fn print_untrusted_files(locations: &ConfigLocations) {
    let style = TextStyle::of_stderr();
    for file in locations.untrusted_files() {
        let text = for_stream(&file.to_string(), style).into_owned();
        let _ = writeln!(io::stderr(), "{} {text}", style.paint(TextRole::Dim, "note:"));
    }
}

/// Says which rules do not count, where a person sees it.
fn print_ignored_rules(settings: &ProjectSettings) {
    for rule in &settings.tools.ignored_rules {
        let _ = writeln!(io::stderr(), "{}", visible(&rule.to_string()));
    }
}

/// The places of this process.
fn locations_of_this_process() -> ConfigLocations {
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
