//! Whether a person has already said yes to a call, with a rule that covers it.

use belljar_contract::{ConsentScope, hex};
use belljar_policy::{Coverage, StandingRule};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Bridge, RunContext};
use crate::{PolicyDecision, Tool};

/// Digits of the hash of a definition.
const DEFINITION_DIGITS: usize = 32;

/// The answer of rules that persons approved about a call.
#[derive(Debug, Default)]
pub(super) struct EarlierConsent {
    /// The rule that covers it, in words for the audit row.
    pub(super) covered: Option<String>,
    /// A rule that would cover it if the tool had not changed, in words for the person.
    pub(super) void: Option<String>,
}

impl Bridge {
    /// Looks for a rule that a person approved for this run, its session or this project. Rules of a
    /// longer scope than a yes to this call may have do not count.
    pub(super) async fn standing(
        &self,
        run: &RunContext,
        tool: &Tool,
        arguments: &Map<String, Value>,
        decision: &PolicyDecision,
    ) -> EarlierConsent {
        let (name, definition) = (tool.qualified_name(), self.definition(tool));
        let mut earlier = EarlierConsent::default();
        for (scope, rule) in self.rules_of(run, decision.widest).await {
            match rule.coverage(&name, &definition, arguments) {
                Coverage::Covered => {
                    let covered =
                        format!("a person allowed {rule}, {} ({})", scope.phrase(), rule.id);
                    return EarlierConsent { covered: Some(covered), void: None };
                }
                Coverage::Void => {
                    earlier.void = Some(format!(
                        "an earlier approval ({}) no longer applies, because the tool or its server has \
                         changed",
                        rule.id
                    ));
                }
                Coverage::Other => {}
            }
        }
        earlier
    }

    /// The rules that may answer for a run, those of the shortest scope first.
    async fn rules_of(
        &self,
        run: &RunContext,
        widest: ConsentScope,
    ) -> Vec<(ConsentScope, StandingRule)> {
        let mut rules = Vec::new();
        if let (Some(store), true) = (&self.config.store, widest > ConsentScope::Once) {
            match store.given_rules(&run.run_id, run.session.as_ref()).await {
                Ok(given) => rules.extend(given.into_iter().filter_map(|given| {
                    Some((given.scope, serde_json::from_str(&given.rule).ok()?))
                })),
                Err(error) => not_read(&error),
            }
        }
        if let (Some(kept), ConsentScope::Always) = (&self.config.kept, widest) {
            match kept.load() {
                Ok(file) => {
                    rules.extend(file.rules.into_iter().map(|rule| (ConsentScope::Always, rule)));
                }
                Err(error) => not_read(&error),
            }
        }
        rules.retain(|(scope, _)| *scope <= widest);
        rules
    }

    /// A hash of what a person agrees to when they agree to calls of a tool: its definition and the
    /// configuration of its server.
    pub(super) fn definition(&self, tool: &Tool) -> String {
        let server = self.config.upstreams.spec(&tool.server);
        let server = server.map_or_else(|| "local".to_owned(), crate::ServerSpec::fingerprint);
        let text = serde_json::json!([tool, server]).to_string();
        let mut hash = hex::encode(&Sha256::digest(text.as_bytes()));
        hash.truncate(DEFINITION_DIGITS);
        hash
    }
}

/// A rule that cannot be read allows nothing: the person is asked.
fn not_read(error: &(dyn std::error::Error + 'static)) {
    tracing::warn!(error, "cannot read the rules that were approved");
}
