//! Random numbers for made-up data: the same on every machine, and unfit for any other use.

/// SplitMix64: small, and good enough for made-up data.
#[derive(Debug)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// The lower of two numbers below `limit`.
    pub(crate) fn low(&mut self, limit: usize) -> usize {
        self.below(limit).min(self.below(limit))
    }

    /// One of the texts.
    pub(crate) fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        let index = self.below(texts.len());
        texts.get(index).copied().unwrap_or_default()
    }

    /// One of the texts, the first ones more often.
    pub(crate) fn low_of(&mut self, texts: &[&'static str]) -> &'static str {
        let index = self.low(texts.len());
        texts.get(index).copied().unwrap_or_default()
    }

    /// Forty hexadecimal digits, like the name of a commit.
    pub(crate) fn sha(&mut self) -> String {
        format!("{:016x}{:016x}{:08x}", self.next(), self.next(), self.next() >> 32)
    }
}
