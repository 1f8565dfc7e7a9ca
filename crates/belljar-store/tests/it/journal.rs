//! The journal gives back what was appended, in that order (D7).

use belljar_store::{JournalRow, Store, StoreError};
use proptest::{collection::vec, option, prelude::*};

use crate::support::{begin, drop_orphans, project, row, sql};

#[tokio::test]
async fn rows_are_numbered_densely_in_each_run() {
    let (_directory, store) = project();
    let (a, b) = (begin(&store, "run_a").await, begin(&store, "run_b").await);
    assert_eq!(store.append(&a, vec![row(1, None), row(2, None)], 2).await.unwrap(), 1);
    assert_eq!(store.append(&b, vec![row(9, Some(vec![]))], 2).await.unwrap(), 1);
    assert_eq!(store.append(&a, vec![row(3, Some(vec![7]))], 2).await.unwrap(), 3);
    let expected = vec![(1, row(1, None)), (2, row(2, None)), (3, row(3, Some(vec![7])))];
    assert_eq!(store.journal(&"run_a".into()).await.unwrap(), expected);
    assert_eq!(store.journal(&"run_b".into()).await.unwrap(), [(1, row(9, Some(vec![])))]);
    assert_eq!(store.journal(&"run_c".into()).await.unwrap(), []);
}

/// Large bodies are among the blobs, once each, and stay as long as a row refers to them.
#[tokio::test]
async fn large_bodies_are_kept_once_and_survive_pruning() {
    let (directory, store) = project();
    let lease = begin(&store, "run_a").await;
    let sizes = [16 * 1024, 16 * 1024 + 1, 3_000_000, 3_000_000];
    let rows: Vec<_> = (0..).zip(sizes).map(|(n, size)| row(n, Some(vec![b'z'; size]))).collect();
    store.append(&lease, rows.clone(), 2).await.unwrap();
    let blobs = "SELECT count(*) FROM blobs";
    let count = || sql(directory.path()).query_row(blobs, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 2);
    assert_eq!(drop_orphans(&store, i64::MAX).await.records, 0);
    let read = store.journal(&"run_a".into()).await.unwrap();
    assert!(read.into_iter().map(|(_, row)| row).eq(rows), "bodies differ");
}

/// A replay that skips a row would repeat a call.
#[tokio::test]
async fn a_missing_row_is_an_error() {
    let (directory, store) = project();
    let lease = begin(&store, "run_a").await;
    store.append(&lease, vec![row(1, None), row(2, None), row(3, None)], 2).await.unwrap();
    sql(directory.path()).execute("DELETE FROM journal WHERE seq = 2", []).unwrap();
    assert!(matches!(store.journal(&"run_a".into()).await, Err(StoreError::Damaged { .. })));
}

fn rows() -> impl Strategy<Value = Vec<JournalRow>> {
    let body = prop_oneof![
        9 => vec(any::<u8>(), 0..200),
        1 => (any::<u8>(), 16_000..40_000_usize).prop_map(|(byte, size)| vec![byte; size]),
    ];
    let row = (".{0,12}", any::<u32>(), ".{0,60}", option::of(body));
    vec(row.prop_map(|(kind, call, head, body)| JournalRow { kind, call, head, body }), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_rows_come_back(batches in vec(rows(), 0..5)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (directory, store) = project();
            let lease = begin(&store, "run_a").await;
            let mut expected = Vec::new();
            for batch in batches {
                let first = store.append(&lease, batch.clone(), 2).await.unwrap();
                assert_eq!(first, expected.len() as u64 + 1);
                expected.extend((first..).zip(batch));
            }
            assert_eq!(store.journal(&"run_a".into()).await.unwrap(), expected);
            drop(store);
            let reopened = Store::open(directory.path()).unwrap();
            assert_eq!(reopened.journal(&"run_a".into()).await.unwrap(), expected);
        });
    }
}
