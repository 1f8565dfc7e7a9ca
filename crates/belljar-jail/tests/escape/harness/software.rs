//! The view of the machine's software for cells of programs, much like that of the real engines.

use std::{
    fs,
    path::{Path, PathBuf},
};

use belljar_jail::View;

use super::bait::Bait;

const TOP_LEVEL: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const READABLE: [&str; 4] = ["/usr/lib", "/usr/lib64", "/usr/share", "/lib"];
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// A program every cell of programs may execute, and one that none may.
pub(crate) const GRANTED_PROGRAM: &str = "/usr/bin/cat";
pub(crate) const UNGRANTED_PROGRAM: &str = "/usr/bin/id";

/// Where things are beneath the software of [`Bait::home`].
pub(crate) const LIBRARY: &str = "library";
pub(crate) const PROGRAM: &str = "program";

/// The machine's `/usr`, a tree of the host's own user, and a setuid program, all executable.
pub(crate) fn view(bait: &Bait) -> View {
    let mut view = View { trees: vec!["/usr".into()], ..View::default() };
    for path in TOP_LEVEL {
        match fs::read_link(path) {
            Ok(target) => view.links.push((path.into(), target)),
            Err(_) if Path::new(path).is_dir() => view.trees.push(path.into()),
            Err(_) => {}
        }
    }
    view.readable.extend(READABLE.iter().filter(|path| is_plain(path)).map(PathBuf::from));
    view.executable.extend(LOADERS.iter().filter_map(|path| real(path)));
    view.executable.extend(real(GRANTED_PROGRAM));
    if bait.home.is_absolute() {
        let software = bait.home.join("software");
        view.executable.push(software.join(PROGRAM));
        view.readable.push(software.clone());
        view.trees.push(software);
    }
    if let Some(privileged) = &bait.privileged {
        view.trees.push(privileged.clone());
        view.executable.push(privileged.clone());
    }
    view
}

fn is_plain(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Where a path of the machine's software really leads.
#[expect(clippy::disallowed_methods, reason = "the machine's own software, not a path to check")]
fn real(path: &str) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}
