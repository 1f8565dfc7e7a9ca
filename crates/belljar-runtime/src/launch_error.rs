//! Why no cell could be handed over.

use std::io;

use belljar_wire::ErrorCode;
use thiserror::Error;

/// Why no cell could be handed over. Whatever the variant, no guest code ran.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The zygote's program could not be started.
    #[error("could not start the zygote program")]
    Spawn(#[source] io::Error),
    /// A layer could not be put in force.
    #[error("could not put {mechanism} in force: {message}")]
    Refused {
        /// The mechanism that failed.
        mechanism: String,
        /// What the operating system said.
        message: String,
    },
    /// The engine is not on this machine.
    #[error("{0}")]
    NoEngine(String),
    /// The engine could not be warmed.
    #[error("the engine could not be warmed: {message}")]
    NotWarm {
        /// Why.
        message: String,
    },
    /// The zygote or cell went away before it was ready.
    #[error("the zygote went away before its handshake")]
    NoHandshake,
    /// It took too long.
    #[error("no confined cell within {seconds} s")]
    TooSlow {
        /// How long was waited.
        seconds: u64,
    },
    /// Something came over the control socket that is not the protocol.
    #[error("the zygote broke the protocol")]
    Protocol,
}

impl LaunchError {
    /// Stable code for callers.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { .. } | Self::NoEngine(_) => ErrorCode::SandboxUnsupported,
            Self::Spawn(_) | Self::TooSlow { .. } | Self::Protocol | Self::NotWarm { .. } => {
                ErrorCode::SandboxFailed
            }
            Self::NoHandshake => ErrorCode::SandboxZygoteLost,
        }
    }
}
