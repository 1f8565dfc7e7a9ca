//! A8: values pass through every surface as they were written: keys in their order, integers with all their
//! digits.

use belljar_testing::sandboxed;
use serde_json::Value;

use crate::{command::Place, mcp_support::serve_in, stdio_support::StdioServer};

/// 2^64 + 1, which no 64-bit number is, beside keys out of order.
const EXACT: &str =
    r#"{"total":1,"alpha":2,"wide":18446744073709551617,"deep":[{"z":0,"a":1.50}]}"#;
/// A float is the same number in other digits.
const RETURNED: &str =
    r#"{"total":1,"alpha":2,"wide":18446744073709551617,"deep":[{"z":0,"a":1.5}]}"#;

/// The fields of a request whose code returns its context.
fn echo() -> String {
    format!(r#""language":"python","code":"context","context":{EXACT}"#)
}

/// Whether a text has the value as a result. It is looked for as text, because a tree would lose the same
/// things from a wrong answer.
fn has_it(text: &str) -> bool {
    text.contains(&format!(r#""result":{RETURNED}"#))
}

#[sandboxed]
#[test]
fn a8_a_context_over_http_comes_back_as_it_was_written() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let reply = server.api("POST /v1/runs", &format!("{{{}}}", echo()));
    assert!(has_it(&reply.body), "{reply:#?}");
    let made = server.ask("POST /v1/sessions", &serde_json::json!({"language": "python"}));
    let id = made["session_id"].as_str().unwrap();
    let body = format!(r#"{{"code":"context","context":{EXACT}}}"#);
    let reply = server.api(&format!("POST /v1/sessions/{id}/runs"), &body);
    assert!(has_it(&reply.body), "{reply:#?}");
    // The command line passes a context on to the session's host.
    let arguments = ["run", "--session", id, "--json", "--context", EXACT, "-c", "context"];
    let shown = place.belljar(&arguments);
    let compact: String = shown.stdout.split_whitespace().collect();
    assert!(has_it(&compact), "{shown:#?}");
}

#[sandboxed]
#[test]
fn a8_a_context_over_mcp_comes_back_as_it_was_written() {
    let place = Place::new();
    let server = serve_in(&place, &[]);
    let reply = server.reply_to_call("execute_code", &format!("{{{}}}", echo()));
    assert!(has_it(&reply.body), "{reply:#?}");
    // Models also write it as a text.
    let text = Value::from(EXACT).to_string();
    let written = format!(r#"{{"language":"python","code":"context","context":{text}}}"#);
    let reply = server.reply_to_call("execute_code", &written);
    assert!(has_it(&reply.body), "{reply:#?}");
    let created =
        server.call("sandbox", &serde_json::json!({"action": "create", "language": "python"}));
    let id = &created["structuredContent"]["session_id"];
    let run =
        format!(r#"{{"action":"execute","session_id":{id},"code":"context","context":{EXACT}}}"#);
    let reply = server.reply_to_call("sandbox", &run);
    assert!(has_it(&reply.body), "{reply:#?}");
    drop(server);

    let mut stdio = StdioServer::start(&place);
    let line = stdio.call_in_text("execute_code", &format!("{{{}}}", echo()));
    assert!(has_it(&line), "{line}");
    stdio.end();
}
