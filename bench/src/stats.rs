//! Percentiles and rates of measured times.

use std::time::Duration;

/// Times of one case, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Times {
    milliseconds: Vec<f64>,
}

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.milliseconds.push(time.as_secs_f64() * 1000.0);
    }

    /// Adds a time that a peer measured itself.
    pub(super) fn add_ms(&mut self, milliseconds: f64) {
        self.milliseconds.push(milliseconds);
    }

    pub(super) fn count(&self) -> u64 {
        self.milliseconds.len() as u64
    }

    /// The smallest measured time that is not exceeded by at least `percent` of the times.
    pub(super) fn percentile(&self, percent: usize) -> Option<f64> {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }

    /// Runs per second, one after the other.
    pub(super) fn rate_per_s(&self) -> Option<f64> {
        let total: f64 = self.milliseconds.iter().sum();
        (total > 0.0).then(|| self.milliseconds.len() as f64 * 1000.0 / total)
    }
}

impl Extend<Duration> for Times {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        times.into_iter().for_each(|time| self.add(time));
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut all = Self::default();
        all.extend(times);
        all
    }
}

#[cfg(test)]
mod tests;
