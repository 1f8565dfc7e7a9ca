//! Which names upstream tools may have beside the gateway's own.
//!
//! Model APIs take `[a-zA-Z0-9_-]` up to 64 characters. A name outside that, or one that two tools
//! claim, is left out: a suffix that depends on the order of things would make a model call the wrong
//! tool one day, and one server's bad name is no reason to do without all the others.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::{backend::PassThrough, tools};

/// The longest name model APIs take.
const MAX_NAME: usize = 64;

/// Why a tool cannot be passed through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Model APIs would not take it.
    #[error(
        "tool `{name}` cannot be passed through: only letters, digits, `_` and `-` are allowed, \
         up to {MAX_NAME} characters; call it from code instead"
    )]
    Shape {
        /// The name.
        name: String,
    },
    /// Two tools would have it.
    #[error(
        "tool `{name}` cannot be passed through: another tool has that name; rename one of the \
         servers, or call it from code instead"
    )]
    Taken {
        /// The name.
        name: String,
    },
}

/// Those that may be shown, and why the others may not. Of tools that share a name, none is shown.
pub(crate) fn sort_out(tools: Vec<PassThrough>) -> (Vec<PassThrough>, Vec<NameError>) {
    let mut seen: HashSet<&str> = tools::NAMES.iter().copied().collect();
    let twice: HashSet<String> = tools
        .iter()
        .filter(|tool| !seen.insert(&tool.name))
        .map(|tool| tool.name.clone())
        .collect();
    let mut faults = Vec::new();
    let mut shown = Vec::new();
    for tool in tools {
        if !is_well_formed(&tool.name) {
            faults.push(NameError::Shape { name: tool.name });
        } else if twice.contains(&tool.name) {
            faults.push(NameError::Taken { name: tool.name });
        } else {
            shown.push(tool);
        }
    }
    faults.dedup();
    (shown, faults)
}

/// Whether model APIs take a name.
pub fn is_well_formed(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(allowed)
}
