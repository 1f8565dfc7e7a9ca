//! Who does what is under way, as the store names it, and whether they still live.
//!
//! A process is named by its number, by when it started, by the boot and by the pid namespace it is
//! in. One of this namespace is looked up in `/proc`. One of another (a container on the same volume)
//! cannot be, so each process holds a lock on a file in the state directory for as long as it
//! lives: the kernel lets go of it however the process ends. A process of an earlier boot is gone.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

/// The directory with the files that live processes hold, in a project's state.
const DIRECTORY: &str = "hosts";
/// How often a file is made again that somebody has tidied away in between.
const TRIES: usize = 10;

/// The state directories this process knows, and what it holds there.
static STATE_DIRECTORIES: Mutex<BTreeMap<PathBuf, Weak<LivenessLock>>> =
    Mutex::new(BTreeMap::new());
/// What does not change while this process lives.
static THIS_PROCESS: LazyLock<String> = LazyLock::new(|| {
    let id = std::process::id();
    format!("{id}:{}:{}", started_at(id).unwrap_or_default(), boot_and_namespace())
});

/// A lock that shows others that this process lives, until it is dropped.
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

/// Has owners of other pid namespaces looked for in this state directory.
pub fn watch_owners_in(state: &Path) {
    state_directories().entry(state.to_owned()).or_default();
}

/// Shows whoever uses this state directory that this process lives.
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

/// This process, told apart from any later one with its number, and from those of other places.
pub(crate) fn this_process() -> String {
    THIS_PROCESS.clone()
}

/// Whether a run with this owner is this process's own.
pub(crate) fn is_owner_this_process(owner: &str) -> bool {
    owner == *THIS_PROCESS
}

/// Whether what has this owner, as the store names it, is being done by another process.
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

/// Whether somebody holds the file of an owner in any state directory that is known.
fn is_held_elsewhere(owner: &str) -> bool {
    let directories: Vec<PathBuf> = state_directories().keys().cloned().collect();
    let name = file_name(owner);
    directories.iter().any(|state| is_held(&state.join(DIRECTORY).join(&name)))
}

fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Makes a file and holds it.
fn lock_file(path: PathBuf) -> io::Result<LivenessLock> {
    for _ in 0..TRIES {
        let file = File::options().create(true).append(true).mode(0o600).open(&path)?;
        file.try_lock().map_err(io::Error::from)?;
        // Somebody may have tidied it away before it was held.
        let there = fs::metadata(&path).ok().map(|found| (found.dev(), found.ino()));
        let ours = file.metadata().map(|found| (found.dev(), found.ino()))?;
        if there == Some(ours) {
            return Ok(LivenessLock { path, _lock: file });
        }
    }
    Err(io::Error::other("its file was removed again and again"))
}

/// Removes files that nobody holds.
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

/// The boot and the pid namespace this process is in.
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

/// The beginning of what the kernel made up when it started.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(char::is_ascii_hexdigit).take(12).collect()
}

/// When a process started, in the kernel's ticks.
fn started_at(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // One that was killed is there until its parent asks for its end, and does nothing any more.
    let is_dead = fields.next().is_none_or(|state| state == "Z" || state == "X");
    if is_dead { None } else { fields.nth(18).map(str::to_owned) }
}

fn state_directories() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<LivenessLock>>> {
    STATE_DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}
