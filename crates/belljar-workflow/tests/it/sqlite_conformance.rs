//! The store over SQLite keeps every promise of the port (F3), and the suite notices a store that
//! breaks one. What the port does not offer, forgetting a workflow, is tested here as well.

use belljar_contract::WorkflowStatus;
use belljar_store::Store;
use belljar_workflow::{
    SqliteWorkflowStore, WorkflowStore as _, WorkflowStoreError,
    workflow_store::{GiveBack, WorkflowBatch},
};

use crate::{
    conformance::{
        self, StoreFixture, event,
        forks::{essence, history},
        input, inputs, owned, standing, wants,
    },
    flawed_store::{Flaw, FlawedStore},
};

/// A file; every handle has a writer and connections of its own, as in another process.
struct File(tempfile::TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl StoreFixture for File {
    type Store = SqliteWorkflowStore;

    async fn open(&self) -> SqliteWorkflowStore {
        SqliteWorkflowStore::new(Store::open(self.0.path()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_the_sqlite_store_keeps_every_promise() {
    let report = conformance::run(File::new).await;
    let failed = report.failed.iter().map(|failed| format!("{}: {}", failed.case, failed.reason));
    assert_eq!(failed.collect::<Vec<String>>(), Vec::<String>::new());
    assert!(report.passed.len() >= 30, "{}", report.passed.len());
}

struct FlawedFile(File, Flaw);

impl StoreFixture for FlawedFile {
    type Store = FlawedStore;

    async fn open(&self) -> FlawedStore {
        FlawedStore::flawed(self.0.open().await, self.1)
    }
}

/// A suite that lets a broken store pass proves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn f3_the_suite_bites() {
    let bites = [
        (Flaw::IgnoresFences, "superseded_writes_are_refused"),
        (Flaw::LosesTheLastEvent, "events_are_replayed_without_gap"),
        (Flaw::QueuesRepeatedCommands, "a_command_twice_is_one"),
        (Flaw::ForgetsAnswers, "answers_are_durable"),
        (Flaw::ClaimsWhatIsHeld, "a_live_lease_is_respected"),
        (Flaw::LosesLargeValues, "values_come_back"),
    ];
    for (flaw, case) in bites {
        let report = conformance::run(|| FlawedFile(File::new(), flaw)).await;
        let failed: Vec<&str> = report.failed.iter().map(|failed| failed.case).collect();
        assert!(failed.contains(&case), "{flaw:?}: {failed:?}");
        // It says which promise, and does not merely fall over.
        assert!(report.passed.len() > failed.len(), "{flaw:?}: {failed:?}");
    }
}

/// Forgetting is the store's own: a host forgets a workflow together with its runs and files.
#[tokio::test(flavor = "multi_thread")]
async fn f3_forgetting_a_workflow_leaves_its_forks() {
    let file = File::new();
    let store = file.open().await;
    let lease = history(&store).await.unwrap();
    store.fork("flow", 2, "fork", 9, None).await.unwrap();
    let fork = store.load("fork", None).await.unwrap();
    assert!(matches!(forget(&store, "flow", 9).await, Err(WorkflowStoreError::Held { .. })));
    store.release(&lease, GiveBack::Free).await.unwrap();
    let has_not_ended = forget(&store, "fork", 9).await;
    assert!(matches!(has_not_ended, Err(WorkflowStoreError::Held { .. })));
    forget(&store, "flow", 9).await.unwrap();
    let unknown = forget(&store, "flow", 9).await;
    assert!(matches!(unknown, Err(WorkflowStoreError::Unknown(id)) if id == "flow"));
    drop(store);
    let store = file.open().await;
    assert_eq!(store.find("flow").await.unwrap(), None);
    assert!(essence(store.load("fork", None).await.unwrap()) == essence(fork));
    let own = store.claim("fork", wants("other", 9)).await.unwrap();
    let batch = WorkflowBatch { events: vec![event(3, 3)], ..inputs(vec![input(3, b"x")]) };
    store.commit(&own, batch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_blobs_of_a_fork_outlive_its_parent() {
    let file = File::new();
    let store = file.open().await;
    let lease = owned(&store, "flow").await.unwrap();
    let id = store.put_blob("flow", b"a file".to_vec(), 3).await.unwrap();
    store.fork("flow", 0, "fork", 4, None).await.unwrap();
    let state = standing(WorkflowStatus::Completed, i64::MAX, true);
    store.commit(&lease, WorkflowBatch { state, ..inputs(Vec::new()) }).await.unwrap();
    store.release(&lease, GiveBack::Free).await.unwrap();
    forget(&store, "flow", 5).await.unwrap();
    assert_eq!(store.blob(&id).await.unwrap(), Some(b"a file".to_vec()));
}

async fn forget(
    store: &SqliteWorkflowStore,
    workflow: &str,
    now_ms: i64,
) -> Result<(), WorkflowStoreError> {
    Ok(store.project_store().forget_workflow(workflow, Vec::new(), now_ms).await?)
}
