//! Configuring a sandbox, and the guard against a program that never called [`init`].

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use belljar_config::EngineSettings;
use belljar_contract::{EngineName, Language, Limits};
use belljar_jail::{process_tree, process_tree::PROCESS_TREE_ARGUMENT};
use belljar_runtime::{Host, HostConfig, LaunchError, ZygotePlan, maximum_limits_here};
use belljar_worker::{ZYGOTE_ARGUMENT, become_zygote_if_asked};
use thiserror::Error;

use super::Sandbox;
use crate::engines::MachineEngines;

/// Enough for a few parallel requests, few enough to idle cheaply.
const DEFAULT_POOL: usize = 4;

/// The running program, even if its file was replaced or deleted since it started. Host and zygote
/// are always the same version.
const THIS_PROGRAM: &str = "/proc/self/exe";

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Turns this process into a zygote, or into the supervisor of an MCP server, if it was started as
/// one. Must be the first line of `main`.
///
/// In such a process it never returns. In any other it only records that a [`Sandbox`] may be
/// built.
pub fn init() {
    process_tree::serve_if_asked();
    become_zygote_if_asked();
    INITIALISED.store(true, Ordering::Relaxed);
}

/// Why the sandbox cannot be built. Whatever the variant, no guest code ran.
///
/// ```no_run
/// # async fn example() {
/// use belljar_project::{BuildError, Sandbox};
///
/// match Sandbox::builder().build().await {
///     Ok(sandbox) => sandbox.shutdown().await,
///     Err(BuildError::Launch(error)) => eprintln!("this machine cannot sandbox: {error}"),
///     Err(error) => eprintln!("this program cannot become a zygote: {error}"),
/// }
/// # }
/// ```
#[derive(Debug, Error)]
pub enum BuildError {
    /// [`init`] was not called, so the program cannot become its own zygote.
    #[error("call belljar_project::init() in the first line of main, before a sandbox is built")]
    NotInitialised,
    /// This process was started as a zygote, but its `main` did not call [`init`] first.
    #[error(
        "this process was started as a zygote, but its main did not become one; call \
         belljar_project::init() in the first line of main"
    )]
    InsideZygote,
    /// This machine could not confine the zygote.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// Configures a [`Sandbox`] before it starts.
///
/// ```no_run
/// # async fn example() -> Result<(), belljar_project::BuildError> {
/// use belljar_project::{EngineName, Sandbox};
///
/// let sandbox = Sandbox::builder()
///     .pool(8)
///     .ready([EngineName::CPython])
///     .protect(["/var/lib/my-program"])
///     .build()
///     .await?;
/// # sandbox.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SandboxBuilder {
    program: Option<PathBuf>,
    engines: EngineSettings,
    ready: Option<Vec<EngineName>>,
    pool: usize,
    limits: Limits,
    maximum: Limits,
    protected: Vec<PathBuf>,
    reserved_names: Vec<OsString>,
}

impl Default for SandboxBuilder {
    fn default() -> Self {
        let maximum = maximum_limits_here();
        Self {
            program: None,
            engines: EngineSettings::default(),
            ready: None,
            pool: DEFAULT_POOL,
            limits: Limits::DEFAULT.within(&maximum),
            maximum,
            protected: Vec::new(),
            reserved_names: Vec::new(),
        }
    }
}

impl SandboxBuilder {
    /// Number of cells parked in advance; with 0 every run starts a fresh one.
    #[must_use]
    pub fn pool(mut self, cells: usize) -> Self {
        self.pool = cells;
        self
    }

    /// The engines of languages, for runs and sessions that name none [default: the first one that
    /// runs the language].
    #[must_use]
    pub fn engines(mut self, engines: EngineSettings) -> Self {
        self.engines = engines;
        self
    }

    /// Engines that start immediately [default: the one for TypeScript]. Other engines start when
    /// they are first needed, which makes that run slower.
    #[must_use]
    pub fn ready(mut self, engines: impl IntoIterator<Item = EngineName>) -> Self {
        self.ready = Some(engines.into_iter().collect());
        self
    }

    /// Limits of a run that sets none.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The highest limits that a run may request; higher ones are refused.
    #[must_use]
    pub fn maximum(mut self, maximum: Limits) -> Self {
        self.maximum = maximum;
        self
    }

    /// Paths that guest code can never access, whatever is granted, whether or not they exist yet
    /// [default: none].
    ///
    /// Use it for the program's own state and configuration. In a workspace or a readable tree
    /// these paths appear empty, and no commit changes them. A writable tree that contains one is
    /// refused.
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.protected.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Names that make a directory a project [default: none]. No commit writes them in any
    /// directory of a workspace. A directory that contains one is [protected](Self::protect) in
    /// every granted tree, with all of these names.
    ///
    /// Use it for files that the program obeys wherever it finds them. Granted trees are searched
    /// for them; a tree that is too large to search is refused.
    #[must_use]
    pub fn reserve_names(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.reserved_names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Uses another program as the zygote, for example an installed `belljar`.
    ///
    /// For programs whose `main` cannot call [`init`], such as test harnesses.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Starts the zygote and waits until it is confined.
    pub async fn build(self) -> Result<Sandbox, BuildError> {
        let second = std::env::args_os().nth(1);
        check(self.program.is_some(), second.as_deref(), INITIALISED.load(Ordering::Relaxed))?;
        let program = self.program.unwrap_or_else(|| PathBuf::from(THIS_PROGRAM));
        let engines = self.engines;
        let usual = || {
            let language = Language::TypeScript;
            engines.engine(language).unwrap_or_else(|| EngineName::default_for(language))
        };
        let host = Host::start(HostConfig {
            engines: Arc::new(MachineEngines::new(program)),
            ready: self.ready.unwrap_or_else(|| vec![usual()]),
            plan: ZygotePlan::full(),
            pool_size: self.pool,
            maximum: self.maximum,
            protected: self.protected,
            reserved_names: self.reserved_names,
        })
        .await?;
        Ok(Sandbox { host, limits: self.limits, engines })
    }
}

/// Prevents a program from starting itself without end.
fn check(
    other_program: bool,
    first_argument: Option<&OsStr>,
    initialised: bool,
) -> Result<(), BuildError> {
    let roles = [ZYGOTE_ARGUMENT, PROCESS_TREE_ARGUMENT];
    if roles.iter().any(|role| first_argument == Some(OsStr::new(role))) {
        return Err(BuildError::InsideZygote);
    }
    if !initialised && !other_program {
        return Err(BuildError::NotInitialised);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
