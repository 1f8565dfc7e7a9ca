//! Starting this program again in one of its roles, as whoever is wanted.
#![expect(clippy::disallowed_methods, reason = "the suite starts its own roles")]

use std::{
    fs, io,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;

use super::software::UNGRANTED_PROGRAM;

/// An unused id: what this suite means by an ordinary user.
pub(crate) const ORDINARY: u32 = 61_999;

/// The user of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever runs the suite.
    Same,
    /// This user, without groups, home or environment. Only root can start one.
    Other(u32),
}

/// Whether the suite can become somebody else.
pub(crate) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// An ordinary user, whoever runs the suite.
pub(crate) fn ordinary() -> Who {
    if is_root() { Who::Other(ORDINARY) } else { Who::Same }
}

/// This program, to be started with these arguments, an empty environment and no streams.
pub(crate) fn this_program(who: Who, arguments: &[&str]) -> io::Result<Command> {
    let copy = COPY.get().filter(|_| who != Who::Same || !is_root());
    let mut command = Command::new(copy.map_or(Path::new("/proc/self/exe"), PathBuf::as_path));
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Who::Other(id) = who {
        // The standard library clears the supplementary groups with the user.
        command.gid(id).uid(id);
    }
    Ok(command)
}

/// Becomes this program in another role, keeping streams, directory and whatever else there is.
pub(crate) fn become_role(arguments: &[&str]) -> io::Error {
    Command::new("/proc/self/exe").args(arguments).env_clear().exec()
}

/// Where the copy is that ordinary users run.
static COPY: OnceLock<PathBuf> = OnceLock::new();

/// Where a setuid program is.
static PRIVILEGED: OnceLock<PathBuf> = OnceLock::new();

/// A program that is setuid root and says who it runs as.
pub(crate) fn privileged() -> Option<PathBuf> {
    PRIVILEGED.get().cloned()
}

/// Tells this process where the runner put the setuid program.
pub(crate) fn privileged_is_at(path: Option<PathBuf>) {
    if let Some(path) = path {
        PRIVILEGED.get_or_init(|| path);
    }
}

/// Makes a copy of this program that belongs to the ordinary user, as an ordinary user's own
/// program does, wherever this one lies. It is there until what this returns is dropped. Called
/// before there are threads: a program cannot be started while some child still has it open.
pub(crate) fn prepare() -> io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("belljar-escape-").tempdir_in("/var/tmp")?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    let path = directory.path().join("escape");
    fs::copy("/proc/self/exe", &path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    if is_root() {
        chown(&path, Some(ORDINARY), Some(ORDINARY))?;
        let privileged = directory.path().join("privileged");
        fs::copy(UNGRANTED_PROGRAM, &privileged)?;
        fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755))?;
        privileged_is_at(Some(privileged));
    }
    COPY.get_or_init(|| path);
    Ok(directory)
}

/// A program of the machine's, run to its end.
pub(crate) fn program(
    path: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> io::Result<Output> {
    let mut command = Command::new(path);
    command.args(arguments).env_clear().envs(variables.iter().copied());
    command.stdin(Stdio::null()).output()
}
