//! Packs numbers of a few bits into bytes, and reads them again.
//!
//! Bits are counted from the lowest of the first byte on. Reading beyond the end gives zeros: what is damaged gives a wrong number or none,
//! never a panic.

/// Numbers of this many bits can be read and written.
pub(super) const MAX_BITS: u32 = 56;

/// Appends numbers, the last byte filled up with zeros by [`Self::finish`].
pub(super) struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    pending: u64,
    filled: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { bytes, pending: 0, filled: 0 }
    }

    /// Appends a number that has no bits beyond the lowest `width`.
    pub(super) fn put(&mut self, number: u64, width: u32) {
        debug_assert!(width <= MAX_BITS && number >> width == 0, "{number} has more than {width} bits");
        self.pending |= number << self.filled;
        self.filled += width;
        if self.filled >= u64::BITS {
            self.bytes.extend(self.pending.to_le_bytes());
            self.filled -= u64::BITS;
            self.pending = number >> (width - self.filled);
        }
    }

    /// Appends so many zeros and a one.
    pub(super) fn put_unary(&mut self, mut zeros: u64) {
        while zeros >= u64::from(MAX_BITS) {
            self.put(0, MAX_BITS);
            zeros -= u64::from(MAX_BITS);
        }
        self.put(1 << zeros, zeros as u32 + 1);
    }

    pub(super) fn finish(self) {
        self.bytes.extend(&self.pending.to_le_bytes()[..self.filled.div_ceil(8) as usize]);
    }
}

/// Eight bytes from one on, zeros where there are none.
fn word(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// The number of `width` bits that begins at bit `at`.
pub(super) fn get(bytes: &[u8], at: usize, width: u32) -> u64 {
    debug_assert!(width <= MAX_BITS, "{width} bits are not in one word");
    word(bytes, at / 8) >> (at % 8) & ((1 << width) - 1)
}

/// Where the `nth` one is, counted from 0.
pub(super) fn select_one(bytes: &[u8], nth: usize) -> Option<usize> {
    select(bytes, nth, 0)
}

/// Where the `nth` zero is, counted from 0.
pub(super) fn select_zero(bytes: &[u8], nth: usize) -> Option<usize> {
    select(bytes, nth, u64::MAX)
}

fn select(bytes: &[u8], nth: usize, flipped: u64) -> Option<usize> {
    let mut left = nth as u32;
    let mut at = 0;
    while at < bytes.len() {
        let mut word = word(bytes, at) ^ flipped;
        let ones = word.count_ones();
        if left < ones {
            let mut place = at * 8;
            loop {
                let ones = (word as u8).count_ones();
                if left < ones {
                    break;
                }
                left -= ones;
                word >>= 8;
                place += 8;
            }
            for _ in 0..left {
                word &= word - 1;
            }
            return Some(place + word.trailing_zeros() as usize);
        }
        left -= ones;
        at += 8;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(numbers in prop::collection::vec((any::<u64>(), 0u32..=MAX_BITS), 0..60)) {
            let numbers: Vec<_> = numbers.into_iter().map(|(number, width)| (number & ((1 << width) - 1), width)).collect();
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            numbers.iter().for_each(|(number, width)| writer.put(*number, *width));
            writer.finish();
            let mut at = 0;
            for (number, width) in numbers {
                prop_assert_eq!(get(&bytes, at, width), number);
                at += width as usize;
            }
            prop_assert_eq!(bytes.len(), at.div_ceil(8));
            prop_assert_eq!(get(&bytes, at + 64, 56), 0);
        }

        #[test]
        fn ones_and_zeros_are_found(runs in prop::collection::vec(0u64..200, 0..60)) {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            runs.iter().for_each(|zeros| writer.put_unary(*zeros));
            writer.finish();
            let all: Vec<bool> = runs.iter().flat_map(|zeros| (0..=*zeros).map(|n| n == *zeros)).collect();
            let places = |wanted| all.iter().enumerate().filter(move |(_, bit)| **bit == wanted).map(|(place, _)| place);
            for (nth, place) in places(true).enumerate() {
                prop_assert_eq!(select_one(&bytes, nth), Some(place));
            }
            for (nth, place) in places(false).enumerate() {
                prop_assert_eq!(select_zero(&bytes, nth), Some(place));
            }
            prop_assert_eq!(select_one(&bytes, runs.len()), None);
        }
    }
}
