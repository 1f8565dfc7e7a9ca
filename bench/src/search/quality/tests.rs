//! The quality measures are computed correctly.

use super::{Half, Quality};

#[test]
fn d5_measures_are_the_usual_ones() {
    let one = Quality::of(&[7, 3, 9], &[3, 4]);
    assert_eq!((one.recall_at_5, one.hit_at_5), (0.5, 1.0));
    let ideal = 1.0 + 1.0 / 3_f64.log2();
    assert!((one.ndcg_at_5 - (1.0 / 3_f64.log2()) / ideal).abs() < 1e-12);
    assert_eq!(Quality::of(&[1], &[2]), Quality::default());
    let all = Quality::of(&[2, 1], &[1, 2]);
    assert_eq!(all, Quality { recall_at_5: 1.0, hit_at_5: 1.0, ndcg_at_5: 1.0 });
}

#[test]
fn d5_every_second_question_begins_with_the_second() {
    let of = |recall| Quality { recall_at_5: recall, ..Quality::default() };
    let answers = [of(1.0), of(0.0), of(1.0), of(0.5)];
    assert_eq!(Half::Both.mean(&answers).recall_at_5, 0.625);
    assert_eq!(Half::EverySecond.mean(&answers).recall_at_5, 0.25);
}
