//! Forks, copies, and what may be dropped.

use std::time::Duration;

use crate::{
    conformance::{
        Engines, Fault, Outcome, closed, event, holds, input, inputs, marked, opened, owned, same,
        standing, wants,
    },
    engine::{Batch, DurableEngine, EngineError, Filter, GiveBack, Lease, Loaded, QueuedCommand},
};

/// Three inputs with checkpoints after 1 and 2, a snapshot after 2, a command, an end.
async fn history(engine: &impl DurableEngine) -> Result<Lease, Fault> {
    let lease = owned(engine, "flow").await?;
    let large = vec![7; 40_000];
    let mut batch = inputs(vec![marked(1, &large), marked(2, b"two")]);
    batch.snapshot = Some(vec![8; 40_000]);
    batch.events = vec![event(1, 1), event(2, 2)];
    batch.intents = vec![opened("a", 1), closed("a", 2), opened("b", 2)];
    engine.commit(&lease, batch).await?;
    let (id, sender) = ("c".to_owned(), "suite".to_owned());
    let command = QueuedCommand { seq: 0, id, sender, at_ms: 3, body: b"do".to_vec() };
    engine.send("flow", command).await?;
    let mut batch = inputs(vec![input(3, b"three")]);
    batch.events = vec![event(3, 3)];
    batch.intents = vec![closed("b", 3)];
    batch.taken = vec![(1, 3)];
    batch.state = standing("ended", i64::MAX, true);
    engine.commit(&lease, batch).await?;
    Ok(lease)
}

/// What a workflow is, apart from its id and its owner.
fn essence(loaded: Loaded) -> impl PartialEq + std::fmt::Debug {
    (loaded.snapshot, loaded.inputs, loaded.open, loaded.commands, loaded.last_event)
}

pub(super) async fn a_fork_is_what_was<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    history(&engine).await?;
    for checkpoint in [0, 1, 2] {
        let id = format!("fork {checkpoint}");
        engine.fork("flow", checkpoint, &id, 9, None).await?;
        let mut was = engine.load("flow", Some(checkpoint)).await?;
        let fork = engine.load(&id, None).await?;
        // What was under way is the other's: a fork has begun nothing.
        was.open.clear();
        holds("a fork has ended", fork.workflow.finished_ms.is_none())?;
        same("made", &fork.workflow.created_ms, &9)?;
        same(&id, &essence(fork), &essence(was))?;
        let events = engine.events(&id, 0, 9, Duration::ZERO).await?;
        let expected = (1..=checkpoint).map(|seq| event(seq, seq)).collect();
        same("events", &events, &expected)?;
        let commands = engine.commands(&id, 0, 9, Duration::ZERO).await?;
        same("commands", &commands, &Vec::new())?;
    }
    // What led there can be gone back to, too.
    let inside = engine.load("fork 2", Some(1)).await?;
    same("inside", &essence(inside), &essence(engine.load("fork 1", None).await?))?;
    let refused = engine.fork("flow", 3, "fork 3", 9, None).await;
    holds("forked nowhere", matches!(refused, Err(EngineError::NoCheckpoint { .. })))?;
    same("nothing is left of it", &engine.find("fork 3").await?, &None)?;
    let refused = engine.fork("flow", 1, "fork 1", 9, None).await;
    holds("an id was used twice", matches!(refused, Err(EngineError::Exists(_))))
}

pub(super) async fn a_fork_is_independent<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    let lease = history(&engine).await?;
    engine.fork("flow", 1, "fork", 9, None).await?;
    let was = essence(engine.load("flow", None).await?);
    let own = engine.claim("fork", wants("other", 9)).await?;
    let mut batch = inputs(vec![marked(2, b"another two")]);
    batch.events = vec![event(2, 2)];
    batch.intents = vec![opened("a", 2)];
    engine.commit(&own, batch).await?;
    same("the parent", &essence(engine.load("flow", None).await?), &was)?;
    let fork = essence(engine.load("fork", None).await?);
    engine.commit(&lease, inputs(vec![input(4, b"four")])).await?;
    same("the fork", &essence(engine.load("fork", None).await?), &fork)?;
    // A lease of the one says nothing about the other.
    let wrong = Lease { workflow_id: "fork".to_owned(), fence: lease.fence + 5 };
    let refused = engine.commit(&wrong, inputs(vec![input(3, b"x")])).await;
    holds("a wrong fence", matches!(refused, Err(EngineError::Superseded { .. })))
}

pub(super) async fn a_fork_comes_with_its_command<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    history(&engine).await?;
    let command = || {
        let (id, sender) = ("first".to_owned(), "suite".to_owned());
        Some(QueuedCommand { seq: 0, id, sender, at_ms: 9, body: b"wait".to_vec() })
    };
    engine.fork("flow", 1, "fork", 9, command()).await?;
    let commands = engine.load("fork", None).await?.commands;
    let found: Vec<(u64, &str)> = commands.iter().map(|one| (one.seq, one.id.as_str())).collect();
    same("commands", &found, &vec![(1, "first")])?;
    // Where there is no fork there is no command.
    let refused = engine.fork("flow", 3, "none", 9, command()).await;
    holds("forked nowhere", matches!(refused, Err(EngineError::NoCheckpoint { .. })))?;
    let unknown = engine.command("none", "first", Duration::ZERO).await;
    holds("a command to nobody", matches!(unknown, Err(EngineError::Unknown(_))))
}

pub(super) async fn parents_are_known<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    history(&engine).await?;
    engine.fork("flow", 1, "child", 9, None).await?;
    engine.fork("child", 1, "grandchild", 10, None).await?;
    drop(engine);
    let engine = engines.open().await;
    let parents = [("flow", None), ("child", Some("flow")), ("grandchild", Some("child"))];
    for (id, parent) in parents {
        let row = engine.find(id).await?;
        let found = row.and_then(|row| row.parent);
        same(id, &found, &parent.map(|parent| (parent.to_owned(), 1)))?;
    }
    let filter = Filter { parent: Some("flow".to_owned()), ..Filter::default() };
    let children = engine.list(filter, None, 9).await?;
    let children: Vec<String> = children.into_iter().map(|row| row.id).collect();
    same("children", &children, &vec!["child".to_owned()])
}

pub(super) async fn a_copy_is_all_of_it<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    history(&engine).await?;
    engine.copy("flow", "copy", 9).await?;
    for checkpoint in [None, Some(0), Some(1), Some(2)] {
        let (flow, copy) =
            (engine.load("flow", checkpoint).await?, engine.load("copy", checkpoint).await?);
        let ends = (copy.workflow.status.as_str(), copy.workflow.finished_ms);
        same("status", &ends, &(flow.workflow.status.as_str(), flow.workflow.finished_ms))?;
        same("copy", &essence(copy), &essence(flow))?;
    }
    let all = async |id: &str| -> Result<_, Fault> {
        let events = engine.events(id, 0, 99, Duration::ZERO).await?;
        let checkpoints = engine.checkpoints(id, None, 99).await?;
        Ok((events, checkpoints, engine.commands(id, 0, 99, Duration::ZERO).await?))
    };
    same("events and commands", &all("copy").await?, &all("flow").await?)?;
    // Nobody has it, whoever has the other.
    engine.claim("copy", wants("other", 9)).await?;
    let refused = engine.copy("flow", "copy", 9).await;
    holds("an id was used twice", matches!(refused, Err(EngineError::Exists(_))))
}

pub(super) async fn pruning_keeps_what_is_needed<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    let lease = history(&engine).await?;
    engine.fork("flow", 1, "fork", 9, None).await?;
    let (fork, flow) = (engine.load("fork", None).await?, engine.load("flow", None).await?);
    same("dropped", &engine.prune("flow").await?, &2)?;
    same("dropped again", &engine.prune("flow").await?, &0)?;
    drop(engine);
    let engine = engines.open().await;
    same("the newest", &essence(engine.load("flow", None).await?), &essence(flow))?;
    same("the fork", &essence(engine.load("fork", None).await?), &essence(fork))?;
    for gone in [0, 1] {
        let refused = engine.load("flow", Some(gone)).await;
        let is_said = matches!(refused, Err(EngineError::NoCheckpoint { .. }));
        holds("a checkpoint that was dropped was loaded", is_said)?;
    }
    let events = engine.events("flow", 0, 9, Duration::ZERO).await?;
    same("events", &events.len(), &3)?;
    same("commands", &engine.commands("flow", 0, 9, Duration::ZERO).await?.len(), &1)?;
    // It goes on where it was, and a write that is repeated is still known.
    engine.commit(&lease, inputs(vec![input(3, b"three"), marked(4, b"four")])).await?;
    engine.load("flow", Some(4)).await?;
    Ok(())
}

pub(super) async fn forgetting_leaves_what_came_from_it<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    let lease = history(&engine).await?;
    engine.fork("flow", 2, "fork", 9, None).await?;
    let fork = engine.load("fork", None).await?;
    let refused = engine.forget("flow", 9).await;
    holds("an owned one is gone", matches!(refused, Err(EngineError::Held { .. })))?;
    engine.release(&lease, GiveBack::Free).await?;
    let refused = engine.forget("fork", 9).await;
    holds("one that has not ended is gone", matches!(refused, Err(EngineError::Held { .. })))?;
    engine.forget("flow", 9).await?;
    drop(engine);
    let engine = engines.open().await;
    same("gone", &engine.find("flow").await?, &None)?;
    same("the fork", &essence(engine.load("fork", None).await?), &essence(fork))?;
    let own = engine.claim("fork", wants("other", 9)).await?;
    engine
        .commit(&own, Batch { events: vec![event(3, 3)], ..inputs(vec![input(3, b"x")]) })
        .await?;
    Ok(())
}
