//! The driver's only clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest sleep at once: a clock that was set forward is noticed after it.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// What time it is.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Waits until then, or a little less: who waits looks at the clock again.
    fn sleep_until(&self, at_ms: i64) -> impl Future<Output = ()> + Send;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    async fn sleep_until(&self, at_ms: i64) {
        let left = u64::try_from(at_ms.saturating_sub(self.now_ms())).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
    }
}
