//! Rules that persons approved together with a call, for its run or its session.
//!
//! A rule lives in the row of its approval, so it goes when that row goes. What the rule says is opaque
//! here.

use belljar_contract::{ConsentScope, RunId, SessionId};

use super::{ApprovalState, Store, StoreError};

/// A rule that was approved with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenRule {
    /// How long it lasts.
    pub scope: ConsentScope,
    /// The rule, as JSON.
    pub rule: String,
}

/// The rule in the columns of an approval; none if the scope is of some other version.
pub(super) fn from_columns(scope: &str, rule: Option<String>) -> Option<GivenRule> {
    Some(GivenRule { scope: ConsentScope::from_name(scope)?, rule: rule? })
}

impl Store {
    /// The rules that were approved for a run, and for the session that it is in.
    pub async fn given_rules(
        &self,
        run_id: &RunId,
        session: Option<&SessionId>,
    ) -> Result<Vec<GivenRule>, StoreError> {
        let (run_id, session) = (run_id.to_string(), session.map(ToString::to_string));
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT scope, rule FROM approvals WHERE run_id = ?1 AND scope = ?3 AND state = ?5
                 AND rule IS NOT NULL
                 UNION ALL
                 SELECT scope, rule FROM approvals WHERE session_id = ?2 AND scope = ?4
                 AND state = ?5 AND rule IS NOT NULL",
            )?;
            let (of_run, of_session) = (ConsentScope::Run.as_str(), ConsentScope::Session.as_str());
            let approved = ApprovalState::Approved.as_str();
            let rows = statement
                .query_map((run_id, session, of_run, of_session, approved), |row| {
                    Ok(from_columns(&row.get::<_, String>(0)?, row.get(1)?))
                })?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        })
        .await
    }
}
