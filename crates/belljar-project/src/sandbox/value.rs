//! Reading the value of a run as a Rust type.

use belljar_contract::{ErrorKind, RunError, RunResult};
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why the result has no value of the requested type.
///
/// ```
/// use belljar_project::{ErrorCode, RunError, RunResult, RunResultExt as _, RunStatus, ValueError};
///
/// let error = RunError::new(ErrorCode::LimitTimeout, "timed out after 30 s");
/// let result = RunResult::not_run("run_1", RunStatus::Failed, error);
/// match result.value::<u32>() {
///     Err(ValueError::Failed(Some(error))) => assert_eq!(error.code, ErrorCode::LimitTimeout),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug, Error)]
pub enum ValueError {
    /// The run failed, so there is no value.
    #[error("the run failed: {}", describe(.0.as_deref()))]
    Failed(Option<Box<RunError>>),
    /// The value does not fit the requested type.
    #[error("the value does not have the requested type")]
    Shape(#[source] serde_json::Error),
}

/// Convenient access to a [`RunResult`].
///
/// ```no_run
/// # async fn example(sandbox: belljar_project::Sandbox) {
/// use belljar_project::{ErrorKind, RunResultExt as _, ValueError};
///
/// let result = sandbox.run("return (await fetch('https://example.org')).status").await;
/// assert_eq!(result.error_kind(), Some(ErrorKind::PermissionError));
/// assert!(matches!(result.value::<u16>(), Err(ValueError::Failed(_))));
/// # }
/// ```
pub trait RunResultExt {
    /// Deserializes the value of a successful run.
    fn value<T: DeserializeOwned>(&self) -> Result<T, ValueError>;

    /// The kind of the error, if the run failed.
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
        || "no error message".to_owned(),
        |error| format!("{:?}: {}", error.kind, error.message),
    )
}
