//! S2: what enters over MCP has one meaning.

use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::*;

const TWICE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","arguments":{"path":"/tmp/a","path":"/etc/b"}}}"#;

#[test]
fn s2_only_a_message_with_a_key_twice_is_refused() {
    let refused = refusal(TWICE.as_bytes()).expect("it is refused");
    assert_eq!(refused.id, Some(RequestId::Number(7)));
    assert_eq!(refused.error.message, r#"the key "path" is written twice in one object"#);
    // Whose id it is cannot be said, or nobody would understand the answer.
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"approve":false,"approve":true}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":2}}"#,
    ] {
        assert_eq!(refusal(message.as_bytes()).expect(message).id, None, "{message}");
    }
    for message in [r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, "\r\n", ""] {
        assert!(refusal(message.as_bytes()).is_none(), "{message}");
    }
}

#[test]
fn s2_a_mark_at_the_beginning_hides_nothing_and_what_cannot_be_read_is_refused() {
    let marked = refusal(format!("\u{feff}{TWICE}").as_bytes()).expect("it is refused");
    assert_eq!(marked.id, Some(RequestId::Number(7)));
    let ping = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
    assert!(refusal(ping.as_bytes()).is_none());
    for message in ["{", "not JSON", "\u{feff}\u{feff}{}"] {
        let refused = refusal(message.as_bytes()).expect(message);
        assert_eq!(refused.error.code, ErrorCode::PARSE_ERROR, "{message}");
    }
}

#[test]
fn s10_a_message_of_very_many_parts_is_refused() {
    let many = |count: usize| format!("[{}[]]", "[],".repeat(count));
    let refused = refusal(many(MAX_PARTS / 2).as_bytes()).expect("it is refused");
    assert_eq!(refused.error.code, ErrorCode::INVALID_REQUEST);
    assert!(refusal(many(MAX_PARTS / 2 - 2).as_bytes()).is_none());
    // In a text they are no parts.
    let text = format!("[\"{}\"]", "[],".repeat(MAX_PARTS));
    assert!(refusal(text.as_bytes()).is_none());
}

#[tokio::test]
async fn s2_the_last_line_is_looked_at_without_its_end_too() {
    let (_seen, output) = tokio::io::duplex(1 << 16);
    let mut transport = UnambiguousTransport::new(
        std::io::Cursor::new(TWICE.as_bytes().to_vec()),
        1 << 20,
        |lines| AsyncRwTransport::new_server(lines, output),
    );
    assert!(transport.receive().await.is_none());
}

#[tokio::test]
async fn s2_lines_with_a_key_twice_are_answered_and_others_read() {
    let ping = r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#;
    let input = format!("{TWICE}\n{ping}\n");
    let (mut seen, output) = tokio::io::duplex(1 << 16);
    let mut transport =
        UnambiguousTransport::new(std::io::Cursor::new(input.into_bytes()), 1 << 20, |lines| {
            AsyncRwTransport::new_server(lines, output)
        });
    let read = transport.receive().await.expect("the second line");
    assert_eq!(serde_json::to_value(&read).unwrap()["id"], json!(8));
    assert!(transport.receive().await.is_none());
    drop(transport);
    let mut said = String::new();
    seen.read_to_string(&mut said).await.unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(7), &json!(-32602)));
}

#[tokio::test]
async fn a_line_beyond_the_limit_is_dropped_and_the_next_is_read() {
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(10_000));
    let input = format!("{long}\n{}\n", r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    let (_seen, output) = tokio::io::duplex(1 << 16);
    let mut transport =
        UnambiguousTransport::new(std::io::Cursor::new(input.into_bytes()), 1_000, |lines| {
            AsyncRwTransport::new_server(lines, output).with_max_line_length(1_000)
        });
    let read = transport.receive().await.expect("the second line");
    assert_eq!(serde_json::to_value(&read).unwrap()["id"], json!(2));
}
