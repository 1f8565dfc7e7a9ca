//! Bytes that the state only names stay as long as a workflow needs them.

use crate::{
    conformance::{Engines, Outcome, inputs, owned, same, standing},
    engine::{Batch, DurableEngine, GiveBack},
};

pub(super) async fn blobs_come_back<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    owned(&engine, "flow").await?;
    let large: Vec<u8> = (0..=u8::MAX).cycle().take(5_000_000).collect();
    let mut kept = Vec::new();
    for bytes in [Vec::new(), b"text".to_vec(), large] {
        let id = engine.put_blob("flow", bytes.clone(), 3).await?;
        same("the same id", &engine.put_blob("flow", bytes.clone(), 4).await?, &id)?;
        kept.push((id, bytes));
    }
    drop(engine);
    let engine = engines.open().await;
    for (id, bytes) in kept {
        same("bytes", &engine.blob(&id).await?, &Some(bytes))?;
    }
    same("unknown", &engine.blob("none").await?, &None)
}

pub(super) async fn blobs_outlive_pruning<E: Engines>(engines: &E) -> Outcome {
    let engine = engines.open().await;
    let lease = owned(&engine, "flow").await?;
    let id = engine.put_blob("flow", b"a file".to_vec(), 3).await?;
    engine.fork("flow", 0, "fork", 4, None).await?;
    engine.prune("flow").await?;
    same("pruned", &engine.blob(&id).await?, &Some(b"a file".to_vec()))?;
    let state = standing("ended", i64::MAX, true);
    engine.commit(&lease, Batch { state, ..inputs(Vec::new()) }).await?;
    engine.release(&lease, GiveBack::Free).await?;
    engine.forget("flow", 5).await?;
    same("forgotten", &engine.blob(&id).await?, &Some(b"a file".to_vec()))
}
