//! The store accepts the checkpoint that is timed.

use super::{EVENTS, batch};

#[test]
fn k1_checkpoints_follow_each_other_without_a_gap() {
    let numbers: Vec<u64> =
        (1..=3).flat_map(|seq| batch(seq, None).events).map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=3 * EVENTS).collect::<Vec<u64>>());
}

#[test]
fn k1_a_large_state_is_part_of_its_checkpoint() {
    let size = |snapshot| batch(7, snapshot).snapshot.map(|bytes| bytes.len());
    assert_eq!((size(None), size(Some(1_000_000))), (None, Some(1_000_000)));
}
