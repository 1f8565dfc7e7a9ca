//! The ports of this machine that no rule reaches: those on which Belljar itself listens.
//!
//! Whoever reaches the HTTP API of a Belljar can start runs with it. A rule may name an address of this
//! machine, and mean another service there.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
    fs,
    future::Future,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::task::spawn_blocking;

mod listeners;

/// The name of the program, whichever file it is in.
const PROGRAM: &str = "belljar";

/// How long it is known who holds a socket that listens. To find out means a look at all processes, for each
/// of many connections to a service of this machine.
const KNOWN_FOR: Duration = Duration::from_secs(1);

static KNOWN: LazyLock<Mutex<HashMap<BTreeSet<String>, HolderFound>>> =
    LazyLock::new(Mutex::default);

/// Whether Belljar holds a socket, and when that was found out.
#[derive(Debug)]
struct HolderFound {
    at: Instant,
    is_of_belljar: bool,
}

/// Knows the ports of this machine that no rule reaches.
pub trait ForbiddenPorts: Debug + Send + Sync {
    /// Whether a connection to this port of this machine is refused, whatever the rules say.
    fn is_forbidden<'a>(&'a self, port: u16) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// The ports on which this process listens, and other processes of the same program. The kernel is asked for
/// the sockets of a port each time, so nothing has to be registered. Processes of other users can be seen by
/// root only.
#[derive(Debug, Clone, Copy, Default)]
pub struct BelljarPorts;

impl ForbiddenPorts for BelljarPorts {
    fn is_forbidden<'a>(&'a self, port: u16) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            // A port whose owner cannot be found is refused.
            spawn_blocking(move || is_of_belljar(port)).await.unwrap_or(true)
        })
    }
}

/// No port is forbidden: for tests, whose servers are in the same process.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoForbiddenPorts;

impl ForbiddenPorts for NoForbiddenPorts {
    fn is_forbidden<'a>(&'a self, _port: u16) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(std::future::ready(false))
    }
}

fn is_of_belljar(port: u16) -> bool {
    let Some(listening) = listening_sockets(port) else { return true };
    if listening.is_empty() {
        return false;
    }
    let now = Instant::now();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&listening)
        && now.duration_since(found.at) < KNOWN_FOR
    {
        return found.is_of_belljar;
    }
    let is_of_belljar = is_held_by_belljar(&listening);
    let mut known = known();
    known.retain(|_, found| now.duration_since(found.at) < KNOWN_FOR);
    known.insert(listening, HolderFound { at: now, is_of_belljar });
    is_of_belljar
}

/// Whether a process of Belljar holds one of these sockets.
fn is_held_by_belljar(listening: &BTreeSet<String>) -> bool {
    let holds_one = |process: &Path| {
        let links = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let mut targets = links.filter_map(|link| fs::read_link(link.path()).ok());
        targets.any(|target| listening.iter().any(|socket| target == Path::new(socket)))
    };
    let own = Path::new("/proc/self");
    holds_one(own) || processes_of_program(own).iter().any(|process| holds_one(process))
}

/// The sockets that listen on a port in this network namespace, as links in `/proc/PID/fd` name them.
fn listening_sockets(port: u16) -> Option<BTreeSet<String>> {
    // A kernel may have no list to ask for (`CONFIG_INET_DIAG`).
    let inodes = listeners::asked(port).or_else(|_| listeners::read(port)).ok()?;
    Some(inodes.into_iter().map(|inode| format!("socket:[{inode}]")).collect())
}

/// Other processes that run the same file, or one of the same name.
fn processes_of_program(own: &Path) -> Vec<PathBuf> {
    let identity = |process: &Path| {
        fs::metadata(process.join("exe")).map(|file| (file.dev(), file.ino())).ok()
    };
    let own = identity(own);
    let is_same = |process: &PathBuf| {
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The kernel says so when the file was replaced by another version.
        let is_named = name.strip_suffix(" (deleted)").unwrap_or(name) == PROGRAM;
        is_named || (own.is_some() && identity(process) == own)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .map(|entry| entry.path())
        .filter(is_same)
        .collect()
}

#[cfg(test)]
mod tests;
