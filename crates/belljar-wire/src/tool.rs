//! Tool calls between a cell and its host, what a bridge sends back, and what makes a run repeatable.

use belljar_contract::{ErrorCode, Grant, MissingGrant, RunError, RunStatus};
use serde::{Deserialize, Serialize};

use crate::{DecodeError, FetchAsk};

/// The seed and the clock of a durable run: with the same inputs in the same order, the code does
/// the same again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Durable {
    /// Where all randomness comes from: 32 bytes in hexadecimal.
    pub seed: String,
    /// The time of the guest's clock when it starts, in milliseconds since 1970.
    pub now_ms: f64,
}

/// A call of a tool, as guest code wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Number of the call, unique in its run.
    pub call: u32,
    /// The server, in `mcp.server.tool()`; `None` when the name says it all.
    pub server: Option<String>,
    /// The name of the tool, as the code wrote it.
    pub tool: String,
    /// 1-based line of the call in the source as written.
    pub line: Option<u32>,
    /// The arguments, as JSON that is not checked yet.
    pub arguments: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallHead {
    call: u32,
    server: Option<String>,
    tool: String,
    line: Option<u32>,
}

/// No tool or server has a longer name.
const MAX_NAME_BYTES: usize = 1024;

impl ToolCall {
    pub(crate) fn parts(&self) -> (CallHead, &[u8]) {
        let Self { call, server, tool, line, arguments } = self;
        let (server, tool) = (server.clone(), tool.clone());
        (CallHead { call: *call, server, tool, line: *line }, arguments)
    }

    pub(crate) fn from_parts(head: &[u8], arguments: Vec<u8>) -> Result<Self, DecodeError> {
        let CallHead { call, server, tool, line } = serde_json::from_slice(head)?;
        let longest = tool.len().max(server.as_ref().map_or(0, String::len));
        if longest > MAX_NAME_BYTES {
            return Err(DecodeError::Name(longest));
        }
        Ok(Self { call, server, tool, line, arguments })
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    /// The number of the call that ended.
    pub call: u32,
    /// The time of the guest's clock from here on; only in durable runs.
    pub now_ms: Option<f64>,
    /// The outcome: the value as JSON, or a [`ToolFault`] as JSON. That of a fetch has bytes in it.
    pub outcome: Result<Vec<u8>, Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplyHead {
    call: u32,
    ok: bool,
    now_ms: Option<f64>,
}

impl ToolReply {
    pub(crate) fn parts(&self) -> (ReplyHead, &[u8]) {
        let (ok, body) = match &self.outcome {
            Ok(value) => (true, value),
            Err(fault) => (false, fault),
        };
        (ReplyHead { call: self.call, ok, now_ms: self.now_ms }, body)
    }

    pub(crate) fn from_parts(head: ReplyHead, body: Vec<u8>) -> Self {
        let ReplyHead { call, ok, now_ms } = head;
        Self { call, now_ms, outcome: if ok { Ok(body) } else { Err(body) } }
    }
}

/// Why a call did not give a value; guest code gets it as an exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFault {
    /// The stable code, which the code can branch on.
    pub code: ErrorCode,
    /// The failure, in the words of the tool or of Belljar.
    pub message: String,
    /// The remedy, if there is one.
    pub hint: Option<String>,
    /// The tool, as `server__tool`.
    pub tool_name: Option<String>,
    /// The grant that was missing, when that is why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Box<MissingGrant>>,
}

impl ToolFault {
    /// A fault with a message and nothing else.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, tool_name: None, missing: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the name of the tool that failed.
    #[must_use]
    pub fn of_tool(mut self, name: impl Into<String>) -> Self {
        self.tool_name = Some(name.into());
        self
    }

    /// Adds the grant that was missing.
    #[must_use]
    pub fn with_missing(mut self, kind: Grant, name: impl Into<String>) -> Self {
        self.missing = Some(Box::new(MissingGrant { kind, name: name.into() }));
        self
    }

    /// Parses the body of a reply; a body that does not parse is a fault as well.
    pub fn from_json(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_else(|_| {
            Self::new(
                ErrorCode::ToolFailed,
                "the tool call failed, and its error could not be read",
            )
        })
    }

    /// The body of a reply.
    pub fn to_json(&self) -> Vec<u8> {
        // A struct of texts cannot fail to be JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl From<ToolFault> for RunError {
    fn from(fault: ToolFault) -> Self {
        let ToolFault { code, message, hint, tool_name, missing } = fault;
        Self { hint, tool_name, missing, ..Self::new(code, message) }
    }
}

/// A request of guest code to the bridge of its run. The host has not checked it, except that calls are
/// numbered from 1 without a gap.
#[derive(Debug, Clone, PartialEq)]
pub enum GuestAsk {
    /// A tool call, answered by one [`GuestInput::Reply`].
    Call(ToolCall),
    /// A step of a fetch, answered by one [`GuestInput::Reply`]. Only in durable runs.
    Fetch(FetchAsk),
    /// The code has no use for the rest of the fetch of this number. Only in durable runs.
    FetchCancelled(u32),
    /// A timer at this time, in milliseconds since 1970. Only in durable runs.
    Timer(f64),
}

/// A message of the bridge to a run: an input of the code, or a change of the run itself.
///
/// Inputs reach the code in the order in which the bridge sends them.
#[derive(Debug, Clone, PartialEq)]
pub enum GuestInput {
    /// The outcome of a tool call.
    Reply(ToolReply),
    /// A timer fired. Only in durable runs.
    Timer {
        /// The time of the guest's clock from here on.
        now_ms: f64,
    },
    /// The run begins to wait for a person (`true`), or no longer waits. Its clock stands still meanwhile.
    WaitsForPerson(bool),
    /// The bridge ends the run.
    Stop(StopReason),
}

/// Why a bridge ends a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// A call may or may not have happened, and a person has to say what to do.
    InDoubt(ToolFault),
    /// In a replay, the code asked for something else than its journal has.
    Diverged(ToolFault),
    /// The journal cannot be written, or another process has the run now. Written entries stay; the
    /// run resumes from there.
    Failed(ToolFault),
}

impl StopReason {
    /// The status of a run that ends for this reason.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::InDoubt(_) => RunStatus::InDoubt,
            Self::Diverged(_) => RunStatus::Failed,
            Self::Failed(_) => RunStatus::Interrupted,
        }
    }
}

impl From<StopReason> for RunError {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::InDoubt(fault)
            | StopReason::Diverged(fault)
            | StopReason::Failed(fault) => fault.into(),
        }
    }
}
