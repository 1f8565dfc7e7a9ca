//! Forks: what they take from their parent, and that the two are independent afterwards.

use std::time::Duration;

use belljar_contract::WorkflowStatus;
use belljar_workflow::workflow_store::{
    LoadedWorkflow, QueuedCommand, WorkflowFilter, WorkflowLease, WorkflowStore, WorkflowStoreError,
};

use crate::conformance::{
    CaseFailure, CaseResult, StoreFixture, closed, event, holds, input, inputs, marked, opened,
    owned, same, standing, wants,
};

/// Three inputs with checkpoints after 1 and 2, a snapshot after 2, a command, an end.
pub(crate) async fn history(store: &impl WorkflowStore) -> Result<WorkflowLease, CaseFailure> {
    let lease = owned(store, "flow").await?;
    let large = vec![7; 40_000];
    let mut batch = inputs(vec![marked(1, &large), marked(2, b"two")]);
    batch.snapshot = Some(vec![8; 40_000]);
    batch.events = vec![event(1, 1), event(2, 2)];
    batch.intents = vec![opened("a", 1), closed("a", 2), opened("b", 2)];
    store.commit(&lease, batch).await?;
    let (id, sender) = ("c".to_owned(), "suite".to_owned());
    let command = QueuedCommand { seq: 0, id, sender, at_ms: 3, body: b"do".to_vec() };
    store.send("flow", command).await?;
    let mut batch = inputs(vec![input(3, b"three")]);
    batch.events = vec![event(3, 3)];
    batch.intents = vec![closed("b", 3)];
    batch.taken = vec![(1, 3)];
    batch.state = standing(WorkflowStatus::Completed, i64::MAX, true);
    store.commit(&lease, batch).await?;
    Ok(lease)
}

/// A workflow apart from its id and its owner.
pub(crate) fn essence(loaded: LoadedWorkflow) -> impl PartialEq + std::fmt::Debug {
    (loaded.snapshot, loaded.inputs, loaded.open, loaded.commands, loaded.last_event)
}

pub(super) async fn a_fork_is_what_was<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    history(&store).await?;
    for checkpoint in [0, 1, 2] {
        let id = format!("fork {checkpoint}");
        store.fork("flow", checkpoint, &id, 9, None).await?;
        let mut was = store.load("flow", Some(checkpoint)).await?;
        let fork = store.load(&id, None).await?;
        // Open tasks are the other's: a fork has begun nothing.
        was.open.clear();
        holds("a fork has ended", fork.workflow.finished_ms.is_none())?;
        same("made", &fork.workflow.created_ms, &9)?;
        same(&id, &essence(fork), &essence(was))?;
        let events = store.events(&id, 0, 9, Duration::ZERO).await?;
        let expected = (1..=checkpoint).map(|seq| event(seq, seq)).collect();
        same("events", &events, &expected)?;
        let commands = store.commands(&id, 0, 9, Duration::ZERO).await?;
        same("commands", &commands, &Vec::new())?;
    }
    // The checkpoints before it can be gone back to, too.
    let inside = store.load("fork 2", Some(1)).await?;
    same("inside", &essence(inside), &essence(store.load("fork 1", None).await?))?;
    let refused = store.fork("flow", 3, "fork 3", 9, None).await;
    holds("forked nowhere", matches!(refused, Err(WorkflowStoreError::NoCheckpoint { .. })))?;
    same("nothing is left of it", &store.find("fork 3").await?, &None)?;
    let refused = store.fork("flow", 1, "fork 1", 9, None).await;
    holds("an id was used twice", matches!(refused, Err(WorkflowStoreError::Exists(_))))
}

pub(super) async fn a_fork_is_independent<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = history(&store).await?;
    store.fork("flow", 1, "fork", 9, None).await?;
    let was = essence(store.load("flow", None).await?);
    let own = store.claim("fork", wants("other", 9)).await?;
    let mut batch = inputs(vec![marked(2, b"another two")]);
    batch.events = vec![event(2, 2)];
    batch.intents = vec![opened("a", 2)];
    store.commit(&own, batch).await?;
    same("the parent", &essence(store.load("flow", None).await?), &was)?;
    let fork = essence(store.load("fork", None).await?);
    store.commit(&lease, inputs(vec![input(4, b"four")])).await?;
    same("the fork", &essence(store.load("fork", None).await?), &fork)?;
    // A lease of the one says nothing about the other.
    let wrong = WorkflowLease { workflow_id: "fork".to_owned(), fence: lease.fence + 5 };
    let refused = store.commit(&wrong, inputs(vec![input(3, b"x")])).await;
    holds("a wrong fence", matches!(refused, Err(WorkflowStoreError::Superseded { .. })))
}

pub(super) async fn a_fork_comes_with_its_command<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    history(&store).await?;
    let command = || {
        let (id, sender) = ("first".to_owned(), "suite".to_owned());
        Some(QueuedCommand { seq: 0, id, sender, at_ms: 9, body: b"wait".to_vec() })
    };
    store.fork("flow", 1, "fork", 9, command()).await?;
    let commands = store.load("fork", None).await?.commands;
    let found: Vec<(u64, &str)> = commands.iter().map(|one| (one.seq, one.id.as_str())).collect();
    same("commands", &found, &vec![(1, "first")])?;
    // Where there is no fork there is no command.
    let refused = store.fork("flow", 3, "none", 9, command()).await;
    holds("forked nowhere", matches!(refused, Err(WorkflowStoreError::NoCheckpoint { .. })))?;
    let unknown = store.command("none", "first", Duration::ZERO).await;
    holds("a command to nobody", matches!(unknown, Err(WorkflowStoreError::Unknown(_))))
}

pub(super) async fn parents_are_known<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    history(&store).await?;
    store.fork("flow", 1, "child", 9, None).await?;
    store.fork("child", 1, "grandchild", 10, None).await?;
    drop(store);
    let store = stores.open().await;
    let parents = [("flow", None), ("child", Some("flow")), ("grandchild", Some("child"))];
    for (id, parent) in parents {
        let row = store.find(id).await?;
        let found = row.and_then(|row| row.parent);
        same(id, &found, &parent.map(|parent| (parent.to_owned(), 1)))?;
    }
    let filter = WorkflowFilter { parent: Some("flow".to_owned()), ..WorkflowFilter::default() };
    let children = store.list(filter, None, 9).await?;
    let children: Vec<String> = children.into_iter().map(|row| row.id).collect();
    same("children", &children, &vec!["child".to_owned()])
}
