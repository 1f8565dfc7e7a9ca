//! How many tokens a model saves because code read the data instead.

use serde::{Deserialize, Serialize};

/// The usual rule of thumb for English and JSON.
const BYTES_PER_TOKEN: u64 = 4;

/// Bytes and tokens that went into the code, and those that came out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenSavings {
    /// Bytes the code read.
    pub bytes_in: u64,
    /// Bytes the code returned.
    pub bytes_out: u64,
    /// Tokens a model would have read.
    pub tokens_in: u64,
    /// Tokens a model reads instead.
    pub tokens_out: u64,
    /// Share of the bytes that a model need not read, to three decimals.
    pub saved_percent: f64,
}

impl TokenSavings {
    /// The savings of code that read `bytes_in` and returned `bytes_out`.
    #[must_use]
    pub fn new(bytes_in: usize, bytes_out: usize) -> Self {
        let (bytes_in, bytes_out) = (bytes_in as u64, bytes_out as u64);
        let kept = bytes_out as f64 / bytes_in.max(1) as f64;
        Self {
            bytes_in,
            bytes_out,
            tokens_in: bytes_in.div_ceil(BYTES_PER_TOKEN),
            tokens_out: bytes_out.div_ceil(BYTES_PER_TOKEN),
            saved_percent: ((1.0 - kept) * 100_000.0).round() / 1_000.0,
        }
    }
}

#[cfg(test)]
mod tests;
