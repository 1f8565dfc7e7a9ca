//! The output of a script comes out as it is printed, line by line, and a run ends with bash (A3, A6).

use std::time::{Duration, Instant};

use belljar_contract::Stream;

use crate::bash_cell::run;

/// A9: one line is one print; the two streams keep their order.
#[test]
fn lines_are_prints_in_order() {
    let outcome = run("echo one; sleep 0.05; echo two >&2; sleep 0.05; printf three");
    let expected =
        [(Stream::Stdout, "one\n"), (Stream::Stderr, "two\n"), (Stream::Stdout, "three")];
    assert_eq!(outcome.prints, expected.map(|(stream, text)| (stream, text.to_owned())));
    assert_eq!(run("printf 'a\\n\\nb\\n'").prints.len(), 3);
}

/// A6: the beginning of a line is printed though its end takes its time.
#[test]
fn half_a_line_does_not_wait() {
    let outcome = run("printf half; sleep 0.2; echo ' and half'");
    let texts: Vec<_> = outcome.prints.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["half", " and half\n"]);
}

/// A6: a flood goes through in pieces the host takes, and nothing is lost.
#[test]
fn a_flood_goes_through() {
    let outcome = run("yes | head -n 200000; echo end >&2");
    assert_eq!(outcome.stdout().len(), 400_000);
    assert!(outcome.prints.len() < 12_000, "{} prints", outcome.prints.len());
    assert!(outcome.prints.iter().all(|(_, text)| text.len() <= 64 << 10));
    assert_eq!(outcome.printed(Stream::Stderr), "end\n");
    let outcome = run("head -c 300000 /dev/zero | tr '\\0' x");
    assert_eq!(outcome.stdout().len(), 300_000);
    assert!(outcome.prints.iter().all(|(_, text)| text.len() <= 64 << 10));
}

/// A10: what is left in the background does not hold the run up; what it says at once is heard.
#[test]
fn background_children_do_not_hold_the_run() {
    let began = Instant::now();
    let outcome = run("(sleep 0.005; echo late) & sleep 5 & disown -a; echo 1");
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(outcome.stdout(), "1\nlate\n");
    let outcome = run("while :; do echo x; sleep 0.001; done & echo $!");
    assert!(began.elapsed() < Duration::from_secs(4));
    assert_eq!(outcome.error, None);
    // Whatever still runs ends when the next line has no reader.
}

/// A3: a script may close what it prints to and go on.
#[test]
fn closed_streams_do_not_end_the_run() {
    let began = Instant::now();
    let outcome = run("exec >&- 2>&-; sleep 0.3; exit 3");
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(outcome.failure().exit_code, Some(3));
}

/// A3: there is no input to wait for.
#[test]
fn standard_input_is_empty() {
    assert_eq!(run("cat; read x || echo none; [ -t 0 ] || echo quiet").stdout(), "none\nquiet\n");
}
