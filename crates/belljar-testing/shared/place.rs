//! Runs a program in a home and a project of its own, apart from the configuration of the user who runs
//! the tests. Suites that start programs include this file as a module.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

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

pub(crate) fn outcome(output: Output) -> Outcome {
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
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
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let work = self.path().join("work");
        std::fs::create_dir_all(&work).expect("there is room for a directory");
        let mut command = start(program);
        command
            .current_dir(work)
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of a program has to start it")]
fn start(program: impl AsRef<Path>) -> Command {
    Command::new(program.as_ref())
}
