//! Bytes that the state only names stay as long as a workflow needs them.

use belljar_workflow::workflow_store::WorkflowStore;

use crate::conformance::{CaseResult, StoreFixture, owned, same};

pub(super) async fn blobs_come_back<F: StoreFixture>(stores: &F) -> CaseResult {
    let store = stores.open().await;
    owned(&store, "flow").await?;
    let large: Vec<u8> = (0..=u8::MAX).cycle().take(5_000_000).collect();
    let mut kept = Vec::new();
    for bytes in [Vec::new(), b"text".to_vec(), large] {
        let id = store.put_blob("flow", bytes.clone(), 3).await?;
        same("the same id", &store.put_blob("flow", bytes.clone(), 4).await?, &id)?;
        kept.push((id, bytes));
    }
    drop(store);
    let store = stores.open().await;
    for (id, bytes) in kept {
        same("bytes", &store.blob(&id).await?, &Some(bytes))?;
    }
    same("unknown", &store.blob("none").await?, &None)
}
