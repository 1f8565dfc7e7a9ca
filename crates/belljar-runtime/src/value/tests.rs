//! A value is JSON within its caps, or an error (A8).

use super::check;
use belljar_contract::{ErrorCode, Limits};

fn code(value: &[u8]) -> Result<String, ErrorCode> {
    let limits = Limits { result_bytes: 1000, ..Limits::DEFAULT };
    check(value.to_vec(), &limits).map(|value| value.get().to_owned()).map_err(|error| error.code)
}

#[test]
fn json_passes_as_it_came() {
    for json in ["null", "2", "\"]]]]\\\"[[[[\"", "{\"a\": [1, 2.5e3, true]}"] {
        assert_eq!(code(json.as_bytes()), Ok(json.to_owned()));
    }
}

#[test]
fn what_is_not_one_json_document_is_a_broken_protocol() {
    let broken: [&[u8]; 7] = [b"", b"{", b"1 2", b"NaN", b"[1,]", b"\"\xff\"", b"\"\\ud800"];
    for value in broken {
        assert_eq!(code(value), Err(ErrorCode::SandboxProtocol), "{value:?}");
    }
}

#[test]
fn nesting_and_size_are_bounded() {
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    assert!(code(&nested(127)).is_ok());
    assert_eq!(code(&nested(128)), Err(ErrorCode::SandboxProtocol));
    let text = |length: usize| format!("\"{}\"", "x".repeat(length)).into_bytes();
    assert!(code(&text(998)).is_ok());
    assert_eq!(code(&text(999)), Err(ErrorCode::LimitResult));
}
