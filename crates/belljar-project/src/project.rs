//! A project on disk: its directory, the state it keeps in `.belljar/`, and its MCP servers.
//!
//! Nothing is created or opened before it is needed: a run without tools in a bare directory leaves
//! no trace there.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use belljar_config::{
    ConfigLocations, ConfiguredServer, NetSettings, PROJECT_NAMES, ProjectSettings, STATE_NAME,
    ToolSettings,
};
use belljar_paths::owner::{UntrustedPath, check_place, check_state};
use belljar_store::{FILE_NAME, Store, StoreError};
use belljar_tools::{
    AcceptedServer, Bridge, BridgeConfig, KeptRules, KeptRulesError, ServerConfigError, ServerSpec,
    Surroundings, Upstreams, known_projects, prepare_kept_rules,
};
use thiserror::Error;

use crate::{Executor, Sandbox, network::NetworkSettings, now_ms, watch_owners_in};

/// The running program, which also supervises each MCP server it starts.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A directory, and the configuration of what runs in it.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use belljar_project::{Project, config::{ConfigLocations, ProjectSettings}};
///
/// let locations = ConfigLocations {
///     current: Some("/srv/project".into()),
///     variables: std::env::vars().collect(),
///     ..ConfigLocations::default()
/// };
/// let settings = ProjectSettings::load(None, &locations)?;
/// let project = Project::find(&locations, &settings)?;
/// println!("{} servers", project.tools().servers.len());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Project {
    root: PathBuf,
    /// The state directory, if it is not in the root.
    state: Option<PathBuf>,
    tools: ToolSettings,
    net: NetSettings,
    /// The files that the configuration was read from.
    files: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
    /// The rules that the user approved for good here; `None` without a home directory.
    kept: Option<KeptRules>,
}

/// Why a project cannot be used.
#[derive(Debug, Error)]
pub enum ProjectError {
    /// The current directory is unknown, so no project can be found from it.
    #[error("cannot read the current directory")]
    NoDirectory,
    /// The state or the configuration belongs to another user, or others can change it.
    #[error(transparent)]
    Untrusted(#[from] UntrustedPath),
    /// The state directory cannot be created.
    #[error("cannot prepare {}{hint}", path.display())]
    State {
        /// The remedy; empty if the cause says enough.
        hint: &'static str,
        /// The state directory, `.belljar`.
        path: PathBuf,
        /// The check or the system call that failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether the user accepts a server of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// Its word that a tool only reads counts.
    Accepted,
    /// It counts no longer.
    Retracted,
}

/// Why a server cannot be accepted.
#[derive(Debug, Error)]
pub enum AcceptError {
    /// No server has the name, or it was not accepted.
    #[error("no server {0} is configured or accepted here; `belljar tools list` lists them")]
    Unknown(String),
    /// The configuration of the server is not valid.
    #[error(transparent)]
    Invalid(#[from] ServerConfigError),
    /// There is no place for the record.
    #[error("there is no home directory to keep this in: set HOME or XDG_STATE_HOME")]
    NoHome,
    /// The record cannot be written.
    #[error(transparent)]
    Kept(#[from] KeptRulesError),
}

impl Project {
    /// Names that make a directory a project. Belljar obeys these files, so no commit writes them.
    pub const RESERVED_NAMES: [&str; 3] = PROJECT_NAMES;

    /// The project that these locations are in.
    ///
    /// # Errors
    /// If there is no current directory, or a file that configures the project is not trusted.
    pub fn find(
        locations: &ConfigLocations,
        settings: &ProjectSettings,
    ) -> Result<Self, ProjectError> {
        let root = locations.root()?.ok_or(ProjectError::NoDirectory)?;
        let (tools, net) = (settings.tools.clone(), settings.net.clone());
        let variables = locations.variables.clone();
        let (state, files) = (locations.state.clone(), locations.files()?);
        let kept = locations.approved_rules();
        let kept = kept.map(|at| KeptRules::new(at, &root).with_state(state.clone()));
        Ok(Self { root, state, tools, net, files, variables, kept })
    }

    /// The directory of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state directory, if the caller chose one outside of the project.
    pub fn chosen_state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// The configured servers and the policy for their tools.
    pub fn tools(&self) -> &ToolSettings {
        &self.tools
    }

    /// Whether any server is enabled, usable or not.
    pub fn has_servers(&self) -> bool {
        self.tools.servers.values().any(|server| !server.raw.disabled)
    }

    /// Paths that no code may see or change: the state, and the files that configure the project.
    /// Empty in a directory that has neither.
    pub fn protected(&self) -> Vec<PathBuf> {
        let of_root = Self::RESERVED_NAMES.map(|name| self.root.join(name));
        let mut paths = self.files.clone();
        paths.extend(self.state.clone());
        if let Some(kept) = &self.kept {
            // Before code could make it: what is in it allows calls.
            if let Err(error) = prepare_kept_rules(kept.directory()) {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "there is no place for rules that are approved for good");
            }
            paths.extend(kept.directory().exists().then(|| kept.directory().to_owned()));
        }
        if of_root.iter().any(|path| path.exists()) {
            paths.extend(of_root);
        }
        paths.sort();
        paths.dedup();
        paths
    }

    /// The state directory, created if it is missing.
    ///
    /// # Errors
    /// If it cannot be created, or is not this user's alone.
    pub fn state(&self) -> Result<PathBuf, ProjectError> {
        let path = self.state_directory();
        match prepare(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(ProjectError::State { path, hint: hint(&*source), source }),
        }
    }

    /// Where the state directory is or would be. If it exists, it is this user's alone.
    ///
    /// # Errors
    /// If another user owns it or can change it.
    pub fn state_path(&self) -> Result<PathBuf, ProjectError> {
        let directory = self.state_directory();
        check_state(&directory)?;
        Ok(directory)
    }

    fn state_directory(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| self.root.join(STATE_NAME))
    }

    /// The store, created if it is missing.
    ///
    /// # Errors
    /// If the state directory or the store cannot be used.
    pub fn open_store(&self) -> Result<Store, ProjectError> {
        open(&self.state()?)
    }

    /// The store, if the project has one.
    ///
    /// # Errors
    /// If the state directory is not trusted, or the store cannot be opened.
    pub fn existing_store(&self) -> Result<Option<Store>, ProjectError> {
        let directory = self.state_directory();
        let is_there = check_state(&directory)? && directory.join(FILE_NAME).is_file();
        is_there.then(|| open(&directory)).transpose()
    }

    /// A bridge to the servers; it starts none of them. A server with an invalid configuration is an
    /// error only for a caller that uses it.
    ///
    /// # Errors
    /// If the state directory, which holds the remembered tool lists, is not trusted.
    pub fn bridge(&self, store: Option<Store>) -> Result<Bridge, ProjectError> {
        let enabled = self.tools.servers.iter().filter(|(_, server)| !server.raw.disabled);
        let (mut specs, mut unusable) = (Vec::new(), Vec::new());
        for (name, server) in enabled {
            match self.check(name, server) {
                Ok(spec) => specs.push(spec),
                Err(error) => unusable.push((name.clone(), error)),
            }
        }
        let state = self.state_path()?;
        Ok(Bridge::new(BridgeConfig {
            upstreams: Upstreams::new(specs, &state, THIS_PROGRAM).with_unusable(unusable),
            local: BTreeMap::new(),
            policy: self.tools.policy.clone(),
            store,
            kept: self.kept.clone(),
            approval_timeout: self.tools.approval_timeout,
            audit: self.tools.audit,
            now_ms,
        }))
    }

    /// An executor with the project's store and servers. The sandbox must protect the paths of
    /// [`protected`](Self::protected), asked for after [`state`](Self::state) has created the directory.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn executor(&self, sandbox: Sandbox) -> Result<Executor, ProjectError> {
        let store = self.open_store()?;
        let bridge = self.bridge(Some(store.clone()))?;
        let network = NetworkSettings::new(self.net.clone(), self.variables.clone());
        Ok(Executor::new(sandbox, Some(bridge), Some(store)).with_network(network))
    }

    /// The rules that the user approved for good here; `None` without a home directory.
    pub fn kept_rules(&self) -> Option<&KeptRules> {
        self.kept.as_ref()
    }

    /// Another project of this user with an approval of this id or prefix, if one is known.
    pub async fn approval_elsewhere(&self, id: &str) -> Option<PathBuf> {
        for root in known_projects(self.kept.as_ref()?.directory()) {
            let state = root.join(STATE_NAME);
            if root == self.root
                || !check_state(&state).unwrap_or(false)
                || !state.join(FILE_NAME).is_file()
            {
                continue;
            }
            let Ok(store) = Store::open(&state) else { continue };
            if let Ok(Some(_)) = store.find_approval(id, now_ms()).await {
                return Some(root);
            }
        }
        None
    }

    /// Records that the user accepts a server of the project as it is configured now, or takes that back.
    ///
    /// # Errors
    /// If there is no such server, or the record cannot be written.
    pub fn accept(&self, server: &str, accepts: Acceptance) -> Result<(), AcceptError> {
        let kept = self.kept.as_ref().ok_or(AcceptError::NoHome)?;
        if accepts == Acceptance::Retracted {
            let was_there = kept.retract(server)?;
            return if was_there { Ok(()) } else { Err(AcceptError::Unknown(server.to_owned())) };
        }
        let unknown = || AcceptError::Unknown(server.to_owned());
        let configured = self.tools.servers.get(server).ok_or_else(unknown)?;
        let fingerprint = self.check(server, configured)?.fingerprint();
        Ok(kept.accept(AcceptedServer { server: server.to_owned(), fingerprint })?)
    }

    /// Whether the user has accepted the server as it is configured now.
    fn has_accepted(&self, spec: &ServerSpec) -> bool {
        let Some(file) = self.kept.as_ref().and_then(|kept| kept.load().ok()) else { return false };
        let fingerprint = spec.fingerprint();
        let mut accepted = file.accepted.iter();
        accepted.any(|one| one.server == spec.name() && one.fingerprint == fingerprint)
    }

    fn check(
        &self,
        name: &str,
        server: &ConfiguredServer,
    ) -> Result<ServerSpec, ServerConfigError> {
        let directory = server.directory.as_deref().unwrap_or(&self.root);
        let surroundings = Surroundings { variables: &self.variables, directory };
        let mut spec = ServerSpec::check(name, server.raw.clone(), surroundings)?;
        spec.chosen = server.is_of_user() || self.has_accepted(&spec);
        Ok(spec)
    }
}

/// The remedy if the state directory cannot be created in the project.
fn hint(source: &(dyn std::error::Error + 'static)) -> &'static str {
    match source.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            "; --state-dir DIR or BELLJAR_STATE_DIR names another place"
        }
        _ => "",
    }
}

fn open(directory: &Path) -> Result<Store, ProjectError> {
    watch_owners_in(directory);
    Ok(Store::open(directory)?)
}

/// Creates the state directory if it is missing, readable by its owner only and ignored by git. An
/// existing one must belong to this user, with everything in it. None is created where others could
/// replace it.
fn prepare(directory: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if !check_state(directory)? {
        check_place(directory)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_state(directory)?;
    }
    let path = directory.join(".gitignore");
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => Ok(file.write_all(b"*\n")?),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}
