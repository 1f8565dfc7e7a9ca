//! Commands are queued in order, once each, and answered for good.

use std::time::Duration;

use belljar_workflow::workflow_store::{
    QueuedCommand, SentCommand, WorkflowBatch, WorkflowStore, WorkflowStoreError,
};

use crate::conformance::{
    CaseFailure, CaseResult, StoreFixture, holds, input, inputs, owned, same,
};

fn command(id: &str) -> QueuedCommand {
    let (sender, body) = ("somebody".to_owned(), format!("do {id}").into_bytes());
    QueuedCommand { seq: 0, id: id.to_owned(), sender, at_ms: 7, body }
}

async fn send(store: &impl WorkflowStore, id: &str) -> Result<SentCommand, CaseFailure> {
    Ok(store.send("flow", command(id)).await?)
}

pub(super) async fn commands_keep_their_order<F: StoreFixture>(stores: &F) -> CaseResult {
    // Two processes send; a third reads.
    let (one, two) = (stores.open().await, stores.open().await);
    owned(&one, "flow").await?;
    let ids = ["e", "d", "c", "b", "a"];
    for (number, id) in (1..).zip(ids) {
        let store = if number % 2 == 0 { &one } else { &two };
        same("sent", &send(store, id).await?, &SentCommand { seq: number, repeated: false })?;
    }
    drop((one, two));
    let store = stores.open().await;
    let rows = store.commands("flow", 0, 100, Duration::ZERO).await?;
    let expected: Vec<QueuedCommand> =
        (1..).zip(ids).map(|(seq, id)| QueuedCommand { seq, ..command(id) }).collect();
    let found: Vec<QueuedCommand> = rows.into_iter().map(|row| row.command).collect();
    same("all", &found, &expected)?;
    let page = store.commands("flow", 2, 2, Duration::ZERO).await?;
    let page: Vec<u64> = page.into_iter().map(|row| row.command.seq).collect();
    same("a page", &page, &vec![3, 4])?;
    let loaded = store.load("flow", None).await?;
    same("waiting", &loaded.commands, &expected)
}

pub(super) async fn a_command_twice_is_one<F: StoreFixture>(stores: &F) -> CaseResult {
    let (one, two) = (stores.open().await, stores.open().await);
    owned(&one, "flow").await?;
    let (first, second) = tokio::join!(send(&one, "a"), send(&two, "a"));
    let (first, second) = (first?, second?);
    same("numbers", &(first.seq, second.seq), &(1, 1))?;
    holds("both or none were new", first.repeated != second.repeated)?;
    same("next", &send(&two, "b").await?, &SentCommand { seq: 2, repeated: false })?;
    same("again", &send(&one, "a").await?, &SentCommand { seq: 1, repeated: true })?;
    let other = QueuedCommand { body: b"something else".to_vec(), ..command("a") };
    let refused = one.send("flow", other).await;
    holds("another command has its id", matches!(refused, Err(WorkflowStoreError::Conflict(_))))?;
    let rows = one.commands("flow", 0, 9, Duration::ZERO).await?;
    same("in the queue", &rows.len(), &2)
}

pub(super) async fn answers_are_durable<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    send(&store, "a").await?;
    let before = store.command("flow", "a", Duration::ZERO).await?;
    same("before", &before.map(|row| (row.taken, row.answer)), &Some((None, None)))?;
    let mut batch = inputs(vec![input(1, b"a")]);
    batch.taken = vec![(1, 1)];
    batch.answers = vec![("a".to_owned(), b"accepted".to_vec())];
    store.commit(&lease, batch).await?;
    // The first answer stays, and sending it again does not ask again.
    let again =
        WorkflowBatch { answers: vec![("a".to_owned(), b"refused".to_vec())], ..inputs(vec![]) };
    store.commit(&lease, again).await?;
    same("again", &send(&store, "a").await?, &SentCommand { seq: 1, repeated: true })?;
    drop(store);
    let store = stores.open().await;
    let answered = store.command("flow", "a", Duration::from_secs(20)).await?;
    let answered = answered.map(|row| (row.taken, row.answer));
    same("answer", &answered, &Some((Some(1), Some((2, b"accepted".to_vec())))))?;
    same("unknown", &store.command("flow", "none", Duration::ZERO).await?, &None)
}

pub(super) async fn commands_can_be_waited_for<F: StoreFixture>(stores: &F) -> CaseResult {
    let (store, other) = (stores.open().await, stores.open().await);
    let lease = owned(&store, "flow").await?;
    let patience = Duration::from_secs(20);
    for (number, (id, sender)) in (1..).zip([("a", &store), ("b", &other)]) {
        let (seen, sent) =
            tokio::join!(store.commands("flow", number - 1, 9, patience), send(sender, id));
        sent?;
        let seen: Vec<String> = seen?.into_iter().map(|row| row.command.id).collect();
        same("seen", &seen, &vec![id.to_owned()])?;
        let answers = vec![(id.to_owned(), b"yes".to_vec())];
        let batch = WorkflowBatch { answers, ..inputs(vec![input(number, b"x")]) };
        let (answered, committed) =
            tokio::join!(sender.command("flow", id, patience), store.commit(&lease, batch));
        committed?;
        let answer = answered?.and_then(|row| row.answer);
        same("answer", &answer, &Some((2, b"yes".to_vec())))?;
    }
    Ok(())
}

pub(super) async fn taken_commands_are_not_loaded_again<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    let lease = owned(&store, "flow").await?;
    for id in ["a", "b", "c"] {
        send(&store, id).await?;
    }
    let mut batch = inputs(vec![input(1, b"a"), input(2, b"b")]);
    batch.taken = vec![(1, 1), (2, 2)];
    store.commit(&lease, batch).await?;
    drop(store);
    let store = stores.open().await;
    let waiting = store.load("flow", None).await?.commands;
    let waiting: Vec<String> = waiting.into_iter().map(|command| command.id).collect();
    same("waiting", &waiting, &vec!["c".to_owned()])?;
    let rows = store.commands("flow", 0, 9, Duration::ZERO).await?;
    let taken: Vec<Option<u64>> = rows.into_iter().map(|row| row.taken).collect();
    same("taken", &taken, &vec![Some(1), Some(2), None])
}
