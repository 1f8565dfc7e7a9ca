//! D6, D7: how long a yes may last, and when a server's word that a tool only reads counts.

use belljar_contract::ConsentScope;
use serde_json::{Map, Value, json};

use super::{Overrides, PolicyVerdict, ToolGrants, ToolPolicy, Trust};
use crate::{Annotations, Tool};

fn tool(annotations: Annotations) -> Tool {
    Tool { annotations, ..Tool::bare("fs", "read") }
}

fn decide(
    policy: &str,
    tool: &Tool,
    trust: Trust,
    arguments: Value,
) -> (PolicyVerdict, ConsentScope) {
    let policy: ToolPolicy = toml::from_str(policy).unwrap();
    let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap();
    let grants = ToolGrants::default();
    let decision = policy.decide(tool, trust, &Overrides::default(), &arguments, &grants);
    (decision.verdict, decision.widest)
}

#[test]
fn d6_a_chosen_server_is_believed_when_it_says_that_a_tool_only_reads() {
    use PolicyVerdict::{Allow, Ask, Deny};
    let hints = |read_only, destructive, open_world| {
        tool(Annotations { read_only, destructive, open_world, ..Annotations::default() })
    };
    let reads = hints(Some(true), None, None);
    let sends = hints(Some(true), None, Some(true));
    let harmless = hints(None, Some(false), None);
    for (tool, trust, verdict) in [
        (&reads, Trust::Chosen, Allow),
        (&reads, Trust::Trusted, Allow),
        // A project's own file is no choice of the user's.
        (&reads, Trust::Untrusted, Ask),
        (&sends, Trust::Chosen, Ask),
        (&sends, Trust::Trusted, Allow),
        (&harmless, Trust::Chosen, Ask),
        (&harmless, Trust::Trusted, Allow),
        (&tool(Annotations::default()), Trust::Chosen, Ask),
    ] {
        assert_eq!(decide("", tool, trust, json!({})).0, verdict, "{trust:?} {tool:?}");
        assert_eq!(decide("deny = ['*']", tool, trust, json!({})).0, Deny);
        assert_eq!(decide("ask = ['*']", tool, trust, json!({})).0, Ask);
        let repeats = Overrides::default().is_read_only(tool, trust);
        assert_eq!(repeats, verdict == Allow && tool.annotations.read_only == Some(true));
    }
    assert_eq!(decide("", &reads, Trust::Chosen, json!({"path": "/p/.belljar/token"})).0, Ask);
}

#[test]
fn d7_policy_says_how_long_a_yes_may_last() {
    let any = tool(Annotations::default());
    for (policy, arguments, widest) in [
        ("", json!({}), ConsentScope::Always),
        // The file says to ask: no yes for good.
        ("ask = ['fs__*']", json!({}), ConsentScope::Session),
        ("allow = ['*']", json!({"path": ".belljar/token"}), ConsentScope::Once),
        // Whichever rule asks, a yes to such a call covers no other.
        ("ask = ['fs__*']", json!({"path": ".belljar/token"}), ConsentScope::Once),
        ("", json!({"path": ".belljar/token"}), ConsentScope::Once),
        ("", json!({"path": "/h/.local/state/Belljar%2Fapprovals/a.json"}), ConsentScope::Once),
        ("", json!({"path": "/h/.local/state/belljar//approvals/a.json"}), ConsentScope::Once),
        ("", json!({"path": "/h/.local/state/belljar/x/./../approvals"}), ConsentScope::Once),
        ("", json!({"path": "state\\belljar\\approvals"}), ConsentScope::Once),
        ("", json!({"path": "belljar/app/rovals"}), ConsentScope::Always),
    ] {
        let decided = decide(policy, &any, Trust::Untrusted, arguments.clone());
        assert_eq!(decided, (PolicyVerdict::Ask, widest), "{policy} {arguments}");
    }
}
