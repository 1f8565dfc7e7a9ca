//! Audit rows are written before the call or behind it, and none is lost.

use belljar_contract::RunId;
use belljar_store::{AuditFilter, AuditRow, Lease, SENT, Store, StoreError, StoreOptions};

use crate::support::{begin, project, row, sql};

fn audited(run: &str, tool: &str, call: u32) -> AuditRow {
    AuditRow {
        run_id: run.into(),
        call,
        tool: tool.to_owned(),
        decision: "allow".to_owned(),
        reason: "rule 1".to_owned(),
        caller: "cli".to_owned(),
        argument_hash: "ab".to_owned(),
        started_ms: 5,
        duration_ms: 1.25,
        outcome: "ok".to_owned(),
    }
}

#[tokio::test]
async fn rows_are_found_by_run_and_tool_newest_first() {
    let (_directory, store) = project();
    let rows = [audited("a", "t", 1), audited("b", "t", 1), audited("a", "u", 2)];
    for row in rows.clone() {
        store.audit(row).await.unwrap();
    }
    store.flush().await.unwrap();
    let [first, second, third] = rows;
    let find = async |run: Option<&str>, tool: Option<&str>, limit| {
        let (run_id, tool) = (run.map(RunId::from), tool.map(str::to_owned));
        store.audit_rows(AuditFilter { run_id, tool }, limit).await.unwrap()
    };
    assert_eq!(find(None, None, 9).await, [third.clone(), second.clone(), first.clone()]);
    assert_eq!(find(Some("a"), None, 9).await, [third.clone(), first.clone()]);
    assert_eq!(find(None, Some("t"), 9).await, [second.clone(), first.clone()]);
    assert_eq!(find(Some("a"), Some("t"), 9).await, [first]);
    assert_eq!(find(None, None, 1).await, [third]);
}

/// On disk when the call leaves (reliability 7), and completed when it has ended.
#[tokio::test]
async fn reliability_7_a_row_is_on_disk_before_its_call() {
    let (directory, store) = project();
    let sent = AuditRow { outcome: SENT.to_owned(), ..audited("a", "t", 1) };
    let id = store.begin_audit(sent.clone()).await.unwrap();
    // Another process sees it at once.
    let other = Store::open(directory.path()).unwrap();
    let seen = other.audit_rows(AuditFilter::default(), 9).await.unwrap();
    assert_eq!(seen.as_slice(), std::slice::from_ref(&sent));
    store.end_audit(id, 7.5, "tool.failed".to_owned()).await.unwrap();
    store.flush().await.unwrap();
    let ended = AuditRow { duration_ms: 7.5, outcome: "tool.failed".to_owned(), ..sent };
    assert_eq!(other.audit_rows(AuditFilter::default(), 9).await.unwrap(), [ended]);
}

/// A durable call has its journal and its audit row for one commit, and neither if it was overtaken.
#[tokio::test]
async fn reliability_7_a_durable_call_pays_once() {
    let (_directory, store) = project();
    let lease = begin(&store, "run_a").await;
    let before = store.write_counts().transactions;
    store.append_sent(&lease, vec![row(1, None)], audited("run_a", "t", 1), 5).await.unwrap();
    assert_eq!(store.write_counts().transactions, before + 1);
    let stale = Lease { fence: 0, ..lease };
    let refused = store.append_sent(&stale, vec![row(2, None)], audited("run_a", "t", 2), 5).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    assert_eq!(store.journal(&"run_a".into()).await.unwrap().len(), 1);
    assert_eq!(store.audit_rows(AuditFilter::default(), 9).await.unwrap().len(), 1);
}

/// With two places, thirty rows wait for each other; all are there in the end.
#[tokio::test]
async fn a_full_queue_makes_callers_wait_and_drops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions { behind_queue: 2, ..StoreOptions::default() };
    let store = Store::open_with(directory.path(), options).unwrap();
    for call in 0..30 {
        store.audit(audited("a", "t", call)).await.unwrap();
    }
    drop(store);
    let store = Store::open(directory.path()).unwrap();
    let calls = store.audit_rows(AuditFilter::default(), 999).await.unwrap();
    assert!(calls.into_iter().map(|row| row.call).rev().eq(0..30));
}

#[tokio::test]
async fn rows_nobody_waits_for_share_transactions() {
    let (_directory, store) = project();
    for call in 0..500 {
        store.audit(audited("a", "t", call)).await.unwrap();
    }
    store.flush().await.unwrap();
    let counts = store.write_counts();
    assert_eq!(counts.operations, 501);
    assert!(counts.transactions < 100, "{counts:?}");
}

#[tokio::test]
async fn a_row_that_could_not_be_written_is_told_by_the_next_flush() {
    let (directory, store) = project();
    sql(directory.path()).execute_batch("ALTER TABLE audit RENAME TO away").unwrap();
    store.audit(audited("a", "t", 1)).await.unwrap();
    assert!(store.flush().await.is_err());
    sql(directory.path()).execute_batch("ALTER TABLE away RENAME TO audit").unwrap();
    store.audit(audited("a", "t", 2)).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(store.audit_rows(AuditFilter::default(), 9).await.unwrap().len(), 1);
}
