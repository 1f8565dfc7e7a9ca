//! The state that shells write is read, or not at all (B1).

use super::ShellState;

/// B1: the last whole record counts; half of one does not.
#[test]
fn b1_only_whole_records_are_read() {
    let state = |variables: &str| ShellState {
        options: "o".into(),
        switches: "s".into(),
        variables: variables.into(),
        functions: "f".into(),
        others: "c".into(),
        jobs: vec![12],
    };
    let whole = b"o\0s\0v\0f\0c\x0012\n\0";
    assert_eq!(ShellState::read(whole), Some(state("v")));
    let twice = [&whole[..], b"o\0s\0w\0f\0c\x0012\n\0"].concat();
    assert_eq!(ShellState::read(&twice), Some(state("w")));
    assert_eq!(ShellState::read(&[&whole[..], b"o\0s\0w\0f"].concat()), Some(state("v")));
    for text in [&b""[..], b"o", b"o\0s\0v\0f\0c\0", b"o\0s\0v\0f\0c\x0012"] {
        assert_eq!(ShellState::read(text), None, "{text:?}");
    }
}
