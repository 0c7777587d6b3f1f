//! Where does chance come from, if a page must be the same whenever it is asked for? From hashes: every thing has dice of its own.

/// Chance that belongs to one thing of one web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice(u64);

impl Dice {
    /// Of the whole web.
    pub fn new(seed: u64) -> Dice {
        Dice(seed).of(0)
    }

    /// Of the part, or the trait, of this number: independent of those of any other.
    pub fn of(self, number: u64) -> Dice {
        // The finaliser of SplitMix64: every input bit reaches every output bit.
        let mut x = self.0 ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Dice(x ^ (x >> 31))
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

    /// How often something happened that happens `mean` times on average (Poisson); at most 100 times.
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
    fn dice_are_fair_and_always_fall_the_same_way() {
        let throws = |trait_of: u64| (0..20_000).map(move |number| Dice::new(3).of(number).of(trait_of));
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean(throws(1).map(Dice::unit).collect()) - 0.5).abs() < 0.01);
        assert!((mean(throws(2).map(|dice| dice.below(6) as f64).collect()) - 2.5).abs() < 0.05);
        assert!((mean(throws(3).map(|dice| dice.count(0.7) as f64).collect()) - 0.7).abs() < 0.03);
        assert!((mean(throws(4).map(|dice| f64::from(u8::from(dice.chance(0.3)))).collect()) - 0.3).abs() < 0.02);
        assert_eq!(Dice::new(3).of(7).bits(), Dice::new(3).of(7).bits());
        assert_ne!(Dice::new(3).of(7).bits(), Dice::new(4).of(7).bits());
    }
}
