//! Look-up of the smallest prefix around an address: nested prefixes flattened into disjoint segments, found by binary search.
//!
//! Both tables have an index of the upper bits in front, with about as many slots as there are segments, so that a search looks at
//! few of them and touches few lines of memory:
//!
//! * An IPv4 segment then only needs its lower 16 bits (6 bytes with its owner).
//! * IPv6 addresses lie in few and crowded corners of their space: the index leads to the /32s in which segments begin, and these to
//!   the segments. It only knows 2000::/3, where all global addresses are; others share its ends.

/// No prefix covers the segment.
pub(super) const NOBODY: u32 = u32::MAX;

/// The most bits that tell slots apart: a slot for each of a million segments.
const MAX_SLOT_BITS: u32 = 20;

/// Flattened IPv4 prefixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct V4Table<'a> {
    /// How many segments begin before each slot; one more than there are slots.
    pub index: &'a [u32],
    /// First address of each segment, without the bits that its slot has.
    pub lows: &'a [u16],
    /// Who has the segment; addresses before the first segment are nobody's.
    pub owners: &'a [u32],
}

/// How many bits of an IPv4 address are those of its slot, for so many segments; the others fit into 16.
pub(super) fn v4_slot_bits(segments: usize) -> u32 {
    segments.max(1).ilog2().clamp(16, MAX_SLOT_BITS)
}

/// Slot and low bits of an IPv4 address.
pub(super) fn v4_slot(address: u32, bits: u32) -> (usize, u16) {
    let below = 32 - bits;
    ((address >> below) as usize, (address & ((1 << below) - 1)) as u16)
}

impl V4Table<'_> {
    /// The owner of the segment around `address`, or [`NOBODY`].
    pub(crate) fn find(&self, address: u32) -> u32 {
        let (slot, low) = v4_slot(address, v4_slot_bits(self.lows.len()));
        let (from, to) = (self.index[slot] as usize, self.index[slot + 1] as usize);
        match from + self.lows[from..to].partition_point(|start| *start <= low) {
            0 => NOBODY,
            n => self.owners[n - 1],
        }
    }
}

/// Flattened IPv6 prefixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct V6Table<'a> {
    /// How many of `uppers` are before each slot; one more than there are slots.
    pub index: &'a [u32],
    /// The upper 32 bits with which segments begin, each once.
    pub uppers: &'a [u32],
    /// Where the segments of each of them begin, and where the last ones end.
    pub begins: &'a [u32],
    /// First address of each segment.
    pub starts: &'a [u128],
    /// Who has the segment; addresses before the first segment are nobody's.
    pub owners: &'a [u32],
}

/// The /32 of the first global address, 2000::.
const FIRST_GLOBAL: u32 = 0x2000_0000;

/// Bits of a /32 in 2000::/3 that are not the same for all.
const GLOBAL_BITS: u32 = 29;

/// How many bits tell the slots of so many /32s apart.
pub(super) fn v6_slot_bits(uppers: usize) -> u32 {
    uppers.max(1).ilog2().min(MAX_SLOT_BITS)
}

/// The slot of a /32: never smaller than that of a smaller one.
pub(super) fn v6_slot(upper: u32, bits: u32) -> usize {
    ((upper.saturating_sub(FIRST_GLOBAL) >> (GLOBAL_BITS - bits)) as usize).min((1 << bits) - 1)
}

/// The /32 of an address.
pub(super) fn upper(address: u128) -> u32 {
    (address >> 96) as u32
}

impl V6Table<'_> {
    /// The owner of the segment around `address`, or [`NOBODY`].
    pub(crate) fn find(&self, address: u128) -> u32 {
        let wanted = upper(address);
        let slot = v6_slot(wanted, v6_slot_bits(self.uppers.len()));
        let (from, to) = (self.index[slot] as usize, self.index[slot + 1] as usize);
        let after = match from + self.uppers[from..to].partition_point(|upper| *upper <= wanted) {
            0 => return NOBODY,
            n if self.uppers[n - 1] == wanted => {
                let (from, to) = (self.begins[n - 1] as usize, self.begins[n] as usize);
                from + self.starts[from..to].partition_point(|start| *start <= address)
            }
            // Nothing begins in this /32: what began last before it goes on.
            n => self.begins[n] as usize,
        };
        if after == 0 { NOBODY } else { self.owners[after - 1] }
    }
}
