//! Which is the smallest prefix around an address? Nested prefixes flattened into disjoint segments, found by binary search.
//!
//! IPv4 has an index of the 65,536 upper halves of addresses in front: a segment then only needs its lower 16 bits (6 bytes a
//! segment with its owner), and a search looks at the few segments of one upper half. IPv6 has an index of the upper bits within
//! 2000::/3, where all global addresses are; it has as many bits as there are segments to tell apart.

/// No prefix covers the segment.
pub(super) const NOBODY: u32 = u32::MAX;

/// Entries of the IPv4 index: where the segments of each upper half begin, and where the last ones end.
pub(super) const V4_INDEX: usize = (1 << 16) + 1;

/// Flattened IPv4 prefixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct V4Table<'a> {
    /// Where the segments of each upper half begin; one more than there are halves.
    pub index: &'a [u32],
    /// Lower half of each segment's first address; the first of each upper half is 0.
    pub lows: &'a [u16],
    /// Who has the segment.
    pub owners: &'a [u32],
}

impl V4Table<'_> {
    /// The owner of the segment around `address`, or [`NOBODY`].
    pub fn find(&self, address: u32) -> u32 {
        let high = (address >> 16) as usize;
        let (from, to) = (self.index[high] as usize, self.index[high + 1] as usize);
        let low = address as u16;
        // Each upper half has a segment that begins at 0, so one is always at or before `low`.
        let within = self.lows[from..to].partition_point(|start| *start <= low);
        self.owners[from + within - 1]
    }
}

/// Flattened IPv6 prefixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct V6Table<'a> {
    /// How many segments begin before each slot; one more than there are slots.
    pub index: &'a [u32],
    /// First address of each segment.
    pub starts: &'a [u128],
    /// Who has the segment; addresses before the first segment are nobody's.
    pub owners: &'a [u32],
}

/// The most bits that tell slots apart: a slot for each of a million segments.
const MOST_SLOT_BITS: u32 = 20;

/// Upper half of the first global address, 2000::.
const FIRST_GLOBAL: u64 = 0x2000 << 48;

/// How many bits of an address tell the slots of so many segments apart.
pub(super) fn slot_bits(segments: usize) -> u32 {
    segments.max(1).ilog2().min(MOST_SLOT_BITS)
}

/// Entries of the IPv6 index for so many segments.
pub(super) fn v6_index(segments: usize) -> usize {
    (1 << slot_bits(segments)) + 1
}

/// The slot of an address: never smaller than that of a smaller address. Addresses below 2000::/3 are in the first, those above in the last.
pub(super) fn slot(address: u128, bits: u32) -> usize {
    let upper = ((address >> 64) as u64).saturating_sub(FIRST_GLOBAL);
    ((upper >> (61 - bits)) as usize).min((1 << bits) - 1)
}

impl V6Table<'_> {
    /// The owner of the segment around `address`, or [`NOBODY`].
    pub fn find(&self, address: u128) -> u32 {
        let slot = slot(address, slot_bits(self.starts.len()));
        let (from, to) = (self.index[slot] as usize, self.index[slot + 1] as usize);
        match from + self.starts[from..to].partition_point(|start| *start <= address) {
            0 => NOBODY,
            n => self.owners[n - 1],
        }
    }
}
