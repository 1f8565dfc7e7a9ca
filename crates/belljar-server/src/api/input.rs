//! Bodies, queries and path parameters, decoded strictly: an unknown field is refused by name.

use std::time::Duration;

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use belljar_contract::StrictObject;
use belljar_wire::json::{JsonFlaw, check_keys};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Extracts a body that must be JSON.
pub(super) struct JsonBody<T>(pub(super) T);

/// Extracts a body that is JSON or empty.
pub(super) struct OptionalJsonBody<T>(pub(super) T);

/// Extracts the query, the part of the URL behind the `?`.
pub(super) struct QueryParams<T>(pub(super) T);

/// Extracts the ids in the path.
pub(super) struct PathParams<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        check_kind(request.headers())?;
        decode(&read(request).await?).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let kind = check_kind(request.headers());
        let body = read(request).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        kind?;
        decode(&body).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, state).await;
        let Query(asked) = query.map_err(|error| ApiError::invalid(error.body_text()))?;
        Ok(Self(asked))
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, state).await;
        let Path(named) = path.map_err(|error| ApiError::invalid(error.body_text()))?;
        Ok(Self(named))
    }
}

/// The longest that a request may ask to wait for something.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Checks a count that the client may choose between 1 and `most`.
pub(super) fn bounded_count(
    field: &str,
    given: Option<u32>,
    default: u32,
    most: u32,
) -> Result<u32, ApiError> {
    match given.unwrap_or(default) {
        count if (1..=most).contains(&count) => Ok(count),
        _ => Err(ApiError::invalid(format!("{field}: must be between 1 and {most}"))),
    }
}

/// Checks how long the client wants to wait; zero if it does not say.
pub(super) fn bounded_wait(wait_ms: Option<u32>) -> Result<Duration, ApiError> {
    let wait = Duration::from_millis(wait_ms.unwrap_or(0).into());
    if wait > MAX_WAIT {
        return Err(ApiError::invalid("wait_ms: must be at most 60000"));
    }
    Ok(wait)
}

/// Requires the JSON content type. A web page of another site can send it only after a CORS
/// preflight.
fn check_kind(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "the body must be JSON with a JSON content type";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", message)
        .with_hint("send the header `Content-Type: application/json`"))
}

/// Reads the whole body. Its size was limited before it got here.
async fn read(request: Request) -> Result<Bytes, ApiError> {
    let body = to_bytes(request.into_body(), usize::MAX).await;
    body.map_err(|_| ApiError::invalid("the body ended early"))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    // Malformed JSON is reported below, with its position.
    if let Err(flaw @ (JsonFlaw::RepeatedKey(_) | JsonFlaw::ReservedKey(_))) = check_keys(body) {
        return Err(ApiError::invalid(flaw.to_string()));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let StrictObject(decoded) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        let code = if error.is_data() { "request.invalid" } else { "request.malformed" };
        ApiError::new(StatusCode::BAD_REQUEST, code, format!("{at}{error}"))
    })?;
    json.end().map_err(|error| {
        ApiError::new(StatusCode::BAD_REQUEST, "request.malformed", error.to_string())
    })?;
    Ok(decoded)
}
