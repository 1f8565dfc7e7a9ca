//! The programs that judge, and a directory for what they are to read.
#![expect(clippy::disallowed_methods, reason = "the oracles are programs")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The build directory of the workspace, where the scripts put what they install.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

/// Where the oracles are.
pub(crate) fn oracles() -> PathBuf {
    let root = target().join("oracles");
    assert!(
        root.join("node_modules/typescript").is_dir() && root.join("venv/bin/mypy").exists(),
        "the oracles are not installed: run scripts/oracles"
    );
    root
}

/// An empty directory for one test, kept afterwards to look at.
pub(crate) fn desk(name: &str) -> PathBuf {
    let desk = target().join("oracle-tests").join(name);
    if desk.exists() {
        fs::remove_dir_all(&desk).unwrap();
    }
    fs::create_dir_all(&desk).unwrap();
    desk
}

/// The output of an oracle's program, and whether it succeeded.
pub(crate) fn run(program: &Path, arguments: &[&str], desk: &Path) -> (bool, String) {
    let output = Command::new(program).args(arguments).current_dir(desk).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

/// Runs a program of npm's.
pub(crate) fn node(script: &str, arguments: &[&str], desk: &Path) -> (bool, String) {
    let script = oracles().join("node_modules").join(script);
    let script = script.to_string_lossy().into_owned();
    run(Path::new("node"), &[&[script.as_str()], arguments].concat(), desk)
}

/// Has the TypeScript compiler check files, strictly.
pub(crate) fn tsc(files: &[&str], desk: &Path) {
    let options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022"];
    let (content, printed) = node("typescript/bin/tsc", &[&options, files].concat(), desk);
    let first: Vec<&str> = printed.lines().take(40).collect();
    assert!(content, "in {}:\n{}", desk.display(), first.join("\n"));
}
