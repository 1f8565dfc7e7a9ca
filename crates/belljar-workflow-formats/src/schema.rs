//! The schema of workflow files, for editors.

use serde_json::Value;

/// The JSON Schema (2020-12) of every file that [`read`](super::read) takes. It has the names and
/// kinds of fields; rules between parts of a file are checked by reading only.
pub fn schema() -> Value {
    serde_json::from_str(include_str!("schema.json")).unwrap_or_default()
}
