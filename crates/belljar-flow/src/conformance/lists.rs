//! Lists are newest first, in pages, and filtered.

use std::time::Duration;

use crate::{
    conformance::{
        Engines, Fault, Outcome, create, holds, input, inputs, marked, owned, same, standing, wants,
    },
    engine::{Batch, DurableEngine, EngineError, Filter, GiveBack, Lease, NewFlow, QueuedCommand},
};

async fn ids(
    engine: &impl DurableEngine,
    filter: Filter,
    before: Option<&str>,
    limit: u32,
) -> Result<String, Fault> {
    let rows = engine.list(filter, before, limit).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

pub(super) async fn flows_are_listed_newest_first<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    // Two of the same millisecond are told apart by their ids.
    for (id, created) in [("a", 1), ("b", 3), ("c", 3), ("d", 2)] {
        create(&engine, id, created).await?;
    }
    drop(engine);
    let engine = engines.open().await;
    let all = Filter::default;
    same("all", &ids(&engine, all(), None, 10).await?.as_str(), &"cbda")?;
    same("limit", &ids(&engine, all(), None, 2).await?.as_str(), &"cb")?;
    same("before", &ids(&engine, all(), Some("b"), 2).await?.as_str(), &"da")?;
    same("before the last", &ids(&engine, all(), Some("a"), 2).await?.as_str(), &"")?;
    same("none", &ids(&engine, all(), None, 0).await?.as_str(), &"")
}

pub(super) async fn flows_are_filtered<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    for (created_ms, (id, name, caller)) in
        (1..).zip([("a", "x", "me"), ("b", "x", "you"), ("c", "y", "me")])
    {
        let (id, name, caller) = (id.to_owned(), name.to_owned(), caller.to_owned());
        engine.create(NewFlow { id, name, caller, snapshot: Vec::new(), created_ms }).await?;
    }
    let lease = engine.claim("b", wants("suite", 1)).await?;
    let state = standing("waiting", 0, false);
    engine.commit(&lease, Batch { state, ..inputs(Vec::new()) }).await?;
    let some = |text: &str| Some(text.to_owned());
    let cases = [
        (Filter { name: some("x"), ..Filter::default() }, "ba"),
        (Filter { caller: some("me"), ..Filter::default() }, "ca"),
        (Filter { name: some("x"), caller: some("me"), ..Filter::default() }, "a"),
        (Filter { status: some("waiting"), ..Filter::default() }, "b"),
        (Filter { status: some("never"), ..Filter::default() }, ""),
    ];
    for (filter, expected) in cases {
        let what = format!("{filter:?}");
        same(&what, &ids(&engine, filter, None, 10).await?.as_str(), &expected)?;
    }
    let filter = Filter { caller: some("me"), ..Filter::default() };
    same("a page", &ids(&engine, filter, Some("b"), 10).await?.as_str(), &"a")
}

pub(super) async fn checkpoints_are_listed_newest_first<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    let lease = owned(&engine, "flow").await?;
    let batch = (1..=6).map(|seq| if seq % 2 == 0 { marked(seq, b"x") } else { input(seq, b"x") });
    engine.commit(&lease, inputs(batch.collect())).await?;
    let numbers = async |before, limit| -> Result<Vec<u64>, Fault> {
        let rows = engine.checkpoints("flow", before, limit).await?;
        Ok(rows.into_iter().map(|row| row.seq).collect())
    };
    same("all", &numbers(None, 10).await?, &vec![6, 4, 2])?;
    same("limit", &numbers(None, 2).await?, &vec![6, 4])?;
    same("before", &numbers(Some(4), 10).await?, &vec![2])?;
    let rows = engine.checkpoints("flow", Some(3), 1).await?;
    let first = rows.first().map(|row| (row.name.as_str(), row.at_ms));
    same("name and time", &first, &Some(("after 2", 2)))
}

pub(super) async fn what_is_unknown_is_said<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    let lease = Lease { workflow_id: "none".to_owned(), fence: 1 };
    let (id, sender) = ("c".to_owned(), "suite".to_owned());
    let command = QueuedCommand { seq: 0, id, sender, at_ms: 1, body: Vec::new() };
    let outcomes = [
        engine.claim("none", wants("suite", 1)).await.err(),
        engine.renew(&lease, 5).await.err(),
        engine.release(&lease, GiveBack::Free).await.err(),
        engine.commit(&lease, inputs(vec![input(1, b"x")])).await.err(),
        engine.load("none", None).await.err(),
        engine.checkpoints("none", None, 1).await.err(),
        engine.fork("none", 0, "new", 1, None).await.err(),
        engine.copy("none", "new", 1).await.err(),
        engine.prune("none").await.err(),
        engine.forget("none", 1).await.err(),
        engine.send("none", command).await.err(),
        engine.commands("none", 0, 1, Duration::ZERO).await.err(),
        engine.command("none", "c", Duration::ZERO).await.err(),
        engine.events("none", 0, 1, Duration::ZERO).await.err(),
        engine.put_blob("none", vec![1], 1).await.err(),
    ];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let is_said = matches!(&outcome, Some(EngineError::Unknown(id)) if id == "none");
        holds(&format!("operation {at} gave {outcome:?}"), is_said)?;
    }
    same("found", &engine.find("none").await?, &None)?;
    create(&engine, "there", 1).await?;
    let again = create(&engine, "there", 2).await;
    holds("an id was used twice", again.is_err())?;
    same("kept", &engine.find("there").await?.map(|row| row.created_ms), &Some(1))
}
