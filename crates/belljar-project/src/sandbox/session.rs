//! Sessions of a [`Sandbox`]: each run finds the variables and files of earlier runs.

use std::{future::Future, path::PathBuf};

use belljar_contract::{
    CheckpointId, EngineName, Grants, Language, Limits, RunError, RunRequest, RunResult,
    SessionFile, SessionId,
};
use belljar_runtime::{
    FileError, NewCheckpoint, RunOptions, SessionEnding, SessionSnapshot, SessionSpec,
};
use tokio::io::AsyncRead;

use super::Sandbox;

/// Configures a session before it opens.
///
/// ```no_run
/// # async fn example(sandbox: belljar_project::Sandbox) -> Result<(), belljar_project::RunError> {
/// use belljar_project::Language;
///
/// let builder = sandbox.session(Language::Bash).memory(256 << 20).workspace("/srv/data");
/// let session = builder.open().await?;
/// session.run("wc -l /work/*.csv").await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "there is no session until `open` is called"]
pub struct SessionBuilder<'a> {
    sandbox: &'a Sandbox,
    request: SessionSpec,
}

/// A cell that stays alive between runs: variables, functions, imports and files persist.
///
/// A session can be saved ([`checkpoint`](Self::checkpoint)), restored
/// ([`rollback`](Self::rollback)) and duplicated ([`fork`](Self::fork)) in milliseconds. Cheap to
/// clone; it ends when the last clone is dropped.
///
/// ```no_run
/// # async fn pick_a_winner(sandbox: belljar_project::Sandbox) -> Result<(), belljar_project::RunError> {
/// use belljar_project::Language;
///
/// let session = sandbox.session(Language::Python).open().await?;
/// session.run("rows = [3, 1, 2]").await;
/// let before = session.checkpoint().await?;
/// session.run("rows.clear()").await;
/// session.rollback(&before.id).await?;
///
/// // Three tries from one point, side by side; the first that succeeds is kept, the others vanish.
/// let tries = session.fork(3).await?;
/// for (attempt, branch) in tries.into_iter().enumerate() {
///     let result = branch.run(format!("rows.sort(); rows[{attempt}]")).await;
///     if result.success {
///         return Ok(());
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    kept: belljar_runtime::CellSession,
    language: Language,
    limits: Limits,
    has_hosts: bool,
}

impl Sandbox {
    /// Prepares a session in one language; [`SessionBuilder::open`] opens it.
    pub fn session(&self, language: Language) -> SessionBuilder<'_> {
        let request = SessionSpec { limits: self.limits, ..SessionSpec::new(language) };
        SessionBuilder { sandbox: self, request }
    }

    /// Opens a session from a complete request.
    pub async fn open_session(&self, mut request: SessionSpec) -> Result<Session, RunError> {
        let (language, limits) = (request.language, request.limits);
        let has_hosts = !request.grants.net.is_empty();
        request.engine = request.engine.or_else(|| self.engines.engine(language));
        let kept = self.host.open_session(request).await?;
        Ok(Session { kept, language, limits, has_hosts })
    }
}

impl SessionBuilder<'_> {
    /// Runs the session's code on this engine instead of the usual one for its language.
    pub fn engine(mut self, engine: EngineName) -> Self {
        self.request.engine = Some(engine);
        self
    }

    /// Limits of the session and of each run in it.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.request.limits = limits;
        self
    }

    /// Memory in bytes, for all runs together.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.request.limits.memory = bytes;
        self
    }

    /// Files, variables and commands that its runs may use.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.request.grants = grants;
        self
    }

    /// The directory that the session sees as `/work`. Changes stay in the session and are never
    /// written back.
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.request.workspace = Some(path.into());
        self
    }

    /// Opens the session in a cell of its own.
    pub async fn open(self) -> Result<Session, RunError> {
        self.sandbox.open_session(self.request).await
    }
}

impl Session {
    /// The session's id, `ses_…`.
    pub fn id(&self) -> &SessionId {
        self.kept.id()
    }

    /// The language of its code.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The limits of the session.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether its code may reach hosts.
    pub(crate) fn has_hosts(&self) -> bool {
        self.has_hosts
    }

    /// Runs code in the session. Calls to one session run in order; later calls wait. Every failure
    /// is part of the result.
    ///
    /// Dropping the future ends the run, and the session's memory is lost with it.
    pub async fn run(&self, code: impl Into<String>) -> RunResult {
        let mut request = RunRequest::new(self.language, code);
        request.limits = self.limits;
        self.run_with(request, RunOptions::default(), std::future::pending()).await
    }

    /// Runs a complete request, with a bridge for tool calls, until `abort` completes.
    pub async fn run_with(
        &self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.kept.run(request, options, abort).await
    }

    /// Saves the session's variables and files. The oldest checkpoints are dropped when there are
    /// too many.
    pub async fn checkpoint(&self) -> Result<NewCheckpoint, RunError> {
        self.kept.checkpoint().await
    }

    /// Restores variables and files of a checkpoint, which can be used again.
    pub async fn rollback(&self, checkpoint: &CheckpointId) -> Result<(), RunError> {
        self.kept.rollback(checkpoint).await
    }

    /// Duplicates the session `count` times: all copies or none.
    pub async fn fork(&self, count: usize) -> Result<Vec<Self>, RunError> {
        self.fork_from(count, None).await
    }

    /// Like [`fork`](Self::fork), from a checkpoint if one is given.
    pub async fn fork_from(
        &self,
        count: usize,
        checkpoint: Option<&CheckpointId>,
    ) -> Result<Vec<Self>, RunError> {
        let forked = self.kept.fork(count, checkpoint).await?;
        Ok(forked.into_iter().map(|kept| Self { kept, ..self.clone() }).collect())
    }

    /// Writes a file below `/work` and replaces an existing one.
    pub async fn put_file(
        &self,
        path: &str,
        content: impl AsyncRead + Send + Unpin,
    ) -> Result<SessionFile, FileError> {
        self.kept.put_file(path, content).await
    }

    /// The size and the content of a file below `/work`.
    pub async fn get_file(
        &self,
        path: &str,
    ) -> Result<(u64, impl AsyncRead + Send + Unpin + use<>), FileError> {
        self.kept.get_file(path).await
    }

    /// The files below `/work`, by path, and whether there are more than `at_most`.
    pub async fn list_files(&self, at_most: usize) -> Result<(Vec<SessionFile>, bool), FileError> {
        self.kept.list_files(at_most).await
    }

    /// Removes a file below `/work`.
    pub async fn delete_file(&self, path: &str) -> Result<(), FileError> {
        self.kept.delete_file(path).await
    }

    /// The current state. Does not wait for running code.
    pub fn info(&self) -> SessionSnapshot {
        self.kept.snapshot()
    }

    /// Why the session has ended; `None` while it lives.
    pub fn ending(&self) -> Option<SessionEnding> {
        self.kept.ending()
    }

    /// Waits until the session has ended.
    pub async fn ended(&self) -> SessionEnding {
        self.kept.ended().await
    }

    /// Ends the session and waits until its processes are gone.
    pub async fn destroy(&self) {
        self.kept.destroy().await;
    }

    /// Ends the session with a reason that later callers see.
    pub async fn end(&self, why: SessionEnding) {
        self.kept.end(why).await;
    }
}
