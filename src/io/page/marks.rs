//! Where are the bytes that markup is made of? The places of all `<`, `>`, `"` and `'`, found many bytes at a time.
//!
//! Tags are short and of every length, so looking for the end of one byte by byte, or by a vector search of its own, costs
//! mostly wrongly predicted branches. Here a whole block is compared at once and its places are read off a bit mask.

/// The bytes of a page that are marked at once: as much as keeps the list of places in the nearest cache.
const WINDOW: usize = 4096;

/// Bytes of a block: one bit each in a mask.
const BLOCK: usize = 64;

/// The marks of a page, in order, a window at a time: memory does not grow with the page.
pub(super) struct Marks<'a> {
    bytes: &'a [u8],
    /// Everything before is marked.
    upto: usize,
    places: Vec<u32>,
    next: usize,
}

impl<'a> Marks<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Marks<'a> {
        Marks { bytes, upto: 0, places: Vec::with_capacity(WINDOW / 4), next: 0 }
    }

    /// The first mark at or after `from`. What lies before it is forgotten.
    #[inline]
    pub(super) fn next_from(&mut self, from: usize) -> Option<usize> {
        loop {
            while let Some(&place) = self.places.get(self.next) {
                let place = place as usize;
                if place >= from {
                    return Some(place);
                }
                self.next += 1;
            }
            if self.upto >= self.bytes.len() {
                return None;
            }
            self.mark_window(from);
        }
    }

    /// Marks the next window, which is the one around `from` if that lies farther.
    #[inline(never)]
    fn mark_window(&mut self, from: usize) {
        self.places.clear();
        self.next = 0;
        let begin = self.upto.max(from / BLOCK * BLOCK);
        let end = self.bytes.len().min(begin + WINDOW);
        let mut at = begin;
        let (blocks, rest) = self.bytes[begin.min(end)..end].as_chunks::<BLOCK>();
        for block in blocks {
            let mut mask = mask(block);
            while mask != 0 {
                self.places.push(at as u32 + mask.trailing_zeros());
                mask &= mask - 1;
            }
            at += BLOCK;
        }
        for (offset, byte) in rest.iter().enumerate() {
            if is_mark(*byte) {
                self.places.push((at + offset) as u32);
            }
        }
        self.upto = end;
    }
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'<' | b'>' | b'"' | b'\'')
}

/// One bit for each byte of a block that is a mark, the lowest for the first.
#[cfg(target_arch = "x86_64")]
fn mask(block: &[u8; BLOCK]) -> u64 {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { mask_sse2(block) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
fn mask_sse2(block: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8};
    let (parts, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (at, part) in parts.iter().enumerate() {
        let part = u128::from_le_bytes(*part);
        let bytes = _mm_set_epi64x((part >> 64) as i64, part as i64);
        let is = |wanted: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted as i8));
        let any = _mm_or_si128(_mm_or_si128(is(b'<'), is(b'>')), _mm_or_si128(is(b'"'), is(b'\'')));
        mask |= u64::from(_mm_movemask_epi8(any) as u16) << (16 * at);
    }
    mask
}

/// One bit for each byte of a block that is a mark, the lowest for the first.
#[cfg(not(target_arch = "x86_64"))]
fn mask(block: &[u8; BLOCK]) -> u64 {
    block.iter().enumerate().fold(0, |mask, (at, byte)| mask | u64::from(is_mark(*byte)) << at)
}
