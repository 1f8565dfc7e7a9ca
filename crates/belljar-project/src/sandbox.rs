//! The façade for Rust programs: a [`Sandbox`] is a host with a pool of cells.
//!
//! It adds no behaviour to a run. It guards against a program that forgot [`init`] and would start
//! itself again and again.

mod build;
mod run;
mod session;
mod value;

pub use build::{BuildError, SandboxBuilder, init};
pub use run::RunBuilder;
pub use session::{Session, SessionBuilder};
pub use value::{RunResultExt, ValueError};

use belljar_config::EngineSettings;
use belljar_contract::{Language, Limits, RunRequest, RunResult};
use belljar_runtime::Host;

/// Runs guest code in sealed cells. Cheap to clone; all clones share one pool.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use belljar_project::{RunResultExt as _, Sandbox};
///
/// let sandbox = Sandbox::new().await?;
/// let squares: Vec<u32> = sandbox.run("return [1, 2, 3].map((n) => n * n)").await.value()?;
/// assert_eq!(squares, [1, 4, 9]);
///
/// // A failure is a result like any other.
/// let result = sandbox.run("while (true) {}").await;
/// assert!(!result.success);
/// sandbox.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) host: Host,
    limits: Limits,
    engines: EngineSettings,
}

impl Sandbox {
    /// A sandbox with a small pool of parked cells and the default limits.
    pub async fn new() -> Result<Self, BuildError> {
        Self::builder().build().await
    }

    /// Configures a sandbox before it starts.
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder::default()
    }

    /// Runs TypeScript to its end. Every failure is part of the result.
    ///
    /// Dropping the future ends the run and its cell.
    pub async fn run(&self, code: impl Into<String>) -> RunResult {
        self.typescript(code).run().await
    }

    /// Runs a complete request, with its own limits.
    pub async fn run_request(&self, mut request: RunRequest) -> RunResult {
        self.choose_engine(&mut request);
        self.host.run(request).await
    }

    /// States the engine of a request that names none, if one was chosen for its language. What is
    /// recorded of a request is recorded after this, so that a resume runs on the same engine.
    pub(crate) fn choose_engine(&self, request: &mut RunRequest) {
        request.engine = request.engine.or_else(|| self.engines.engine(request.language));
    }

    /// Prepares a run of TypeScript; [`RunBuilder::run`] starts it.
    pub fn typescript(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::TypeScript, code.into())
    }

    /// Prepares a run of JavaScript; [`RunBuilder::run`] starts it.
    pub fn javascript(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::JavaScript, code.into())
    }

    /// Prepares a run of Python; [`RunBuilder::run`] starts it.
    pub fn python(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::Python, code.into())
    }

    /// Prepares a run of a shell script; [`RunBuilder::run`] starts it.
    pub fn bash(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::Bash, code.into())
    }

    /// Ends every cell and zygote, and waits until they are gone.
    ///
    /// Dropping the last clone ends them too, without waiting.
    pub async fn shutdown(self) {
        self.host.shutdown().await;
    }
}
