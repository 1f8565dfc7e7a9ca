//! Workflows: the rows and blobs of a batch, also after `kill -9`.
//!
//! The duties of every workflow store are tested in `belljar-workflow`; here are those of the file.

use std::{
    env,
    io::{Write as _, stdout},
    path::Path,
};

use belljar_contract::WorkflowStatus;
use belljar_store::{
    ClaimReason, IntentChange, LeaseRequest, NewWorkflowRow, QueuedCommand, Store, StoreError,
    WorkflowBatch, WorkflowEventRow, WorkflowFilter, WorkflowInputRow, WorkflowLease,
    WorkflowRecordError,
};

use crate::support::{CHILD, drop_orphans, killed_child, project, sql};

async fn create(store: &Store, id: &str) -> WorkflowLease {
    let (name, caller, snapshot) = ("name".to_owned(), "test".to_owned(), b"start".to_vec());
    let workflow = NewWorkflowRow { id: id.to_owned(), name, caller, snapshot, created_ms: 1 };
    store.create_workflow(workflow).await.unwrap();
    store.claim_workflow(id, claim("first")).await.unwrap()
}

fn claim(owner: &str) -> LeaseRequest {
    LeaseRequest {
        owner: owner.to_owned(),
        now_ms: 1,
        until_ms: 100,
        take_over: false,
        why: ClaimReason::Asked,
    }
}

/// A batch that has one of everything, one of it large.
fn batch(seq: u64) -> WorkflowBatch {
    let large = seq.to_le_bytes().repeat(4_000);
    WorkflowBatch {
        now_ms: 2,
        inputs: vec![WorkflowInputRow {
            seq,
            checkpoint: Some("here".to_owned()),
            body: large.clone(),
        }],
        snapshot: seq.is_multiple_of(3).then_some(large),
        events: vec![
            WorkflowEventRow { seq: seq * 2 - 1, cause: seq, body: b"one".to_vec() },
            WorkflowEventRow { seq: seq * 2, cause: seq, body: b"two".to_vec() },
        ],
        intents: vec![
            IntentChange::Close { key: (seq - 1).to_string(), at: seq },
            IntentChange::Open { key: seq.to_string(), at: seq, body: b"do".to_vec() },
        ],
        ..WorkflowBatch::default()
    }
}

/// Does nothing unless it is the child.
#[test]
fn child_commits_until_it_is_killed() {
    let Some(directory) = env::var_os(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&directory)).unwrap();
        let lease = create(&store, "flow").await;
        for seq in 1.. {
            store.commit_workflow(&lease, batch(seq)).await.unwrap();
            let mut out = stdout().lock();
            out.write_all(format!("\nack {seq}\n").as_bytes()).unwrap();
            out.flush().unwrap();
        }
    });
}

/// Acknowledged batches survive, and each batch is stored as a whole (F3).
#[tokio::test]
async fn f3_every_acknowledged_batch_survives_a_kill() {
    for after in [1, 8, 33] {
        let directory = tempfile::tempdir().unwrap();
        let child = "workflows::child_commits_until_it_is_killed";
        let acknowledged = killed_child(child, directory.path(), after);
        assert!(acknowledged.len() >= after, "the child ended by itself: {acknowledged:?}");
        let acknowledged = acknowledged.last().copied().unwrap_or_default();
        let store = Store::open(directory.path()).unwrap();
        let loaded = store.load_workflow("flow", None).await.unwrap();
        let last = loaded.snapshot.0 + loaded.inputs.len() as u64;
        assert!(last >= acknowledged, "{last} < {acknowledged}");
        for input in &loaded.inputs {
            assert_eq!(*input, batch(input.seq).inputs[0]);
        }
        assert_eq!(loaded.snapshot.0, last - last % 3);
        let open: Vec<String> = loaded.open.into_iter().map(|intent| intent.key).collect();
        assert_eq!(open, [last.to_string()]);
        let events = store.workflow_events("flow", 0, 10_000).await.unwrap();
        assert_eq!(events.len() as u64, last * 2);
        assert_eq!(loaded.last_event, last * 2);
    }
}

/// A blob that any row of a workflow refers to stays; one that no row refers to goes.
#[tokio::test]
async fn f3_blobs_of_workflows_stay_as_long_as_they_are_needed() {
    let (directory, store) = project();
    let lease = create(&store, "flow").await;
    for seq in 1..=3 {
        store.commit_workflow(&lease, batch(seq)).await.unwrap();
    }
    let (id, sender, body) = ("c".to_owned(), "test".to_owned(), vec![1; 50_000]);
    let command = QueuedCommand { seq: 0, id, sender, at_ms: 3, body };
    store.send_workflow_command("flow", command).await.unwrap();
    let answers = vec![("c".to_owned(), vec![2; 50_000])];
    store
        .commit_workflow(&lease, WorkflowBatch { answers, ..WorkflowBatch::default() })
        .await
        .unwrap();
    store.put_workflow_blob("flow", b"a file".to_vec(), "text/plain", 3).await.unwrap();
    store.put_blob(b"nobody's".to_vec(), "text/plain", 3).await.unwrap();
    let blobs = || -> i64 {
        let query = "SELECT count(*) FROM blobs";
        sql(directory.path()).query_row(query, [], |row| row.get(0)).unwrap()
    };
    // Three inputs, the last of which is the snapshot as well; a command, its answer, a file.
    assert_eq!(blobs(), 7);
    assert_eq!(drop_orphans(&store, i64::MAX).await.records, 1);
    let state = Some(belljar_store::WorkflowStatusUpdate {
        status: WorkflowStatus::Completed,
        due_ms: i64::MAX,
        finished: true,
    });
    let end = WorkflowBatch { state, ..WorkflowBatch::default() };
    store.commit_workflow(&lease, end.clone()).await.unwrap();
    // Blobs that another workflow shares are not only this one's: two inputs and the file.
    store.fork_workflow("flow", 2, "fork", 4, None).await.unwrap();
    store.forget_workflow("flow", Vec::new(), 1_000).await.unwrap();
    assert_eq!((drop_orphans(&store, i64::MAX).await.records, blobs()), (0, 3));
    // With the last one that has them they are gone, at once (reliability 5).
    let lease = store.claim_workflow("fork", claim("second")).await.unwrap();
    store.commit_workflow(&lease, end).await.unwrap();
    store.forget_workflow("fork", Vec::new(), 1_000).await.unwrap();
    assert_eq!(blobs(), 0);
}

/// Two processes, one file: who was overtaken is told by the same error as with runs (F3).
#[tokio::test]
async fn f3_a_stale_lease_is_fenced_across_processes() {
    let (directory, first) = project();
    let second = Store::open(directory.path()).unwrap();
    let stale = create(&first, "flow").await;
    let held = second.claim_workflow("flow", claim("second")).await;
    let Err(StoreError::Workflow(WorkflowRecordError::Held { owner, until_ms, .. })) = held else {
        panic!("{held:?}");
    };
    assert_eq!((owner.as_str(), until_ms), ("first", 100));
    let later = LeaseRequest { now_ms: 100, until_ms: 200, ..claim("second") };
    let fresh = second.claim_workflow("flow", later).await.unwrap();
    let fenced = first.commit_workflow(&stale, batch(1)).await;
    assert!(matches!(fenced, Err(StoreError::Fenced { held: 1, current: 2, .. })), "{fenced:?}");
    assert_eq!(second.commit_workflow(&fresh, batch(1)).await.unwrap(), 1);
}

/// A file in which an input is missing is not replayed.
#[tokio::test]
async fn f3_a_missing_input_is_damage() {
    let (directory, store) = project();
    let lease = create(&store, "flow").await;
    for seq in 1..=2 {
        store.commit_workflow(&lease, batch(seq)).await.unwrap();
    }
    sql(directory.path()).execute_batch("DELETE FROM flow_inputs WHERE seq = 1").unwrap();
    let loaded = store.load_workflow("flow", None).await;
    assert!(matches!(loaded, Err(StoreError::Damaged { .. })), "{loaded:?}");
}

/// A status of some other version: one row must not hide the others.
#[tokio::test]
async fn an_unknown_status_does_not_hide_the_others() {
    let (directory, store) = project();
    create(&store, "known").await;
    create(&store, "other").await;
    let changed = "UPDATE flows SET status = 'hibernating' WHERE id = 'other'";
    sql(directory.path()).execute(changed, []).unwrap();
    let rows = store.workflows(WorkflowFilter::default(), None, 10).await.unwrap();
    let mut found: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.status)).collect();
    found.sort_by_key(|(id, _)| *id);
    assert_eq!(found, [("known", WorkflowStatus::Created), ("other", WorkflowStatus::Failed)]);
}
