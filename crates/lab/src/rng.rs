//! Random numbers from a seed, by SplitMix64: as a sequence, or as one number for each key.
//!
//! Keyed numbers do not depend on what else is drawn, nor on the order: a page of a made-up web is the same whenever it is asked for, and a
//! message of a simulated swarm is delayed alike whatever else is sent. Experiments that shuffle or draw from distributions take `rand`'s
//! `StdRng`, seeded by [`seed_of`].

use rand::{RngExt, rngs::StdRng};

/// What each step of SplitMix64 adds to its state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The seed of a part of an experiment, by its number: independent of the other parts' seeds. It is the number of that index (from 0) in
/// the sequence of [`SplitMix64`].
pub(crate) fn seed_of(seed: u64, part: u64) -> u64 {
    mix(seed.wrapping_add(part.wrapping_add(1).wrapping_mul(STEP)))
}

/// A draw from the normal distribution of mean 0 and standard deviation 1 (Box and Muller).
pub(crate) fn normal(rng: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which is not zero and small: the bias of the remainder does not matter.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Puts the items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// One number, and one for each key below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedRng(u64);

impl KeyedRng {
    /// The root of all keys of this seed.
    pub fn new(seed: u64) -> KeyedRng {
        KeyedRng(seed).of(0)
    }

    /// The number of this key: independent of those of other keys.
    pub fn of(self, key: u64) -> KeyedRng {
        KeyedRng(mix(self.0 ^ key.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// All 64 bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Evenly from 0 (not itself) to 1 (not itself).
    pub fn unit(self) -> f64 {
        ((self.0 >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Evenly from 0 to `end` (not itself).
    pub fn below(self, end: u64) -> u64 {
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }

    /// True in this share of cases.
    pub fn chance(self, share: f64) -> bool {
        self.unit() < share
    }

    /// A draw from the Poisson distribution of this mean; at most 100.
    pub fn count(self, mean: f64) -> u64 {
        let (mut left, mut probability, mut count) = (self.unit(), (-mean).exp(), 0);
        while left > probability && count < 100 {
            left -= probability;
            count += 1;
            probability *= mean / count as f64;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_numbers_are_even_and_always_the_same() {
        let draws = |key: u64| (0..20_000).map(move |number| KeyedRng::new(3).of(number).of(key));
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean(draws(1).map(KeyedRng::unit).collect()) - 0.5).abs() < 0.01);
        assert!((mean(draws(2).map(|rng| rng.below(6) as f64).collect()) - 2.5).abs() < 0.05);
        assert!((mean(draws(3).map(|rng| rng.count(0.7) as f64).collect()) - 0.7).abs() < 0.03);
        assert!((mean(draws(4).map(|rng| f64::from(u8::from(rng.chance(0.3)))).collect()) - 0.3).abs() < 0.02);
        assert_eq!(KeyedRng::new(3).of(7).bits(), KeyedRng::new(3).of(7).bits());
        assert_ne!(KeyedRng::new(3).of(7).bits(), KeyedRng::new(4).of(7).bits());
    }

    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        // Vigna's splitmix64.c from the state 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.next(), rng.next(), rng.next()], known);
        assert_eq!([0, 1, 2].map(|part| seed_of(1_234_567, part)), known);
    }
}
