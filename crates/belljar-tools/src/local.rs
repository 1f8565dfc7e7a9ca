//! Servers inside this program: tools that are Rust functions.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde_json::{Map, Value};

use crate::Tool;

/// The outcome of a call to a local tool: a value, or an error message.
pub type LocalOutcome = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// A server whose tools are functions of this program.
///
/// Policy, approval, journal and audit apply to it as to any other.
pub trait LocalServer: Send + Sync + fmt::Debug {
    /// Its tools; each has the server's name in it.
    fn tools(&self) -> Arc<Vec<Tool>>;

    /// Calls one of them, by its original name.
    fn call(&self, tool: &str, arguments: Map<String, Value>) -> LocalOutcome;
}
