//! `/v1/approvals`: tool calls that wait for a person; a client with the token decides. Also
//! `/v1/tools/search`.

use std::time::Instant;

use axum::{Json, extract::State};
use belljar_contract::ApprovalId;

use super::{
    Api,
    body::{DecisionRequest, SearchRequest},
    error::ApiError,
    input::{JsonBody, PathParams, bounded_count},
    shapes::{ApprovalList, RecordedDecision},
};
use crate::backend::{Backend, DecisionReport, ToolsFound};

/// Names the person who decided, in the audit log.
const BY: &str = "the token's owner, over http";
/// How many tools a search finds by default, and at most.
const DEFAULT_FOUND: u32 = 5;
const MOST_FOUND: u32 = 50;

pub(super) async fn list<B: Backend>(
    State(api): State<Api<B>>,
) -> Result<Json<ApprovalList>, ApiError> {
    Ok(Json(ApprovalList { approvals: api.backend().approvals().await? }))
}

pub(super) async fn decide<B: Backend>(
    State(api): State<Api<B>>,
    PathParams(id): PathParams<ApprovalId>,
    JsonBody(asked): JsonBody<DecisionRequest>,
) -> Result<Json<RecordedDecision>, ApiError> {
    let (verdict, decision) = asked.into_verdict();
    let DecisionReport { rule, also } = api.backend().decide(&id, verdict, BY).await?;
    Ok(Json(RecordedDecision { id, decision, rule, also }))
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
