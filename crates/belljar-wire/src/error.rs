//! An error as a cell reports it.

use belljar_contract::{ErrorCode, Grant, MissingGrant, RunError, shortened};
use serde::{Deserialize, Serialize};

/// An error as a cell reports it. The host decides what of it to believe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestError {
    /// Stable code; it implies the type.
    pub code: ErrorCode,
    /// The failure, in one or a few sentences.
    pub message: String,
    /// Frames of the agent's own code, mapped to the source as written.
    #[serde(default)]
    pub stack: Option<String>,
    /// 1-based line in the source as written.
    #[serde(default)]
    pub line: Option<u32>,
    /// 1-based column in the source as written.
    #[serde(default)]
    pub column: Option<u32>,
    /// The status the code ended with, when it ended itself.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The remedy, if there is one.
    #[serde(default)]
    pub hint: Option<String>,
    /// The tool that failed, if the code did not catch that failure.
    #[serde(default)]
    pub tool_name: Option<String>,
    /// The grant that the code did not have, when that is why it failed. The hint does not say how to ask
    /// for it: only the host knows who reads this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Box<MissingGrant>>,
}

/// A frame's head is bounded, so the texts in it are too.
const MAX_STACK_BYTES: usize = 16 * 1024;
/// The name of a missing grant becomes part of a hint.
const MAX_NAME_BYTES: usize = 2 * 1024;

impl GuestError {
    /// An error with a message and nothing else.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = shortened(message.into(), RunError::MAX_MESSAGE_BYTES);
        Self {
            code,
            message,
            stack: None,
            line: None,
            column: None,
            exit_code: None,
            hint: None,
            tool_name: None,
            missing: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shortened(hint.into(), RunError::MAX_MESSAGE_BYTES));
        self
    }

    /// Adds the grant that was missing.
    #[must_use]
    pub fn with_missing(mut self, kind: Grant, name: impl Into<String>) -> Self {
        self.missing =
            Some(Box::new(MissingGrant { kind, name: shortened(name.into(), MAX_NAME_BYTES) }));
        self
    }

    /// Adds the frames of the agent's own code.
    #[must_use]
    pub fn with_stack(mut self, stack: impl Into<String>) -> Self {
        self.stack = Some(shortened(stack.into(), MAX_STACK_BYTES));
        self
    }

    /// Adds where in the source it happened, both 1-based.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }
}

impl From<GuestError> for RunError {
    fn from(error: GuestError) -> Self {
        let GuestError { code, message, stack, line, column, exit_code, hint, tool_name, missing } =
            error;
        let kind = code.kind();
        let missing = missing.map(|mut missing| {
            missing.name = shortened(missing.name, MAX_NAME_BYTES);
            missing
        });
        Self { kind, code, message, stack, line, column, tool_name, hint, missing, exit_code }
            .with_advice()
    }
}
