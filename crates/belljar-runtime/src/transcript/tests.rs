//! The host cuts output, whatever a cell sends (A6).

use super::{TooMuchOutput, Transcript};
use belljar_contract::{Limits, Stream, Truncation};

fn transcript(output_bytes: u64) -> Transcript {
    Transcript::new(&Limits { output_bytes, ..Limits::DEFAULT }, None)
}

#[test]
fn prints_are_kept_in_order_and_marked_when_cut() {
    let mut transcript = transcript(8);
    for (stream, text) in [(Stream::Stdout, "abc\n"), (Stream::Stderr, "x\n"), (Stream::Log, "y")] {
        transcript.print(stream, text.as_bytes()).unwrap();
    }
    transcript.print(Stream::Stdout, b"defghi").unwrap();
    let texts = transcript.finish();
    assert_eq!((&*texts.stdout, &*texts.stderr), ("abc\ndefg", "x\n"));
    assert_eq!(texts.logs, ["abc", "x", "y"]);
    let truncated = Truncation { stdout: true, logs: true, ..Truncation::default() };
    assert_eq!(texts.truncated, truncated);
}

#[test]
fn a_character_cut_in_half_is_dropped_and_other_bytes_are_replaced() {
    let mut cut = transcript(4);
    cut.print(Stream::Stdout, "aa€".as_bytes()).unwrap();
    assert_eq!(cut.finish().stdout, "aa");
    let mut binary = transcript(64);
    binary.print(Stream::Stdout, &[b'a', 0xff, b'b']).unwrap();
    assert_eq!(binary.finish().stdout, "a\u{fffd}b");
}

#[test]
fn a_flood_ends_the_run_on_every_stream() {
    for (stream, name) in [(Stream::Stdout, "stdout"), (Stream::Stderr, "stderr")] {
        for (kept, allowed) in [(64 << 10, 1000), (4000, 64), (8, 16), (2_000_000, 2000)] {
            let mut transcript = transcript(kept);
            let mut print = || transcript.print(stream, &[b'x'; 1000]);
            assert!((0..allowed).all(|_| print().is_ok()), "{allowed} KB are allowed of {kept}");
            assert_eq!(print(), Err(TooMuchOutput { stream: name }), "{kept}");
        }
    }
}

/// Empty frames cost the host too.
#[test]
fn empty_prints_and_logs_do_not_go_on_for_ever() {
    let mut transcript = transcript(64 << 10);
    let mut printed = 0;
    while transcript.print(Stream::Log, b"").is_ok() {
        printed += 1;
    }
    assert_eq!(printed, 3_000_000);
    assert_eq!(transcript.finish().logs.len(), 10_000);
}

/// A line that is longer than the room for it keeps its ends, and leaves room for what comes after.
#[test]
fn a_long_line_is_cut_not_dropped() {
    let mut transcript = transcript(4096);
    let line = format!("begin{}end\n", "x".repeat(50_000));
    transcript.print(Stream::Stdout, line.as_bytes()).unwrap();
    transcript.print(Stream::Stdout, b"after\n").unwrap();
    let texts = transcript.finish();
    let [long, after] = &texts.logs[..] else { panic!("two entries: {:?}", texts.logs.len()) };
    assert!(long.starts_with("begin") && long.ends_with("end"), "{long}");
    assert!(long.contains("bytes left out") && long.len() < 2200, "{}", long.len());
    assert_eq!((after.as_str(), texts.truncated.logs), ("after", true));
}
