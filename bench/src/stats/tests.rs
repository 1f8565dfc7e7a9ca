//! Percentiles and rates are computed correctly.

use std::time::Duration;

use super::Times;

fn times(milliseconds: impl IntoIterator<Item = u64>) -> Times {
    milliseconds.into_iter().map(Duration::from_millis).collect()
}

#[test]
fn k1_percentiles_are_times_that_were_measured() {
    let hundred = times((1..=100).rev());
    assert_eq!((hundred.percentile(50), hundred.percentile(95)), (Some(50.0), Some(95.0)));
    assert_eq!((times([7]).percentile(50), times([7]).percentile(95)), (Some(7.0), Some(7.0)));
    assert_eq!(times([]).percentile(50), None);
}

#[test]
fn k1_the_rate_is_of_one_after_the_other() {
    assert_eq!(times([10, 30]).rate_per_s(), Some(50.0));
    assert_eq!(times([]).rate_per_s(), None);
}
