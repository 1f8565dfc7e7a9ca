//! The Python interpreter that Belljar would use, run as a plain program, and the peers among its
//! packages.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Deserialize;

use super::{
    Bench,
    peers::{command, on_path, time_program},
    rounds::{Frequency, TimedCase},
};

/// Prints the interpreter's own path and versions. The name in the PATH may be a launcher that adds
/// time of its own.
const QUESTIONS: &str = "
import importlib.metadata, json, platform, sys
names = ['pandas', 'RestrictedPython', 'smolagents', 'pydantic-monty', 'langgraph',
         'langgraph-checkpoint-sqlite']
packages = {}
for name in names:
    try:
        packages[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps({
    'program': sys.executable, 'version': platform.python_version(), 'packages': packages,
}))
";

/// The first Python in the PATH.
#[derive(Debug, Deserialize)]
pub(super) struct PythonPeer {
    pub(super) program: PathBuf,
    pub(super) version: String,
    /// Installed peer packages with their versions.
    pub(super) packages: BTreeMap<String, String>,
}

impl PythonPeer {
    /// Finds it, or records that it is missing; then Belljar has no Python either.
    pub(super) fn of(bench: &Bench<'_>) -> Option<Self> {
        let found = on_path("python3").find_map(|program| {
            let (_, said) = time_program(&program, &["-c", QUESTIONS]).ok()?;
            serde_json::from_str(&said).ok()
        });
        if found.is_none() {
            bench.omissions.missing("python3");
        }
        found
    }

    /// The same if pandas is installed; otherwise each benchmark that needs pandas reports it.
    pub(super) fn with_pandas(bench: &Bench<'_>, case: &str) -> Option<(Self, String)> {
        let python = Self::of(bench)?;
        let Some(version) = python.packages.get("pandas").cloned() else {
            let reason = "pandas is not installed for the python3 in the PATH \
                          (scripts/peers installs one for belljar-bench)";
            bench.omissions.left_out(case, reason);
            return None;
        };
        Some((python, version))
    }

    /// A case that starts a new process for each answer.
    pub(super) fn cold(
        &self,
        name: &str,
        version: &str,
        often: Frequency,
        code: &str,
        check: fn(&str) -> anyhow::Result<()>,
    ) -> TimedCase<'static> {
        let (program, code) = (self.program.clone(), code.to_owned());
        TimedCase::new(name, version, often, move || {
            let (time, answer) = time_program(&program, &["-c", &code])?;
            check(&answer).map(|()| time)
        })
    }
}

/// Restarts this program with the Python of `scripts/peers` first in the PATH, if there is one and
/// it is not first already. Belljar and its peers then use the same Python.
pub(super) fn use_python_of(peers: &Path) -> anyhow::Result<()> {
    let programs = std::path::absolute(peers.join("venv/bin"))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let is_first = env::split_paths(&path).next().is_some_and(|first| first == programs);
    if is_first || !programs.join("python3").is_file() {
        return Ok(());
    }
    let path = env::join_paths(std::iter::once(programs).chain(env::split_paths(&path)))?;
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("belljar-bench"));
    let error =
        command(Path::new("/proc/self/exe")).arg0(name).args(arguments).env("PATH", path).exec();
    Err(error).context("cannot restart with the peers' Python")
}
