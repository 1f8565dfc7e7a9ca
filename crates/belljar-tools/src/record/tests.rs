//! D8: what is written to the journal is what is read from it.

use super::{Called, Ended, Entry};

#[test]
fn d8_every_entry_survives_the_journal() {
    let called = |server: Option<&str>| {
        Entry::Called(Called {
            call: 7,
            server: server.map(str::to_owned),
            tool: "read \"x\"".to_owned(),
            arguments: b"{}".to_vec(),
        })
    };
    let ended = |outcome| Entry::Ended(Ended { call: 7, now_ms: 1_731_500_000_000.25, outcome });
    let entries = [
        called(Some("files")),
        called(None),
        Entry::Sent { call: 7 },
        ended(Ok(b"[1]".to_vec())),
        ended(Err(b"{}".to_vec())),
        Entry::Timer { now_ms: 1_731_500_000_000.5 },
    ];
    for entry in entries {
        assert_eq!(Entry::from_row(entry.clone().into_row()).expect("readable"), entry);
    }
}

#[test]
fn d8_a_row_nobody_wrote_is_an_error() {
    let mut row = Entry::Sent { call: 1 }.into_row();
    row.kind = "erased".to_owned();
    let error = Entry::from_row(row).expect_err("unknown");
    assert_eq!(error.to_string(), "the journal has a row of kind `erased` that cannot be read");
}
