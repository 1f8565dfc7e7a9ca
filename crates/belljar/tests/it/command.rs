//! Starting the program under test, away from the configuration of whoever runs the tests.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// The program under test.
pub(crate) const BELLJAR: &str = env!("CARGO_BIN_EXE_belljar");

/// What a program did.
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

/// A directory of its own to run the program in, which is home and project at once.
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

    /// The program, about to be started in `work/` of this place with its home here.
    #[expect(clippy::disallowed_methods, reason = "a test of a program has to start it")]
    pub(crate) fn command(&self, program: &str) -> Command {
        let work = self.path().join("work");
        std::fs::create_dir_all(&work).expect("there is room for a directory");
        let mut command = Command::new(program);
        command
            .current_dir(work)
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program with nothing on its standard input.
    pub(crate) fn belljar(&self, arguments: &[&str]) -> Outcome {
        let output = self.command(BELLJAR).args(arguments).output();
        outcome(output.expect("the program under test starts"))
    }

    /// Runs the program with this on its standard input.
    pub(crate) fn belljar_reading(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
        let mut child = self
            .command(BELLJAR)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program under test starts");
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        // It may refuse its arguments before it reads.
        let _ = stdin.write_all(input.as_ref());
        drop(stdin);
        outcome(child.wait_with_output().expect("the program under test ends"))
    }
}

/// Runs the program in a place of its own.
pub(crate) fn belljar(arguments: &[&str]) -> Outcome {
    Place::new().belljar(arguments)
}

pub(crate) fn outcome(output: Output) -> Outcome {
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[expect(clippy::print_stderr, reason = "a skip is said aloud")]
/// Whether this machine cannot sandbox, which is said aloud, and a failure where one is required.
pub(crate) fn no_sandbox() -> bool {
    static MISSING: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let error = belljar(&["run", "-c", "1", "--json"]).json()["error"].clone();
        (error["code"] == "sandbox.unsupported").then(|| error["message"].to_string())
    });
    let Some(reason) = missing else { return false };
    let required = std::env::var_os("BELLJAR_REQUIRE_SANDBOX").is_some_and(|value| value == "1");
    assert!(!required, "this machine cannot sandbox: {reason}");
    eprintln!("SKIPPED: this machine cannot sandbox: {reason}");
    true
}

/// Runs a test to its end.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test)
}
