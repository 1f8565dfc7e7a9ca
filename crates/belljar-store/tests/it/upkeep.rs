//! The file itself: sizes, shrinking, copies, and what is told when something is wrong with it.

use std::{
    fs,
    os::unix::fs::{FileExt as _, PermissionsExt as _},
    path::Path,
};

use belljar_store::{FILE_NAME, PriorFile, RecordKind, ShrinkMode, Store, StoreError, Trouble};

use crate::support::{begin, drop_orphans, new_run, project, row, sql};

async fn fill(store: &Store, megabytes: u8) {
    for n in 0..megabytes {
        store.put_blob(vec![n; 1 << 20], "text/plain", 1).await.unwrap();
    }
}

fn bytes(directory: &Path) -> u64 {
    fs::metadata(directory.join(FILE_NAME)).unwrap().len()
}

/// Reliability 6: what was deleted is given back to the file system, a few pages at a time.
#[tokio::test]
async fn reliability_6_the_file_shrinks_in_steps() {
    let (directory, store) = project();
    assert_eq!(store.shrink_mode().await.unwrap(), ShrinkMode::InSteps);
    fill(&store, 8).await;
    let used = store.used_bytes().await.unwrap();
    assert!(store.empty_log().await.unwrap());
    let before = store.sizes().await.unwrap();
    assert!(before.file > 8 << 20 && before.kinds[&RecordKind::Blobs] > 8 << 20, "{before:?}");
    assert!(before.kinds[&RecordKind::Runs] < 1 << 20, "{before:?}");
    assert_eq!(drop_orphans(&store, 2).await.records, 8);
    assert!(store.used_bytes().await.unwrap() < used / 10);
    let free = store.sizes().await.unwrap().free;
    assert!(free > 8 << 20, "{free}");
    assert_eq!(store.shrink(100).await.unwrap(), 100);
    while store.shrink(500).await.unwrap() > 0 {}
    assert!(store.empty_log().await.unwrap());
    assert_eq!(store.sizes().await.unwrap().free, 0);
    assert!(bytes(directory.path()) < 1 << 20);
}

/// A file that was made before files shrank does so once it was rewritten.
#[tokio::test]
async fn an_older_file_is_rewritten_once() {
    let (directory, store) = project();
    drop(store);
    let older = sql(directory.path());
    older.pragma_update(None, "auto_vacuum", 0).unwrap();
    older.execute_batch("PRAGMA journal_mode = delete; VACUUM").unwrap();
    drop(older);
    let store = Store::open(directory.path()).unwrap();
    begin(&store, "kept").await;
    fill(&store, 2).await;
    assert_eq!(store.shrink_mode().await.unwrap(), ShrinkMode::AfterCompacting);
    assert_eq!(store.shrink(100).await.unwrap(), 0);
    store.compact().await.unwrap();
    assert_eq!(store.shrink_mode().await.unwrap(), ShrinkMode::InSteps);
    assert!(store.run(&"kept".into()).await.unwrap().is_some());
    begin(&store, "after").await;
    assert_eq!(drop_orphans(&store, 2).await.records, 2);
    while store.shrink(500).await.unwrap() > 0 {}
    store.examine().await.unwrap();
    assert!(store.empty_log().await.unwrap());
    assert!(bytes(directory.path()) < 1 << 20);
}

/// O1: a copy is one file with everything that was committed, though others write meanwhile.
#[tokio::test]
async fn o1_a_copy_has_what_was_committed_while_others_write() {
    let (directory, store) = project();
    fill(&store, 4).await;
    let lease = begin(&store, "run_a").await;
    store.append(&lease, vec![row(1, None)], 2).await.unwrap();
    let target = directory.path().join("copy/belljar.db");
    fs::create_dir(directory.path().join("copy")).unwrap();
    let writing = async {
        for call in 2..50 {
            store.append(&lease, vec![row(call, None)], 2).await.unwrap();
        }
    };
    let (copied, ()) = tokio::join!(store.copy_to(&target), writing);
    copied.unwrap();
    let files = fs::read_dir(directory.path().join("copy")).unwrap().count();
    assert_eq!(files, 1);
    let copy = Store::open(&directory.path().join("copy")).unwrap();
    assert!(!copy.journal(&"run_a".into()).await.unwrap().is_empty());
    assert_eq!(store.journal(&"run_a".into()).await.unwrap().len(), 49);
    assert_eq!(copy.shrink_mode().await.unwrap(), ShrinkMode::InSteps);
}

/// Reliability 14: damage is told with the path and with what to do.
#[tokio::test]
async fn reliability_14_damage_is_told_with_path_and_remedy() {
    let (directory, store) = project();
    fill(&store, 1).await;
    store.begin_run(new_run("a", 1)).await.unwrap();
    store.examine().await.unwrap();
    drop(store);
    let file = directory.path().join(FILE_NAME);
    let whole = fs::read(&file).unwrap();
    // Cut short.
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let told = refused(directory.path());
    let path = file.display();
    assert!(told.contains(&format!("the store at {path} is damaged")), "{told}");
    assert!(told.contains("docs/operating.md"), "{told}");
    // The beginning of a table.
    fs::write(&file, &whole).unwrap();
    let root: u32 = {
        let query = "SELECT rootpage FROM sqlite_schema WHERE name = 'runs'";
        sql(directory.path()).query_row(query, [], |row| row.get(0)).unwrap()
    };
    let open = fs::OpenOptions::new().write(true).open(&file).unwrap();
    open.write_all_at(&[0xff; 4096], u64::from(root - 1) * 4096).unwrap();
    assert!(refused(directory.path()).contains("is damaged"));
}

/// The check at start is cheap: what is further in is found by examining the file, not by opening it.
#[tokio::test]
async fn reliability_14_what_is_damaged_further_in_is_found_by_examining_it() {
    let (directory, store) = project();
    for n in 0..200 {
        store.begin_run(new_run(&format!("run_{n:08}"), n)).await.unwrap();
    }
    store.examine().await.unwrap();
    drop(store);
    let leaf: u32 = {
        let query = "SELECT max(pageno) FROM dbstat WHERE name = 'runs' AND pagetype = 'leaf'";
        sql(directory.path()).query_row(query, [], |row| row.get(0)).unwrap()
    };
    let file = fs::OpenOptions::new().write(true).open(directory.path().join(FILE_NAME)).unwrap();
    file.write_all_at(&[0xff; 4096], u64::from(leaf - 1) * 4096).unwrap();
    let store = Store::open(directory.path()).unwrap();
    let found = store.examine().await.unwrap_err();
    assert!(matches!(found, StoreError::Unusable { trouble: Trouble::Damaged, .. }), "{found:?}");
}

fn refused(directory: &Path) -> String {
    let refused = Store::open(directory).map(|_| ()).unwrap_err();
    assert!(
        matches!(refused, StoreError::Unusable { trouble: Trouble::Damaged, .. }),
        "{refused:?}"
    );
    refused.to_string()
}

/// Reliability 14: an empty file is a new store, and whoever opens it can tell; not if its log says
/// that it was one.
#[tokio::test]
async fn reliability_14_an_empty_file_is_told_from_no_file() {
    let (directory, store) = project();
    assert_eq!(store.prior_file(), PriorFile::Nothing);
    begin(&store, "a").await;
    let file = directory.path().join(FILE_NAME);
    let log = directory.path().join("belljar.db-wal");
    let kept = fs::read(&log).unwrap();
    assert!(!kept.is_empty());
    drop(store);
    assert_eq!(Store::open(directory.path()).unwrap().prior_file(), PriorFile::Store);
    fs::write(&file, b"").unwrap();
    fs::write(&log, kept).unwrap();
    refused(directory.path());
    fs::remove_file(&log).unwrap();
    assert_eq!(Store::open(directory.path()).unwrap().prior_file(), PriorFile::EmptyFile);
}

/// Reliability 14: nothing is acknowledged into a file that is not there any more.
#[tokio::test]
async fn reliability_14_a_deleted_or_replaced_file_is_noticed() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("file", |state| fs::remove_file(state.join(FILE_NAME)).unwrap()),
        ("log", |state| fs::remove_file(state.join("belljar.db-wal")).unwrap()),
        ("directory", |state| fs::remove_dir_all(state).unwrap()),
        ("replaced", |state| {
            let copy = state.join("copy");
            fs::copy(state.join(FILE_NAME), &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
            fs::rename(copy, state.join(FILE_NAME)).unwrap();
        }),
    ];
    for (what, change) in changes {
        let parent = tempfile::tempdir().unwrap();
        let state = parent.path().join("state");
        let store = Store::open(&state).unwrap();
        begin(&store, "before").await;
        store.writable().unwrap();
        change(&state);
        let moved = |error: &StoreError| {
            matches!(error, StoreError::Unusable { trouble: Trouble::Moved, .. })
        };
        let refused = store.begin_run(new_run("after", 2)).await.unwrap_err();
        assert!(moved(&refused), "{what}: {refused:?}");
        assert!(store.writable().is_err_and(|error| moved(&error)), "{what}");
    }
}
