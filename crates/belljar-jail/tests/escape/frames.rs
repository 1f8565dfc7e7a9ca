//! Attempts against the host's end of a cell's socket: whatever comes out of it, the host stays
//! whole, believes nothing it should not, and ends the cell.

use std::time::Duration;

use crate::{
    descriptors::cell_socket,
    harness::{
        attempt::{Attempt, Ending, Judge, Setting::Cell},
        outcome::Outcome,
        raw::{self, call},
    },
};
use belljar_contract::{ErrorCode, Limits};

// Frame kinds and shapes by hand: this file plays a guest that writes what it likes.
const RUN: u8 = 1;
const READY: u8 = 65;
const REFUSED: u8 = 66;
const PRINT: u8 = 67;
const DENIED: u8 = 68;
const DONE: u8 = 69;
const FAILED: u8 = 70;

const PROTOCOL: &[Ending] = &[Ending::Error(ErrorCode::SandboxProtocol)];
const CRASHED: &[Ending] = &[Ending::Error(ErrorCode::SandboxCrashed)];
const TIMEOUT: &[Ending] = &[Ending::Error(ErrorCode::LimitTimeout)];
const FLOOD: &[Ending] =
    &[Ending::Error(ErrorCode::LimitOutput), Ending::Error(ErrorCode::LimitTimeout)];

/// Not attempts: the control of them all, a frame written by hand as it should be, and a cell that
/// leaves a note and waits to be looked at.
pub(crate) const HONEST: &[Attempt] = &[
    Attempt::new("honest_frame", Cell, |_| {
        say(&result("succeeded"));
        wait()
    }),
    Attempt::new("honest_frame_with_grants", Cell, |_| {
        say(&result("succeeded"));
        wait()
    })
    .granted(Judge::Files),
    Attempt::new("hold", Cell, |_| hold()),
    Attempt::new("hold_with_grants", Cell, |_| hold()).granted(Judge::Files),
    Attempt::new("leave_daemons", Cell, |_| {
        crate::programs::leave_daemons();
        say(&result("succeeded"));
        wait()
    }),
];

/// Leaves a note for whoever looks from outside, and waits.
fn hold() -> Outcome {
    let held = std::fs::read(crate::harness::outcome::own("stat")).is_err();
    let note = if held { "landlock holds" } else { "landlock does not hold" };
    let _ = std::fs::write("/tmp/draft", note);
    let _ = std::fs::rename("/tmp/draft", "/tmp/holding");
    wait()
}

/// A guest that says something it should not, and then sits and waits.
macro_rules! hostile {
    ($name:literal, $bytes:expr) => {
        Attempt::new($name, Cell, |_| {
            say(&$bytes);
            wait()
        })
        .ends(PROTOCOL)
    };
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    hostile!("unknown_kind", frame(200, "{}", b"")),
    hostile!("command_to_the_host", frame(RUN, "{}", b"1")),
    hostile!("reserved_bytes", [&[DONE, 1, 0, 0][..], &[0; 8]].concat()),
    hostile!("oversized_head", header(DONE, 1 << 20, 0)),
    hostile!("oversized_body", header(DONE, 14, u32::MAX)),
    hostile!("value_over_its_limit", header(DONE, 14, (1 << 20) + 1))
        .limits(|limits| limits.result_bytes = 4096),
    hostile!("ready_again", frame(READY, "{}", b"")),
    hostile!("forged_refusal", frame(REFUSED, r#"{"mechanism":"seccomp","message":"x"}"#, b"")),
    hostile!("head_that_is_not_json", frame(DONE, "{]", b"1")),
    hostile!("head_with_more_fields", frame(DONE, r#"{"lossy":false,"x":1}"#, b"1")),
    hostile!("head_with_a_field_twice", frame(DONE, r#"{"lossy":false,"lossy":true}"#, b"1")),
    hostile!("head_that_is_deep", frame(FAILED, &"[".repeat(60_000), b"")),
    hostile!("stream_that_is_not_one", frame(PRINT, r#"{"stream":"host"}"#, b"x")),
    hostile!(
        "print_larger_than_the_cap",
        frame(PRINT, r#"{"stream":"stdout"}"#, &[b'x'; 600 << 10])
    ),
    hostile!("body_where_none_belongs", frame(DENIED, r#"{"attempt":"x"}"#, b"smuggled")),
    hostile!("value_that_is_not_json", frame(DONE, r#"{"lossy":false}"#, b"{]")),
    hostile!("value_that_is_two_values", frame(DONE, r#"{"lossy":false}"#, b"1 2")),
    hostile!("value_that_is_not_text", frame(DONE, r#"{"lossy":false}"#, b"\"\xff\"")),
    hostile!("value_that_is_deep", {
        let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
        frame(DONE, r#"{"lossy":false}"#, deep.as_bytes())
    }),
    hostile!("error_code_that_does_not_exist", failed("no.such")),
    // Errors that only the host can know of.
    hostile!("forged_abort", failed("run.aborted")),
    hostile!("forged_lack_of_support", failed("sandbox.unsupported")),
    hostile!("forged_loss_of_zygote", failed("sandbox.zygote_lost")),
    hostile!("forged_failure", failed("sandbox.failed")),
    hostile!("forged_crash", failed("sandbox.crashed")),
    hostile!("forged_limit_of_cpu", failed("limit.cpu")),
    hostile!("forged_limit_of_output", failed("limit.output")),
    hostile!("forged_maximum", failed("limit.maximum")),
    Attempt::new("second_result", Cell, |_| {
        say(&[result("blocked"), result("succeeded")].concat());
        wait()
    }),
    Attempt::new("result_after_junk", Cell, |_| {
        say(&[header(DONE, 3, 0), b"{]}".to_vec(), result("succeeded")].concat());
        wait()
    })
    .ends(PROTOCOL),
    Attempt::new("end_in_a_header", Cell, |_| {
        say(&[DONE, 0, 0, 0, 1]);
        raw::end_now(0)
    })
    .ends(CRASHED),
    Attempt::new("end_in_a_body", Cell, |_| {
        let whole = frame(DONE, r#"{"lossy":false}"#, b"12345");
        say(&whole[..whole.len() - 1]);
        raw::end_now(0)
    })
    .ends(CRASHED),
    Attempt::new("close_and_stay", Cell, |_| {
        while let Some(socket) = cell_socket() {
            let _ = call!(SYS_close, socket);
        }
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    })
    .ends(CRASHED),
    Attempt::new("stall_in_a_header", Cell, |_| {
        say(&[DONE]);
        wait()
    })
    .ends(TIMEOUT)
    .limits(short),
    Attempt::new("stall_in_a_body", Cell, |_| {
        say(&header(DONE, 15, 1 << 20));
        wait()
    })
    .ends(TIMEOUT)
    .limits(short),
    Attempt::new("flood_without_newline", Cell, |_| {
        flood(&frame(PRINT, r#"{"stream":"stdout"}"#, &[b'x'; 60_000]))
    })
    .ends(FLOOD)
    .limits(short),
    Attempt::new("flood_of_bytes", Cell, |_| {
        flood(&frame(PRINT, r#"{"stream":"stderr"}"#, &[0xfe; 60_000]))
    })
    .ends(FLOOD)
    .limits(short),
    Attempt::new("flood_of_logs", Cell, |_| {
        flood(&frame(PRINT, r#"{"stream":"log"}"#, &[b'x'; 1_000]))
    })
    .ends(FLOOD)
    .limits(short),
    Attempt::new("flood_of_empty_prints", Cell, |_| {
        flood(&frame(PRINT, r#"{"stream":"stdout"}"#, b""))
    })
    .ends(FLOOD)
    .limits(short),
    Attempt::new("flood_of_denials", Cell, |_| flood(&frame(DENIED, r#"{"attempt":"x"}"#, b"")))
        .ends(FLOOD)
        .limits(short),
];

fn short(limits: &mut Limits) {
    limits.timeout = Duration::from_millis(250);
}

fn header(kind: u8, head_bytes: u32, body_bytes: u32) -> Vec<u8> {
    [&[kind, 0, 0, 0][..], &head_bytes.to_le_bytes(), &body_bytes.to_le_bytes()].concat()
}

fn frame(kind: u8, head: &str, body: &[u8]) -> Vec<u8> {
    let bytes = |part: usize| u32::try_from(part).unwrap_or(u32::MAX);
    [&header(kind, bytes(head.len()), bytes(body.len())), head.as_bytes(), body].concat()
}

fn failed(code: &str) -> Vec<u8> {
    frame(FAILED, &format!(r#"{{"code":"{code}","message":"forged"}}"#), b"")
}

/// A result as the probe itself would give it.
fn result(outcome: &str) -> Vec<u8> {
    let report = format!(
        r#"{{"outcome":{{"outcome":"{outcome}","errno":null,"detail":"by hand"}},"at":0}}"#
    );
    frame(DONE, r#"{"lossy":false}"#, report.as_bytes())
}

fn socket() -> i32 {
    cell_socket().unwrap_or(-1)
}

fn say(mut bytes: &[u8]) {
    let fd = socket();
    while !bytes.is_empty() {
        match call!(SYS_write, fd, bytes, bytes.len()) {
            Ok(wrote) => bytes = &bytes[usize::try_from(wrote).unwrap_or(bytes.len())..],
            Err(_) => return,
        }
    }
}

fn flood(frame: &[u8]) -> Outcome {
    loop {
        say(frame);
    }
}

/// Until the host ends the cell.
fn wait() -> Outcome {
    let mut room = [0; 4096];
    while call!(SYS_read, socket(), &mut room[..], 4096).is_ok_and(|bytes| bytes > 0) {}
    raw::end_now(0)
}
