//! Randomness of a cell.
//!
//! All cells share the zygote's memory image, so nothing random may be left in it: the generator
//! behind `Math.random` is seeded by the operating system when a run begins.

use std::{cell::Cell, io};

use rustix::rand::{GetRandomFlags, getrandom};

/// xoshiro256+, which its authors recommend for floats. Not for secrets.
#[derive(Debug, Default)]
pub(super) struct Generator {
    state: Cell<[u64; 4]>,
}

impl Generator {
    /// Starts again from a seed of the operating system.
    pub(super) fn reseed(&self) -> io::Result<()> {
        let mut seed = [0; 32];
        fill(&mut seed)?;
        self.restart(seed);
        Ok(())
    }

    /// Starts again from a known seed, to give the same numbers.
    pub(super) fn restart(&self, seed: [u8; 32]) {
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(seed.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        // All zeros is the one state the generator cannot leave.
        state[0] |= 1;
        self.state.set(state);
    }

    /// Fills the buffer with the next bytes.
    pub(super) fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(6) {
            // The upper bits are the better ones; 48 of the 53 are used.
            let bits = (self.next() * (1_u64 << 48) as f64) as u64;
            for (byte, random) in chunk.iter_mut().zip(bits.to_le_bytes()) {
                *byte = random;
            }
        }
    }

    /// A number in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
    pub(super) fn next(&self) -> f64 {
        let [mut a, mut b, mut c, mut d] = self.state.get();
        let sum = a.wrapping_add(d);
        let shifted = b << 17;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        c ^= shifted;
        d = d.rotate_left(45);
        self.state.set([a, b, c, d]);
        (sum >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Fills the buffer from the operating system.
pub(super) fn fill(mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        let filled = getrandom(&mut *buffer, GetRandomFlags::empty())?;
        buffer = buffer.get_mut(filled..).unwrap_or_default();
    }
    Ok(())
}
