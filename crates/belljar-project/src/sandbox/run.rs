//! Configuring one run: code, context and limits, then `run()`.

use std::{path::PathBuf, time::Duration};

use belljar_contract::{
    CommitExecutable, EngineName, ErrorCode, Grants, Language, Limits, RunError, RunRequest,
    RunResult, RunStatus, Workspace,
};
use belljar_runtime::run_id;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::Sandbox;

/// Configures one run of guest code.
///
/// ```no_run
/// # async fn example(sandbox: belljar_project::Sandbox) {
/// use std::time::Duration;
///
/// let result = sandbox
///     .python("sum(context['numbers'])")
///     .context(&serde_json::json!({ "numbers": [1, 2, 3] }))
///     .timeout(Duration::from_secs(2))
///     .memory(128 << 20)
///     .run()
///     .await;
/// assert_eq!(result.result.get(), "6");
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing runs until `run` is called"]
pub struct RunBuilder<'a> {
    sandbox: &'a Sandbox,
    request: RunRequest,
    cpu: Option<Duration>,
    bad_context: Option<String>,
}

impl<'a> RunBuilder<'a> {
    pub(super) fn new(sandbox: &'a Sandbox, language: Language, code: String) -> Self {
        let mut request = RunRequest::new(language, code);
        request.limits = sandbox.limits;
        Self { sandbox, request, cpu: None, bad_context: None }
    }

    /// The value of the global `context`.
    ///
    /// If the value cannot be written as JSON, the run fails with code `request.invalid`.
    pub fn context(mut self, context: &(impl Serialize + ?Sized)) -> Self {
        match to_raw_value(context) {
            Ok(json) => self.request.context = Some(json),
            Err(error) => self.bad_context = Some(error.to_string()),
        }
        self
    }

    /// Runs the code on this engine instead of the usual one for its language.
    ///
    /// If the engine does not run the language, the run fails with code `request.invalid`.
    pub fn engine(mut self, engine: EngineName) -> Self {
        self.request.engine = Some(engine);
        self
    }

    /// The file name in error messages and stack traces.
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.request.file_name = name.into();
        self
    }

    /// Wall time. CPU time has the same limit unless [`cpu`](Self::cpu) sets another.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.limits.timeout = timeout;
        self.request.limits.cpu = timeout;
        self
    }

    /// CPU time of all processes together.
    pub fn cpu(mut self, cpu: Duration) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// The memory limit, in bytes.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.request.limits.memory = bytes;
        self
    }

    /// Sets every limit at once.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.request.limits = limits;
        self
    }

    /// Lets the code read a file or directory of the host, at the same path.
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.request.grants.read.push(path.into());
        self
    }

    /// Lets the code change a file or directory of the host, at the same path.
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.request.grants.write.push(path.into());
        self
    }

    /// The directory that the code sees as `/work`. Its changes are listed in the result and are
    /// discarded, unless [`commit`](Self::commit) is called.
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.request.workspace = Some(Workspace { path: path.into(), ..Workspace::default() });
        self
    }

    /// Writes the changes to the workspace's directory if the run succeeds.
    pub fn commit(mut self) -> Self {
        if let Some(workspace) = &mut self.request.workspace {
            workspace.commit = true;
        }
        self
    }

    /// Names that a commit writes although the host would execute them, such as `.git`: see
    /// [`CommitExecutable`].
    pub fn commit_executable(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let Some(workspace) = &mut self.request.workspace {
            let names = names.into_iter().map(Into::into).collect();
            workspace.executable = CommitExecutable::Names(names);
        }
        self
    }

    /// Sets an environment variable for the code.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.request.grants.env.insert(name.into(), value.into());
        self
    }

    /// Sets all grants at once.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.request.grants = grants;
        self
    }

    /// Runs the code to its end. Every failure is part of the result.
    ///
    /// Dropping the future ends the run and its cell.
    pub async fn run(mut self) -> RunResult {
        if let Some(reason) = self.bad_context {
            let message = format!("the context cannot be written as JSON: {reason}");
            return RunResult::not_run(
                run_id(),
                RunStatus::Failed,
                RunError::new(ErrorCode::RequestInvalid, message),
            );
        }
        if let Some(cpu) = self.cpu {
            self.request.limits.cpu = cpu;
        }
        self.sandbox.run_request(self.request).await
    }
}
