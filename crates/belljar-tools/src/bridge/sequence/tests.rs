//! D8: what the code's clock shows.

use super::GuestClock;

#[test]
fn d8_the_clock_of_the_code_does_not_go_back_with_that_of_the_machine() {
    let clock = GuestClock::new(|| 1_000, 5_000.0);
    assert_eq!(clock.now_ms(), 5_000.0);
    assert_eq!(clock.show(f64::NEG_INFINITY), 5_000.0);
    // A timer that is due in thirty milliseconds of the code's is not an hour of the machine's.
    assert_eq!(clock.show(5_029.5), 5_030.0);
    assert_eq!(clock.now_ms(), 5_030.0);
    assert_eq!(clock.show(f64::NAN), 5_030.0);
    // Control: a machine that is ahead is what counts.
    assert_eq!(GuestClock::new(|| 9_000, 5_000.0).show(5_030.0), 9_000.0);
}
