//! The owners of runs and workflows, as the store names them, and whether they live.
//!
//! The name of an owner holds its process number, its start time, the boot and the pid namespace. A
//! process of the same namespace is looked up in `/proc`. A process of another one (a container on
//! the same volume) cannot be, so each process locks a file in the state directory for as long as
//! it lives; the kernel releases the lock however the process ends. A process of an earlier boot is
//! dead.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

/// Directory of the lock files, in the state directory.
const DIRECTORY: &str = "hosts";
/// How often a lock file is created again if another process removes it.
const TRIES: usize = 10;

/// The state directories this process uses, with its locks.
static STATE_DIRECTORIES: Mutex<BTreeMap<PathBuf, Weak<LivenessLock>>> =
    Mutex::new(BTreeMap::new());
/// The owner name of this process.
static THIS_PROCESS: LazyLock<String> = LazyLock::new(|| {
    let id = std::process::id();
    format!("{id}:{}:{}", started_at(id).unwrap_or_default(), boot_and_namespace())
});

/// A locked file that shows other processes that this one lives, until it is dropped.
#[derive(Debug)]
pub(crate) struct LivenessLock {
    path: PathBuf,
    _lock: File,
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Includes a state directory in the search for owners of other pid namespaces.
pub fn watch_owners_in(state: &Path) {
    state_directories().entry(state.to_owned()).or_default();
}

/// Locks a file in a state directory, so that other processes see that this one lives.
pub(crate) fn announce_process(state: &Path) -> io::Result<Arc<LivenessLock>> {
    let mut directories = state_directories();
    if let Some(liveness) = directories.get(state).and_then(Weak::upgrade) {
        return Ok(liveness);
    }
    let directory = state.join(DIRECTORY);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    remove_unlocked(&directory);
    let liveness = Arc::new(lock_file(directory.join(file_name(&THIS_PROCESS)))?);
    directories.insert(state.to_owned(), Arc::downgrade(&liveness));
    Ok(liveness)
}

/// The owner name of this process. No later process with the same number has it.
pub(crate) fn this_process() -> String {
    THIS_PROCESS.clone()
}

/// Whether an owner is this process.
pub(crate) fn is_owner_this_process(owner: &str) -> bool {
    owner == *THIS_PROCESS
}

/// Whether an owner is a live process other than this one.
pub fn is_owner_alive(owner: &str) -> bool {
    let mut parts = owner.splitn(3, ':');
    let (Some(id), Some(started)) = (parts.next(), parts.next()) else { return false };
    let Ok(id) = id.parse() else { return false };
    match parts.next() {
        Some(elsewhere) if elsewhere != boot_and_namespace() => {
            is_of_this_boot(elsewhere) && is_held_elsewhere(owner)
        }
        _ => id != std::process::id() && started_at(id).is_some_and(|now| now == started),
    }
}

/// Whether the owner's file is locked in any known state directory.
fn is_held_elsewhere(owner: &str) -> bool {
    let directories: Vec<PathBuf> = state_directories().keys().cloned().collect();
    let name = file_name(owner);
    directories.iter().any(|state| is_held(&state.join(DIRECTORY).join(&name)))
}

fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Creates a file and locks it.
fn lock_file(path: PathBuf) -> io::Result<LivenessLock> {
    for _ in 0..TRIES {
        let file = File::options().create(true).append(true).mode(0o600).open(&path)?;
        file.try_lock().map_err(io::Error::from)?;
        // Another process may have removed the file before it was locked.
        let there = fs::metadata(&path).ok().map(|found| (found.dev(), found.ino()));
        let ours = file.metadata().map(|found| (found.dev(), found.ino()))?;
        if there == Some(ours) {
            return Ok(LivenessLock { path, _lock: file });
        }
    }
    Err(io::Error::other("another process keeps removing the lock file"))
}

/// Removes files without a lock.
fn remove_unlocked(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(file) = File::open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn file_name(owner: &str) -> String {
    owner.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

/// The boot and the pid namespace of this process.
fn boot_and_namespace() -> &'static str {
    static VALUE: LazyLock<String> = LazyLock::new(|| {
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
        format!("{}.{namespace}", boot())
    });
    &VALUE
}

fn is_of_this_boot(place: &str) -> bool {
    place.split('.').next() == Some(boot().as_str())
}

/// The first digits of the kernel's random boot id.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(char::is_ascii_hexdigit).take(12).collect()
}

/// When a process started, in clock ticks.
fn started_at(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // A killed process stays in `/proc` until its parent reaps it; it does nothing any more.
    let is_dead = fields.next().is_none_or(|state| state == "Z" || state == "X");
    if is_dead { None } else { fields.nth(18).map(str::to_owned) }
}

fn state_directories() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<LivenessLock>>> {
    STATE_DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}
