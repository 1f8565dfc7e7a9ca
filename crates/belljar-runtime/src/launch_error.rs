//! Why no cell could be handed over.

use std::io;

use belljar_contract::ErrorCode;
use rustix::io::Errno;
use thiserror::Error;

/// Why no cell could be handed over. Whatever the variant, no guest code ran.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The zygote's program could not be started.
    #[error("could not start the zygote program: {0}")]
    Spawn(#[source] io::Error),
    /// The machine has no room for another cell at the moment: processes, descriptors or memory.
    #[error("there is no room for another cell now: {message}")]
    NoRoom {
        /// What the operating system said.
        message: String,
    },
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

/// What the operating system says when something is used up that others may give back: no process, no
/// memory, no descriptor in the system or in the process.
const USED_UP: [Errno; 4] = [Errno::AGAIN, Errno::NOMEM, Errno::NFILE, Errno::MFILE];

impl LaunchError {
    /// A process could not be started, or a descriptor not be had.
    pub(crate) fn spawn(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) if USED_UP.contains(&errno) => Self::NoRoom { message: error.to_string() },
            _ => Self::Spawn(error),
        }
    }

    /// A layer could not be put in force. What the operating system said came from another process, as
    /// text.
    pub(crate) fn refused(mechanism: String, message: String) -> Self {
        let said = |errno: &Errno| message.contains(&io::Error::from(*errno).to_string());
        match USED_UP.iter().any(said) {
            true => Self::NoRoom { message },
            false => Self::Refused { mechanism, message },
        }
    }

    /// Stable code for callers.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { .. } | Self::NoEngine(_) => ErrorCode::SandboxUnsupported,
            Self::Spawn(_)
            | Self::NoRoom { .. }
            | Self::TooSlow { .. }
            | Self::Protocol
            | Self::NotWarm { .. } => ErrorCode::SandboxFailed,
            Self::NoHandshake => ErrorCode::SandboxZygoteLost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reliability_14_what_is_used_up_is_not_taken_for_what_is_missing() {
        for (errno, is_room) in [(11, true), (12, true), (23, true), (24, true), (1, false)] {
            let error = || io::Error::from_raw_os_error(errno);
            let refused = LaunchError::refused("cell".to_owned(), format!("clone: {}", error()));
            assert_eq!(matches!(refused, LaunchError::NoRoom { .. }), is_room, "{refused:?}");
            let spawned = LaunchError::spawn(error());
            assert_eq!(matches!(spawned, LaunchError::NoRoom { .. }), is_room, "{spawned:?}");
        }
        let full = LaunchError::spawn(io::Error::from_raw_os_error(24));
        assert_eq!(full.code(), ErrorCode::SandboxFailed);
        assert_eq!(
            full.to_string(),
            "there is no room for another cell now: Too many open files (os error 24)"
        );
    }
}
