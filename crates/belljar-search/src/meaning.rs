//! The meaning of a text: the sum of the vectors of its pieces, as a direction, quantised to eight bits.

use crate::table::DIMENSIONS;

/// A direction. The numbers times the scale have length one; of a text without meaning all are zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) numbers: [i8; DIMENSIONS],
    pub(crate) scale: f32,
}

/// The meaning of a query, prepared for comparing it with many others: seven bits, in numbers that are
/// wide enough for the sum of four products.
#[derive(Debug)]
pub(crate) struct QueryMeaning {
    numbers: [i16; DIMENSIONS],
    scale: f32,
}

/// The largest number of a query.
const MOST: f32 = 63.0;
/// Numbers per step; fits the SIMD registers of current processors.
const LANES: usize = 8;
/// Numbers after which sums are moved to wider ones.
const BLOCK: usize = 4 * LANES;

impl Meaning {
    pub(crate) const NONE: Self = Self { numbers: [0; DIMENSIONS], scale: 0.0 };

    /// The direction of a sum.
    pub(crate) fn of(sum: &[f32; DIMENSIONS]) -> Self {
        let largest = sum.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
        if !(largest.is_normal() && length.is_normal()) {
            return Self::NONE;
        }
        let mut numbers = [0; DIMENSIONS];
        for (rounded, number) in numbers.iter_mut().zip(sum) {
            *rounded = (number / largest * 127.0).round() as i8;
        }
        Self { numbers, scale: largest / 127.0 / length }
    }
}

impl QueryMeaning {
    pub(crate) fn new(meaning: &Meaning) -> Self {
        let mut numbers = [0; DIMENSIONS];
        for (half, number) in numbers.iter_mut().zip(&meaning.numbers) {
            // 4 × 63 × 128 fits.
            *half = (f32::from(*number) * MOST / 127.0).round() as i16;
        }
        Self { numbers, scale: meaning.scale * 127.0 / MOST }
    }

    /// How near another direction is: 1 if it is the same, about 0 if they have nothing in common.
    pub(crate) fn nearness(&self, numbers: &[i8; DIMENSIONS], scale: f32) -> f32 {
        let mut sums = [0_i32; LANES];
        let blocks = self.numbers.as_chunks::<BLOCK>().0.iter().zip(numbers.as_chunks::<BLOCK>().0);
        for (asked, other) in blocks {
            let mut narrow = [0_i16; LANES];
            for (asked, other) in
                asked.as_chunks::<LANES>().0.iter().zip(other.as_chunks::<LANES>().0)
            {
                for ((sum, left), right) in narrow.iter_mut().zip(asked).zip(other) {
                    *sum += left * i16::from(*right);
                }
            }
            for (sum, narrow) in sums.iter_mut().zip(narrow) {
                *sum += i32::from(narrow);
            }
        }
        sums.iter().sum::<i32>() as f32 * self.scale * scale
    }
}

#[cfg(test)]
mod tests;
