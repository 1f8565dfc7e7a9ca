//! A6: limits have units, and a typing error is reported, not guessed at.

use std::time::Duration;

use crate::Limit;

use super::{count, duration, grouped, parse, show_duration, show_size, size};

fn error(text: &str) -> String {
    match (duration(text), size(text)) {
        (Err(duration), Err(size)) => format!("{duration}\n{size}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn a6_durations_take_units_fractions_and_plain_seconds() {
    let milliseconds = |text| duration(text).map(|value| value.as_millis());
    assert_eq!(milliseconds("300ms"), Ok(300));
    assert_eq!(milliseconds("30s"), Ok(30_000));
    assert_eq!(milliseconds("30"), Ok(30_000));
    assert_eq!(milliseconds("1.5 s"), Ok(1_500));
    assert_eq!(milliseconds("5m"), Ok(300_000));
    assert_eq!(milliseconds("1h"), Ok(3_600_000));
}

#[test]
fn a6_sizes_take_decimal_and_binary_units() {
    assert_eq!(size("512MiB"), Ok(512 << 20));
    assert_eq!(size("1.5 GiB"), Ok(3 << 29));
    assert_eq!(size("50KB"), Ok(50_000));
    assert_eq!(size("64kib"), Ok(65_536));
    assert_eq!(size("1GB"), Ok(1_000_000_000));
    assert_eq!(size("4096B"), Ok(4_096));
    // A number that nobody means as bytes.
    let told = size("512").unwrap_err().to_string();
    assert_eq!(told, "`512` has no unit; write for example 512MiB, or 512B for bytes");
    assert!(parse(Limit::Memory, "512").is_err());
    // The key of this limit says that it is in bytes.
    assert_eq!(parse(Limit::CodeBytes, "512"), Ok(512));
}

#[test]
fn a6_counts_are_plain_numbers() {
    assert_eq!(count("32"), Ok(32));
    assert!(count("32k").is_err());
    assert!(count("4294967296").is_err());
}

#[test]
fn a6_a_bad_quantity_says_what_to_write() {
    insta::assert_snapshot!(error("soon"), @r"
    `soon` does not start with a number; write for example 300ms, 30s, 5m or 1h (a plain number is seconds)
    `soon` does not start with a number; write for example 64KiB, 512MiB or 1GB
    ");
    insta::assert_snapshot!(error("5 parsecs"), @r"
    `5 parsecs` has the unknown unit `parsecs`; write for example 300ms, 30s, 5m or 1h (a plain number is seconds)
    `5 parsecs` has the unknown unit `parsecs`; write for example 64KiB, 512MiB or 1GB
    ");
    insta::assert_snapshot!(error("99999999999999999999"), @r"
    `99999999999999999999` is too large
    `99999999999999999999` is too large
    ");
    for text in ["", "-5", ".", "1.2.3s", "0", "0.0", "1e9"] {
        assert!(duration(text).is_err() && size(text).is_err(), "{text}");
    }
}

#[test]
fn quantities_are_shown_as_people_write_them() {
    assert_eq!(show_size(512 << 20), "512 MiB");
    assert_eq!(show_size(50_000), "50,000 bytes");
    assert_eq!(show_duration(Duration::from_millis(300)), "300 ms");
    assert_eq!(show_duration(Duration::from_secs(30)), "30 s");
    assert_eq!(grouped(1_234_567), "1,234,567");
    assert_eq!(grouped(12), "12");
}
