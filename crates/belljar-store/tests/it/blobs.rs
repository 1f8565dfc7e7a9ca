//! Blobs are what was put, or an error.

use belljar_store::{PruneReport, StoreError};

use crate::support::{begin, drop_orphans, project, row, sql};

fn megabyte(seed: u8) -> Vec<u8> {
    (0..1_000_000_u32).map(|n| (n.wrapping_mul(31) >> 3) as u8 ^ seed).collect()
}

#[tokio::test]
async fn a_megabyte_comes_back_under_the_name_of_its_content() {
    let (_directory, store) = project();
    let id = store.put_blob(megabyte(1), "application/json", 5).await.unwrap();
    let hello = store.put_blob(b"hello".to_vec(), "text/plain", 5).await.unwrap();
    assert_eq!(hello, "blob_2cf24dba5fb0a30e26e83b2ac5b9e29e");
    assert!(store.blob(&id).await.unwrap().unwrap() == megabyte(1));
    assert_eq!(store.put_blob(megabyte(1), "text/csv", 9).await.unwrap(), id);
    assert_eq!(store.blob_media_type(&id).await.unwrap().as_deref(), Some("text/csv"));
    assert_eq!(store.blob("blob_0").await.unwrap(), None);
    assert_eq!(store.blob_media_type("blob_0").await.unwrap(), None);
}

#[tokio::test]
async fn damaged_bytes_are_an_error_wherever_they_are_read() {
    let (directory, store) = project();
    let lease = begin(&store, "run_a").await;
    let id = store.put_blob(megabyte(1), "text/plain", 5).await.unwrap();
    store.append(&lease, vec![row(1, Some(megabyte(1)))], 2).await.unwrap();
    // Control.
    assert_eq!(store.journal(&"run_a".into()).await.unwrap().len(), 1);
    let changed = "UPDATE blobs SET bytes = CAST(zeroblob(1000000) AS BLOB)";
    sql(directory.path()).execute(changed, []).unwrap();
    assert!(matches!(store.blob(&id).await, Err(StoreError::Damaged { .. })));
    assert!(matches!(store.journal(&"run_a".into()).await, Err(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn what_was_not_used_for_long_goes_and_what_is_referred_to_stays() {
    let (_directory, store) = project();
    let lease = begin(&store, "run_a").await;
    store.append(&lease, vec![row(1, Some(vec![1; 20_000]))], 1).await.unwrap();
    let mut ids = Vec::new();
    for n in 2..6_u8 {
        let now = i64::from(n);
        ids.push(store.put_blob(vec![n; 20_000], "text/plain", now).await.unwrap());
    }
    // Used again, so that it is the newest now.
    store.put_blob(vec![2; 20_000], "text/plain", 10).await.unwrap();
    assert_eq!(drop_orphans(&store, 5).await, PruneReport { records: 2, bytes: 40_000 });
    let mut left = Vec::new();
    for id in &ids {
        left.push(store.blob(id).await.unwrap().is_some());
    }
    assert_eq!(left, [true, false, false, true]);
    assert_eq!(drop_orphans(&store, 11).await, PruneReport { records: 2, bytes: 40_000 });
    assert_eq!(store.journal(&"run_a".into()).await.unwrap(), [(1, row(1, Some(vec![1; 20_000])))]);
}
