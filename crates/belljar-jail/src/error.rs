//! The one way confinement fails.

use std::io;

use thiserror::Error;

use crate::Mechanism;

/// A mechanism could not be put in force, so nothing may run.
#[derive(Debug, Error)]
#[error("could not enforce {mechanism}: {source}")]
pub struct ConfineError {
    /// The layer that is not in force.
    pub mechanism: Mechanism,
    /// The error of the operating system.
    pub source: io::Error,
}

/// Adds the mechanism to the error of an operation.
pub(crate) trait MechanismContext<T> {
    /// Wraps the error, if there is one, in a [`ConfineError`].
    fn during(self, mechanism: Mechanism) -> Result<T, ConfineError>;
}

impl<T, E: Into<io::Error>> MechanismContext<T> for Result<T, E> {
    fn during(self, mechanism: Mechanism) -> Result<T, ConfineError> {
        self.map_err(|source| ConfineError { mechanism, source: source.into() })
    }
}
