//! What a model does not have to read.

use serde::{Deserialize, Serialize};

/// The usual rule of thumb for English and JSON.
const BYTES_PER_TOKEN: u64 = 4;

/// What went into the code and what came out of it.
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
    /// To three decimals.
    pub saved_percent: f64,
}

impl TokenSavings {
    /// The saving of code that read this much and returned that much.
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
