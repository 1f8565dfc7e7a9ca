//! The driver's clock. It has two readings: elapsed time for durations, wall time for other
//! processes.
//!
//! Waits, timeouts and deadlines use elapsed time, which cannot be set: setting the clock back must
//! not turn a wait of seconds into one of hours, and setting it forward must end nothing early.
//! Other processes read claims, so claims use wall time. After a restart the driver has only wall
//! time, and counts elapsed time from there.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

/// The longest single sleep: afterwards the driver notices that the machine was suspended
/// meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// The time, for a driver.
pub trait DriverClock: Send + Sync {
    /// Milliseconds since 1970: the wall time when the host began plus the time elapsed since,
    /// suspended time included. It never goes back.
    fn now_ms(&self) -> i64;

    /// Milliseconds since 1970, by the wall clock.
    fn wall_ms(&self) -> i64;

    /// Waits until about [`now_ms`](Self::now_ms) `at_ms`. It may return early: the caller checks
    /// the clock again.
    fn sleep_until(&self, at_ms: i64) -> impl Future<Output = ()> + Send;
}

/// The clock of the operating system, the same throughout a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl DriverClock for SystemClock {
    fn now_ms(&self) -> i64 {
        /// The wall time at which the machine was started.
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

/// Milliseconds since the machine was started, suspended time included.
fn since_boot_ms() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}
