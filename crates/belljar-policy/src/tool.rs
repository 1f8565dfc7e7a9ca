//! A tool as its server describes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool of an upstream. Its server's description is shown and used for checks, but not trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The server's name in the configuration.
    pub server: String,
    /// The name the server gave it, by which it is called.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The server's own words about what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of its structured result, if it declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Its server's hints about its effects.
    #[serde(default)]
    pub annotations: Annotations,
}

impl Tool {
    /// A tool that says nothing about itself and takes any object, to which a program that offers functions
    /// of its own adds the rest.
    pub fn bare(server: &str, name: &str) -> Self {
        Self {
            server: server.to_owned(),
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: serde_json::json!({"type": "object"}),
            output_schema: None,
            annotations: Annotations::default(),
        }
    }
}

/// Hints of a server about a tool; to be trusted only if the operator trusts the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// It says that it changes nothing.
    #[serde(default)]
    pub read_only: Option<bool>,
    /// It says that it may destroy something; absent means that it may.
    #[serde(default)]
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    #[serde(default)]
    pub idempotent: Option<bool>,
    /// It reaches beyond its server.
    #[serde(default)]
    pub open_world: Option<bool>,
}

impl Tool {
    /// `server__tool`, as policies, approvals and audit rows name it.
    pub fn qualified_name(&self) -> String {
        format!("{}__{}", self.server, self.name)
    }
}
