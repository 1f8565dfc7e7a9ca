//! A user's permanent decisions about a project, in files of the user's own: rules that were approved
//! with "always", and servers that the user accepted.
//!
//! One file per project, in a directory that no cell sees. The project's own files cannot say any of it:
//! they may come from a stranger. A file that another user could have written counts as a failure, never
//! as a rule.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use belljar_contract::hex;
use belljar_paths::owner::{Purpose, UntrustedPath, check_place, check_state, read_to_string};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::StandingRule;

/// Digits of the hash that names the file of a project.
const NAME_DIGITS: usize = 32;
const EXTENSION: &str = "json";
/// Held while a file is read and written again.
const LOCK: &str = "lock";

/// The rules that a user keeps for one project. Cheap to clone; every use reads the file again, since
/// another process may have changed it.
#[derive(Debug, Clone)]
pub struct KeptRules {
    directory: PathBuf,
    project: PathBuf,
    state: Option<PathBuf>,
}

/// The decisions that a user keeps for a project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptFile {
    /// The project's root.
    pub project: PathBuf,
    /// Rules that were approved for good.
    #[serde(default)]
    pub rules: Vec<StandingRule>,
    /// Servers of the project that the user accepted, each as it was configured then.
    #[serde(default)]
    pub accepted: Vec<AcceptedServer>,
}

/// A server that the user accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedServer {
    /// Its name in the configuration.
    pub server: String,
    /// A hash of its configuration.
    pub fingerprint: String,
}

/// Why the rules of a user cannot be read or written.
#[derive(Debug, Error)]
pub enum KeptRulesError {
    /// The directory or a file belongs to another user, or others can change it.
    #[error(transparent)]
    Untrusted(#[from] UntrustedPath),
    /// A file is not as Belljar writes it.
    #[error("{path} is damaged: remove it, and approve its rules again", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {path}", path = .path.display())]
    Unwritable {
        /// The file or its directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl KeptRules {
    /// The rules for the project in `project`, kept in `directory`.
    pub fn new(directory: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), project: project.into(), state: None }
    }

    /// The root of the project.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The same project with its state in this directory.
    #[must_use]
    pub fn with_state(self, state: Option<PathBuf>) -> Self {
        Self { state, ..self }
    }

    /// The directory of the project's state, if it is not in its default place.
    pub fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// The directory with the files of all projects.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kept decisions; none if there is no file.
    ///
    /// # Errors
    /// If the file is damaged or not the user's alone.
    pub fn load(&self) -> Result<KeptFile, KeptRulesError> {
        let nothing = KeptFile { project: self.project.clone(), ..KeptFile::default() };
        if !check_state(&self.directory)? {
            return Ok(nothing);
        }
        let found = read(&self.path())?;
        Ok(found.filter(|file| file.project == self.project).unwrap_or(nothing))
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn add(&self, rule: StandingRule) -> Result<(), KeptRulesError> {
        self.change(|file| file.rules.push(rule))
    }

    /// Removes a rule by its id; `None` if there is no such rule.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn remove(&self, id: &str) -> Result<Option<StandingRule>, KeptRulesError> {
        self.change(|file| {
            let at = file.rules.iter().position(|rule| rule.id == id)?;
            Some(file.rules.remove(at))
        })
    }

    /// Records that the user accepts a server as it is configured now.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn accept(&self, accepted: AcceptedServer) -> Result<(), KeptRulesError> {
        self.change(|file| {
            file.accepted.retain(|known| known.server != accepted.server);
            file.accepted.push(accepted);
        })
    }

    /// Takes an acceptance back; false if there was none.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn retract(&self, server: &str) -> Result<bool, KeptRulesError> {
        self.change(|file| {
            let before = file.accepted.len();
            file.accepted.retain(|known| known.server != server);
            file.accepted.len() < before
        })
    }

    /// Makes the project known to [`known_projects`], so that its approvals are found from elsewhere.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remember_project(&self) -> Result<(), KeptRulesError> {
        if self.path().is_file() { Ok(()) } else { self.change(|_| ()) }
    }

    fn path(&self) -> PathBuf {
        let mut name = hex::encode(&Sha256::digest(self.project.as_os_str().as_encoded_bytes()));
        name.truncate(NAME_DIGITS);
        self.directory.join(name).with_extension(EXTENSION)
    }

    fn change<T>(&self, change: impl FnOnce(&mut KeptFile) -> T) -> Result<T, KeptRulesError> {
        prepare(&self.directory)?;
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| KeptRulesError::Unwritable { path, source }
        };
        let lock = self.directory.join(LOCK);
        let mut options = fs::OpenOptions::new();
        let held = options.create(true).truncate(false).write(true).mode(0o600).open(&lock);
        let held = held.map_err(unwritable(&lock))?;
        held.lock().map_err(unwritable(&lock))?;
        let mut file = self.load()?;
        let changed = change(&mut file);
        let path = self.path();
        write(&path, &file).map_err(unwritable(&path))?;
        Ok(changed)
    }
}

/// Every project that some call asked a question in, as far as its file can be read.
pub fn known_projects(directory: &Path) -> Vec<PathBuf> {
    if !check_state(directory).unwrap_or(false) {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == EXTENSION));
    let mut projects: Vec<PathBuf> =
        files.filter_map(|path| Some(read(&path).ok()??.project)).collect();
    projects.sort();
    projects
}

/// Creates the directory for such files if it is missing, for its owner only.
///
/// # Errors
/// If another user could change what is in it, or it cannot be created.
pub fn prepare(directory: &Path) -> Result<(), KeptRulesError> {
    if check_state(directory)? {
        return Ok(());
    }
    let unwritable = |source| KeptRulesError::Unwritable { path: directory.to_owned(), source };
    if let Some(place) = directory.parent() {
        fs::create_dir_all(place).map_err(unwritable)?;
    }
    check_place(directory)?;
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(unwritable(error));
        }
        Ok(()) | Err(_) => {}
    }
    check_state(directory)?;
    Ok(())
}

fn read(path: &Path) -> Result<Option<KeptFile>, KeptRulesError> {
    let text = match read_to_string(path, Purpose::State) {
        Err(error) if error.is_missing() => return Ok(None),
        text => text?,
    };
    let damaged = |source| KeptRulesError::Damaged { path: path.to_owned(), source };
    serde_json::from_str(&text).map(Some).map_err(damaged)
}

/// Replaces the file as a whole: a reader sees the old one or the new one.
fn write(path: &Path, file: &KeptFile) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut text = serde_json::to_vec_pretty(file)?;
    text.push(b'\n');
    let mut options = fs::OpenOptions::new();
    let mut written = options.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
    written.write_all(&text)?;
    written.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests;
