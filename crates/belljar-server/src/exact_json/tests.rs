//! A client gets exactly the written text, and never more than one message.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::*;

fn sent(json: &str) -> String {
    let message = json!({"id": 1, "result": {"structuredContent": value(json), "isError": false}});
    String::from_utf8(restored(message.to_string().as_bytes()).into_owned()).expect("text")
}

#[test]
fn a8_keys_keep_their_order_and_integers_their_digits() {
    for json in [
        r#"{"total":1,"alpha":2}"#,
        r#"{"n":18446744073709551616,"m":-340282366920938463463374607431768211456,"f":1.50}"#,
        r#""a \"quoted\" text\n\\""#,
        "null",
    ] {
        let whole = sent(json);
        assert_eq!(
            whole,
            format!(r#"{{"id":1,"result":{{"isError":false,"structuredContent":{json}}}}}"#)
        );
    }
    // Control: without it, a tree sorts and rounds.
    let tree: Value = serde_json::from_str(r#"{"b":18446744073709551616,"a":1}"#).expect("JSON");
    assert_eq!(tree.to_string(), r#"{"a":1,"b":1.8446744073709552e+19}"#);
}

#[test]
fn s2_no_line_break_gets_into_a_message() {
    let whole = sent("{ \"a\" :\n\n[1,\r\n\t2], \"b\": \"x\\n y\" }");
    assert!(whole.ends_with(r#""structuredContent":{"a":[1,2],"b":"x\n y"}}}"#), "{whole}");
    assert!(!whole.contains(['\n', '\r']), "{whole}");
}

#[test]
fn s2_only_a_whole_value_takes_the_place_of_a_string() {
    for odd in ["", "1}, {\"x\": 2", "{\"a\":", "1 2"] {
        let message = json!({ "result": value(odd) }).to_string();
        assert_eq!(restored(message.as_bytes()), message.as_bytes(), "{odd}");
    }
    let plain = br#"{"result":"json-0000:{\"a\":1}"}"#;
    assert!(matches!(restored(plain), Cow::Borrowed(_)), "without the mark nothing is looked at");
}

#[tokio::test]
async fn e1_lines_are_restored_however_they_are_written() {
    let (near, far) = tokio::io::duplex(7);
    let mut writer = RestoringWriter::new(near);
    let message = format!("{}\n", json!({"a": value(r#"{"z":1,"y":[2]}"#)}));
    let wanted = "{\"a\":{\"z\":1,\"y\":[2]}}\n".repeat(2);
    let read = tokio::spawn(async move {
        let (mut text, mut far) = (String::new(), far);
        tokio::io::AsyncReadExt::read_to_string(&mut far, &mut text).await.map(|_| text)
    });
    for byte in message.bytes() {
        writer.write_all(&[byte]).await.expect("it is taken");
    }
    writer.write_all(message.as_bytes()).await.expect("it is taken");
    writer.shutdown().await.expect("it ends");
    drop(writer);
    assert_eq!(read.await.expect("no panic").expect("text"), wanted);
}

const EXACT: &str = r#"{ "total":1, "alpha": 18446744073709551617}"#;

fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"id":1,"method":"tools/call","params":{{"arguments":{arguments},"name":"{tool}"}}}}"#
    )
}

/// The context in a tree of the message.
fn context_in_tree(message: &str) -> Value {
    let marked = with_marked_arguments(message.as_bytes());
    let tree: Value = serde_json::from_slice(&marked).expect("JSON");
    assert_eq!(tree["params"]["arguments"]["code"], "é1");
    tree["params"]["arguments"]["context"].clone()
}

#[test]
fn a8_the_context_of_a_call_passes_through_a_tree_unchanged() {
    for tool in ["execute_code", "sandbox"] {
        for exact in [EXACT, "[18446744073709551617]", "-18446744073709551617", "1.50"] {
            let message = call(tool, &format!(r#"{{"code":"é1","context": {exact} , "z":1}}"#));
            let context = context_in_tree(&message);
            assert_eq!(context.as_str().and_then(marked_text), Some(exact));
        }
    }
}

#[test]
fn s2_only_the_context_of_a_call_gets_the_mark() {
    let arguments = |name: &str, value: &str| format!(r#"{{"code":"é1","{name}":{value}}}"#);
    for message in [
        call("execute_code", &arguments("context", "null")),
        call("execute_code", &arguments("context", r#""{\"a\":1}""#)),
        call("execute_code", &arguments("sandbox_config", EXACT)),
        call("server__tool", &arguments("context", EXACT)),
        call("execute_code", &arguments("context", EXACT)).replace("tools/call", "tools/list"),
        "[]".to_owned(),
        "not JSON".to_owned(),
    ] {
        let marked = with_marked_arguments(message.as_bytes());
        assert!(matches!(marked, Cow::Borrowed(_)), "{message}");
    }
    // Controls: in any spelling of the name that is understood, and both if there are two.
    let escaped = call("execute_code", &arguments(r"c\u006fntext", EXACT));
    assert!(context_in_tree(&escaped).as_str().is_some_and(|text| marked_text(text).is_some()));
    let two = call("execute_code", r#"{"Context":{},"code":"é1","context":[]}"#);
    let two = with_marked_arguments(two.as_bytes());
    assert_eq!(String::from_utf8_lossy(&two).matches(&**MARK).count(), 2);
}

/// A string of a client that looks like a marked one is a string.
#[test]
fn s2_a_client_cannot_write_the_mark() {
    assert_eq!(marked_text("json-0000:{}"), None);
    assert_eq!(marked_text("json-"), None);
    let own = value("{}");
    assert_eq!(own.as_str().and_then(marked_text), Some("{}"));
}
