//! The driver's only clock, with two faces: one for what lasts, one for what others read.
//!
//! Waits, timeouts and deadlines go by time that passes, which nobody can set: a clock that is set back
//! must not make a wait of seconds one of hours, and one that is set forward must end nothing early.
//! Claims are read by other processes, so they go by the clock on the wall. After a restart the wall is
//! all there is to go by, and the passing of time is counted from what it shows then.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

/// The longest sleep at once: that the machine was asleep meanwhile is noticed after it.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// What time it is.
pub trait DriverClock: Send + Sync {
    /// Milliseconds since 1970, as the wall showed them when the host began, and all that have passed
    /// since. It never goes back, and goes on while the machine sleeps.
    fn now_ms(&self) -> i64;

    /// Milliseconds since 1970, as the wall shows them.
    fn wall_ms(&self) -> i64;

    /// Waits until [`now_ms`](Self::now_ms) is that, or a little less: who waits looks at the clock
    /// again.
    fn sleep_until(&self, at_ms: i64) -> impl Future<Output = ()> + Send;
}

/// The clock of the operating system; the same in all of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl DriverClock for SystemClock {
    fn now_ms(&self) -> i64 {
        /// What the wall showed at 0 of the clock that counts since boot.
        static AT_BOOT: OnceLock<i64> = OnceLock::new();
        let at_boot = AT_BOOT.get_or_init(|| self.wall_ms().saturating_sub(since_boot_ms()));
        at_boot.saturating_add(since_boot_ms())
    }

    fn wall_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    async fn sleep_until(&self, at_ms: i64) {
        let left = u64::try_from(at_ms.saturating_sub(self.now_ms())).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
    }
}

/// Milliseconds since the machine was started, those asleep included.
fn since_boot_ms() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}
