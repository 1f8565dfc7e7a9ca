//! Runs, their leases, and what happens to a writer that was overtaken.

use belljar_store::{Lease, RunRecord, RunSummary, Store, StoreError};

use crate::support::{begin, new_run, project, row};

#[tokio::test]
async fn a_run_comes_back_as_it_was_given() {
    let (_directory, store) = project();
    let mut run = new_run("run_a", 10);
    run.code = "x".repeat(50_000);
    run.request_json = "\"ü\0\"".repeat(5_000);
    let lease = store.begin_run(run.clone()).await.unwrap();
    assert_eq!(lease, Lease { run_id: "run_a".to_owned(), fence: 1 });
    store.set_run_status(&lease, "paused", 11).await.unwrap();
    let result = "r".repeat(40_000);
    store.finish_run(&lease, "completed", result.clone(), 12).await.unwrap();
    let summary = RunSummary {
        id: run.id,
        caller: run.caller,
        language: run.language,
        durable: run.durable,
        seed: run.seed,
        status: "completed".to_owned(),
        owner: run.owner,
        fence: 1,
        claimed_ms: 10,
        started_ms: 10,
        updated_ms: 12,
        finished_ms: Some(12),
    };
    let (code, request_json) = (run.code, run.request_json);
    let record = RunRecord { summary, code, request_json, result_json: Some(result) };
    assert_eq!(store.run("run_a").await.unwrap(), Some(record));
    assert_eq!(store.run("run_b").await.unwrap(), None);
}

#[tokio::test]
async fn an_id_is_used_once() {
    let (_directory, store) = project();
    begin(&store, "run_a").await;
    let again = store.begin_run(new_run("run_a", 5)).await;
    assert!(matches!(again, Err(StoreError::RunExists(id)) if id == "run_a"));
    assert_eq!(store.run("run_a").await.unwrap().unwrap().summary.started_ms, 1);
}

#[tokio::test]
async fn runs_are_listed_newest_first_page_by_page() {
    let (_directory, store) = project();
    // Two of the same millisecond are told apart by their ids.
    for (id, started) in [("a", 1), ("b", 3), ("c", 3), ("d", 2)] {
        store.begin_run(new_run(id, started)).await.unwrap();
    }
    let ids = async |limit, before| -> String {
        let runs = store.runs(limit, before).await.unwrap();
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!(ids(10, None).await, "cbda");
    assert_eq!(ids(2, None).await, "cb");
    assert_eq!(ids(2, Some("b")).await, "da");
    assert_eq!(ids(2, Some("a")).await, "");
}

async fn stale_writes(store: &Store, stale: &Lease) -> [Result<(), StoreError>; 3] {
    [
        store.append(stale, vec![row(1, None)], 3).await.map(|_| ()),
        store.set_run_status(stale, "stale", 3).await,
        store.finish_run(stale, "stale", "\"stale\"".to_owned(), 3).await,
    ]
}

/// A writer that was overtaken changes nothing and is told (D8).
#[tokio::test]
async fn a_stale_lease_is_refused_also_across_processes() {
    let (directory, first) = project();
    let second = Store::open(directory.path()).unwrap();
    let stale = begin(&first, "run_a").await;
    // Control: before the claim the same writes count.
    first.append(&stale, vec![row(1, None)], 2).await.unwrap();
    let fresh = second.claim_run(stale.clone(), "second", 2).await.unwrap();
    assert_eq!(fresh.fence, 2);
    // Who saw the run before that comes too late to claim it.
    let late = first.claim_run(stale.clone(), "third", 2).await;
    assert!(matches!(late, Err(StoreError::Fenced { held: 1, current: 2, .. })), "{late:?}");
    for refused in stale_writes(&first, &stale).await {
        let Err(StoreError::Fenced { run_id, held, current }) = refused else {
            panic!("not fenced: {refused:?}");
        };
        assert_eq!((run_id.as_str(), held, current), ("run_a", 1, 2));
    }
    let record = first.run("run_a").await.unwrap().unwrap();
    assert_eq!((record.summary.status.as_str(), record.result_json), ("running", None));
    assert_eq!((record.summary.owner.as_str(), record.summary.fence), ("second", 2));
    assert_eq!(second.append(&fresh, vec![row(2, None)], 3).await.unwrap(), 2);
}

#[tokio::test]
async fn what_is_not_there_cannot_be_claimed_or_written_about() {
    let (_directory, store) = project();
    let lease = Lease { run_id: "run_x".to_owned(), fence: 1 };
    let claimed = store.claim_run(lease.clone(), "me", 1).await;
    assert!(matches!(claimed, Err(StoreError::UnknownRun(_))));
    for refused in stale_writes(&store, &lease).await {
        assert!(matches!(refused, Err(StoreError::UnknownRun(_))));
    }
}
