//! D8: a record is fed back in its order, and only to the program that made it.

use belljar_wire::ToolCall;

use super::{RecordedInput, Replay, ReplayStep};
use crate::record::{CallEntry, JournalEntry, OutcomeEntry};

fn call(number: u32, tool: &str) -> ToolCall {
    ToolCall {
        call: number,
        server: Some("s".to_owned()),
        tool: tool.to_owned(),
        line: Some(number),
        arguments: b"{}".to_vec(),
    }
}

fn called(number: u32, tool: &str) -> JournalEntry {
    let ToolCall { call, server, tool, arguments, .. } = call(number, tool);
    JournalEntry::Called(CallEntry { call, server, tool, arguments })
}

fn ended(call: u32, now_ms: f64) -> OutcomeEntry {
    OutcomeEntry { call, now_ms, outcome: Ok(call.to_string().into_bytes()) }
}

fn sent(call: u32) -> JournalEntry {
    JournalEntry::Sent { call }
}

/// Two calls side by side, the second of which ended first, and a third that did not end.
fn record() -> Replay {
    Replay::new([
        called(1, "a"),
        sent(1),
        called(2, "b"),
        sent(2),
        JournalEntry::Ended(ended(2, 10.0)),
        JournalEntry::Timer { now_ms: 20.0 },
        JournalEntry::Ended(ended(1, 30.0)),
        called(3, "c"),
        sent(3),
        called(4, "d"),
    ])
}

#[test]
fn d8_outcomes_come_in_the_recorded_order_and_not_before_they_are_asked_for() {
    let mut replay = record();
    assert_eq!(replay.last_now_ms(), Some(30.0));
    assert_eq!(replay.ask(&call(1, "a")), Ok(ReplayStep::Recorded));
    assert_eq!(replay.next_input(), None);
    assert_eq!(replay.ask(&call(2, "b")), Ok(ReplayStep::Recorded));
    assert_eq!(replay.next_input(), Some(RecordedInput::Ended(ended(2, 10.0))));
    assert_eq!(replay.next_input(), None);
    replay.want_timer();
    assert_eq!(replay.next_input(), Some(RecordedInput::Timer { now_ms: 20.0 }));
    assert!(!replay.is_over());
    assert_eq!(replay.next_input(), Some(RecordedInput::Ended(ended(1, 30.0))));
    assert!(replay.is_over());
    assert_eq!(replay.next_input(), None);
}

#[test]
fn d8_a_call_that_left_and_did_not_come_back_is_in_doubt() {
    let mut replay = record();
    assert_eq!(replay.ask(&call(3, "c")), Ok(ReplayStep::InDoubt { times_sent: 1 }));
    assert_eq!(replay.ask(&call(4, "d")), Ok(ReplayStep::NotSent));
    assert_eq!(replay.ask(&call(5, "e")), Ok(ReplayStep::Fresh));
    assert_eq!(replay.doubts(), 1);
    // A call that was repeated and did not return again is another doubt than the first.
    let mut again = Replay::new([called(1, "a"), sent(1), sent(1)]);
    assert_eq!(again.ask(&call(1, "a")), Ok(ReplayStep::InDoubt { times_sent: 2 }));
}

#[test]
fn d8_another_program_is_noticed() {
    let diverged = record().ask(&call(1, "z")).expect_err("another tool");
    assert_eq!((diverged.before.as_str(), diverged.now.as_str()), ("s.a({})", "s.z({})"));
    let mut other = call(1, "a");
    other.arguments = b"{\"x\":1}".to_vec();
    assert!(record().ask(&other).is_err());
    other.arguments = b"{}".to_vec();
    other.server = None;
    assert!(record().ask(&other).is_err());
    // Control: the line may differ, as when a comment was added above.
    let mut moved = call(1, "a");
    moved.line = Some(99);
    assert_eq!(record().ask(&moved), Ok(ReplayStep::Recorded));
}

#[test]
fn d8_a_program_that_ends_without_its_calls_is_noticed() {
    let mut replay = record();
    for (number, tool) in [(1, "a"), (2, "b"), (3, "c")] {
        replay.ask(&call(number, tool)).expect("as before");
    }
    assert_eq!(replay.not_asked().expect("d is missing").call, 4);
    replay.ask(&call(4, "d")).expect("as before");
    assert_eq!(replay.not_asked(), None);
}
