//! Starting bash with the code.
//!
//! The code is the argument of `-c`, so there is no script file for the code to find, standard
//! input is free, and `$0` is the name that errors are to show. Code too large for an argument
//! is read by the same bash from a file that has no name any more, and evaluated there. Either
//! way it begins with [`PREFIX`], on the line of the code's own first line.

use std::{
    fs::{self, OpenOptions},
    io::{self, Seek, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use belljar_contract::ErrorCode;
use belljar_wire::{GuestError, RunCommand};
use rustix::{
    io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
};

use super::{
    BashSetup, commands,
    state::{ShellDescriptors, ShellState},
};

/// An argument or variable may have 128 KiB; this leaves room for the prefix.
const MAX_ARGUMENT_BYTES: usize = 100 << 10;
/// The name of the user, as the script sees it.
const USER: &str = "user";
/// The descriptor refusals are written to is out of the way of those scripts like to use.
const MARKER_AT_LEAST: [i32; 2] = [100, 10];

/// The text before the code: children must not inherit the handler, and `REPLY` is how large code
/// arrives.
pub(super) const PREFIX: &str = "export -nf command_not_found_handle;unset -v REPLY;";

/// The same in a session, where the code is evaluated after the state, and the options come last.
pub(super) const SESSION_PREFIX: &str =
    "set --;export -nf command_not_found_handle;unset -v REPLY;__belljar_options;";

/// A bash that has been started.
#[derive(Debug)]
pub(super) struct RunningShell {
    pub(super) child: Child,
    /// The reading end of the pipe on which refused commands are reported.
    pub(super) refused: OwnedFd,
    /// The reading end of the pipe to which a session's shell writes its state when it ends.
    pub(super) state: Option<OwnedFd>,
}

/// Starts bash with the code.
pub(super) fn launch(
    setup: &BashSetup,
    run: &RunCommand,
    state: &ShellState,
) -> Result<RunningShell, GuestError> {
    put_context(setup, run).map_err(|error| {
        let message = format!("could not write context.json: {error}");
        GuestError::new(disk_or_engine(&error), message)
    })?;
    let started = match run.session {
        true => spawn_in_session(setup, run, state),
        false => spawn(setup, run),
    };
    started.map_err(|error| could_not_start(&error, run))
}

fn spawn(setup: &BashSetup, run: &RunCommand) -> io::Result<RunningShell> {
    let (refused, marker) = inherited_pipe()?;
    let mut command = command(setup, run)?;
    command.env(commands::HANDLER_VARIABLE, commands::handler(marker.as_raw_fd()));
    let child = command.spawn()?;
    Ok(RunningShell { child, refused, state: None })
}

/// A pipe whose writing end programs inherit, out of their way.
fn inherited_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let [high, low] = MARKER_AT_LEAST;
    let marker =
        fcntl_dupfd_cloexec(&writer, high).or_else(|_| fcntl_dupfd_cloexec(&writer, low))?;
    fcntl_setfd(&marker, FdFlags::empty())?;
    Ok((reader, marker))
}

/// Starts a shell that restores the session's state and saves its own at the end. It leads a
/// process group, so that what it leaves running can be ended.
fn spawn_in_session(
    setup: &BashSetup,
    run: &RunCommand,
    state: &ShellState,
) -> io::Result<RunningShell> {
    let (refused, marker) = inherited_pipe()?;
    let (reader, writer) = inherited_pipe()?;
    let descriptors = ShellDescriptors { refused: marker.as_raw_fd(), state: writer.as_raw_fd() };
    let mut command = bash(setup);
    let is_large = run.code.len() > MAX_ARGUMENT_BYTES;
    let (read, code) = match is_large {
        true => ("IFS= read -r -d ''; exec </dev/null;", "$REPLY"),
        false => ("", "$1"),
    };
    let restore = "IFS=;eval \"${*:2}\" 2>/dev/null;";
    command.arg(format!("{read}{restore}eval \"{SESSION_PREFIX}{code}\""));
    command.arg(run.file_name.replace('\0', ""));
    command.arg(if is_large { "" } else { &run.code });
    command.args(state.arguments(run, descriptors));
    command.stdin(if is_large { nameless(setup, &run.code)?.into() } else { Stdio::null() });
    set_environment(&mut command, setup, run);
    command.process_group(0);
    let child = command.spawn()?;
    Ok(RunningShell { child, refused, state: Some(reader) })
}

#[expect(clippy::disallowed_methods, reason = "the engine of a shell is a process of its own")]
fn bash(setup: &BashSetup) -> Command {
    let mut command = Command::new(&setup.bash);
    command.args(["--noprofile", "--norc", "-c"]);
    command.current_dir(&setup.work).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn command(setup: &BashSetup, run: &RunCommand) -> io::Result<Command> {
    let mut command = bash(setup);
    if run.code.len() <= MAX_ARGUMENT_BYTES {
        command.arg(format!("{PREFIX}{}", run.code)).stdin(Stdio::null());
    } else {
        let read_and_evaluate = "IFS= read -r -d ''; exec </dev/null; eval \"";
        command
            .arg(format!("{read_and_evaluate}{PREFIX}$REPLY\""))
            .stdin(nameless(setup, &run.code)?);
    }
    command.arg(run.file_name.replace('\0', "")).args(&run.arguments);
    set_environment(&mut command, setup, run);
    Ok(command)
}

/// Nothing is inherited. A granted variable may replace any of these but `PATH`, without which
/// no command is found.
fn set_environment(command: &mut Command, setup: &BashSetup, run: &RunCommand) {
    command.env_clear();
    command.env("HOME", &setup.work).env("PWD", &setup.work).env("TMPDIR", &setup.tmp);
    command.env("USER", USER).env("LOGNAME", USER);
    if !run.grants.env.contains_key("LANG") {
        command.env(encoding_variable(), "C.UTF-8");
    }
    if fits_into_variable(&run.context) {
        command.env("BELLJAR_CONTEXT", String::from_utf8_lossy(&run.context).replace('\0', ""));
    }
    let can_be_set = |name: &str, value: &str| {
        !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
    };
    let granted = run.grants.env.iter();
    command.envs(granted.filter(|(name, value)| can_be_set(name, value)));
    command.env("PATH", setup.path());
}

/// The variable that says that text is UTF-8. One category of a locale is one file to read, the
/// whole of it is twelve; but where there is no such locale, bash complains of the one and not of
/// the other.
fn encoding_variable() -> &'static str {
    if Path::new("/usr/lib/locale/C.utf8/LC_CTYPE").exists() { "LC_CTYPE" } else { "LANG" }
}

/// Whether there is a context and it is small enough for `BELLJAR_CONTEXT`.
fn fits_into_variable(context: &[u8]) -> bool {
    !context.is_empty() && context.len() <= MAX_ARGUMENT_BYTES
}

/// Writes the context to a file. A run without room for files has it in its variable alone.
fn put_context(setup: &BashSetup, run: &RunCommand) -> io::Result<()> {
    let path = setup.tmp.join("context.json");
    if !run.context.is_empty() {
        return match fs::write(&path, &run.context) {
            Err(error)
                if error.kind() == io::ErrorKind::StorageFull
                    && fits_into_variable(&run.context) =>
            {
                // Half a file would be worse than none.
                let _ = fs::remove_file(path);
                Ok(())
            }
            written => written,
        };
    }
    if run.session {
        // That of an earlier run, if there was one.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// An open file with this text and without a name, so that no other process can open it.
fn nameless(setup: &BashSetup, text: &str) -> io::Result<fs::File> {
    let path: &Path = &setup.tmp.join(format!(".code-{}", std::process::id()));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    fs::remove_file(path)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn could_not_start(error: &io::Error, run: &RunCommand) -> GuestError {
    if error.kind() == io::ErrorKind::WouldBlock {
        return too_many_processes(run);
    }
    GuestError::new(disk_or_engine(error), format!("could not start bash: {error}"))
}

/// No process could be made.
pub(super) fn too_many_processes(run: &RunCommand) -> GuestError {
    let limit = run.limits.processes;
    let message = format!("too many processes: the limit is {limit}");
    GuestError::new(ErrorCode::LimitProcesses, message)
        .with_hint("Start fewer at a time (shorter pipelines, `wait` after some `&`).")
}

fn disk_or_engine(error: &io::Error) -> ErrorCode {
    let is_full =
        [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
    if is_full { ErrorCode::LimitDisk } else { ErrorCode::SandboxEngine }
}
