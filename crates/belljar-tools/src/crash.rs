//! Crash points: places where a test can kill the host. Release builds have none.

/// Ends this process, at once and without a word, if `BELLJAR_CRASH_AT` names this place. With
/// `name:3` it does so the third time it gets here; with `*:17` at the seventeenth place of any name.
#[cfg(debug_assertions)]
pub fn crash_point(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static REACHED: AtomicU32 = AtomicU32::new(0);

    let Ok(wanted) = std::env::var("BELLJAR_CRASH_AT") else { return };
    let (wanted, times) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    let times_here = || REACHED.fetch_add(1, Ordering::SeqCst) + 1;
    if (wanted == name || wanted == "*") && times.parse() == Ok(times_here()) {
        let _ = kill_process(getpid(), Signal::KILL);
        // The signal may come to another thread first; this one does nothing more.
        loop {
            std::thread::park();
        }
    }
}

/// Release builds have no crash points.
#[cfg(not(debug_assertions))]
#[inline]
pub fn crash_point(_name: &str) {}
