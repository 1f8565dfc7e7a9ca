//! Known ways in which clients treat answers.
//!
//! The protocol does not say which part of an answer a client passes to its model. Most pass the content.
//! Some pass the structured content and drop the rest, pictures and links with it (claude-code issues 54737
//! and 79944, codex 38287, vscode 290063, opencode 32868). They get a picture only in an answer without
//! structured content, and so their list of tools has no output schema for it.

use rmcp::{RoleServer, service::RequestContext};

/// The names with which such clients introduce themselves, in lower case.
const DROP_CONTENT: [&str; 5] = [
    "claude-code",
    "codex-mcp-client",
    "visual studio code",
    "visual studio code - insiders",
    "opencode",
];

/// The use that a client makes of content when there is structured content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StructuredUse {
    /// It passes the content on, or both.
    Beside,
    /// It passes only the structured content on.
    Instead,
}

impl StructuredUse {
    /// The behaviour of the client of this request. The client chooses its name, which decides only the shape of
    /// its answers.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        context.client_info().map_or(Self::Beside, |client| Self::of_name(&client.name))
    }

    fn of_name(name: &str) -> Self {
        let is_known = DROP_CONTENT.contains(&&*name.to_ascii_lowercase());
        if is_known { Self::Instead } else { Self::Beside }
    }
}

#[cfg(test)]
mod tests {
    use super::StructuredUse;

    #[test]
    fn e2_only_exact_names_are_known() {
        assert_eq!(StructuredUse::of_name("Claude-Code"), StructuredUse::Instead);
        for other in ["claude-code-wrapper", "mcp", ""] {
            assert_eq!(StructuredUse::of_name(other), StructuredUse::Beside, "{other}");
        }
    }
}
