//! Finding the processes of a zygote from outside, by a mark on its command line.

use std::{
    fs,
    time::{Duration, Instant},
};

/// A zygote's processes. Those it copies itself into keep its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) warden: i32,
    pub(crate) zygote: i32,
    /// Keeper and guest of each cell.
    pub(crate) cells: Vec<(i32, i32)>,
}

/// The roles of zygotes, before and after they start themselves again.
const ZYGOTES: [&str; 3] = ["__zygote", "__programs", "__resume"];

/// Every process of a zygote that was started with this mark as an argument, as
/// `(pid, parent)`. One that is ending has no command line, and holds nothing either.
pub(crate) fn marked(mark: &str) -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| has_mark(*pid, mark)).filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

fn has_mark(pid: i32, mark: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = |wanted: &str| line.split(|byte| *byte == 0).any(|part| part == wanted.as_bytes());
    has(mark) && ZYGOTES.iter().any(|role| has(role)) && !has("--")
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

impl Tree {
    /// The processes of the zygote with this mark, once there are a warden and a zygote.
    pub(crate) fn find(mark: &str) -> Option<Self> {
        let all = marked(mark);
        let child_of = |parent: i32| all.iter().filter(move |(_, of)| *of == parent);
        let top = all.iter().find(|(_, parent)| !all.iter().any(|(pid, _)| pid == parent));
        let (warden, _) = *top?;
        let (zygote, _) = *child_of(warden).next()?;
        let cells = child_of(zygote)
            .filter_map(|(keeper, _)| Some((*keeper, child_of(*keeper).next()?.0)))
            .collect();
        Some(Self { warden, zygote, cells })
    }
}

/// Polls until something is true, or five seconds have gone by.
pub(crate) fn soon(mut holds: impl FnMut() -> bool) -> bool {
    until(Duration::from_secs(5), || holds().then_some(())).is_some()
}

/// Polls until there is something, or the time is up.
pub(crate) fn until<T>(longest: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + longest;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A mark no other zygote has.
pub(crate) fn new_mark() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
