//! Turning a process into a zygote: of an engine of the table, or of any code runner.

use std::{
    env, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use belljar_jail::{
    examine::{self, EXAMINE_ARGUMENT},
    zygote::{self, Successor},
};

use crate::{CodeRunner, ENGINES, cell::CellMain};

/// The hidden first argument that makes a program become a zygote: of the first engine, or, with a
/// name and a set-up after it, of another one.
pub const ZYGOTE_ARGUMENT: &str = "__zygote";
/// The hidden first argument with which a confined zygote starts this program again.
pub(crate) const RESUME_ARGUMENT: &str = "__resume";

/// A file in the root of a zygote: its path and its bytes.
type RootFile = (PathBuf, Vec<u8>);

/// This program, whatever has become of its file.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Where a copy of it is put in the root of a zygote.
const COPY: &str = "/belljar/program";

/// Becomes a zygote, or examines the machine, if the program was started for that, and then never
/// returns. Must be the first thing `main` does: no thread may exist yet.
pub fn become_zygote_if_asked() {
    let arguments: Vec<String> = env::args_os()
        .skip(1)
        .take(4)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [first, ..] = ENGINES;
    let named = |name| ENGINES.into_iter().find(|engine| engine.name().as_str() == name);
    match *arguments {
        [ZYGOTE_ARGUMENT] => first.start(""),
        [ZYGOTE_ARGUMENT, name, setup] => {
            if let Some(engine) = named(name) {
                engine.start(setup)
            }
        }
        [RESUME_ARGUMENT, name, setup, handover] => {
            if let Some(engine) = named(name) {
                engine.resume(setup, handover);
            }
        }
        [EXAMINE_ARGUMENT] => examine::print_and_exit(),
        _ => {}
    }
}

/// Becomes a zygote whose cells use a code runner. Never returns.
pub fn become_zygote<R: CodeRunner>(warm: impl FnOnce() -> Result<R, String>) -> ! {
    zygote::serve(|| warm().map(CellMain::new))
}

/// Becomes a zygote whose guests are programs of the host. Never returns: once confined, this
/// program is started again with the arguments, and one more, for [`resume_zygote`]. So its own
/// file is on a read-only mount for everything in its cells. `files` are put into its root.
pub fn become_zygote_of_programs(arguments: &[&str], files: Vec<RootFile>) -> ! {
    zygote::serve_by(|| {
        let (path, copy) = this_program()
            .map_err(|error| format!("cannot find the program to start again: {error}"))?;
        let arguments = arguments.iter().map(Into::into).collect();
        let files = files.into_iter().chain(copy).collect();
        Ok(Successor { path, arguments, environment: Vec::new(), files })
    })
}

/// Where this program is; or, if its file was removed or replaced since it was started, as an upgrade
/// does, a copy of it. The new file at its path may be another version.
fn this_program() -> io::Result<(PathBuf, Option<RootFile>)> {
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let path = env::current_exe()?;
    if identity(&path).ok() == Some(identity(Path::new(THIS_PROGRAM))?) {
        return Ok((path, None));
    }
    let copy = PathBuf::from(COPY);
    Ok((copy.clone(), Some((copy, fs::read(THIS_PROGRAM)?))))
}

/// Continues as a zygote whose cells use a code runner, with the last argument the program was given.
pub fn resume_zygote<R: CodeRunner>(handover: &str, warm: impl FnOnce() -> Result<R, String>) -> ! {
    zygote::resume(handover, || warm().map(CellMain::new))
}
