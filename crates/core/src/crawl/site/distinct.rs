//! Counts distinct elements: exactly while they are few, and within some percent beyond that, in a kibibyte.
//!
//! The first [`MAX_LISTED`] are kept as they are. Beyond that a HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) of 1,024 registers
//! stands in for them, read by the estimator of Ertl (arXiv:1702.01284, algorithm 6), which needs no corrections for small counts. Its
//! standard error is 1.04/√1024 = 3.3 %. Every site has such a set in memory and never merges it, so it is smaller than a
//! [`Sketch`](nearcrawl_model::sketch::Sketch).

use nearcrawl_model::sketch::estimate;

/// How many are counted exactly: as many as fit into the space of the registers.
pub(crate) const MAX_LISTED: usize = 256;

/// Bits of a print that choose its register.
const INDEX_BITS: u32 = 10;

const REGISTERS: usize = 1 << INDEX_BITS;

/// Bits of a print whose leading zeros are counted.
const RANK_BITS: u32 = u32::BITS - INDEX_BITS;

/// A set that can only be asked how large it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Distinct {
    /// All of them, in order.
    Few(Vec<u32>),
    /// For each register the most leading zeros that one of its prints had, plus one.
    Many(Box<[u8; REGISTERS]>),
}

impl Default for Distinct {
    fn default() -> Self {
        Distinct::Few(Vec::new())
    }
}

impl Distinct {
    /// Enters what has this print, which must be as good as random. Whether the count may have changed by that.
    pub(super) fn insert(&mut self, print: u32) -> bool {
        match self {
            Distinct::Few(prints) => {
                let Err(place) = prints.binary_search(&print) else { return false };
                if prints.len() < MAX_LISTED {
                    prints.insert(place, print);
                } else {
                    let mut registers = Box::new([0; REGISTERS]);
                    for print in prints.iter().chain([&print]) {
                        raise(&mut registers, *print);
                    }
                    *self = Distinct::Many(registers);
                }
                true
            }
            Distinct::Many(registers) => raise(registers, print),
        }
    }

    /// How many different ones were entered.
    pub(super) fn count(&self) -> u64 {
        match self {
            Distinct::Few(prints) => prints.len() as u64,
            Distinct::Many(registers) => estimate(&**registers, RANK_BITS),
        }
    }
}

/// Enters a print; whether its register rose.
fn raise(registers: &mut [u8; REGISTERS], print: u32) -> bool {
    let (register, rest) = (print as usize % REGISTERS, print >> INDEX_BITS);
    let rank = (rest.leading_zeros() - INDEX_BITS + 1) as u8;
    let rises = registers[register] < rank;
    registers[register] = registers[register].max(rank);
    rises
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::fingerprint::Fingerprint;

    /// Prints as good as random: another one for each number and seed.
    fn print(seed: u64, number: u64) -> u32 {
        Fingerprint(number).scoped(seed).0 as u32
    }

    #[test]
    fn few_are_counted_exactly_however_often_and_in_whatever_order_they_come() {
        let mut distinct = Distinct::default();
        for round in 0..3 {
            for number in 0..MAX_LISTED as u64 {
                assert_eq!(distinct.insert(print(1, (number * 77) % MAX_LISTED as u64)), round == 0);
            }
            assert_eq!(distinct.count(), MAX_LISTED as u64);
        }
        let mut other_way = Distinct::default();
        for number in (0..MAX_LISTED as u64).rev() {
            other_way.insert(print(1, number));
        }
        assert_eq!(distinct, other_way);
        assert!(distinct.insert(print(1, 9_999)) && matches!(distinct, Distinct::Many(_)));
        assert!(!distinct.insert(print(1, 9_999)) && !distinct.insert(print(1, 3)), "what was few is still known");
    }

    #[test]
    fn many_are_counted_within_the_error_that_is_told() {
        const SEEDS: u64 = 40;
        let sizes = [257, 500, 1_000, 2_500, 4_000, 10_000, 40_000];
        let mut squares = [0.0; 7];
        for seed in 0..SEEDS {
            let mut distinct = Distinct::default();
            let mut entered = 0;
            for (size, sum) in sizes.iter().zip(&mut squares) {
                for number in entered..*size {
                    distinct.insert(print(seed, number));
                }
                entered = *size;
                let error = distinct.count() as f64 / *size as f64 - 1.0;
                assert!(error.abs() < 0.14, "seed {seed}: {} instead of {size}", distinct.count());
                *sum += error * error;
            }
        }
        let errors: Vec<f64> = squares.iter().map(|sum| (sum / SEEDS as f64).sqrt()).collect();
        println!("root mean square errors at {sizes:?}: {errors:.4?}");
        assert!(errors.iter().all(|error| *error < 0.042), "at {sizes:?}: {errors:.4?}");
    }

    #[test]
    fn full_and_empty_registers_have_an_estimate() {
        assert_eq!(estimate(&[0; REGISTERS], RANK_BITS), 0);
        let full = estimate(&[RANK_BITS as u8 + 1; REGISTERS], RANK_BITS);
        assert!(full > 1 << RANK_BITS, "{full}");
    }
}
