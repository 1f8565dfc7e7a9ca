//! O1: what is old goes, what is needed stays, and what is deleted is gone.

use std::{fs, path::Path, sync::Arc};

use belljar_contract::{ApprovalQuestion, Language, RunId, RunStatus, Verdict};
use belljar_store::{
    AuditFilter, AuditRow, ClaimReason, Lease, NewApproval, NewSession, Prune, RecordKind,
    SessionEnd, Store, StoreError,
};

use crate::support::{begin, drop_orphans, new_run, project, prune, row};

/// Long enough to be a value of its own, and easy to look for.
fn secret(name: &str) -> String {
    format!("the secret of {name} ").repeat(2_000)
}

/// Whether any file of the store has this text in it.
fn is_on_disk(directory: &Path, text: &str) -> bool {
    let mut files = fs::read_dir(directory).unwrap().map(|file| fs::read(file.unwrap().path()));
    files.any(|bytes| bytes.unwrap().windows(text.len()).any(|found| found == text.as_bytes()))
}

async fn ended(store: &Store, id: &str, at_ms: i64) -> Lease {
    let lease = store.begin_run(new_run(id, at_ms - 1)).await.unwrap();
    let body = Some(secret(&format!("journal {id}")).into_bytes());
    store.append(&lease, vec![row(1, body)], at_ms).await.unwrap();
    let result = format!("{{\"result\": \"{}\"}}", secret(&format!("result {id}")));
    store.finish_run(&lease, RunStatus::Completed, result, at_ms).await.unwrap();
    lease
}

fn approval(id: &str, run: &str, expires_ms: i64) -> NewApproval {
    NewApproval {
        id: id.into(),
        run_id: run.into(),
        call: 1,
        question: ApprovalQuestion::MayCall,
        tool: "fs__write".to_owned(),
        arguments: secret(&format!("approval {id}")),
        caller: "test".to_owned(),
        line: None,
        code_line: None,
        created_ms: 1,
        expires_ms,
        terms: belljar_store::ConsentTerms::default(),
    }
}

/// Reliability 5: a run that is deleted takes its values with it, out of the file as well.
#[tokio::test]
async fn reliability_5_what_is_deleted_is_not_in_the_file_any_more() {
    let (directory, store) = project();
    let lease = ended(&store, "gone", 10).await;
    ended(&store, "kept", 10).await;
    store.request_approval(approval("apr_gone", "gone", 20)).await.unwrap();
    let handle = secret("handle").into_bytes();
    let handle = store.put_run_blob(&"gone".into(), handle, "text/plain", 10).await.unwrap();
    store.append_event(&"gone".into(), "told", secret("event"), 10).await.unwrap();
    let secrets = ["journal gone", "result gone", "approval apr_gone", "handle", "event"];
    for name in secrets {
        assert!(is_on_disk(directory.path(), &format!("the secret of {name} ")), "{name}: control");
    }
    let removed = store.delete_run(lease).await.unwrap();
    assert!(removed.bytes > 4 * 20_000, "{removed:?}");
    assert!(store.empty_log().await.unwrap());
    for name in secrets {
        assert!(!is_on_disk(directory.path(), &format!("the secret of {name} ")), "{name}");
    }
    assert_eq!(store.blob(&handle).await.unwrap(), None);
    assert!(store.run(&"gone".into()).await.unwrap().is_none());
    assert!(store.run(&"kept".into()).await.unwrap().unwrap().result_json.is_some());
    assert_eq!(store.journal(&"kept".into()).await.unwrap().len(), 1);
}

/// A value that another run has, too, is not only the deleted run's.
#[tokio::test]
async fn a_value_that_others_have_stays() {
    let (_directory, store) = project();
    let bytes = secret("both").into_bytes();
    let lease = begin(&store, "a").await;
    store.append(&lease, vec![row(1, Some(bytes.clone()))], 2).await.unwrap();
    let plain =
        store.put_run_blob(&"not kept".into(), bytes.clone(), "text/plain", 5).await.unwrap();
    store.delete_run(lease).await.unwrap();
    assert_eq!(store.blob(&plain).await.unwrap(), Some(bytes));
    assert_eq!(drop_orphans(&store, 5).await.records, 0);
    assert_eq!(drop_orphans(&store, 6).await.records, 1);
}

#[tokio::test]
async fn a_run_that_was_claimed_since_is_not_deleted() {
    let (_directory, store) = project();
    let lease = begin(&store, "a").await;
    store.claim_run(lease.clone(), "second", ClaimReason::Asked, 2).await.unwrap();
    let refused = store.delete_run(lease).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    assert!(store.run(&"a".into()).await.unwrap().is_some());
}

/// Reliability 6: by age, and only what has ended.
#[tokio::test]
async fn reliability_6_old_runs_go_and_those_that_can_be_resumed_stay() {
    let (_directory, store) = project();
    ended(&store, "old", 10).await;
    ended(&store, "young", 50).await;
    begin(&store, "interrupted").await;
    let doubt = begin(&store, "in_doubt").await;
    store.set_run_status(&doubt, RunStatus::InDoubt, 2).await.unwrap();
    let left = begin(&store, "given_up").await;
    store.set_run_status(&left, RunStatus::Aborted, 30).await.unwrap();
    // First what they did, then they themselves.
    assert_eq!(prune(&store, RecordKind::Journals, 40).await.records, 1);
    assert_eq!(store.journal(&"old".into()).await.unwrap(), []);
    assert!(store.run(&"old".into()).await.unwrap().unwrap().result_json.is_some());
    assert_eq!(store.journal(&"young".into()).await.unwrap().len(), 1);
    assert_eq!(prune(&store, RecordKind::Runs, 20).await.records, 1);
    assert_eq!(prune(&store, RecordKind::Runs, 40).await.records, 1);
    let names = |runs: Vec<belljar_store::RunSummary>| -> Vec<RunId> {
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!(names(store.runs(9, None).await.unwrap()), ["young", "interrupted", "in_doubt"]);
}

#[tokio::test]
async fn runs_that_a_workflow_will_ask_for_stay() {
    let (_directory, store) = project();
    for id in ["needed", "other"] {
        ended(&store, id, 10).await;
    }
    let needed_runs = Arc::new(["needed".into()].into());
    let prune = Prune { kind: RecordKind::Runs, before_ms: 99, limit: 1, needed_runs };
    assert_eq!(store.prune(prune.clone()).await.unwrap().records, 1);
    assert_eq!(store.prune(prune).await.unwrap().records, 0);
    assert!(store.run(&"needed".into()).await.unwrap().is_some());
}

#[tokio::test]
async fn questions_stay_while_they_wait_or_their_run_does() {
    let (_directory, store) = project();
    let lease = begin(&store, "live").await;
    let asked =
        [("apr_waits", "plain", 1_000), ("apr_old", "plain", 20), ("apr_of_live", "live", 20)];
    for (call, (id, run, expires)) in (1..).zip(asked) {
        let approval = NewApproval { call, ..approval(id, run, expires) };
        store.request_approval(approval).await.unwrap();
    }
    store.decide(&"apr_of_live".into(), Verdict::Approve, "me", 5).await.unwrap();
    assert_eq!(prune(&store, RecordKind::Approvals, 500).await.records, 1);
    assert!(store.approval(&"apr_old".into(), 500).await.unwrap().is_none());
    store.finish_run(&lease, RunStatus::Completed, "{}".to_owned(), 30).await.unwrap();
    assert_eq!(prune(&store, RecordKind::Approvals, 500).await.records, 1);
    assert!(store.approval(&"apr_waits".into(), 500).await.unwrap().is_some());
}

/// Rows without an index by time go from the beginning, batch after batch.
#[tokio::test]
async fn events_audit_and_sessions_go_by_age() {
    let (_directory, store) = project();
    for n in 0..2_500_i64 {
        store.post_event(&"run".into(), "told", "{}".to_owned(), n).await.unwrap();
    }
    for started_ms in [1, 2, 30] {
        store.audit(audit_row(started_ms)).await.unwrap();
    }
    let session = |id: &str| NewSession {
        id: id.into(),
        caller: "test".to_owned(),
        language: Language::Python,
        owner: "1:2".to_owned(),
        forked_from: None,
        created_ms: 1,
    };
    store.begin_sessions(vec![session("over"), session("lives")]).await.unwrap();
    let end = SessionEnd { code: "idle".to_owned(), reason: "idle".to_owned(), at_ms: 5 };
    store.end_session(&"over".into(), 5, end).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(prune(&store, RecordKind::Events, 2_400).await.records, 2_400);
    assert_eq!(store.events(0, 9_999, None).await.unwrap().len(), 100);
    assert_eq!(prune(&store, RecordKind::Audit, 30).await.records, 2);
    let left = store.audit_rows(AuditFilter::default(), 9).await.unwrap();
    assert_eq!(left.iter().map(|row| row.started_ms).collect::<Vec<_>>(), [30]);
    assert_eq!(prune(&store, RecordKind::Sessions, 6).await.records, 1);
    assert!(store.session(&"lives".into()).await.unwrap().is_some());
}

fn audit_row(started_ms: i64) -> AuditRow {
    AuditRow {
        run_id: "run".into(),
        call: 1,
        tool: "fs__read".to_owned(),
        decision: "allow".to_owned(),
        reason: "rule".to_owned(),
        caller: "test".to_owned(),
        argument_hash: "0".to_owned(),
        started_ms,
        duration_ms: 1.0,
        outcome: "ok".to_owned(),
    }
}

/// An answer that may be given again keeps the value it names.
#[tokio::test]
async fn the_cache_keeps_what_its_answers_name() {
    let (_directory, store) = project();
    let id = store.put_blob(vec![7; 20_000], "text/plain", 1).await.unwrap();
    let answer = format!("{{\"result\":{{\"handle\":\"{id}\"}},\"x\":\"blob_nothing\"}}");
    store.cache_put("k", answer.into_bytes(), 100, 1).await.unwrap();
    assert_eq!(drop_orphans(&store, 1_000).await.records, 0);
    assert_eq!(prune(&store, RecordKind::Cache, 50).await.records, 0);
    assert_eq!(prune(&store, RecordKind::Cache, 101).await.records, 1);
    assert_eq!(drop_orphans(&store, 1_000).await.records, 1);
}
