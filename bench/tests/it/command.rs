//! Starts the benchmarks with a home of their own, apart from the configuration of the user who runs the tests.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

/// The program under test.
pub(crate) const BENCH: &str = env!("CARGO_BIN_EXE_belljar-bench");

/// Exit status and output of a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Standard output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A temporary directory that is both home and project.
#[derive(Debug)]
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("there is room for a directory") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file, and the directories it is in.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        let directory = path.parent().expect("a file is in a directory");
        std::fs::create_dir_all(directory).expect("there is room for a directory");
        std::fs::write(&path, content).expect("there is room for a file");
        path
    }

    /// A command that runs the program in `work/` of this directory, with its home here.
    pub(crate) fn command(&self) -> Command {
        let work = self.path().join("work");
        std::fs::create_dir_all(&work).expect("there is room for a directory");
        let mut command = start(BENCH);
        command
            .current_dir(work)
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program with nothing on its standard input.
    pub(crate) fn bench(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command().args(arguments).output().expect("the program under test starts"))
    }
}

pub(crate) fn outcome(output: Output) -> Outcome {
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of a program has to start it")]
fn start(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

#[expect(clippy::print_stderr, reason = "a skip is said aloud")]
/// Whether this machine lacks a sandbox. The test then says so, and fails where one is required.
pub(crate) fn no_sandbox() -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let belljar = Path::new(BENCH).with_file_name("belljar");
        let output = start(&belljar).args(["run", "-c", "1", "--json"]).output();
        let output = output.expect("`belljar` is built beside: cargo build -p belljar");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = result.pointer("/error");
        let code = error.and_then(|error| error.pointer("/code"));
        (code == Some(&"sandbox.unsupported".into())).then(|| format!("{error:?}"))
    });
    let Some(reason) = missing else { return false };
    let required = std::env::var_os("BELLJAR_REQUIRE_SANDBOX").is_some_and(|value| value == "1");
    assert!(!required, "this machine cannot sandbox: {reason}");
    eprintln!("SKIPPED: this machine cannot sandbox: {reason}");
    true
}
