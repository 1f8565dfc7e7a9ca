//! `/v1/sessions/{id}/files`: files stream in and out; none is held in memory.

use std::io;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use belljar_contract::{SessionFile, SessionId};
use futures_util::TryStreamExt as _;
use tokio_util::io::{ReaderStream, StreamReader};

use super::{Api, error::ApiError, input::PathParams, path::checked};
use crate::{
    backend::Backend,
    sessions::{FileContent, FileList},
};

/// The most files in a list.
const MOST_LISTED: u32 = 10_000;

pub(super) async fn put<B: Backend>(
    State(api): State<Api<B>>,
    PathParams((id, path)): PathParams<(SessionId, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<SessionFile>, ApiError> {
    let path = checked(&path)?;
    let length = headers.get(header::CONTENT_LENGTH);
    let bytes = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let content = StreamReader::new(body.into_data_stream().map_err(io::Error::other));
    let content = FileContent { bytes, reader: Box::pin(content) };
    Ok(Json(api.backend().put_file(&id, path, content).await?))
}

pub(super) async fn get<B: Backend>(
    State(api): State<Api<B>>,
    PathParams((id, path)): PathParams<(SessionId, String)>,
) -> Result<Response, ApiError> {
    let FileContent { bytes, reader } = api.backend().get_file(&id, checked(&path)?).await?;
    let mut response = download(Body::from_stream(ReaderStream::new(reader)));
    if let Some(bytes) = bytes {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    }
    Ok(response)
}

/// A file or a value that a result names by its handle.
pub(super) async fn blob<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(handle): PathParams<String>,
) -> Result<Response, ApiError> {
    match api.backend().blob(&handle).await? {
        Some(blob) => Ok(download(Body::from(blob.bytes))),
        None => {
            let message = format!("no value is stored under {handle}");
            Err(ApiError::new(StatusCode::NOT_FOUND, "blob.unknown", message)
                .with_hint("take handles from results; a value is removed with its run"))
        }
    }
}

/// Bytes that guest code wrote. A browser must never show them as a page of this server.
fn download(bytes: Body) -> Response {
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(super) async fn delete<B: Backend>(
    State(api): State<Api<B>>,
    PathParams((id, path)): PathParams<(SessionId, String)>,
) -> Result<StatusCode, ApiError> {
    api.backend().delete_file(&id, checked(&path)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
) -> Result<Json<FileList>, ApiError> {
    Ok(Json(api.backend().list_files(&id, MOST_LISTED).await?))
}
