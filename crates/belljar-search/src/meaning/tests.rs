//! Directions in eight bits.

use super::{Meaning, QueryMeaning};
use crate::table::DIMENSIONS;

#[test]
fn nearness_is_that_of_exact_vectors_but_for_rounding() {
    let wave = |step: f32| std::array::from_fn::<f32, DIMENSIONS, _>(|at| (at as f32 * step).sin());
    for (left, right) in [(0.1, 0.1), (0.1, 0.11), (0.3, 1.7), (0.02, 0.05)] {
        let (left, right) = (wave(left), wave(right));
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let exact =
            product(&left, &right) / (product(&left, &left) * product(&right, &right)).sqrt();
        let other = Meaning::of(&right);
        let near = QueryMeaning::new(&Meaning::of(&left)).nearness(&other.numbers, other.scale);
        assert!((near - exact).abs() < 0.02, "{near} {exact}");
    }
}

#[test]
fn nothing_and_what_is_no_number_have_no_direction() {
    assert_eq!(Meaning::of(&[0.0; DIMENSIONS]), Meaning::NONE);
    assert_eq!(Meaning::of(&[f32::NAN; DIMENSIONS]), Meaning::NONE);
    assert_eq!(Meaning::of(&[f32::INFINITY; DIMENSIONS]), Meaning::NONE);
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let asked = QueryMeaning::new(&Meaning { numbers: [127; DIMENSIONS], scale: 1.0 });
    assert!(asked.nearness(&[-128; DIMENSIONS], 1.0) < 0.0);
}
