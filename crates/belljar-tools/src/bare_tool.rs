//! A tool for tests that says nothing about itself.

use crate::{Annotations, Tool};

/// A tool that takes any object.
pub(crate) fn bare_tool(server: &str, name: &str) -> Tool {
    Tool {
        server: server.to_owned(),
        name: name.to_owned(),
        title: None,
        description: None,
        input_schema: serde_json::json!({"type": "object"}),
        output_schema: None,
        annotations: Annotations::default(),
    }
}
