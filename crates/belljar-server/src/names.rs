//! Names of upstream tools that are passed through beside the gateway's own.
//!
//! Model APIs accept `[a-zA-Z0-9_-]` up to 64 characters. A tool with another name, or with a name
//! that two tools claim, is left out. A suffix that depends on the order of tools would one day
//! make a model call the wrong tool, and one server's bad name must not hide all others.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::{backend::PassThrough, tools};

/// The longest name that model APIs accept.
const MAX_NAME: usize = 64;

/// Why a tool cannot be passed through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Model APIs would not accept the name.
    #[error(
        "tool `{name}` cannot be passed through: only letters, digits, `_` and `-` are allowed, \
         up to {MAX_NAME} characters; call it from code instead"
    )]
    Shape {
        /// The name of the refused tool.
        name: String,
    },
    /// Two tools would have the same name.
    #[error(
        "tool `{name}` cannot be passed through: another tool has that name; rename one of the \
         servers, or call it from code instead"
    )]
    Taken {
        /// The name that both have.
        name: String,
    },
}

/// The tools that can be shown, and why the others cannot. Of tools that share a name, none is
/// shown.
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

/// Whether model APIs accept a name.
pub fn is_well_formed(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(allowed)
}
