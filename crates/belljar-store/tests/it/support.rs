//! The parts that the tests share.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use belljar_contract::Language;
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
        id: id.into(),
        caller: "test".to_owned(),
        work: Language::TypeScript.into(),
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

/// The variable that tells a test that it is the child of [`killed_child`], and in which directory.
pub(crate) const CHILD: &str = "BELLJAR_STORE_CHILD";

/// Runs a test of this program as a child, which prints `ack NUMBER` after each write, and kills it once it
/// has acknowledged `after` writes. Returns all numbers that it acknowledged.
#[expect(clippy::disallowed_methods, reason = "a process of the test's own, to be killed")]
pub(crate) fn killed_child(test: &str, directory: &Path, after: usize) -> Vec<u64> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    // A line that was cut off has no end and does not count.
    while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        if let Some(number) = line.trim_end().strip_prefix("ack ") {
            acknowledged.push(number.parse().unwrap());
        }
        if acknowledged.len() == after {
            // SIGKILL. Lines that the child printed before it are still read.
            child.kill().unwrap();
        }
        line.clear();
    }
    child.wait().unwrap();
    acknowledged
}
