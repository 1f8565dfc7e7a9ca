//! What a workflow may do, as the operator said when it was made.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use belljar_flow::{Code, Failure};
use belljar_runtime::{Grants, Limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What workflows may do beyond calling the tools that policy allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowTerms {
    /// Whether they may run code.
    pub code: bool,
    /// Directories and files that code may be given to read.
    pub readable: Vec<PathBuf>,
    /// Environment variables that code may be given, with their values.
    pub env: BTreeMap<String, String>,
}

impl FlowTerms {
    /// As they are kept with a workflow.
    pub(super) fn kept(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// As they were kept; what cannot be read allows nothing.
    pub(super) fn of(kept: &Value) -> Self {
        serde_json::from_value(kept.clone()).unwrap_or_default()
    }

    /// What a code task asks for, if every bit of it is allowed.
    pub(super) fn grants(&self, code: &Code) -> Result<Grants, Failure> {
        let asked = &code.grants;
        let read = asked.read.iter().map(|path| self.readable(path)).collect::<Result<_, _>>()?;
        let env = asked.env.iter().map(|name| self.variable(name)).collect::<Result<_, _>>()?;
        Ok(Grants {
            read,
            write: Vec::new(),
            env,
            modules: asked.modules.clone().unwrap_or_default(),
            commands: asked.commands.clone(),
            permissive: false,
        })
    }

    fn readable(&self, asked: &str) -> Result<PathBuf, Failure> {
        let path = Path::new(asked);
        let leads_up = path.components().any(|part| part == Component::ParentDir);
        if !leads_up && self.readable.iter().any(|root| path.starts_with(root)) {
            return Ok(path.to_owned());
        }
        Err(beyond(format!("reading {asked} is not allowed here"), "--read"))
    }

    fn variable(&self, name: &str) -> Result<(String, String), Failure> {
        match self.env.get(name) {
            Some(value) => Ok((name.to_owned(), value.clone())),
            None => Err(beyond(format!("the variable {name} is not given here"), "--env")),
        }
    }
}

fn beyond(message: String, flag: &str) -> Failure {
    let message =
        format!("{message}; the operator allows it with {flag} when the workflow is made");
    Failure { lasting: true, ..Failure::new("permission.denied", message) }
}

/// The limits of a code task: what it asks for, else the usual. The host refuses what is above its
/// maxima.
pub(super) fn limits(usual: Limits, asked: &belljar_flow::Limits) -> Limits {
    const MIB: u64 = 1 << 20;
    let mut limits = usual;
    if let Some(ms) = asked.timeout_ms {
        limits.timeout = Duration::from_millis(ms);
        // CPU time follows wall time, where only that is said.
        limits.cpu = limits.timeout;
    }
    if let Some(mb) = asked.memory_mb {
        limits.memory = mb.saturating_mul(MIB);
    }
    if let Some(bytes) = asked.output_bytes {
        limits.output_bytes = bytes;
    }
    if let Some(calls) = asked.tool_calls {
        limits.tool_calls = u32::try_from(calls).unwrap_or(u32::MAX);
    }
    limits
}
