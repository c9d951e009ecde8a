//! Random numbers from a seed, so that a run can be repeated.

use anyhow::{Context, Result};

/// Environment variable that sets the seed.
pub(crate) const SEED_VARIABLE: &str = "FIDELITY_SEED";

/// `SplitMix64`: small, and good enough to choose faults.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

// === impl Random ===

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// An index of something of this length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("invariant: below a usize")
    }

    /// Another generator, for an independent worker.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }
}

/// The seed of the environment, or one of the clock.
pub(crate) fn seed() -> Result<u64> {
    match std::env::var(SEED_VARIABLE) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{SEED_VARIABLE} is not a number: {text:?}")),
        Err(_) => Ok(std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |time| u64::from(time.subsec_nanos()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| random.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|&number| number < 10));
    }
}
