//! How the API reports an error: `{error: {type, code, message, hint}}`.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use belljar_contract::{ErrorCode, ErrorKind, RunId, RunResult, Tier};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    backend::{DecisionFault, DecisionRefusal, SearchError},
    live::LOST,
    records::RecordsError,
    sessions::SessionError,
    workflows::WorkflowApiError,
};

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The run that records it.
    pub(crate) run_id: Option<RunId>,
    /// Sent to the client as the `Retry-After` header.
    pub(crate) retry_after_seconds: Option<u32>,
}

/// The body of every answer that is not a success.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody {
    /// The one error of this answer.
    error: ErrorText,
    /// The run that records the request, if the request was for a run and was refused after it had an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
}

/// An error, for programs (`type`, `code`) and for people (`message`, `hint`).
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorText {
    /// The kind of error: `RequestError`, `AuthError`, `NotFoundError`, `ConflictError`,
    /// `LimitError`, `PermissionError` or `ServerError`.
    r#type: &'static str,
    /// The stable name of the error; branch on this.
    code: &'static str,
    /// The failure, in words that may change.
    message: String,
    /// The remedy for the client, if there is one.
    hint: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, code, message, hint: None, run_id: None, retry_after_seconds: None }
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// The request itself is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request.invalid", message)
    }

    /// No run with this id is known here or in the store.
    pub(crate) fn unknown_run(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "run.unknown", format!("no run has the id {id}"))
    }

    /// The run ended without a report: its task failed.
    pub(crate) fn run_lost() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "run.lost", LOST)
    }

    /// Why a backend refused something. A client that hit a limit may retry after a second.
    fn refused(
        status: StatusCode,
        code: &'static str,
        message: String,
        hint: Option<&str>,
    ) -> Self {
        let retry_after_seconds = (status == StatusCode::TOO_MANY_REQUESTS).then_some(1);
        let hint = hint.map(str::to_owned);
        Self { status, code, message, hint, run_id: None, retry_after_seconds }
    }

    /// The error for a run that was refused before any of its code ran; `None` if it was not.
    ///
    /// Code can fail with the same permission errors, but only in a cell.
    pub(crate) fn refused_run(result: &RunResult) -> Option<Self> {
        let error = result.error.as_ref().filter(|_| result.isolation.tier == Tier::Refused)?;
        // These are as the schema says, but cannot run.
        let cannot_run = [ErrorCode::RequestInvalid, ErrorCode::LimitCode, ErrorCode::LimitContext];
        let status = if cannot_run.contains(&error.code) {
            StatusCode::UNPROCESSABLE_ENTITY
        } else if error.code == ErrorCode::LimitMaximum
            || error.code.kind() == ErrorKind::PermissionError
        {
            StatusCode::FORBIDDEN
        } else {
            return None;
        };
        let refused = Self::new(status, error.code.as_str(), error.message.clone());
        Some(Self { hint: error.hint.clone(), run_id: Some(result.id.clone()), ..refused })
    }

    /// A concurrency limit of the server is reached.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "server.busy", message)
            .with_hint("retry when others have ended")
            .retry_after(1)
    }

    /// The `type` that belongs to the status.
    fn kind(&self) -> &'static str {
        match self.status {
            // A limit of a run, whatever its status.
            _ if self.code.starts_with("limit.") => "LimitError",
            StatusCode::UNAUTHORIZED => "AuthError",
            StatusCode::FORBIDDEN => "PermissionError",
            StatusCode::NOT_FOUND | StatusCode::GONE => "NotFoundError",
            StatusCode::CONFLICT => "ConflictError",
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT => "LimitError",
            status if status.is_client_error() => "RequestError",
            _ => "ServerError",
        }
    }

    /// The body that clients receive.
    pub(crate) fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorText {
                r#type: self.kind(),
                code: self.code,
                message: self.message.clone(),
                hint: self.hint.clone(),
            },
            run_id: self.run_id.clone(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"belljar\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        let status = match &error {
            SessionError::Unknown { .. } | SessionError::UnknownFile { .. } => {
                StatusCode::NOT_FOUND
            }
            SessionError::Ended { .. } => StatusCode::GONE,
            // The session in the path exists; the state that the body needs does not.
            SessionError::UnknownCheckpoint { .. } | SessionError::Busy { .. } => {
                StatusCode::CONFLICT
            }
            SessionError::Refused { .. } => StatusCode::FORBIDDEN,
            SessionError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            SessionError::BadPath { .. } => StatusCode::BAD_REQUEST,
            SessionError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            SessionError::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::refused(status, error.code(), error.to_string(), error.hint())
    }
}

impl From<WorkflowApiError> for ApiError {
    fn from(error: WorkflowApiError) -> Self {
        let status = match &error {
            WorkflowApiError::Unknown { .. } => StatusCode::NOT_FOUND,
            WorkflowApiError::Taken { .. } | WorkflowApiError::NotOver { .. } => {
                StatusCode::CONFLICT
            }
            // Valid JSON, but not a valid workflow or command.
            WorkflowApiError::Faulty { .. } | WorkflowApiError::BadCommand { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            WorkflowApiError::Off
            | WorkflowApiError::NotYours { .. }
            | WorkflowApiError::Refused { .. } => StatusCode::FORBIDDEN,
            WorkflowApiError::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
            WorkflowApiError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            WorkflowApiError::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::refused(status, error.code(), error.to_string(), error.hint())
    }
}

impl From<DecisionRefusal> for ApiError {
    fn from(error: DecisionRefusal) -> Self {
        let (status, code) = match error.fault {
            DecisionFault::Unknown => (StatusCode::NOT_FOUND, "approval.unknown"),
            DecisionFault::Answer => (StatusCode::CONFLICT, "approval.answer"),
            DecisionFault::Settled => (StatusCode::CONFLICT, "approval.settled"),
            DecisionFault::Storage => (StatusCode::INTERNAL_SERVER_ERROR, "server.failed"),
        };
        Self::new(status, code, error.message)
    }
}

impl From<RecordsError> for ApiError {
    fn from(error: RecordsError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server.failed", error.to_string())
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "tool.unavailable", error.message)
    }
}
