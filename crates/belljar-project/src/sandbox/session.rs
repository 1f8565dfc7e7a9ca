//! A session of a [`Sandbox`]: what one run leaves behind, the next one finds.

use std::{future::Future, path::PathBuf};

use belljar_contract::{Grants, Language, Limits, RunError, RunRequest, RunResult};
use belljar_runtime::{
    FileError, NewCheckpoint, RunOptions, SessionEnding, SessionFile, SessionSnapshot, SessionSpec,
};
use tokio::io::AsyncRead;

use super::Sandbox;

/// A session to be made, with what it may use still to be said.
#[derive(Debug)]
#[must_use = "there is no session until `open` is called"]
pub struct OpenSession<'a> {
    sandbox: &'a Sandbox,
    request: SessionSpec,
}

/// A sandbox that lives on between runs: variables, functions, imports and files stay.
///
/// It can be kept as it is ([`checkpoint`](Self::checkpoint)), taken back ([`rollback`](Self::rollback))
/// and made into several ([`fork`](Self::fork)), in milliseconds. Cheap to clone; it ends when the last
/// clone is dropped.
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
    kept: belljar_runtime::Session,
    language: Language,
    limits: Limits,
}

impl Sandbox {
    /// A session to be made, in one language.
    pub fn session(&self, language: Language) -> OpenSession<'_> {
        let request = SessionSpec { limits: self.limits, ..SessionSpec::new(language) };
        OpenSession { sandbox: self, request }
    }

    /// A session, exactly as the request says.
    pub async fn open_session(&self, request: SessionSpec) -> Result<Session, RunError> {
        let (language, limits) = (request.language, request.limits);
        let kept = self.host.open_session(request).await?;
        Ok(Session { kept, language, limits })
    }
}

impl OpenSession<'_> {
    /// What the session may use, and each run in it unless it says otherwise.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.request.limits = limits;
        self
    }

    /// Memory, in bytes.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.request.limits.memory = bytes;
        self
    }

    /// What its runs may reach.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.request.grants = grants;
        self
    }

    /// The directory it works on a copy of, at `/work`. Nothing is ever brought back there.
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.request.workspace = Some(path.into());
        self
    }

    /// Makes the session.
    pub async fn open(self) -> Result<Session, RunError> {
        self.sandbox.open_session(self.request).await
    }
}

impl Session {
    /// Its name, `ses_…`.
    pub fn id(&self) -> &str {
        self.kept.id()
    }

    /// What its code is written in.
    pub fn language(&self) -> Language {
        self.language
    }

    /// What it may use.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Runs code after whatever was asked of it before. Whatever goes wrong is in the result.
    ///
    /// Dropping the future ends the run, and what the session held in memory is lost with it.
    pub async fn run(&self, code: impl Into<String>) -> RunResult {
        let mut request = RunRequest::new(self.language, code);
        request.limits = self.limits;
        self.run_with(request, RunOptions::default(), std::future::pending()).await
    }

    /// Runs exactly what the request says, with a bridge for its tool calls, until `abort` completes.
    pub async fn run_with(
        &self,
        request: RunRequest,
        options: RunOptions,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.kept.run(request, options, abort).await
    }

    /// Keeps the session as it is now. The oldest checkpoints go when there are too many.
    pub async fn checkpoint(&self) -> Result<NewCheckpoint, RunError> {
        self.kept.checkpoint().await
    }

    /// Goes back to a checkpoint, variables and files; it can be gone back to again.
    pub async fn rollback(&self, checkpoint: &str) -> Result<(), RunError> {
        self.kept.rollback(checkpoint).await
    }

    /// Makes sessions of this one as it is now: all or none.
    pub async fn fork(&self, count: usize) -> Result<Vec<Self>, RunError> {
        self.fork_from(count, None).await
    }

    /// The same, from a checkpoint if it is given.
    pub async fn fork_from(
        &self,
        count: usize,
        checkpoint: Option<&str>,
    ) -> Result<Vec<Self>, RunError> {
        let forked = self.kept.fork(count, checkpoint).await?;
        Ok(forked.into_iter().map(|kept| Self { kept, ..self.clone() }).collect())
    }

    /// Writes a file beneath `/work`, and replaces what was there.
    pub async fn put_file(
        &self,
        path: &str,
        content: impl AsyncRead + Send + Unpin,
    ) -> Result<SessionFile, FileError> {
        self.kept.put_file(path, content).await
    }

    /// A file's size, and its content.
    pub async fn get_file(
        &self,
        path: &str,
    ) -> Result<(u64, impl AsyncRead + Send + Unpin + use<>), FileError> {
        self.kept.get_file(path).await
    }

    /// What is beneath `/work`, by path, and whether there is more than `at_most`.
    pub async fn list_files(&self, at_most: usize) -> Result<(Vec<SessionFile>, bool), FileError> {
        self.kept.list_files(at_most).await
    }

    /// Removes a file beneath `/work`.
    pub async fn delete_file(&self, path: &str) -> Result<(), FileError> {
        self.kept.delete_file(path).await
    }

    /// How it stands. Does not wait for what goes on in it.
    pub fn info(&self) -> SessionSnapshot {
        self.kept.snapshot()
    }

    /// Why it has ended, if it has.
    pub fn ending(&self) -> Option<SessionEnding> {
        self.kept.ending()
    }

    /// Completes when it has ended.
    pub async fn ended(&self) -> SessionEnding {
        self.kept.ended().await
    }

    /// Ends it, and waits until its guests are gone.
    pub async fn destroy(&self) {
        self.kept.destroy().await;
    }

    /// The same, for a reason.
    pub async fn end(&self, why: SessionEnding) {
        self.kept.end(why).await;
    }
}
