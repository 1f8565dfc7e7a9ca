//! The host checks everything a cell sends as its state.

use super::*;

#[test]
fn a9_a_state_is_an_object_of_json_within_its_cap() {
    let taken = GuestState::check(false, br#"{"a":1}"#.to_vec()).unwrap();
    assert_eq!(taken.into_json().get(), r#"{"a":1}"#);
    let left_out = GuestState::check(true, Vec::new()).unwrap();
    assert!(left_out.is_cut);
    assert_eq!(left_out.into_json().get(), "{}");
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_STATE_BYTES));
    for refused in ["[1]", "1", "", "{", r#"{"a":"\ud800"}"#, &large] {
        assert!(GuestState::check(false, refused.as_bytes().to_vec()).is_err(), "{refused:.20}");
    }
}
