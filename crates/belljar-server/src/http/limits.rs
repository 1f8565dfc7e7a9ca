//! Limits of the server as a whole: requests per second, runs and event streams at once.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::error::ApiError;

/// A token bucket: so many requests per second, and as many at once after a pause.
#[derive(Debug)]
pub(crate) struct RequestRate {
    per_second: f64,
    left: Mutex<(f64, Instant)>,
}

impl RequestRate {
    pub(crate) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self { per_second, left: Mutex::new((per_second, Instant::now())) }
    }

    /// Counts one request, or refuses it.
    pub(crate) fn check(&self, now: Instant) -> Result<(), ApiError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, since) = *left;
        let earned = now.saturating_duration_since(since).as_secs_f64() * self.per_second;
        let tokens = (tokens + earned).min(self.per_second);
        let is_enough = tokens >= 1.0;
        *left = (if is_enough { tokens - 1.0 } else { tokens }, now);
        if is_enough { Ok(()) } else { Err(self.too_many()) }
    }

    fn too_many(&self) -> ApiError {
        let message = format!("more than {} requests per second", self.per_second);
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "server.rate", message)
            .with_hint("send requests more slowly")
            .retry_after(1)
    }
}

/// A limit on how many long operations run at once. A slot is free again when its permit is
/// dropped.
#[derive(Debug, Clone)]
pub(crate) struct ConcurrencyLimit {
    free: Arc<Semaphore>,
    most: usize,
    what: &'static str,
}

impl ConcurrencyLimit {
    pub(crate) fn new(most: usize, what: &'static str) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most, what }
    }

    pub(crate) fn acquire(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let taken = self.free.clone().try_acquire_owned();
        taken.map_err(|_| {
            ApiError::busy(format!("all {} slots for {} are in use", self.most, self.what))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn e3_a_second_brings_as_many_as_it_may() {
        let rate = RequestRate::new(3);
        let start = Instant::now();
        let taken = |at: Instant| (0..10).filter(|_| rate.check(at).is_ok()).count();
        assert_eq!(taken(start), 3);
        assert_eq!(taken(start), 0);
        assert_eq!(taken(start + Duration::from_secs(1)), 3);
        // A long pause earns no more than a second's worth.
        assert_eq!(taken(start + Duration::from_secs(100)), 3);
    }

    #[test]
    fn e3_a_place_is_free_again_when_it_is_left() {
        let limit = ConcurrencyLimit::new(1, "runs");
        let taken = limit.acquire();
        assert!(taken.is_ok());
        let refused = limit.acquire().map(drop).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after_seconds), (429, Some(1)));
        drop(taken);
        assert!(limit.acquire().is_ok());
    }
}
