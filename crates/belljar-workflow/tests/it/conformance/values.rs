//! Committed values come back, at every checkpoint, after a restart.

use std::time::Duration;

use belljar_contract::WorkflowStatus;
use belljar_workflow::workflow_store::{
    IntentChange, WorkflowBatch, WorkflowEventRow, WorkflowInputRow, WorkflowStore,
    WorkflowStoreError,
};

use crate::conformance::{
    CaseFailure, CaseResult, StoreFixture, closed, event, holds, input, inputs, marked, opened,
    owned, same,
};

/// Every kind of bytes: none, text beyond ASCII, all values, 17 KB, 5 MB.
fn samples() -> Vec<Vec<u8>> {
    let every: Vec<u8> = (0..=u8::MAX).collect();
    vec![
        Vec::new(),
        "naïve 北京 🜚 \0 \"quotes\"".as_bytes().to_vec(),
        every.clone(),
        every.repeat(70),
        every.repeat(20_000),
    ]
}

pub(super) async fn values_come_back<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    let mut batch = WorkflowBatch { now_ms: 2, ..WorkflowBatch::default() };
    for (seq, body) in (1..).zip(samples()) {
        batch.inputs.push(WorkflowInputRow { seq, checkpoint: None, body: body.clone() });
        batch.events.push(WorkflowEventRow { seq, cause: seq, body: body.clone() });
        batch.intents.push(IntentChange::Open { key: format!("key {seq}"), at: seq, body });
    }
    store.commit(&lease, batch.clone()).await?;
    drop(store);
    let store = stores.open().await;
    let loaded = store.load("flow", None).await?;
    same("inputs", &loaded.inputs, &batch.inputs)?;
    let open: Vec<Vec<u8>> = loaded.open.into_iter().map(|intent| intent.body).collect();
    same("intents", &open, &samples())?;
    let events = store.events("flow", 0, 100, Duration::ZERO).await?;
    same("events", &events, &batch.events)?;
    for (seq, body) in (6..).zip(samples()) {
        let next = inputs(vec![input(seq, b"next")]);
        store.commit(&lease, WorkflowBatch { snapshot: Some(body.clone()), ..next }).await?;
        let loaded = store.load("flow", None).await?;
        same("snapshot", &loaded.snapshot, &(seq, body))?;
    }
    Ok(())
}

pub(super) async fn the_beginning_is_loaded<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    owned(&store, "flow").await?;
    drop(store);
    let store = stores.open().await;
    for checkpoint in [None, Some(0)] {
        let loaded = store.load("flow", checkpoint).await?;
        same("snapshot", &loaded.snapshot, &(0, b"start of flow".to_vec()))?;
        same("inputs", &loaded.inputs, &Vec::new())?;
        same("last event", &loaded.last_event, &0)?;
    }
    Ok(())
}

/// Four inputs, checkpoints after 1 and 3, a snapshot after 2.
async fn history<E: WorkflowStore>(
    store: &E,
) -> Result<belljar_workflow::workflow_store::WorkflowLease, CaseFailure> {
    let lease = owned(store, "flow").await?;
    let mut first = inputs(vec![marked(1, b"one"), input(2, b"two")]);
    first.snapshot = Some(b"after two".to_vec());
    first.events = vec![event(1, 1), event(2, 2)];
    first.intents = vec![opened("a", 1), opened("b", 2)];
    store.commit(&lease, first).await?;
    let mut second = inputs(vec![marked(3, b"three"), input(4, b"four")]);
    second.events = vec![event(3, 3), event(4, 4)];
    second.intents = vec![closed("a", 3), closed("b", 4)];
    store.commit(&lease, second).await?;
    Ok(lease)
}

pub(super) async fn every_checkpoint_loads<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    history(&store).await?;
    let keys = |open: &[belljar_workflow::workflow_store::IntentRow]| -> Vec<String> {
        open.iter().map(|intent| intent.key.clone()).collect()
    };
    let first = store.load("flow", Some(1)).await?;
    same("snapshot at 1", &first.snapshot, &(0, b"start of flow".to_vec()))?;
    same("inputs at 1", &first.inputs, &vec![marked(1, b"one")])?;
    same("open at 1", &keys(&first.open), &vec!["a".to_owned()])?;
    same("last event at 1", &first.last_event, &1)?;
    let third = store.load("flow", Some(3)).await?;
    same("snapshot at 3", &third.snapshot, &(2, b"after two".to_vec()))?;
    same("inputs at 3", &third.inputs, &vec![marked(3, b"three")])?;
    same("open at 3", &keys(&third.open), &vec!["b".to_owned()])?;
    same("last event at 3", &third.last_event, &3)?;
    for wrong in [2, 4, 9] {
        let refused = store.load("flow", Some(wrong)).await;
        let is_refused = matches!(
            refused,
            Err(WorkflowStoreError::NoCheckpoint { checkpoint, .. }) if checkpoint == wrong
        );
        holds("a number that is no checkpoint was loaded", is_refused)?;
    }
    Ok(())
}

pub(super) async fn the_newest_is_loaded_without_a_number<F: StoreFixture>(
    stores: &F,
) -> CaseResult {
    let store = stores.open().await;
    history(&store).await?;
    drop(store);
    let loaded = stores.open().await.load("flow", None).await?;
    same("snapshot", &loaded.snapshot, &(2, b"after two".to_vec()))?;
    same("inputs", &loaded.inputs, &vec![marked(3, b"three"), input(4, b"four")])?;
    same("open", &loaded.open, &Vec::new())?;
    same("last event", &loaded.last_event, &4)
}

pub(super) async fn a_batch_is_whole_or_not<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    // The last event is out of order: nothing of the batch may be there.
    let mut batch = inputs(vec![marked(1, b"one")]);
    batch.snapshot = Some(b"half".to_vec());
    batch.events = vec![event(1, 1), event(3, 1)];
    batch.intents = vec![opened("a", 1)];
    batch.state = crate::conformance::standing(WorkflowStatus::Failed, 9, true);
    let refused = store.commit(&lease, batch).await;
    holds("a gap was accepted", matches!(refused, Err(WorkflowStoreError::Conflict(_))))?;
    let loaded = store.load("flow", None).await?;
    same("inputs", &loaded.inputs, &Vec::new())?;
    same("snapshot", &loaded.snapshot.0, &0)?;
    same("open", &loaded.open, &Vec::new())?;
    same("events", &store.events("flow", 0, 9, Duration::ZERO).await?, &Vec::new())?;
    holds("the status was changed", loaded.workflow.finished_ms.is_none())
}

pub(super) async fn writes_are_idempotent<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    let mut first = inputs(vec![marked(1, b"one")]);
    first.events = vec![event(1, 1), event(2, 1)];
    first.intents = vec![opened("a", 1)];
    let mut second = inputs(vec![input(2, b"two"), input(3, b"three")]);
    second.intents = vec![closed("a", 2), opened("a", 3)];
    for batch in [&first, &first, &second, &second, &first] {
        store.commit(&lease, batch.clone()).await?;
    }
    let loaded = store.load("flow", None).await?;
    let all = vec![marked(1, b"one"), input(2, b"two"), input(3, b"three")];
    same("inputs", &loaded.inputs, &all)?;
    let open: Vec<u64> = loaded.open.iter().map(|intent| intent.opened).collect();
    same("open", &open, &vec![3])?;
    same("events", &store.events("flow", 0, 9, Duration::ZERO).await?, &first.events)?;
    // The same number with other bytes is not the same write.
    let other = store.commit(&lease, inputs(vec![input(2, b"other")])).await;
    holds("an input was replaced", matches!(other, Err(WorkflowStoreError::Conflict(_))))?;
    let mut other = inputs(Vec::new());
    other.events = vec![WorkflowEventRow { seq: 1, cause: 1, body: b"other".to_vec() }];
    let other = store.commit(&lease, other).await;
    holds("an event was replaced", matches!(other, Err(WorkflowStoreError::Conflict(_))))
}

pub(super) async fn numbers_have_no_gap<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    for wrong in [0, 2] {
        let refused = store.commit(&lease, inputs(vec![input(wrong, b"x")])).await;
        holds("a gap was accepted", matches!(refused, Err(WorkflowStoreError::Conflict(_))))?;
    }
    same("last", &store.commit(&lease, inputs(vec![input(1, b"x")])).await?, &1)?;
    let skipping = inputs(vec![input(2, b"x"), input(4, b"x")]);
    let refused = store.commit(&lease, skipping).await;
    holds("a gap was accepted", matches!(refused, Err(WorkflowStoreError::Conflict(_))))?;
    same("last", &store.commit(&lease, inputs(vec![input(2, b"x")])).await?, &2)
}

pub(super) async fn intents_open_and_close<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    let open = async |store: &F::Store| -> Result<Vec<(String, u64)>, CaseFailure> {
        let loaded = store.load("flow", None).await?;
        Ok(loaded.open.into_iter().map(|intent| (intent.key, intent.opened)).collect())
    };
    let mut batch = inputs(vec![input(1, b"1"), input(2, b"2")]);
    batch.intents = vec![opened("b", 1), opened("a", 2)];
    store.commit(&lease, batch).await?;
    same("in order", &open(&store).await?, &vec![("b".to_owned(), 1), ("a".to_owned(), 2)])?;
    let mut batch = inputs(vec![input(3, b"3")]);
    // One that is open stays as it was opened; closing what is not open changes nothing.
    batch.intents = vec![opened("b", 3), closed("nothing", 3), closed("a", 3)];
    store.commit(&lease, batch).await?;
    drop(store);
    let store = stores.open().await;
    same("after closing", &open(&store).await?, &vec![("b".to_owned(), 1)])?;
    let mut batch = inputs(vec![input(4, b"4"), input(5, b"5")]);
    batch.intents = vec![closed("b", 4), opened("b", 5)];
    store.commit(&lease, batch).await?;
    same("opened again", &open(&store).await?, &vec![("b".to_owned(), 5)])
}

pub(super) async fn events_are_replayed_without_gap<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    let all: Vec<WorkflowEventRow> = (1..=40).map(|seq| event(seq, seq.div_ceil(4))).collect();
    for (seq, events) in (1..).zip(all.chunks(4)) {
        let batch = inputs(vec![input(seq, b"x")]);
        store.commit(&lease, WorkflowBatch { events: events.to_vec(), ..batch }).await?;
    }
    drop(store);
    let store = stores.open().await;
    let mut read = Vec::new();
    loop {
        let after = read.last().map_or(0, |event: &WorkflowEventRow| event.seq);
        let page = store.events("flow", after, 7, Duration::ZERO).await?;
        if page.is_empty() {
            break;
        }
        holds("a page is larger than asked", page.len() <= 7)?;
        read.extend(page);
    }
    same("events", &read, &all)
}

pub(super) async fn events_can_be_waited_for<F: StoreFixture>(stores: &F) -> CaseResult {
    let (store, other) = (stores.open().await, stores.open().await);
    let lease = owned(&store, "flow").await?;
    let patience = Duration::from_secs(20);
    for (seq, watcher) in (1..).zip([&store, &other]) {
        let batch =
            WorkflowBatch { events: vec![event(seq, seq)], ..inputs(vec![input(seq, b"x")]) };
        let (seen, committed) =
            tokio::join!(watcher.events("flow", seq - 1, 9, patience), store.commit(&lease, batch));
        committed?;
        same("seen", &seen?, &vec![event(seq, seq)])?;
    }
    // Patience ends.
    let nothing = store.events("flow", 2, 9, Duration::from_millis(1)).await?;
    same("nothing", &nothing, &Vec::new())
}
