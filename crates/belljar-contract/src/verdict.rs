//! The decision of a person about a tool call.

/// A person's decision about a tool call that waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call may be made, once, with the arguments that were shown.
    Approve,
    /// The call is not made; one in doubt fails in the code.
    Deny,
    /// A call in doubt is made again.
    Retry,
    /// A call in doubt happened, and gave this value, as JSON.
    Use(String),
}
