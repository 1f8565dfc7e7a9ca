//! The messages: [`Command`] goes to a cell, [`Event`] comes out of one.

use belljar_contract::{Language, Stream};
use serde::{Deserialize, Serialize};

use crate::{
    DecodeError, GuestError, Header,
    fetch::{FetchAsk, FetchStep, ReadHead, SendHead},
    frame::{FETCH, FETCH_SEND, PRINT},
    grants::GuestGrants,
    tool::{Durable, ReplyHead, ToolCall, ToolReply},
};

/// A message of one direction.
pub trait Message: Sized {
    /// Header and head in one buffer, and the body to write after it.
    ///
    /// `None` when the message is larger than a frame can be.
    fn encode(&self) -> Option<(Vec<u8>, Vec<&[u8]>)>;

    /// Rebuilds the message from a frame's parts.
    fn decode(header: Header, head: &[u8], body: Vec<u8>) -> Result<Self, DecodeError>;
}

/// Limits the guest's side lowers itself to before it reads the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestLimits {
    /// Memory the code may use, in bytes.
    pub memory_bytes: u64,
    /// Wall time, in milliseconds. The host enforces it; the guest uses it to say where it was.
    pub wall_ms: u64,
    /// CPU time, in milliseconds, rounded up to whole seconds by the kernel's own limit.
    pub cpu_ms: u64,
    /// Largest value, in bytes of JSON.
    pub result_bytes: u32,
    /// Processes and threads alive at the same time.
    pub processes: u32,
    /// Files that one process may have open.
    pub open_files: u32,
}

/// One piece of guest code to run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCommand {
    /// The language of the code.
    pub language: Language,
    /// The name errors and stacks show for the code.
    pub file_name: String,
    /// The command-line arguments of the code.
    pub arguments: Vec<String>,
    /// Limits of this run.
    pub limits: GuestLimits,
    /// The grants that the guest needs to know.
    pub grants: GuestGrants,
    /// The code as it was submitted, not yet transpiled.
    pub code: String,
    /// The global `context`, as JSON; empty means an empty object.
    pub context: Vec<u8>,
    /// Seed and clock of a durable run; `None` for other runs.
    pub durable: Option<Durable>,
    /// The run belongs to a session: its state stays for the next run, and the cell waits for its
    /// next command when it has answered.
    pub session: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunHead {
    language: Language,
    file_name: String,
    #[serde(default)]
    arguments: Vec<String>,
    limits: GuestLimits,
    grants: GuestGrants,
    code_bytes: u32,
    durable: Option<Durable>,
    #[serde(default)]
    session: bool,
}

/// A message of the host to a cell.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one command exists at a time, and most of its size is text elsewhere"
)]
pub enum Command {
    /// Run this; a cell gets it once, unless it is a session's.
    Run(RunCommand),
    /// How a tool call ended.
    ToolReply(ToolReply),
    /// The time the guest waited for has come. Only in durable runs.
    Timer {
        /// The time of the guest's clock from here on, in milliseconds since 1970.
        now_ms: f64,
    },
    /// Branch: clone the guest. Only in session cells, between runs. One byte follows the frame,
    /// with the copy's socket attached. On that socket the copy sends one byte, and receives one
    /// with its tree of files attached.
    Branch,
    /// Move to another tree of files, which is attached to the one byte that follows the frame;
    /// stay if none is. Only in session cells, between runs.
    Reroot,
}

/// The value of a run that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunValue {
    /// Something is not in the JSON as it was: NaN became null, keys with one text became one.
    pub lossy: bool,
    /// A table had more rows than come back.
    pub cut: bool,
    /// The value as JSON.
    pub value: Vec<u8>,
}

/// A message of a cell to the host. The host trusts nothing in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Every layer of the plan is in force; the cell waits for code.
    Ready,
    /// A layer could not be put in force; the cell ends.
    Refused {
        /// The mechanism that failed.
        mechanism: String,
        /// The error of the operating system.
        message: String,
    },
    /// The code printed a text.
    Print {
        /// Which stream of the run's output it belongs to.
        stream: Stream,
        /// The bytes, without any guarantee of encoding. One print is one log line.
        text: Vec<u8>,
    },
    /// The code reached for something it was not granted.
    Denied {
        /// The attempt, e.g. `fetch("https://example.org")`.
        attempt: String,
    },
    /// The code names a file of its workspace that is to come back beside the value.
    Artifact {
        /// Where it is, in the cell.
        path: String,
    },
    /// The code calls a tool, and continues to run meanwhile.
    ToolCall(ToolCall),
    /// The code asks for a step of a request to another host, and continues to run meanwhile.
    Fetch(FetchAsk),
    /// The code has no use any more for the rest of a fetch.
    FetchCancelled {
        /// The number of the step that began it.
        fetch: u32,
    },
    /// The code waits for a time and for nothing else. Only in durable runs.
    TimerWanted {
        /// By the guest's clock, in milliseconds since 1970.
        at_ms: f64,
    },
    /// The `state` that the code left; sent before [`Event::Done`] if it is not empty.
    State {
        /// It was too large or not JSON, and is left out.
        cut: bool,
        /// An object, as JSON; empty when it is left out.
        value: Vec<u8>,
    },
    /// The run ended with a value.
    Done(RunValue),
    /// The run ended with an error.
    Failed(GuestError),
    /// The guest has branched. The copy sends [`Event::Ready`] on its own socket once it has its
    /// files.
    Branched,
    /// The guest has moved to the tree it was given.
    Rerooted,
    /// The guest could not branch, or could not move to another tree.
    NotBranched {
        /// The reason, for the person or code that asked for the branch.
        message: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyHead {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedHead {
    mechanism: String,
    message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintHead {
    stream: Stream,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeniedHead {
    attempt: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactHead {
    path: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateHead {
    cut: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DoneHead {
    lossy: bool,
    #[serde(default)]
    cut: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimerCommandHead {
    now_ms: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimerWantedHead {
    at_ms: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FetchCancelledHead {
    fetch: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotBranchedHead {
    message: String,
}

const RUN: u8 = 1;
const TOOL_REPLY: u8 = 2;
const TIMER: u8 = 3;
const BRANCH: u8 = 4;
const REROOT: u8 = 5;
const READY: u8 = 65;
const REFUSED: u8 = 66;
const DENIED: u8 = 68;
const DONE: u8 = 69;
const FAILED: u8 = 70;
const ARTIFACT: u8 = 71;
const TOOL_CALL: u8 = 72;
const TIMER_WANTED: u8 = 73;
const BRANCHED: u8 = 74;
const REROOTED: u8 = 75;
const NOT_BRANCHED: u8 = 76;
const STATE: u8 = 77;
const FETCH_READ: u8 = 80;
const FETCH_CANCELLED: u8 = 81;

impl Message for Command {
    fn encode(&self) -> Option<(Vec<u8>, Vec<&[u8]>)> {
        match self {
            Self::Run(run) => {
                let head = RunHead {
                    language: run.language,
                    file_name: run.file_name.clone(),
                    arguments: run.arguments.clone(),
                    limits: run.limits,
                    grants: run.grants.clone(),
                    code_bytes: u32::try_from(run.code.len()).ok()?,
                    durable: run.durable.clone(),
                    session: run.session,
                };
                frame(RUN, &head, vec![run.code.as_bytes(), &run.context])
            }
            Self::ToolReply(reply) => {
                let (head, body) = reply.parts();
                frame(TOOL_REPLY, &head, vec![body])
            }
            Self::Timer { now_ms } => frame(TIMER, &TimerCommandHead { now_ms: *now_ms }, vec![]),
            Self::Branch => frame(BRANCH, &EmptyHead {}, vec![]),
            Self::Reroot => frame(REROOT, &EmptyHead {}, vec![]),
        }
    }

    fn decode(header: Header, head: &[u8], body: Vec<u8>) -> Result<Self, DecodeError> {
        match header.kind() {
            RUN => decode_run(head, body).map(Self::Run),
            TOOL_REPLY => {
                let head: ReplyHead = serde_json::from_slice(head)?;
                Ok(Self::ToolReply(ToolReply::from_parts(head, body)))
            }
            TIMER if body.is_empty() => {
                let TimerCommandHead { now_ms } = serde_json::from_slice(head)?;
                Ok(Self::Timer { now_ms })
            }
            BRANCH if body.is_empty() => {
                let EmptyHead {} = serde_json::from_slice(head)?;
                Ok(Self::Branch)
            }
            REROOT if body.is_empty() => {
                let EmptyHead {} = serde_json::from_slice(head)?;
                Ok(Self::Reroot)
            }
            TIMER | BRANCH | REROOT => Err(DecodeError::Body),
            other => Err(DecodeError::UnknownKind(other)),
        }
    }
}

fn decode_run(head: &[u8], body: Vec<u8>) -> Result<RunCommand, DecodeError> {
    let head: RunHead = serde_json::from_slice(head)?;
    let mut code = body;
    let code_bytes = head.code_bytes as usize;
    if code_bytes > code.len() {
        return Err(DecodeError::Body);
    }
    let context = code.split_off(code_bytes);
    let code = String::from_utf8(code).map_err(|_| DecodeError::Body)?;
    let RunHead { language, file_name, arguments, limits, grants, durable, session, .. } = head;
    Ok(RunCommand {
        language,
        file_name,
        arguments,
        limits,
        grants,
        code,
        context,
        durable,
        session,
    })
}

impl Message for Event {
    fn encode(&self) -> Option<(Vec<u8>, Vec<&[u8]>)> {
        match self {
            Self::Ready => frame(READY, &EmptyHead {}, vec![]),
            Self::Refused { mechanism, message } => {
                let (mechanism, message) = (mechanism.clone(), message.clone());
                frame(REFUSED, &RefusedHead { mechanism, message }, vec![])
            }
            Self::Print { stream, text } => {
                frame(PRINT, &PrintHead { stream: *stream }, vec![text])
            }
            Self::Denied { attempt } => {
                frame(DENIED, &DeniedHead { attempt: attempt.clone() }, vec![])
            }
            Self::Artifact { path } => {
                frame(ARTIFACT, &ArtifactHead { path: path.clone() }, vec![])
            }
            Self::ToolCall(call) => {
                let (head, body) = call.parts();
                frame(TOOL_CALL, &head, vec![body])
            }
            Self::Fetch(FetchAsk { call, step }) => match step {
                FetchStep::Begin(request) => {
                    let (head, body) = request.parts(*call);
                    frame(FETCH, &head, vec![body])
                }
                FetchStep::Send { fetch, is_last, piece } => {
                    let head = SendHead { call: *call, fetch: *fetch, last: *is_last };
                    frame(FETCH_SEND, &head, vec![piece])
                }
                FetchStep::Read { fetch } => {
                    frame(FETCH_READ, &ReadHead { call: *call, fetch: *fetch }, vec![])
                }
            },
            Self::FetchCancelled { fetch } => {
                frame(FETCH_CANCELLED, &FetchCancelledHead { fetch: *fetch }, vec![])
            }
            Self::TimerWanted { at_ms } => {
                frame(TIMER_WANTED, &TimerWantedHead { at_ms: *at_ms }, vec![])
            }
            Self::State { cut, value } => frame(STATE, &StateHead { cut: *cut }, vec![value]),
            Self::Done(RunValue { lossy, cut, value }) => {
                frame(DONE, &DoneHead { lossy: *lossy, cut: *cut }, vec![value])
            }
            Self::Failed(error) => frame(FAILED, error, vec![]),
            Self::Branched => frame(BRANCHED, &EmptyHead {}, vec![]),
            Self::Rerooted => frame(REROOTED, &EmptyHead {}, vec![]),
            Self::NotBranched { message } => {
                frame(NOT_BRANCHED, &NotBranchedHead { message: message.clone() }, vec![])
            }
        }
    }

    fn decode(header: Header, head: &[u8], body: Vec<u8>) -> Result<Self, DecodeError> {
        match header.kind() {
            PRINT => {
                let PrintHead { stream } = serde_json::from_slice(head)?;
                Ok(Self::Print { stream, text: body })
            }
            STATE => {
                let StateHead { cut } = serde_json::from_slice(head)?;
                Ok(Self::State { cut, value: body })
            }
            DONE => {
                let DoneHead { lossy, cut } = serde_json::from_slice(head)?;
                Ok(Self::Done(RunValue { lossy, cut, value: body }))
            }
            TOOL_CALL => Ok(Self::ToolCall(ToolCall::from_parts(head, body)?)),
            FETCH => Ok(Self::Fetch(FetchAsk::begin(head, body)?)),
            FETCH_SEND => Ok(Self::Fetch(FetchAsk::send(head, body)?)),
            // A body anywhere else is smuggled data.
            kind if body.is_empty() => event_without_body(kind, head),
            _ => Err(DecodeError::Body),
        }
    }
}

fn event_without_body(kind: u8, head: &[u8]) -> Result<Event, DecodeError> {
    Ok(match kind {
        TIMER_WANTED => {
            let TimerWantedHead { at_ms } = serde_json::from_slice(head)?;
            Event::TimerWanted { at_ms }
        }
        FETCH_READ => Event::Fetch(FetchAsk::read(head)?),
        FETCH_CANCELLED => {
            let FetchCancelledHead { fetch } = serde_json::from_slice(head)?;
            Event::FetchCancelled { fetch }
        }
        READY => {
            let EmptyHead {} = serde_json::from_slice(head)?;
            Event::Ready
        }
        REFUSED => {
            let RefusedHead { mechanism, message } = serde_json::from_slice(head)?;
            Event::Refused { mechanism, message }
        }
        DENIED => {
            let DeniedHead { attempt } = serde_json::from_slice(head)?;
            Event::Denied { attempt }
        }
        ARTIFACT => {
            let ArtifactHead { path } = serde_json::from_slice(head)?;
            Event::Artifact { path }
        }
        FAILED => {
            let error: GuestError = serde_json::from_slice(head)?;
            if !error.code.is_a_cells_own() {
                return Err(DecodeError::ForeignCode(error.code));
            }
            Event::Failed(error)
        }
        BRANCHED => {
            let EmptyHead {} = serde_json::from_slice(head)?;
            Event::Branched
        }
        REROOTED => {
            let EmptyHead {} = serde_json::from_slice(head)?;
            Event::Rerooted
        }
        NOT_BRANCHED => {
            let NotBranchedHead { message } = serde_json::from_slice(head)?;
            Event::NotBranched { message }
        }
        other => return Err(DecodeError::UnknownKind(other)),
    })
}

fn frame<'a>(
    kind: u8,
    head: &impl Serialize,
    body: Vec<&'a [u8]>,
) -> Option<(Vec<u8>, Vec<&'a [u8]>)> {
    let head = serde_json::to_vec(head).ok()?;
    let body_bytes = body.iter().map(|part| part.len()).sum();
    Some((Header::prefix(kind, &head, body_bytes)?, body))
}
