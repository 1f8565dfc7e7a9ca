//! The schema of workflow files, for editors.

use serde_json::Value;

/// The JSON Schema (2020-12) of every file [`read`](super::read) takes. It knows the names and
/// kinds of fields; what depends on other parts of a file only reading finds.
pub fn schema() -> Value {
    serde_json::from_str(include_str!("schema.json")).unwrap_or_default()
}
