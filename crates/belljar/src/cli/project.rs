//! A project: where it is, what it keeps in `.belljar/`, and its way to the tools.
//!
//! Nothing is made or opened before it is needed: a run without tools in a bare directory leaves
//! no trace there.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use belljar::{Executor, Sandbox, know_owners_of, now_ms};
use belljar_paths::owner::{check_place, check_state};
use belljar_store::{FILE_NAME, PriorFile, Store};
use belljar_tools::{Bridge, BridgeConfig, ServerConfigError, ServerSpec, Surroundings, Upstreams};

use super::config::{ConfiguredServer, PROJECT_NAMES, Places, STATE_NAME, Settings, ToolSettings};

/// This program, which is also what looks after each server.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A directory, and what is configured for what runs in it.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
    tools: ToolSettings,
    /// The files all this comes from.
    files: Vec<PathBuf>,
}

impl Project {
    /// What makes a directory a project, and is obeyed there: no commit brings it.
    pub(crate) const RESERVED_NAMES: [&str; 3] = PROJECT_NAMES;

    /// The project that these places are in.
    pub(crate) fn find(places: &Places, settings: &Settings) -> anyhow::Result<Self> {
        let root = places.root()?.context("the current directory cannot be found")?;
        Ok(Self { root, tools: settings.tools.clone(), files: places.files()? })
    }

    /// What is configured about tools.
    pub(crate) fn tools(&self) -> &ToolSettings {
        &self.tools
    }

    /// Whether there are servers, usable or not.
    pub(crate) fn has_servers(&self) -> bool {
        self.tools.servers.values().any(|server| !server.raw.disabled)
    }

    /// What no code may see or change: what the host keeps here, and the files it goes by. In a
    /// directory that has nothing of either, nothing.
    pub(crate) fn protected(&self) -> Vec<PathBuf> {
        let of_root = Self::RESERVED_NAMES.map(|name| self.root.join(name));
        let mut paths = self.files.clone();
        if of_root.iter().any(|path| path.exists()) {
            paths.extend(of_root);
        }
        paths.sort();
        paths.dedup();
        paths
    }

    /// The directory of what is kept, which is made if there is none.
    pub(crate) fn state(&self) -> anyhow::Result<PathBuf> {
        let directory = self.root.join(STATE_NAME);
        prepare(&directory)
            .with_context(|| format!("could not make {} ready", directory.display()))?;
        Ok(directory)
    }

    /// Where it is, whether or not it is there. What is there is the user's own.
    pub(crate) fn state_path(&self) -> anyhow::Result<PathBuf> {
        let directory = self.root.join(STATE_NAME);
        check_state(&directory)?;
        Ok(directory)
    }

    /// The store, which is made if there is none.
    pub(crate) fn open_store(&self) -> anyhow::Result<Store> {
        open(&self.state()?)
    }

    /// The store, if there is one.
    pub(crate) fn existing_store(&self) -> anyhow::Result<Option<Store>> {
        let directory = self.root.join(STATE_NAME);
        let is_there = check_state(&directory)? && directory.join(FILE_NAME).is_file();
        is_there.then(|| open(&directory)).transpose()
    }

    /// A bridge to the servers, none of which is started by this. One whose configuration makes no
    /// sense is an error only for who asks for it.
    ///
    /// # Errors
    /// If what is remembered of the servers here is not the user's own.
    pub(crate) fn bridge(&self, store: Option<Store>) -> anyhow::Result<Bridge> {
        let variables = variables();
        let enabled = self.tools.servers.iter().filter(|(_, server)| !server.raw.disabled);
        let (mut specs, mut unusable) = (Vec::new(), Vec::new());
        for (name, server) in enabled {
            match self.check(name, server, &variables) {
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
            approval_timeout: self.tools.approval_timeout,
            audit: self.tools.audit,
            now_ms,
        }))
    }

    /// Runs code with everything the project has. The sandbox is to protect what
    /// [`protected`](Self::protected) names once [`state`](Self::state) is there.
    pub(crate) fn executor(&self, sandbox: Sandbox) -> anyhow::Result<Executor> {
        let store = self.open_store()?;
        let bridge = self.bridge(Some(store.clone()))?;
        Ok(Executor::new(sandbox, Some(bridge), Some(store)))
    }

    fn check(
        &self,
        name: &str,
        server: &ConfiguredServer,
        variables: &BTreeMap<String, String>,
    ) -> Result<ServerSpec, ServerConfigError> {
        let directory = server.directory.as_deref().unwrap_or(&self.root);
        ServerSpec::check(name, server.raw.clone(), Surroundings { variables, directory })
    }
}

/// Opens the store of a state directory, and says so if there was nothing in its file.
fn open(directory: &Path) -> anyhow::Result<Store> {
    know_owners_of(directory);
    let store = Store::open(directory)?;
    if store.prior_file() == PriorFile::EmptyFile {
        let path = store.path().display();
        writeln!(io::stderr(), "warning: {path} was empty: a new store was begun there")?;
    }
    Ok(store)
}

/// Makes the directory if there is none, for its owner only and out of sight of git. One that is
/// there has to be the user's own, with everything in it. Where others could exchange it, none is made.
fn prepare(directory: &Path) -> anyhow::Result<()> {
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

/// The environment; what is no text cannot be part of a configuration.
fn variables() -> BTreeMap<String, String> {
    let texts = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.collect()
}
