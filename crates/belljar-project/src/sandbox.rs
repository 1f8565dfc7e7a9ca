//! The façade: a [`Sandbox`] is a host with its pool, and the few calls a program needs.
//!
//! It adds no behaviour of its own to a run. What it does own is the guard against a program that
//! forgot [`init`]: such a program would start itself again and again.

mod build;
mod run;
mod session;
mod value;

pub use belljar_runtime::unrun;
pub use build::{BuildError, SandboxBuilder, init};
pub use run::RunBuilder;
pub use session::{Session, SessionBuilder};
pub use value::{RunResultExt, ValueError};

use belljar_runtime::{Bridged, Host, Language, Limits, RunRequest, RunResult};

/// Runs guest code in sealed cells. Cheap to clone; all clones share one pool.
#[derive(Debug, Clone)]
pub struct Sandbox {
    host: Host,
    limits: Limits,
}

impl Sandbox {
    /// A sandbox with a small pool of parked cells and the default limits.
    pub async fn new() -> Result<Self, BuildError> {
        Self::builder().build().await
    }

    /// A sandbox set up by hand.
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder::default()
    }

    /// Runs TypeScript to its end. Whatever goes wrong is in the result.
    ///
    /// Dropping the future ends the run and its cell.
    pub async fn run(&self, code: impl Into<String>) -> RunResult {
        self.typescript(code).run().await
    }

    /// Runs exactly what the request says, with the request's own limits.
    pub async fn run_request(&self, request: RunRequest) -> RunResult {
        self.host.run(request).await
    }

    /// The same, until `abort` completes: then the run ends as aborted, with what it printed.
    pub async fn run_until(
        &self,
        request: RunRequest,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.host.run_until(request, abort).await
    }

    /// The same, with a bridge for its tool calls.
    pub async fn run_bridged(
        &self,
        request: RunRequest,
        bridged: Option<Bridged>,
        abort: impl Future<Output = ()>,
    ) -> RunResult {
        self.host.run_bridged(request, bridged, abort).await
    }

    /// TypeScript to run, with what it may use still to be said.
    pub fn typescript(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::TypeScript, code.into())
    }

    /// JavaScript to run, with what it may use still to be said.
    pub fn javascript(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::JavaScript, code.into())
    }

    /// Python to run, with what it may use still to be said.
    pub fn python(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::Python, code.into())
    }

    /// A shell script to run, with what it may use still to be said.
    pub fn bash(&self, code: impl Into<String>) -> RunBuilder<'_> {
        RunBuilder::new(self, Language::Bash, code.into())
    }

    /// Ends every cell and the zygote, and waits until they are gone.
    ///
    /// Dropping the last clone ends them too, without waiting.
    pub async fn shutdown(self) {
        self.host.shutdown().await;
    }
}
