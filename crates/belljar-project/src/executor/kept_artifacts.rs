//! Files that came back are kept in the store, each under a handle.
//!
//! A model gets the name of a file and not its content, so the content must be there to be read later:
//! by the client, at the command line, or by code with `load(handle)`.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use belljar_contract::RunResult;
use belljar_store::Store;

use super::now_ms;

/// Stores the artifacts of a result. One that cannot be stored stays without a handle.
pub(super) async fn keep(result: &mut RunResult, store: &Store) {
    for artifact in &mut result.artifacts {
        let Ok(bytes) = BASE64.decode(&artifact.data) else { continue };
        let kept = store.put_run_blob(&result.id, bytes, &artifact.media_type, now_ms()).await;
        match kept {
            Ok(handle) => artifact.handle = Some(handle),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot store an artifact");
            }
        }
    }
}
