//! What the tests share.

use std::path::Path;

use belljar_store::{FILE_NAME, JournalRow, Lease, NewRun, Prune, PruneReport, RecordKind, Store};

/// A directory for one test and the store in it.
pub(crate) fn project() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    (directory, store)
}

/// A second look at the file, past the store.
pub(crate) fn sql(directory: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(directory.join(FILE_NAME)).unwrap()
}

pub(crate) fn new_run(id: &str, started_ms: i64) -> NewRun {
    NewRun {
        id: id.to_owned(),
        caller: "test".to_owned(),
        language: "typescript".to_owned(),
        code: "return 1".to_owned(),
        request_json: "{}".to_owned(),
        durable: true,
        seed: "5eed".to_owned(),
        owner: "first".to_owned(),
        started_ms,
    }
}

pub(crate) async fn begin(store: &Store, id: &str) -> Lease {
    store.begin_run(new_run(id, 1)).await.unwrap()
}

pub(crate) fn row(call: u32, body: Option<Vec<u8>>) -> JournalRow {
    JournalRow { kind: "intent".to_owned(), call, head: format!("{{\"n\":{call}}}"), body }
}

/// Removes what may go of a kind, all of it.
pub(crate) async fn prune(store: &Store, kind: RecordKind, before_ms: i64) -> PruneReport {
    let needed_runs = std::sync::Arc::default();
    let prune = Prune { kind, before_ms, limit: 100, needed_runs };
    let counted = store.count_prunable(prune.clone()).await.unwrap();
    let mut removed = PruneReport::default();
    loop {
        let batch = store.prune(prune.clone()).await.unwrap();
        if batch.records == 0 {
            break;
        }
        removed.records += batch.records;
        removed.bytes += batch.bytes;
    }
    assert_eq!(counted.records, removed.records, "what would go is what goes");
    removed
}

/// Drops values that nothing refers to and that were not put since.
pub(crate) async fn drop_orphans(store: &Store, before_ms: i64) -> PruneReport {
    prune(store, RecordKind::Blobs, before_ms).await
}
