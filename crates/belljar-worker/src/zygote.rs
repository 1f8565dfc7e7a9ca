//! Turning a process into a zygote.

use std::env;

use belljar_jail::{
    examine::{self, EXAMINE_ARGUMENT},
    zygote::{self, Successor},
};

use crate::{
    Engine,
    bash::{Bash, BashSetup},
    cell::CellMain,
    cpython,
    quickjs::QuickJs,
};

/// The hidden first argument that makes a program become a zygote: of the `quickjs` engine, or, with
/// a name and a set-up after it, of another.
pub const ZYGOTE_ARGUMENT: &str = "__zygote";
/// The second argument for the `cpython` engine. The third is a [`PythonSetup`] as JSON.
///
/// [`PythonSetup`]: crate::cpython::PythonSetup
pub const CPYTHON_ARGUMENT: &str = "cpython";
/// The second argument for the `bash` engine. The third is the path of bash.
pub const BASH_ARGUMENT: &str = "bash";
/// The hidden first argument with which a confined zygote starts this program again.
const RESUME_ARGUMENT: &str = "__resume";
/// The directory of the commands a cell has, if it was granted nothing.
pub const COMMANDS_DIRECTORY: &str = "/belljar/bin";
/// The directory of commands that were granted to one cell.
const GRANTED_COMMANDS_DIRECTORY: &str = "/commands";

/// Becomes a zygote, or examines the machine, if the program was started for that, and then never
/// returns. Must be the first thing `main` does: no thread may exist yet.
pub fn become_zygote_if_asked() {
    let arguments: Vec<String> = env::args_os()
        .skip(1)
        .take(4)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [ZYGOTE_ARGUMENT] => become_zygote(|| QuickJs::warm().map_err(|error| error.to_string())),
        [ZYGOTE_ARGUMENT, CPYTHON_ARGUMENT, setup] => {
            zygote::serve_by(|| cpython::successor(setup))
        }
        [ZYGOTE_ARGUMENT, BASH_ARGUMENT, bash] => {
            become_zygote_of_programs(&[RESUME_ARGUMENT, BASH_ARGUMENT, bash])
        }
        [RESUME_ARGUMENT, BASH_ARGUMENT, bash, handover] => resume_zygote(handover, || {
            let path = format!("{GRANTED_COMMANDS_DIRECTORY}:{COMMANDS_DIRECTORY}");
            Ok(Bash::new(BashSetup::new(bash, path)))
        }),
        [EXAMINE_ARGUMENT] => examine::print_and_exit(),
        _ => {}
    }
}

/// Becomes a zygote of any engine. Never returns.
pub fn become_zygote<E: Engine>(warm: impl FnOnce() -> Result<E, String>) -> ! {
    zygote::serve(|| warm().map(CellMain::new))
}

/// Becomes a zygote of an engine whose guests are programs of the host. Never returns: once
/// confined, this program is started again with the arguments, and one more, for
/// [`resume_zygote`]. So its own file is on a read-only mount for everything in its cells.
pub fn become_zygote_of_programs(arguments: &[&str]) -> ! {
    zygote::serve_by(|| {
        let path = env::current_exe().map_err(|error| format!("no program to start: {error}"))?;
        let arguments = arguments.iter().map(Into::into).collect();
        Ok(Successor { path, arguments, environment: Vec::new(), files: Vec::new() })
    })
}

/// Goes on as a zygote of any engine, with the last argument the program was given.
pub fn resume_zygote<E: Engine>(handover: &str, warm: impl FnOnce() -> Result<E, String>) -> ! {
    zygote::resume(handover, || warm().map(CellMain::new))
}
