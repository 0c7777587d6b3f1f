//! Finds the tags in a block of 64 bytes.
//!
//! Nearly all are written so plainly that this can be told from all its bytes at once.
//!
//! Tags are short and of every length, so walking from one to the end of the next costs mostly wrongly predicted branches. Here every byte
//! of a block is classified at the same time, and what lies inside a tag or a quoted value follows from arithmetic on bit masks, as in
//! Langdale and Lemire, "Parsing gigabytes of JSON per second" (2019). Where that cannot be sure, it says so.

/// Bytes of a block: one bit each in a mask, the lowest for the first.
pub(super) const BLOCK: usize = 64;

/// A block, and the two bytes behind it: whether `<` begins a tag is told by what follows.
pub(super) type Piece = [u8; BLOCK + 2];

/// Where bytes of each class are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Classes {
    less: u64,
    greater: u64,
    double_quote: u64,
    single_quote: u64,
    equals: u64,
    slash: u64,
    letter: u64,
    /// All that is or might be white: everything up to the space.
    blank: u64,
    /// What surely is white and is usual: spaces and line ends.
    space: u64,
}

impl Classes {
    /// From where each byte is, and what more than one byte belongs to. Inlined, as whoever calls it has instructions of its own.
    #[inline(always)]
    fn new(is: impl Fn(u8) -> u64, letter: u64, blank: u64) -> Classes {
        Classes {
            less: is(b'<'),
            greater: is(b'>'),
            double_quote: is(b'"'),
            single_quote: is(b'\''),
            equals: is(b'='),
            slash: is(b'/'),
            letter,
            blank,
            space: is(b' ') | is(b'\n'),
        }
    }
}

/// What the tags before leave open at the end of a block: masks that are empty but for their lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carry {
    in_tag: u64,
    in_name: u64,
    /// All bits, if a quoted value goes on.
    in_value: u64,
    after_open: u64,
    after_equals: u64,
    after_gap: u64,
}

impl Carry {
    /// Whether a tag goes on behind the block.
    pub(super) fn in_tag(&self) -> bool {
        self.in_tag != 0
    }
}

/// The tags of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tags {
    /// Where start tags begin.
    pub(super) starts: u64,
    /// Where start tags and end tags begin.
    pub(super) begins: u64,
    /// Where tags end.
    pub(super) ends: u64,
    /// How far that goes: up to here, where a comment or something else begins that has to be looked at, or to the end of the block.
    pub(super) upto: usize,
}

/// Everything from the bits of `from` on that is reached through bits of `through`, and the bit behind; and whether that goes on behind the
/// last bit.
fn spread(from: u64, through: u64) -> (u64, u64) {
    // What is added runs through all ones and comes to rest on the first zero.
    let (sum, over) = (from & through).overflowing_add(through);
    (sum ^ through | from, u64::from(over))
}

/// From each odd bit to before the next even one.
fn between_pairs(mut mask: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        mask ^= mask << shift;
    }
    mask
}

/// The tags of a block from its byte `from` on; none if they are not plain: then they must be read one by one, from where the open one
/// began. `carry` comes from the block before, and is changed for the next.
///
/// Plain is a tag whose attributes have no value, or one in double quotes directly behind the `=`, which is directly behind the
/// name. Then every `="` begins a value, and the first `>` outside of values is the tag's end.
pub(super) fn tags(piece: &Piece, from: usize, carry: &mut Carry) -> Option<Tags> {
    let (block, next) = piece.split_first_chunk()?;
    let next = next.first_chunk()?;
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has them.
        return unsafe { tags_avx512(block, next, from, carry) };
    }
    plain(classes(block)?, next, from, carry)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,bmi2")]
fn tags_avx512(block: &[u8; BLOCK], next: &[u8; 2], from: usize, carry: &mut Carry) -> Option<Tags> {
    plain(classes_avx512(block), next, from, carry)
}

/// Classifies the bytes of a block; none if this processor takes longer for that than for reading tags one by one.
fn classes(block: &[u8; BLOCK]) -> Option<Classes> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has it.
        return Some(unsafe { classes_avx2(block) });
    }
    None
}

/// Inlined, for the sake of the instructions that whoever calls it may use.
#[inline(always)]
fn plain(classes: Classes, next: &[u8; 2], from: usize, carry: &mut Carry) -> Option<Tags> {
    let Classes { less, greater, double_quote, single_quote, equals, slash, letter, blank, space } = classes;
    let is_next = |mask: u64, last: bool| mask >> 1 | u64::from(last) << 63;
    let letter_next = is_next(letter, next[0].is_ascii_alphabetic());
    let slash_next = is_next(slash, next[0] == b'/');
    let end_tag = slash_next & is_next(letter_next, next[1].is_ascii_alphabetic());
    let less = less & u64::MAX << from;

    let opens = less & (letter_next | end_tag);
    let (inside, in_tag) = spread(opens | carry.in_tag, !greater);
    let begins = opens & !((inside & !greater) << 1 | carry.in_tag);
    let ends = greater & inside;
    // All below the first `<` that begins something else.
    let stops = less & !inside;
    let upto = (stops & stops.wrapping_neg()).wrapping_sub(1);

    let quotes = double_quote & inside;
    let values = between_pairs(quotes) ^ carry.in_value;
    let equals = equals & inside & !values;
    let (names, in_name) = spread(begins | carry.in_name, !(space | slash | greater) | begins << 1 | carry.after_open);
    let gaps = blank | slash | quotes;
    let not_plain = ends & values
        | single_quote & inside & !values
        | (equals << 1 | carry.after_equals) ^ (quotes & values)
        | equals & (names | gaps << 1 | carry.after_gap);
    if not_plain & upto != 0 {
        return None;
    }
    *carry = Carry {
        in_tag,
        in_name,
        in_value: ((values as i64) >> 63) as u64,
        after_open: begins >> 63,
        after_equals: equals >> 63,
        after_gap: gaps >> 63,
    };
    Some(Tags { starts: begins & letter_next & upto, begins: begins & upto, ends: ends & upto, upto: upto.trailing_ones() as usize })
}

/// Classifies the bytes of a block. Not inlined: seeing where the masks come from, the compiler would take them apart into their bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw")]
#[inline(never)]
fn classes_avx512(block: &[u8; BLOCK]) -> Classes {
    use std::arch::x86_64::{
        _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_loadu_epi8, _mm512_or_si512, _mm512_set1_epi8, _mm512_sub_epi8,
    };
    // SAFETY: the block has the 64 bytes that are loaded, from any address.
    let bytes = unsafe { _mm512_loadu_epi8(block.as_ptr().cast()) };
    let all = |byte: u8| _mm512_set1_epi8(byte as i8);
    let is = |wanted: u8| _mm512_cmpeq_epi8_mask(bytes, all(wanted));
    let after_a = _mm512_sub_epi8(_mm512_or_si512(bytes, all(0x20)), all(b'a'));
    Classes::new(is, _mm512_cmple_epu8_mask(after_a, all(b'z' - b'a')), _mm512_cmple_epu8_mask(bytes, all(b' ')))
}

/// The same with the instructions of older processors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline(never)]
fn classes_avx2(block: &[u8; BLOCK]) -> Classes {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };
    let halves = block.as_ptr().cast::<__m256i>();
    // SAFETY: the block has twice the 32 bytes that are loaded, from any address.
    let (low, high) = unsafe { (_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))) };
    let all = |byte: u8| _mm256_set1_epi8(byte as i8);
    let mask = |low, high| u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32;
    let is = |wanted: u8| mask(_mm256_cmpeq_epi8(low, all(wanted)), _mm256_cmpeq_epi8(high, all(wanted)));
    let letter = |bytes| {
        // Bytes beyond ASCII are negative.
        let lower = _mm256_or_si256(bytes, all(0x20));
        _mm256_and_si256(_mm256_cmpgt_epi8(lower, all(b'a' - 1)), _mm256_cmpgt_epi8(all(b'z' + 1), lower))
    };
    let blank = |bytes| _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, all(b' ')), bytes);
    Classes::new(is, mask(letter(low), letter(high)), mask(blank(low), blank(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte_by_byte(block: &[u8; BLOCK]) -> Classes {
        let mask = |is: fn(u8) -> bool| block.iter().enumerate().fold(0, |mask, (at, byte)| mask | u64::from(is(*byte)) << at);
        Classes {
            less: mask(|byte| byte == b'<'),
            greater: mask(|byte| byte == b'>'),
            double_quote: mask(|byte| byte == b'"'),
            single_quote: mask(|byte| byte == b'\''),
            equals: mask(|byte| byte == b'='),
            slash: mask(|byte| byte == b'/'),
            letter: mask(|byte| byte.is_ascii_alphabetic()),
            blank: mask(|byte| byte <= b' '),
            space: mask(|byte| matches!(byte, b' ' | b'\n')),
        }
    }

    #[test]
    fn all_bytes_are_classified_in_all_places_as_one_by_one() {
        for shift in 0..=u8::MAX {
            let block: [u8; BLOCK] = std::array::from_fn(|at| (at as u8).wrapping_mul(7).wrapping_add(shift));
            let expected = byte_by_byte(&block);
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has it.
                    assert_eq!(unsafe { classes_avx2(&block) }, expected, "{shift}");
                }
                if is_x86_feature_detected!("avx512bw") {
                    // SAFETY: the processor has it.
                    assert_eq!(unsafe { classes_avx512(&block) }, expected, "{shift}");
                }
            }
        }
    }

    /// Where tags begin and end in a text that is one block; none if they are not plain.
    fn found(text: &str) -> Option<(Vec<usize>, Vec<usize>, usize)> {
        let mut piece = [0; BLOCK + 2];
        piece[..text.len()].copy_from_slice(text.as_bytes());
        let places = |mask: u64| (0..BLOCK).filter(|at| mask >> at & 1 == 1).collect();
        tags(&piece, 0, &mut Carry::default()).map(|tags| (places(tags.starts), places(tags.ends), tags.upto))
    }

    #[test]
    fn plain_tags_are_told_and_all_others_left() {
        assert_eq!(found("<a>b</a> > <br/>"), Some((vec![0, 11], vec![2, 7, 15], BLOCK)));
        assert_eq!(found("<a> < 1 <b>"), Some((vec![0], vec![2], 4)), "only up to what is no tag");
        assert_eq!(found("a <b c=\"<d>'=\" e f=\"\"g=\"\">"), None, "the end of a tag in a value is not worth the trouble");
        assert_eq!(found("a <b c=\"<d '=\" e f=\"\"g=\"\">"), Some((vec![2], vec![25], BLOCK)));
        assert_eq!(found("<a><!-- <b> --><c>"), Some((vec![0], vec![2], 3)), "only up to the comment");
        assert_eq!(found("<a <!-- ><c>").map(|found| found.1), Some(vec![8, 11]));
        for odd in [
            "<a b=c>",
            "<a b='c'>",
            "<a b = \"c\">",
            "<a =\"b\">",
            "<a=\"b\" c>",
            "</a=\"b\" c=\">",
            "<a b\"c\">",
            "<a b==\"c\">",
            "<a b=\"\"=\"c\">",
        ] {
            assert_eq!(found(odd), None, "{odd}");
        }
    }
}
