//! Runs, their leases, and what happens to a writer that was overtaken.

use belljar_contract::{ApprovalQuestion, Language, RecordedWork, RunId, RunStatus, Verdict};
use belljar_store::{
    ClaimReason, Lease, NewApproval, NewRun, RunRecord, RunSummary, Store, StoreError,
};

use crate::support::{begin, new_run, project, row, sql};

#[tokio::test]
async fn a_run_comes_back_as_it_was_given() {
    let (_directory, store) = project();
    let mut run = new_run("run_a", 10);
    run.code = "x".repeat(50_000);
    run.request_json = "\"ü\0\"".repeat(5_000);
    let lease = store.begin_run(run.clone()).await.unwrap();
    assert_eq!(lease, Lease { run_id: "run_a".into(), fence: 1 });
    store.set_run_status(&lease, RunStatus::Interrupted, 11).await.unwrap();
    let result = "r".repeat(40_000);
    store.finish_run(&lease, RunStatus::Completed, result.clone(), 12).await.unwrap();
    let summary = RunSummary {
        id: run.id,
        caller: run.caller,
        work: run.work,
        durable: run.durable,
        seed: run.seed,
        status: RunStatus::Completed,
        owner: run.owner,
        fence: 1,
        claimed_ms: 10,
        started_ms: 10,
        updated_ms: 12,
        finished_ms: Some(12),
        fruitless_attempts: 0,
    };
    let (code, request_json) = (run.code, run.request_json);
    let record = RunRecord { summary, code, request_json, result_json: Some(result) };
    assert_eq!(store.run(&"run_a".into()).await.unwrap(), Some(record));
    assert_eq!(store.run(&"run_b".into()).await.unwrap(), None);
}

/// Rows of version 0.1.0, and of a version to come, are read, and written as they were.
#[tokio::test]
async fn d7_a_record_says_what_it_is_of() {
    let (directory, store) = project();
    for (at, text, work) in [
        (1, "typescript", RecordedWork::Code(Language::TypeScript)),
        (2, "bash", RecordedWork::Code(Language::Bash)),
        (3, "tool", RecordedWork::ToolCall),
        (4, "lua", RecordedWork::Unknown("lua".into())),
    ] {
        let (old, id) = (RunId::from(format!("old_{text}")), RunId::from(text));
        begin(&store, &old).await;
        let change = "UPDATE runs SET language = ?1 WHERE id = ?2";
        sql(directory.path()).execute(change, (text, old.as_str())).unwrap();
        assert_eq!(store.run(&old).await.unwrap().unwrap().summary.work, work);
        store.begin_run(NewRun { work, ..new_run(&id, at) }).await.unwrap();
        let query = "SELECT language FROM runs WHERE id = ?1";
        let written: String =
            sql(directory.path()).query_row(query, [text], |row| row.get(0)).unwrap();
        assert_eq!(written, text);
    }
    assert_eq!(store.runs(10, None).await.unwrap().len(), 8);
}

#[tokio::test]
async fn an_id_is_used_once() {
    let (_directory, store) = project();
    begin(&store, "run_a").await;
    let again = store.begin_run(new_run("run_a", 5)).await;
    assert!(matches!(again, Err(StoreError::RunExists(id)) if id == "run_a"));
    assert_eq!(store.run(&"run_a".into()).await.unwrap().unwrap().summary.started_ms, 1);
}

#[tokio::test]
async fn runs_are_listed_newest_first_page_by_page() {
    let (_directory, store) = project();
    // Two of the same millisecond are told apart by their ids.
    for (id, started) in [("a", 1), ("b", 3), ("c", 3), ("d", 2)] {
        store.begin_run(new_run(id, started)).await.unwrap();
    }
    let ids = async |limit, before: Option<&str>| -> String {
        let runs = store.runs(limit, before.map(RunId::from).as_ref()).await.unwrap();
        runs.into_iter().map(|run| run.id.to_string()).collect()
    };
    assert_eq!(ids(10, None).await, "cbda");
    assert_eq!(ids(2, None).await, "cb");
    assert_eq!(ids(2, Some("b")).await, "da");
    assert_eq!(ids(2, Some("a")).await, "");
}

/// Those that a host may have to look after, and whether they wait for a person (reliability 4).
#[tokio::test]
async fn reliability_4_unfinished_runs_are_found() {
    let (_directory, store) = project();
    let mut leases = Vec::new();
    for (id, started) in [("b", 2), ("a", 1), ("c", 3), ("d", 4)] {
        leases.push(store.begin_run(new_run(id, started)).await.unwrap());
    }
    let found = async |now_ms| -> Vec<(RunId, String, bool)> {
        let runs = store.unfinished_runs(10, now_ms).await.unwrap().into_iter();
        runs.map(|run| (run.summary.id, run.summary.status.to_string(), run.has_pending_approval))
            .collect()
    };
    let of = |id: &str, status: &str, waits| (id.into(), status.to_owned(), waits);
    store.finish_run(&leases[0], RunStatus::Completed, "1".to_owned(), 5).await.unwrap();
    store.set_run_status(&leases[2], RunStatus::Aborted, 5).await.unwrap();
    store.set_run_status(&leases[3], RunStatus::InDoubt, 5).await.unwrap();
    assert_eq!(found(6).await, [of("a", "running", false), of("d", "in_doubt", false)]);
    let question = NewApproval {
        id: "apr_1".into(),
        run_id: "d".into(),
        call: 1,
        question: ApprovalQuestion::MayRepeat { times_sent: 1 },
        tool: "t".to_owned(),
        arguments: "{}".to_owned(),
        caller: "test".to_owned(),
        line: None,
        code_line: None,
        created_ms: 6,
        expires_ms: 20,
        terms: belljar_store::ConsentTerms::default(),
    };
    store.request_approval(question).await.unwrap();
    assert_eq!(found(6).await, [of("a", "running", false), of("d", "in_doubt", true)]);
    // Questions that were answered, or not in time, are not waited for any more.
    assert_eq!(found(20).await[1], of("d", "in_doubt", false));
    store.decide(&"apr_1".into(), Verdict::Deny, "ann", 7).await.unwrap();
    assert_eq!(found(7).await[1], of("d", "in_doubt", false));
}

/// How often hosts died with a run is counted as long as it gets no further.
#[tokio::test]
async fn reliability_4_claims_in_vain_are_counted() {
    let (_directory, store) = project();
    let mut lease = begin(&store, "run_a").await;
    let fruitless_attempts = async |store: &Store| {
        store.run(&"run_a".into()).await.unwrap().unwrap().summary.fruitless_attempts
    };
    for times in 1..3 {
        let claimed = store.claim_run(lease, "next", ClaimReason::Found, 10 * times).await;
        lease = claimed.unwrap();
        assert_eq!(i64::from(fruitless_attempts(&store).await), times);
    }
    // It got further: the next claim is not in vain. Nor is one that somebody asked for.
    store.append(&lease, vec![row(1, None)], 25).await.unwrap();
    lease = store.claim_run(lease, "next", ClaimReason::Found, 30).await.unwrap();
    assert_eq!(fruitless_attempts(&store).await, 0);
    lease = store.claim_run(lease, "next", ClaimReason::Found, 40).await.unwrap();
    assert_eq!(fruitless_attempts(&store).await, 1);
    lease = store.claim_run(lease, "ann", ClaimReason::Asked, 50).await.unwrap();
    assert_eq!(fruitless_attempts(&store).await, 0);
    // A host that could say how it stands did not die of it.
    lease = store.claim_run(lease, "next", ClaimReason::Found, 60).await.unwrap();
    store.set_run_status(&lease, RunStatus::Interrupted, 61).await.unwrap();
    assert_eq!(fruitless_attempts(&store).await, 0);
}

async fn stale_writes(store: &Store, stale: &Lease) -> [Result<(), StoreError>; 3] {
    [
        store.append(stale, vec![row(1, None)], 3).await.map(|_| ()),
        store.set_run_status(stale, RunStatus::Failed, 3).await,
        store.finish_run(stale, RunStatus::Failed, "\"stale\"".to_owned(), 3).await,
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
    let fresh = second.claim_run(stale.clone(), "second", ClaimReason::Asked, 2).await.unwrap();
    assert_eq!(fresh.fence, 2);
    // A host that read the run before that comes too late to claim it.
    let late = first.claim_run(stale.clone(), "third", ClaimReason::Asked, 2).await;
    assert!(matches!(late, Err(StoreError::Fenced { held: 1, current: 2, .. })), "{late:?}");
    for refused in stale_writes(&first, &stale).await {
        let Err(StoreError::Fenced { run_id, held, current }) = refused else {
            panic!("not fenced: {refused:?}");
        };
        assert_eq!((run_id.as_str(), held, current), ("run_a", 1, 2));
    }
    let record = first.run(&"run_a".into()).await.unwrap().unwrap();
    assert_eq!((record.summary.status.as_str(), record.result_json), ("running", None));
    assert_eq!((record.summary.owner.as_str(), record.summary.fence), ("second", 2));
    assert_eq!(second.append(&fresh, vec![row(2, None)], 3).await.unwrap(), 2);
}

#[tokio::test]
async fn what_is_not_there_cannot_be_claimed_or_written_about() {
    let (_directory, store) = project();
    let lease = Lease { run_id: "run_x".into(), fence: 1 };
    let claimed = store.claim_run(lease.clone(), "me", ClaimReason::Asked, 1).await;
    assert!(matches!(claimed, Err(StoreError::UnknownRun(_))));
    for refused in stale_writes(&store, &lease).await {
        assert!(matches!(refused, Err(StoreError::UnknownRun(_))));
    }
}
