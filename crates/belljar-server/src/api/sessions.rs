//! `/v1/sessions`: create, list and end sessions; checkpoints, rollback, fork.

use std::time::Instant;

use axum::{Json, extract::State, http::StatusCode};
use belljar_contract::{SessionId, SessionInfo, SessionRequest};

use super::{
    Api,
    body::{ForkRequest, RollbackRequest},
    error::ApiError,
    input::{JsonBody, OptionalJsonBody, PathParams, bounded_count},
    shapes::{CheckpointList, ForkedSessions, RolledBack, SessionList},
};
use crate::{backend::Backend, sessions::CheckpointTaken};

/// The most sessions that one fork request may create.
const MOST_FORKED: u32 = 512;

pub(super) async fn create<B: Backend>(
    State(api): State<Api<B>>,
    JsonBody(body): JsonBody<SessionRequest>,
) -> Result<(StatusCode, Json<SessionInfo>), ApiError> {
    let session = api.backend().create_session(body).await?;
    Ok((StatusCode::CREATED, Json(session)))
}

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
) -> Result<Json<SessionList>, ApiError> {
    Ok(Json(SessionList { sessions: api.backend().sessions().await? }))
}

pub(super) async fn get<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
) -> Result<Json<SessionInfo>, ApiError> {
    Ok(Json(api.backend().session(&id).await?))
}

pub(super) async fn destroy<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
) -> Result<StatusCode, ApiError> {
    api.backend().destroy_session(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn checkpoint<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
) -> Result<(StatusCode, Json<CheckpointTaken>), ApiError> {
    let began = Instant::now();
    let taken = api.backend().checkpoint(&id).await?;
    api.gateway.shared.metrics.checkpointed(began.elapsed());
    Ok((StatusCode::CREATED, Json(taken)))
}

pub(super) async fn checkpoints<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
) -> Result<Json<CheckpointList>, ApiError> {
    Ok(Json(CheckpointList { checkpoints: api.backend().checkpoints(&id).await? }))
}

pub(super) async fn rollback<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
    JsonBody(RollbackRequest { checkpoint_id }): JsonBody<RollbackRequest>,
) -> Result<Json<RolledBack>, ApiError> {
    api.backend().rollback(&id, &checkpoint_id).await?;
    Ok(Json(RolledBack { session_id: id, checkpoint_id }))
}

pub(super) async fn fork<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<SessionId>,
    OptionalJsonBody(ForkRequest { count, checkpoint_id }): OptionalJsonBody<ForkRequest>,
) -> Result<(StatusCode, Json<ForkedSessions>), ApiError> {
    let count = bounded_count("count", count, 1, MOST_FORKED)?;
    let session_ids = api.backend().fork(&id, count, checkpoint_id.as_ref()).await?;
    Ok((StatusCode::CREATED, Json(ForkedSessions { session_ids })))
}
