//! Reading the value of a run as a Rust type.

use belljar_contract::{ErrorKind, RunError, RunResult};
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why a run has no value of the wanted type.
#[derive(Debug, Error)]
pub enum ValueError {
    /// The run ended without a value.
    #[error("the run failed: {}", describe(.0.as_deref()))]
    Failed(Option<Box<RunError>>),
    /// The value is there, but of another shape.
    #[error("the value has another shape")]
    Shape(#[source] serde_json::Error),
}

/// What a Rust program wants to know of a [`RunResult`].
pub trait RunResultExt {
    /// The value, as a Rust type.
    fn value<T: DeserializeOwned>(&self) -> Result<T, ValueError>;

    /// The type of the error, if there is one.
    fn error_kind(&self) -> Option<ErrorKind>;
}

impl RunResultExt for RunResult {
    fn value<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        if !self.success {
            return Err(ValueError::Failed(self.error.clone().map(Box::new)));
        }
        serde_json::from_str(self.result.get()).map_err(ValueError::Shape)
    }

    fn error_kind(&self) -> Option<ErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }
}

fn describe(error: Option<&RunError>) -> String {
    error.map_or_else(
        || "no error was given".to_owned(),
        |error| format!("{:?}: {}", error.kind, error.message),
    )
}
