//! D8: what is written to the journal is what is read from it.

use super::{CallEntry, JournalEntry, OutcomeEntry};

#[test]
fn d8_every_entry_survives_the_journal() {
    let called = |server: Option<&str>| {
        JournalEntry::Called(CallEntry {
            call: 7,
            server: server.map(str::to_owned),
            tool: "read \"x\"".to_owned(),
            arguments: b"{}".to_vec(),
        })
    };
    let ended = |outcome| {
        JournalEntry::Ended(OutcomeEntry { call: 7, now_ms: 1_731_500_000_000.25, outcome })
    };
    let entries = [
        called(Some("files")),
        called(None),
        JournalEntry::Sent { call: 7 },
        ended(Ok(b"[1]".to_vec())),
        ended(Err(b"{}".to_vec())),
        JournalEntry::Timer { now_ms: 1_731_500_000_000.5 },
    ];
    for entry in entries {
        assert_eq!(JournalEntry::from_row(entry.clone().into_row()).expect("readable"), entry);
    }
}

#[test]
fn d8_a_row_nobody_wrote_is_an_error() {
    let mut row = JournalEntry::Sent { call: 1 }.into_row();
    row.kind = "erased".to_owned();
    let error = JournalEntry::from_row(row).expect_err("unknown");
    assert_eq!(error.to_string(), "the journal has a row of kind `erased` that cannot be read");
}
