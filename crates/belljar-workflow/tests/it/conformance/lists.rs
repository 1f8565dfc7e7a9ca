//! Lists are newest first, in pages, and filtered.

use std::time::Duration;

use belljar_contract::WorkflowStatus;
use belljar_workflow::workflow_store::{
    GiveBack, NewWorkflowRow, QueuedCommand, WorkflowBatch, WorkflowFilter, WorkflowLease,
    WorkflowStore, WorkflowStoreError,
};

use crate::conformance::{
    CaseFailure, CaseResult, StoreFixture, create, holds, input, inputs, marked, owned, same,
    standing, wants,
};

async fn ids(
    store: &impl WorkflowStore,
    filter: WorkflowFilter,
    before: Option<&str>,
    limit: u32,
) -> Result<String, CaseFailure> {
    let rows = store.list(filter, before, limit).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

pub(super) async fn flows_are_listed_newest_first<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    // Two of the same millisecond are told apart by their ids.
    for (id, created) in [("a", 1), ("b", 3), ("c", 3), ("d", 2)] {
        create(&store, id, created).await?;
    }
    drop(store);
    let store = stores.open().await;
    let all = WorkflowFilter::default;
    same("all", &ids(&store, all(), None, 10).await?.as_str(), &"cbda")?;
    same("limit", &ids(&store, all(), None, 2).await?.as_str(), &"cb")?;
    same("before", &ids(&store, all(), Some("b"), 2).await?.as_str(), &"da")?;
    same("before the last", &ids(&store, all(), Some("a"), 2).await?.as_str(), &"")?;
    same("none", &ids(&store, all(), None, 0).await?.as_str(), &"")
}

pub(super) async fn flows_are_filtered<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    for (created_ms, (id, name, caller)) in
        (1..).zip([("a", "x", "me"), ("b", "x", "you"), ("c", "y", "me")])
    {
        let (id, name, caller) = (id.to_owned(), name.to_owned(), caller.to_owned());
        store.create(NewWorkflowRow { id, name, caller, snapshot: Vec::new(), created_ms }).await?;
    }
    let lease = store.claim("b", wants("suite", 1)).await?;
    let state = standing(WorkflowStatus::Paused, 0, false);
    store.commit(&lease, WorkflowBatch { state, ..inputs(Vec::new()) }).await?;
    let some = |text: &str| Some(text.to_owned());
    let cases = [
        (WorkflowFilter { name: some("x"), ..WorkflowFilter::default() }, "ba"),
        (WorkflowFilter { caller: some("me"), ..WorkflowFilter::default() }, "ca"),
        (WorkflowFilter { name: some("x"), caller: some("me"), ..WorkflowFilter::default() }, "a"),
        (WorkflowFilter { status: Some(WorkflowStatus::Paused), ..WorkflowFilter::default() }, "b"),
        (
            WorkflowFilter {
                status: Some(WorkflowStatus::RollingBack),
                ..WorkflowFilter::default()
            },
            "",
        ),
    ];
    for (filter, expected) in cases {
        let what = format!("{filter:?}");
        same(&what, &ids(&store, filter, None, 10).await?.as_str(), &expected)?;
    }
    let filter = WorkflowFilter { caller: some("me"), ..WorkflowFilter::default() };
    same("a page", &ids(&store, filter, Some("b"), 10).await?.as_str(), &"a")
}

pub(super) async fn checkpoints_are_listed_newest_first<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    let batch = (1..=6).map(|seq| if seq % 2 == 0 { marked(seq, b"x") } else { input(seq, b"x") });
    store.commit(&lease, inputs(batch.collect())).await?;
    let numbers = async |before, limit| -> Result<Vec<u64>, CaseFailure> {
        let rows = store.checkpoints("flow", before, limit).await?;
        Ok(rows.into_iter().map(|row| row.seq).collect())
    };
    same("all", &numbers(None, 10).await?, &vec![6, 4, 2])?;
    same("limit", &numbers(None, 2).await?, &vec![6, 4])?;
    same("before", &numbers(Some(4), 10).await?, &vec![2])?;
    let rows = store.checkpoints("flow", Some(3), 1).await?;
    let first = rows.first().map(|row| (row.name.as_str(), row.at_ms));
    same("name and time", &first, &Some(("after 2", 2)))
}

pub(super) async fn what_is_unknown_is_said<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = WorkflowLease { workflow_id: "none".to_owned(), fence: 1 };
    let (id, sender) = ("c".to_owned(), "suite".to_owned());
    let command = QueuedCommand { seq: 0, id, sender, at_ms: 1, body: Vec::new() };
    let outcomes = [
        store.claim("none", wants("suite", 1)).await.err(),
        store.renew(&lease, 5).await.err(),
        store.release(&lease, GiveBack::Free).await.err(),
        store.commit(&lease, inputs(vec![input(1, b"x")])).await.err(),
        store.load("none", None).await.err(),
        store.checkpoints("none", None, 1).await.err(),
        store.fork("none", 0, "new", 1, None).await.err(),
        store.send("none", command).await.err(),
        store.commands("none", 0, 1, Duration::ZERO).await.err(),
        store.command("none", "c", Duration::ZERO).await.err(),
        store.events("none", 0, 1, Duration::ZERO).await.err(),
        store.put_blob("none", vec![1], 1).await.err(),
    ];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let is_said = matches!(&outcome, Some(WorkflowStoreError::Unknown(id)) if id == "none");
        holds(&format!("operation {at} gave {outcome:?}"), is_said)?;
    }
    same("found", &store.find("none").await?, &None)?;
    create(&store, "there", 1).await?;
    let again = create(&store, "there", 2).await;
    holds("an id was used twice", again.is_err())?;
    same("kept", &store.find("there").await?.map(|row| row.created_ms), &Some(1))
}
