//! Sketches of sets for counting distinct elements over several members.
//!
//! A set takes at most 3 KiB and only says how large it is; two merge into the sketch of their union.
//!
//! Up to [`MAX_LISTED`] things are kept as 40 bits of their keyed fingerprints, and counted exactly. Beyond that a HyperLogLog (Flajolet,
//! Fusy, Gandouet, Meunier 2007) of 4,096 registers stands in for them, read by the estimator of Ertl (arXiv:1702.01284, algorithm 6),
//! which needs no corrections for small counts. Its standard error is 1.04/√4096 = 1.6 %.

use super::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

/// How many are counted exactly: they take no more than the registers.
pub const MAX_LISTED: usize = 600;

/// The standard error of an estimate, as a share of it.
pub const ERROR_RATIO: f64 = 0.016;

/// Bits of a fingerprint that are used, those that choose the register, and those whose leading zeros are counted.
const PRINT_BITS: u32 = 40;
const INDEX_BITS: u32 = 12;
const RANK_BITS: u32 = PRINT_BITS - INDEX_BITS;

const REGISTERS: usize = 1 << INDEX_BITS;

/// Bytes of a listed print, and of all registers at six bits each, as they are written.
const PRINT_BYTES: usize = 5;
const PACKED: usize = REGISTERS * 6 / 8;

/// A set that can only be asked how large it is, and be merged with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct Sketch(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// All of them, in order.
    Few(Vec<u64>),
    /// For each register the most leading zeros that one of its prints had, plus one.
    Many(Box<[u8; REGISTERS]>),
}

/// What somebody wrote is no sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no sketch of a set")]
pub struct SketchError;

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch(Form::Few(Vec::new()))
    }
}

impl Sketch {
    /// Enters a thing. Whether the count may have changed by that.
    pub fn insert(&mut self, thing: Fingerprint) -> bool {
        self.enter(thing.0 >> (u64::BITS - PRINT_BITS))
    }

    fn enter(&mut self, print: u64) -> bool {
        match &mut self.0 {
            Form::Few(prints) => {
                let Err(place) = prints.binary_search(&print) else { return false };
                if prints.len() < MAX_LISTED {
                    prints.insert(place, print);
                } else {
                    let mut registers = spread(prints);
                    raise(&mut registers, print);
                    self.0 = Form::Many(registers);
                }
                true
            }
            Form::Many(registers) => raise(registers, print),
        }
    }

    /// Enters all that another set has.
    pub fn merge(&mut self, other: &Sketch) {
        match &other.0 {
            Form::Few(prints) => prints.iter().for_each(|print| {
                self.enter(*print);
            }),
            Form::Many(theirs) => {
                let mut union = theirs.clone();
                match &self.0 {
                    Form::Few(prints) => enter_all(&mut union, prints),
                    Form::Many(mine) => union.iter_mut().zip(mine.iter()).for_each(|(rank, mine)| *rank = (*rank).max(*mine)),
                }
                self.0 = Form::Many(union);
            }
        }
    }

    /// How many different ones were entered.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Form::Few(prints) => prints.len() as u64,
            Form::Many(registers) => estimate(&**registers, RANK_BITS),
        }
    }

    /// Whether the count is exact, or else an estimate with a standard error of [`ERROR_RATIO`].
    pub fn is_exact(&self) -> bool {
        matches!(self.0, Form::Few(_))
    }
}

impl FromIterator<Fingerprint> for Sketch {
    fn from_iter<I: IntoIterator<Item = Fingerprint>>(things: I) -> Sketch {
        let mut sketch = Sketch::default();
        for thing in things {
            sketch.insert(thing);
        }
        sketch
    }
}

/// Listed prints in order, 5 bytes each, are never as many bytes as registers, 6 bits each.
impl From<Sketch> for Vec<u8> {
    fn from(sketch: Sketch) -> Vec<u8> {
        match sketch.0 {
            Form::Few(prints) => prints.iter().flat_map(|print| print.to_be_bytes().into_iter().skip(8 - PRINT_BYTES)).collect(),
            Form::Many(registers) => {
                let word = |four: &[u8]| four.iter().fold(0_u32, |word, rank| (word << 6) | u32::from(*rank));
                registers.chunks_exact(4).flat_map(|four| word(four).to_be_bytes().into_iter().skip(1)).collect()
            }
        }
    }
}

impl TryFrom<Vec<u8>> for Sketch {
    type Error = SketchError;

    fn try_from(bytes: Vec<u8>) -> Result<Sketch, SketchError> {
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        if bytes.len() == PACKED {
            let mut registers = Box::new([0; REGISTERS]);
            for (four, three) in registers.chunks_exact_mut(4).zip(bytes.chunks_exact(3)) {
                let word = number(three);
                four.iter_mut().zip([18, 12, 6, 0]).for_each(|(rank, by)| *rank = (word >> by) as u8 & 63);
            }
            let fits = registers.iter().all(|rank| u32::from(*rank) <= RANK_BITS + 1);
            return fits.then_some(Sketch(Form::Many(registers))).ok_or(SketchError);
        }
        let prints: Vec<u64> = bytes.chunks(PRINT_BYTES).map(number).collect();
        let fits = bytes.len().is_multiple_of(PRINT_BYTES) && prints.len() <= MAX_LISTED && prints.is_sorted_by(|one, next| one < next);
        fits.then_some(Sketch(Form::Few(prints))).ok_or(SketchError)
    }
}

/// The registers of a list.
fn spread(prints: &[u64]) -> Box<[u8; REGISTERS]> {
    let mut registers = Box::new([0; REGISTERS]);
    enter_all(&mut registers, prints);
    registers
}

fn enter_all(registers: &mut [u8; REGISTERS], prints: &[u64]) {
    for print in prints {
        raise(registers, *print);
    }
}

/// Enters a print; whether its register rose.
fn raise(registers: &mut [u8; REGISTERS], print: u64) -> bool {
    let (register, rest) = (print as usize % REGISTERS, print >> INDEX_BITS);
    let rank = (rest.leading_zeros() - (u64::BITS - RANK_BITS) + 1) as u8;
    let rises = registers[register] < rank;
    registers[register] = registers[register].max(rank);
    rises
}

/// Ertl's estimator: how many different prints these registers stand for, each the most leading zeros that one of its prints had, plus one, of
/// `rank_bits` bits. There are 2^n of them. Only sums, products and roots, so every machine comes to the same.
pub fn estimate(registers: &[u8], rank_bits: u32) -> u64 {
    let mut having = vec![0_u32; rank_bits as usize + 2];
    registers.iter().for_each(|rank| having[usize::from(*rank)] += 1);
    let all = registers.len() as f64;
    let mut sum = all * tau(1.0 - f64::from(having[rank_bits as usize + 1]) / all);
    for rank in (1..=rank_bits as usize).rev() {
        sum = 0.5 * (sum + f64::from(having[rank]));
    }
    sum += all * sigma(f64::from(having[0]) / all);
    (all * all / (2.0 * std::f64::consts::LN_2) / sum).round() as u64
}

/// x + Σ x^(2^k) · 2^(k−1) over k ≥ 1: what empty registers, a share x < 1 of all, add.
fn sigma(mut x: f64) -> f64 {
    let (mut sum, mut weight) = (x, 1.0);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight *= 2.0;
        if sum == before {
            return sum;
        }
    }
}

/// (1 − x − Σ (1 − x^(2^−k))² · 2^−k over k ≥ 1) / 3: what full registers, a share 1 − x of all, add.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut sum, mut weight) = (1.0 - x, 1.0);
    loop {
        x = x.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::FingerprintKey;

    fn of(seed: u8, numbers: std::ops::Range<u64>) -> Sketch {
        let key = FingerprintKey([seed; 16]);
        numbers.map(|number| key.of(&number.to_string())).collect()
    }

    #[test]
    fn few_are_counted_exactly_and_merge_in_any_order_however_often() {
        let (a, b) = (of(1, 0..400), of(1, 200..600));
        let mut union = a.clone();
        union.merge(&b);
        union.merge(&b);
        let mut other_way = b.clone();
        other_way.merge(&a);
        assert_eq!((union.count(), union.is_exact(), &union), (600, true, &other_way));
        union.merge(&of(1, 600..601));
        assert!(!union.is_exact() && union == of(1, 0..601), "the registers are those of the whole set");
        let mut many = of(1, 0..20_000);
        many.merge(&a);
        assert_eq!(many, of(1, 0..20_000), "what is there already changes nothing");
        let mut parts = of(1, 0..10_000);
        parts.merge(&of(1, 5_000..20_000));
        assert_eq!(parts, many);
    }

    #[test]
    fn many_are_counted_within_the_error_that_is_told() {
        const SEEDS: u8 = 200;
        let sizes = [601, 1_000, 3_000, 10_000, 30_000];
        let mut errors = Vec::new();
        for size in sizes {
            let error = |seed| of(seed, 0..size).count() as f64 / size as f64 - 1.0;
            let all: Vec<f64> = (0..SEEDS).map(error).collect();
            let root_mean_square = (all.iter().map(|error| error * error).sum::<f64>() / f64::from(SEEDS)).sqrt();
            let (bias, within) = (all.iter().sum::<f64>() / f64::from(SEEDS), all.iter().filter(|error| error.abs() < 0.032).count());
            assert!(bias.abs() < 0.004, "{size}: bias {bias:.4}");
            assert!(within >= 180, "{size}: only {within} of {SEEDS} within twice the standard error");
            errors.push(root_mean_square);
        }
        println!("root mean square errors at {sizes:?}: {errors:.4?}");
        assert!(errors.iter().all(|error| *error < ERROR_RATIO * 1.15), "at {sizes:?}: {errors:.4?}");
    }

    #[test]
    fn bytes_are_few_and_what_is_no_sketch_is_refused() {
        for (sketch, bytes) in [(of(3, 0..0), 0), (of(3, 0..7), 35), (of(3, 0..600), 3_000), (of(3, 0..50_000), 3_072)] {
            let written = Vec::from(sketch.clone());
            assert_eq!((written.len(), Sketch::try_from(written)), (bytes, Ok(sketch)));
        }
        let twice = [&[0, 0, 0, 0, 1][..], &[0, 0, 0, 0, 1]].concat();
        for bad in [vec![1; 4], twice, vec![0xff; PACKED], vec![0; PACKED + 3], vec![7; 5 * (MAX_LISTED + 1)]] {
            assert_eq!(Sketch::try_from(bad), Err(SketchError));
        }
        let full = Sketch(Form::Many(Box::new([RANK_BITS as u8 + 1; REGISTERS])));
        assert!(full.count() > 1 << PRINT_BITS, "saturated registers have an estimate, too");
    }
}
