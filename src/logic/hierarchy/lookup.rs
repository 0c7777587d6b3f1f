//! Which is the smallest prefix around an address? Nested prefixes flattened into disjoint segments, found by binary search.
//!
//! IPv4 has a table of the 65,536 upper halves of addresses in front: a segment then only needs its lower 16 bits (6 bytes a
//! segment with its owner), and a search looks at the few segments of one upper half. IPv6 is a plain binary search.

use super::prefix::Prefix;

/// No prefix covers the segment.
pub(super) const NOBODY: u32 = u32::MAX;

/// Flattened IPv4 prefixes.
#[derive(Clone, Debug)]
pub(super) struct V4Table {
    /// Where the segments of each upper half begin; one more than there are halves.
    index: Box<[u32]>,
    /// Lower half of each segment's first address; the first of each upper half is 0.
    lows: Box<[u16]>,
    /// Who has the segment.
    owners: Box<[u32]>,
}

/// Flattened IPv6 prefixes.
#[derive(Clone, Debug)]
pub(super) struct V6Table {
    starts: Box<[u128]>,
    owners: Box<[u32]>,
}

/// Disjoint segments in address order, neighbours with different owners; addresses before the first segment are nobody's.
fn flatten(prefixes: impl Iterator<Item = (Prefix, u32)>) -> Vec<(u128, u32)> {
    let mut segments: Vec<(u128, u32)> = Vec::new();
    let mut emit = |start: u128, owner: u32| {
        if segments.last().is_some_and(|s| s.0 == start) {
            segments.pop();
        }
        if segments.last().map_or(NOBODY, |s| s.1) != owner {
            segments.push((start, owner));
        }
    };
    let mut open: Vec<(u128, u32)> = Vec::new();
    let close = |open: &mut Vec<(u128, u32)>, emit: &mut dyn FnMut(u128, u32)| {
        if let Some((last, _)) = open.pop()
            && let Some(after) = last.checked_add(1)
        {
            emit(after, open.last().map_or(NOBODY, |o| o.1));
        }
    };
    for (prefix, owner) in prefixes {
        while open.last().is_some_and(|o| o.0 < prefix.first) {
            close(&mut open, &mut emit);
        }
        emit(prefix.first, owner);
        open.push((prefix.last(), owner));
    }
    while !open.is_empty() {
        close(&mut open, &mut emit);
    }
    segments
}

impl V4Table {
    /// Builds the table of prefixes given in address order, the covering one before those inside.
    pub fn new(prefixes: impl Iterator<Item = (Prefix, u32)>) -> V4Table {
        let segments = flatten(prefixes);
        let mut index = Vec::with_capacity(65_537);
        let (mut lows, mut owners) = (Vec::with_capacity(segments.len()), Vec::with_capacity(segments.len()));
        let mut next = 0;
        let mut owner = NOBODY;
        for high in 0..65_536u128 {
            index.push(lows.len() as u32);
            if segments.get(next).is_none_or(|s| s.0 != high << 16) {
                lows.push(0);
                owners.push(owner);
            }
            while let Some(&(start, who)) = segments.get(next)
                && start >> 16 == high
            {
                lows.push(start as u16);
                owners.push(who);
                owner = who;
                next += 1;
            }
        }
        index.push(lows.len() as u32);
        V4Table { index: index.into(), lows: lows.into(), owners: owners.into() }
    }

    /// The owner of the segment around `address`, or [`NOBODY`].
    pub fn find(&self, address: u32) -> u32 {
        let high = (address >> 16) as usize;
        let (from, to) = (self.index[high] as usize, self.index[high + 1] as usize);
        let low = address as u16;
        // Each upper half has a segment that begins at 0, so one is always at or before `low`.
        let within = self.lows[from..to].partition_point(|start| *start <= low);
        self.owners[from + within - 1]
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.index) + size_of_val(&*self.lows) + size_of_val(&*self.owners)
    }
}

impl V6Table {
    /// Builds the table of prefixes given in address order, the covering one before those inside.
    pub fn new(prefixes: impl Iterator<Item = (Prefix, u32)>) -> V6Table {
        let (starts, owners): (Vec<_>, Vec<_>) = flatten(prefixes).into_iter().unzip();
        V6Table { starts: starts.into(), owners: owners.into() }
    }

    /// The owner of the segment around `address`, or [`NOBODY`].
    pub fn find(&self, address: u128) -> u32 {
        match self.starts.partition_point(|start| *start <= address) {
            0 => NOBODY,
            n => self.owners[n - 1],
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.owners)
    }
}
