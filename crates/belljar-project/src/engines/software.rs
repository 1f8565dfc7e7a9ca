//! The part of the machine's software that cells may see.

use std::{
    fs,
    path::{Path, PathBuf},
};

use belljar_runtime::View;

/// Where commands are searched, in this order, whatever the host's own `PATH` is.
const COMMAND_DIRECTORIES: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Where programs are that others start, as git starts its end of HTTP.
const HELPER_DIRECTORIES: [&str; 3] =
    ["/usr/local/libexec/git-core", "/usr/lib/git-core", "/usr/libexec/git-core"];
/// Top-level directories with software: on most machines links into `/usr`.
const TOP_LEVEL: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Files of `/etc` that programs need to find their libraries and each other.
const CONFIGURATION: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];
/// Directories whose files programs may read as data.
const READABLE: [&str; 9] = [
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/share",
    "/lib",
];
/// The dynamic loaders of the supported machines.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// The view that every program needs: no home, no configuration, no user data.
pub(super) fn view() -> View {
    let mut view = View { trees: vec!["/usr".into()], ..View::default() };
    for path in TOP_LEVEL {
        match fs::read_link(path) {
            Ok(target) => view.links.push((path.into(), target)),
            Err(_) if Path::new(path).is_dir() => {
                view.trees.push(path.into());
                view.readable.push(path.into());
            }
            Err(_) => {}
        }
    }
    for path in CONFIGURATION.iter().filter(|path| Path::new(path).exists()) {
        view.trees.push(path.into());
        view.readable.push(path.into());
    }
    let readable = READABLE.iter().filter(|path| is_plain_directory(path));
    view.readable.extend(readable.map(PathBuf::from));
    view.executable.extend(LOADERS.iter().filter_map(|path| real(Path::new(path))));
    view
}

/// The program that a command name means, if cells may see it.
pub(super) fn command(name: &str) -> Option<PathBuf> {
    let directories = COMMAND_DIRECTORIES.iter().chain(&HELPER_DIRECTORIES);
    let found = directories.map(|directory| Path::new(directory).join(name));
    let program = found.filter(|path| path.is_file()).find_map(|path| real(&path))?;
    let is_shown = |top: &str| program.starts_with(top) && is_plain_directory(top);
    let is_software = program.starts_with("/usr") || TOP_LEVEL.iter().any(|top| is_shown(top));
    is_software.then_some(program)
}

fn is_plain_directory(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Resolves all links of a path in the machine's software.
#[expect(clippy::disallowed_methods, reason = "the machine's own software, not a path to check")]
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}
