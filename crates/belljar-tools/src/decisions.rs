//! Recording what a person decided about a call, with the rule that they approved along with it.
//!
//! Every surface decides here. A rule is recorded only if it covers the call that it was shown with and
//! lasts no longer than policy lets a yes to that call last; then it also answers the other calls that
//! wait and that it covers.

use std::fmt;

use belljar_contract::{ApprovalId, ConsentRule, ConsentScope, RunId, Verdict, hex};
use belljar_policy::{Coverage, KeptRules, KeptRulesError, RuleError, StandingRule};
use belljar_store::{
    Approval, ApprovalState, Approvals, DecideError, GivenRule, NewApproval, Store,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Digits of the hash in the id of a rule.
const ID_DIGITS: usize = 12;

/// Records decisions in a store, and rules for good in a file of the user's.
#[derive(Debug, Clone)]
pub struct Decisions {
    store: Store,
    kept: Option<KeptRules>,
}

/// A decision that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedVerdict {
    /// The call that it was about.
    pub approval: Approval,
    /// The rule that was approved with it.
    pub rule: Option<(ConsentScope, StandingRule)>,
    /// Other calls that waited, and that the rule has answered.
    pub also: Vec<Approval>,
}

/// Why a decision did not count.
#[derive(Debug, Error)]
pub enum VerdictError {
    /// The store refused it.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// The rule is not valid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The rule does not cover the call that was asked about.
    #[error("the rule {rule} does not cover the call itself, so nothing was decided")]
    NotCovered {
        /// The rule, in words.
        rule: String,
    },
    /// A yes to this call must not last so long.
    #[error("the longest approval of this call is {}, not {}: {reason}", widest.as_str(), scope.as_str())]
    TooLong {
        /// The requested scope.
        scope: ConsentScope,
        /// The longest that is possible.
        widest: ConsentScope,
        /// Why.
        reason: &'static str,
    },
    /// A yes to one call was given with conditions.
    #[error("`when` needs a longer approval: use run, session or always")]
    OnceWithConditions,
    /// The call was approved, and the rule could not be kept.
    #[error("the call was approved once, but the rule could not be saved")]
    NotKept(#[source] KeptRulesError),
}

impl Decisions {
    /// Decisions about the calls in a store. Without `kept`, no rule is for good.
    pub fn new(store: Store, kept: Option<KeptRules>) -> Self {
        Self { store, kept }
    }

    /// The rule that an approval would record, as it will be shown and kept.
    ///
    /// # Errors
    /// If the rule is not valid, does not cover the call, or would last too long.
    pub fn rule_for(
        &self,
        asked: &NewApproval,
        wanted: ConsentRule,
        by: &str,
        now_ms: i64,
    ) -> Result<StandingRule, VerdictError> {
        let ConsentRule { scope, when } = wanted;
        let id = rule_id(&asked.id);
        let definition = &asked.terms.definition;
        let rule = StandingRule::new(id, &asked.tool, when, definition, (by, now_ms))?;
        let (widest, reason) = self.widest(asked);
        if scope > widest || scope == ConsentScope::Session && asked.terms.session.is_none() {
            return Err(VerdictError::TooLong { scope, widest, reason });
        }
        let covers = rule.coverage(&asked.tool, definition, &arguments_of(asked));
        if covers != Coverage::Covered {
            return Err(VerdictError::NotCovered { rule: rule.to_string() });
        }
        Ok(rule)
    }

    /// Decides an approval. Of several attempts, in any process, exactly one counts.
    ///
    /// # Errors
    /// If nothing was decided, or a rule could not be kept.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        verdict: Verdict,
        by: &str,
        now_ms: i64,
    ) -> Result<RecordedVerdict, VerdictError> {
        let wanted = match &verdict {
            Verdict::ApproveRule(ConsentRule { scope: ConsentScope::Once, when }) => {
                if !when.is_empty() {
                    return Err(VerdictError::OnceWithConditions);
                }
                return self.decide_once(id, Verdict::Approve, by, now_ms).await;
            }
            Verdict::ApproveRule(wanted) => wanted.clone(),
            Verdict::Approve | Verdict::Deny | Verdict::Retry | Verdict::Use(_) => {
                return self.decide_once(id, verdict, by, now_ms).await;
            }
        };
        let unknown = || DecideError::Unknown(id.clone());
        let found = self.store.approval(id, now_ms).await.map_err(DecideError::Store)?;
        let asked = found.ok_or_else(unknown)?.asked;
        let scope = wanted.scope;
        let rule = match asked.is_in_doubt() {
            true => return Err(DecideError::InDoubt(id.clone()).into()),
            false => self.rule_for(&asked, wanted, by, now_ms)?,
        };
        let given = serde_json::to_string(&rule).ok().map(|rule| GivenRule { scope, rule });
        let approval = self.store.decide_with(id, verdict, given, by, now_ms).await?;
        if let (Some(kept), ConsentScope::Always) = (&self.kept, scope) {
            kept.add(rule.clone()).map_err(VerdictError::NotKept)?;
        }
        let also = self.answer_others(&asked, scope, &rule, now_ms).await;
        Ok(RecordedVerdict { approval, rule: Some((scope, rule)), also })
    }

    async fn decide_once(
        &self,
        id: &ApprovalId,
        verdict: Verdict,
        by: &str,
        now_ms: i64,
    ) -> Result<RecordedVerdict, VerdictError> {
        let approval = self.store.decide(id, verdict, by, now_ms).await?;
        Ok(RecordedVerdict { approval, rule: None, also: Vec::new() })
    }

    /// The calls of a run that wait for a yes or a no.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn waiting_in(&self, run: &RunId, now_ms: i64) -> Result<Vec<Approval>, DecideError> {
        let pending = self.store.approvals(Approvals::Pending, now_ms).await?;
        Ok(pending.into_iter().filter(|one| one.asked.run_id == *run).collect())
    }

    /// The longest that a yes to this call may last, and why not longer.
    fn widest(&self, asked: &NewApproval) -> (ConsentScope, &'static str) {
        let terms = &asked.terms;
        match terms.widest {
            ConsentScope::Once => (ConsentScope::Once, "each call like it is asked about"),
            ConsentScope::Always if self.kept.is_some() => {
                (ConsentScope::Always, "its run is in no session")
            }
            ConsentScope::Run | ConsentScope::Session | ConsentScope::Always => {
                let reason =
                    "a rule in belljar.toml asks for it, or there is no place to keep a rule";
                let in_session = terms.session.is_some();
                (if in_session { ConsentScope::Session } else { ConsentScope::Run }, reason)
            }
        }
    }

    /// Approves the other calls that wait and that the rule covers.
    async fn answer_others(
        &self,
        first: &NewApproval,
        scope: ConsentScope,
        rule: &StandingRule,
        now_ms: i64,
    ) -> Vec<Approval> {
        let is_in_scope = |asked: &NewApproval| match scope {
            ConsentScope::Once => false,
            ConsentScope::Run => asked.run_id == first.run_id,
            ConsentScope::Session => {
                asked.terms.session.is_some() && asked.terms.session == first.terms.session
            }
            ConsentScope::Always => true,
        };
        let pending = self.store.approvals(Approvals::Pending, now_ms).await.unwrap_or_default();
        let mut answered = Vec::new();
        for Approval { asked, .. } in pending {
            let definition = &asked.terms.definition;
            let covers = rule.coverage(&asked.tool, definition, &arguments_of(&asked));
            if asked.is_in_doubt()
                || asked.terms.widest < scope
                || !is_in_scope(&asked)
                || covers != Coverage::Covered
            {
                continue;
            }
            let by = format!("{} ({})", rule.by, rule.id);
            match self.store.decide(&asked.id, Verdict::Approve, &by, now_ms).await {
                Ok(approval) => answered.push(approval),
                // Decided meanwhile.
                Err(error) => tracing::debug!(error = %error, "a rule did not answer a call"),
            }
        }
        answered
    }
}

/// A decision in words, for the person who made it.
impl fmt::Display for RecordedVerdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scope, rule)) = &self.rule else {
            return to.write_str(match self.approval.state {
                ApprovalState::Pending => "pending",
                ApprovalState::Approved => "approved",
                ApprovalState::Denied => "denied",
                ApprovalState::Expired => "expired",
                ApprovalState::Happened => "happened",
            });
        };
        write!(to, "allowed {}: {rule} ({})", scope.phrase(), rule.id)
    }
}

/// The arguments of a call as it was recorded; none if they cannot be read, which no condition fits.
fn arguments_of(asked: &NewApproval) -> Map<String, Value> {
    serde_json::from_str(&asked.arguments).unwrap_or_default()
}

/// One approval gives one rule.
fn rule_id(approval: &ApprovalId) -> String {
    let mut id = hex::encode(&Sha256::digest(approval.as_bytes()));
    id.truncate(ID_DIGITS);
    format!("rule_{id}")
}
