//! What a client gets is what was written, and never more than one message.

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
