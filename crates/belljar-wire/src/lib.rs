//! The language host and cell speak: length-capped frames and strict decoding.
//!
//! A frame is a fixed header, a small JSON *head* and a raw *body*. Everything structured is in the
//! head, everything large (code, context, value) is in the body and crosses once, as bytes. The
//! crate does not know the process at either end and keeps no state between frames; whatever
//! arrives, decoding neither panics nor allocates more than the [`Caps`] it was given.

mod error;
mod fetch;
mod frame;
mod grants;
pub mod json;
mod message;
mod stream;
pub mod text;
mod tool;

pub use error::GuestError;
pub use fetch::{
    FetchAsk, FetchBody, FetchHead, FetchReply, FetchRequest, FetchStep, FetchStepKind,
    MAX_PIECE_BYTES,
};
pub use frame::{Caps, DecodeError, Header, MAX_HEAD_BYTES};
pub use grants::{GuestGrants, GuestNetwork};
pub use message::{Command, Event, GuestLimits, Message, RunCommand, RunValue};
pub use stream::{ReadError, read_message, write_message};
pub use tool::{Durable, GuestAsk, GuestInput, StopReason, ToolCall, ToolFault, ToolReply};

#[cfg(test)]
mod tests;
