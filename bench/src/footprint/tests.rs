//! Growth is detected, and noise is not taken for growth.

use super::{Footprint, ResourceUsage};

fn held(memory_mb: f64, count: usize) -> ResourceUsage {
    ResourceUsage { memory_mb, open_files: count, mounts: 20, processes: count }
}

#[test]
fn k1_a_busy_host_that_comes_to_rest_is_flat() {
    let working: Vec<ResourceUsage> = (0..20).map(|second| held(60.0, 20 + second % 5)).collect();
    assert!(Footprint::new(held(50.0, 12), &working, held(52.0, 12)).flat);
}

/// One calm moment in the first half, and none in the second.
#[test]
fn k1_a_calm_moment_is_not_the_beginning_of_growth() {
    let working: Vec<ResourceUsage> =
        (0..20).map(|second| held(if second == 3 { 50.0 } else { 100.0 }, 20)).collect();
    assert!(Footprint::new(held(50.0, 12), &working, held(52.0, 12)).flat);
}

#[test]
fn k1_whatever_grows_while_working_is_not_flat() {
    let memory: Vec<ResourceUsage> =
        (0..20).map(|second| held(60.0 + f64::from(second) * 2.0, 20)).collect();
    let counts: Vec<ResourceUsage> = (0..20).map(|second| held(60.0, 20 + second * 4)).collect();
    for working in [memory, counts] {
        assert!(!Footprint::new(held(50.0, 12), &working, held(50.0, 12)).flat);
    }
}

#[test]
fn k1_whatever_is_left_behind_is_not_flat() {
    assert!(!Footprint::new(held(50.0, 12), &[], held(50.0, 13)).flat);
    assert!(!Footprint::new(held(50.0, 12), &[], held(80.0, 12)).flat);
    // Control: nothing is left behind.
    assert!(Footprint::new(held(50.0, 12), &[], held(50.0, 12)).flat);
}
