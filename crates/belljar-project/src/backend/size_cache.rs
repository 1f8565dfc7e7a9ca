//! How large the store is, measured now and then: that means looking at every page of it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use belljar_server::StorageSizes;
use belljar_store::{Store, StoreSizes};

/// Figures are no younger than this, and no more than a hundredth of the time goes into them.
const LEAST_AGE: Duration = Duration::from_secs(15);
const MOST_SHARE: u32 = 100;

/// What was measured last.
#[derive(Debug, Default)]
pub(super) struct SizeCache(Mutex<Option<SizeSample>>);

#[derive(Debug)]
struct SizeSample {
    at: Instant,
    took: Duration,
    sizes: StorageSizes,
}

impl SizeCache {
    /// The figures, measured anew if they are old.
    pub(super) async fn get(&self, store: &Store) -> Option<StorageSizes> {
        if let Some(known) = self.known() {
            return Some(known);
        }
        let began = Instant::now();
        let StoreSizes { kinds, file, log, free } = store.sizes().await.ok()?;
        let kinds = kinds.into_iter().map(|(kind, bytes)| (kind.as_str(), bytes)).collect();
        let sizes = StorageSizes { kinds, file, log, free };
        let measured = SizeSample { at: began, took: began.elapsed(), sizes: sizes.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
        Some(sizes)
    }

    fn known(&self) -> Option<StorageSizes> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let SizeSample { at, took, sizes } = last.as_ref()?;
        (at.elapsed() < LEAST_AGE.max(*took * MOST_SHARE)).then(|| sizes.clone())
    }
}
