//! The error of starting a zygote or a cell.

use std::io;

use belljar_contract::ErrorCode;
use rustix::io::Errno;
use thiserror::Error;

/// Why there is no cell. Whatever the variant, no guest code ran.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The zygote's program could not be started.
    #[error("could not start the zygote program: {0}")]
    Spawn(#[source] io::Error),
    /// The machine has no room for another cell now: no processes, descriptors or memory.
    #[error("there is no room for another cell now: {message}")]
    NoRoom {
        /// The error of the operating system.
        message: String,
    },
    /// The machine refused a layer of confinement.
    #[error("could not put {mechanism} in force: {message}")]
    Refused {
        /// The mechanism that failed.
        mechanism: String,
        /// The error of the operating system.
        message: String,
    },
    /// The engine is not on this machine. The text is that of [`EngineSource::find`].
    ///
    /// [`EngineSource::find`]: crate::EngineSource::find
    #[error("{0}")]
    NoEngine(String),
    /// The engine could not start or load its library.
    #[error("could not warm the engine: {message}")]
    NotWarm {
        /// The error of the engine.
        message: String,
    },
    /// The zygote or cell went away before it was ready.
    #[error("the zygote went away before its handshake")]
    NoHandshake,
    /// The zygote or cell was not ready in time.
    #[error("no confined cell within {seconds} s")]
    TooSlow {
        /// How long the host waited.
        seconds: u64,
    },
    /// The zygote sent something that is not the protocol.
    #[error("the zygote broke the protocol")]
    Protocol,
}

/// Errors of the operating system that may pass: it has no process, no memory, or no descriptor left.
const USED_UP: [Errno; 4] = [Errno::AGAIN, Errno::NOMEM, Errno::NFILE, Errno::MFILE];

impl LaunchError {
    /// The error for a process that did not start, or a descriptor that could not be opened.
    pub(crate) fn spawn(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) if USED_UP.contains(&errno) => Self::NoRoom { message: error.to_string() },
            _ => Self::Spawn(error),
        }
    }

    /// The error for a layer that another process could not enforce. That process reports the error of the
    /// operating system as text.
    pub(crate) fn refused(mechanism: String, message: String) -> Self {
        let names = |errno: &Errno| message.contains(&io::Error::from(*errno).to_string());
        match USED_UP.iter().any(names) {
            true => Self::NoRoom { message },
            false => Self::Refused { mechanism, message },
        }
    }

    /// The stable code that callers see.
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
