//! `/v1/approvals`: calls that wait for a person, who decides with the owner's token; and
//! `/v1/tools/search`.

use std::time::Instant;

use axum::{Json, extract::State};

use super::{
    Api,
    body::{DecisionRequest, SearchRequest},
    error::ApiError,
    input::{JsonBody, PathParams, bounded_count},
    shapes::{ApprovalList, RecordedDecision},
};
use crate::backend::{Backend, ToolsFound};

/// Who decided, as the audit log names them.
const BY: &str = "the token's owner, over http";
/// Tools that are found unless told, and at most.
const DEFAULT_FOUND: u32 = 5;
const MOST_FOUND: u32 = 50;

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
) -> Result<Json<ApprovalList>, ApiError> {
    Ok(Json(ApprovalList { approvals: api.backend().approvals().await? }))
}

pub(super) async fn decide<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<String>,
    JsonBody(asked): JsonBody<DecisionRequest>,
) -> Result<Json<RecordedDecision>, ApiError> {
    let (verdict, decision) = asked.into_verdict();
    api.backend().decide(&id, verdict, BY).await?;
    Ok(Json(RecordedDecision { id, decision }))
}

pub(super) async fn search<B: Backend>(
    State(api): State<Api<B>>,
    JsonBody(SearchRequest { intent, k }): JsonBody<SearchRequest>,
) -> Result<Json<ToolsFound>, ApiError> {
    let k = bounded_count("k", k, DEFAULT_FOUND, MOST_FOUND)?;
    let began = Instant::now();
    let found = api.backend().search_tools(&intent, k).await?;
    api.gateway.shared.metrics.discovered(began.elapsed());
    Ok(Json(found))
}
