//! Which files are opened, who may read them, and which are refused.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use belljar_store::{FILE_NAME, Store, StoreError};

use crate::support::{begin, project, sql};

#[tokio::test]
async fn an_empty_file_becomes_a_store_and_stays_one() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(FILE_NAME), b"").unwrap();
    for number in 1..=2 {
        let store = Store::open(directory.path()).unwrap();
        begin(&store, &format!("run_{number}")).await;
        assert_eq!(store.runs(9, None).await.unwrap().len(), number);
    }
    let mode = sql(directory.path()).pragma_query_value(None, "journal_mode", |row| row.get(0));
    assert_eq!(mode, Ok("wal".to_owned()));
}

#[test]
fn only_the_owner_may_read_it() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("deep/.belljar");
    let store = Store::open(&directory).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let mut files = 0;
    for file in fs::read_dir(&directory).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
        files += 1;
    }
    // The file, its log and the log's index.
    assert_eq!(files, 3);
    drop(store);
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let (directory, store) = project();
    drop(store);
    sql(directory.path()).pragma_update(None, "user_version", 1000).unwrap();
    let refused = Store::open(directory.path());
    let Err(StoreError::Newer { found, known, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((found, known), (1000, 7));
    sql(directory.path()).pragma_update(None, "user_version", 7).unwrap();
    Store::open(directory.path()).unwrap();
}

#[tokio::test]
async fn a_file_of_the_version_before_gets_what_it_lacks() {
    let (directory, store) = project();
    store.begin_run(crate::support::new_run("kept", 1)).await.unwrap();
    drop(store);
    let before = sql(directory.path());
    let later = ["sessions", "flow_inputs", "flow_snapshots", "flow_intents", "flow_events"];
    let latest = ["flow_commands", "flow_blobs", "flows", "run_blobs", "cache_blobs"];
    for table in later.into_iter().chain(latest) {
        before.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    before.execute_batch("DROP INDEX runs_by_end; DROP INDEX approvals_by_end").unwrap();
    let columns = "DROP INDEX runs_unfinished; ALTER TABLE runs DROP COLUMN vain;
                   ALTER TABLE approvals DROP COLUMN result;
                   DROP INDEX approvals_by_session";
    before.execute_batch(columns).unwrap();
    for column in ["widest", "session_id", "definition", "scope", "rule"] {
        before.execute_batch(&format!("ALTER TABLE approvals DROP COLUMN {column}")).unwrap();
    }
    before.execute_batch("PRAGMA user_version = 1").unwrap();
    drop(before);
    let store = Store::open(directory.path()).unwrap();
    assert!(store.run(&"kept".into()).await.unwrap().is_some());
    assert_eq!(store.sessions(1, false).await.unwrap(), []);
    assert_eq!(store.workflows(Default::default(), None, 1).await.unwrap(), []);
}

/// A project may come from a stranger, with a store that decides by itself (E4).
#[test]
fn a_file_with_triggers_is_refused() {
    let (directory, store) = project();
    drop(store);
    let trigger = "CREATE TRIGGER yes AFTER INSERT ON approvals BEGIN
                   UPDATE approvals SET state = 'approved'; END";
    sql(directory.path()).execute_batch(trigger).unwrap();
    assert!(matches!(Store::open(directory.path()), Err(StoreError::Foreign { .. })));
    sql(directory.path()).execute_batch("DROP TRIGGER yes").unwrap();
    Store::open(directory.path()).unwrap();
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    sql(directory.path()).execute_batch("CREATE TABLE other (x)").unwrap();
    assert!(matches!(Store::open(directory.path()), Err(StoreError::Foreign { .. })));
    let file = directory.path().join(FILE_NAME);
    let text = "not a database, but long enough to be looked at ".repeat(20);
    fs::write(&file, &text).unwrap();
    assert!(matches!(Store::open(directory.path()), Err(StoreError::Foreign { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    fs::remove_file(&file).unwrap();
    symlink(directory.path().join("elsewhere"), &file).unwrap();
    assert!(matches!(Store::open(directory.path()), Err(StoreError::Open { .. })));
    assert!(!directory.path().join("elsewhere").exists());
}

/// Eight processes find no store and make one, at the same time.
#[test]
fn many_may_open_it_first() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| Store::open(directory.path()).unwrap());
            }
        });
    }
}
