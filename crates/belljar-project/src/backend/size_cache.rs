//! The size of the store. Measuring reads every page of the file, so results are cached.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use belljar_store::{Store, StoreSizes};

/// A result is reused for at least this long, and so long that at most 1 % of the time is spent
/// measuring.
const LEAST_AGE: Duration = Duration::from_secs(15);
const MOST_SHARE: u32 = 100;

/// The last measurement, if there was one.
#[derive(Debug, Default)]
pub(super) struct SizeCache(Mutex<Option<SizeSample>>);

#[derive(Debug)]
struct SizeSample {
    at: Instant,
    took: Duration,
    sizes: StoreSizes,
}

impl SizeCache {
    /// The sizes, measured again if the last result is too old.
    pub(super) async fn get(&self, store: &Store) -> Option<StoreSizes> {
        if let Some(known) = self.known() {
            return Some(known);
        }
        let began = Instant::now();
        let sizes = store.sizes().await.ok()?;
        let measured = SizeSample { at: began, took: began.elapsed(), sizes: sizes.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
        Some(sizes)
    }

    fn known(&self) -> Option<StoreSizes> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let SizeSample { at, took, sizes } = last.as_ref()?;
        (at.elapsed() < LEAST_AGE.max(*took * MOST_SHARE)).then(|| sizes.clone())
    }
}
