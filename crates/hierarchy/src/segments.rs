//! Flattens nested prefixes into disjoint segments, one after another, each with its owner.

use super::{lookup::NOBODY, prefix::Prefix};

/// Merges what begins at the same address or has the same owner as what is before it.
struct Merge<F> {
    sink: F,
    /// The last segment, which may still turn out to be empty.
    waiting: Option<(u128, u32)>,
    /// Owner of the last segment given away.
    before: u32,
}

impl<F: FnMut(u128, u32)> Merge<F> {
    fn take(&mut self, start: u128, owner: u32) {
        if let Some((since, who)) = self.waiting.take()
            && since != start
        {
            (self.sink)(since, who);
            self.before = who;
        }
        if owner != self.before {
            self.waiting = Some((start, owner));
        }
    }

    fn finish(mut self) {
        if let Some((since, who)) = self.waiting {
            (self.sink)(since, who);
        }
    }
}

/// Gives `sink` the disjoint segments in address order, neighbours with different owners; addresses before the first are nobody's.
/// The prefixes must come in address order, the covering one before those inside.
pub(super) fn flatten(prefixes: impl Iterator<Item = (Prefix, u32)>, sink: impl FnMut(u128, u32)) {
    let mut merge = Merge { sink, waiting: None, before: NOBODY };
    // Last address and owner of each prefix around the present place.
    let mut open: Vec<(u128, u32)> = Vec::new();
    for (prefix, owner) in prefixes {
        close(&mut open, &mut merge, |last| last < prefix.first);
        merge.take(prefix.first, owner);
        open.push((prefix.last(), owner));
    }
    close(&mut open, &mut merge, |_| true);
    merge.finish();
}

/// Ends the prefixes that lie behind: what follows belongs to the one around.
fn close(open: &mut Vec<(u128, u32)>, merge: &mut Merge<impl FnMut(u128, u32)>, behind: impl Fn(u128) -> bool) {
    while let Some((last, _)) = open.pop_if(|(last, _)| behind(*last)) {
        if let Some(after) = last.checked_add(1) {
            merge.take(after, open.last().map_or(NOBODY, |o| o.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(first: u32, length: u8) -> Prefix {
        Prefix { v6: false, first: first.into(), length }
    }

    #[test]
    fn nested_prefixes_become_segments_and_empty_ones_vanish() {
        // 0-1023 is 0's; within, 0-255 is 1's and 256-511 is 2's of which 256-511 wholly 3's.
        let prefixes = [(v4(0, 22), 0), (v4(0, 24), 1), (v4(256, 24), 2), (v4(256, 24), 3), (v4(4096, 32), 4)];
        let mut segments = Vec::new();
        flatten(prefixes.into_iter(), |start, owner| segments.push((start, owner)));
        assert_eq!(segments, [(0, 1), (256, 3), (512, 0), (1024, NOBODY), (4096, 4), (4097, NOBODY)]);
    }

    #[test]
    fn no_prefix_at_all_is_no_segment() {
        flatten(std::iter::empty(), |_, _| panic!("there is nothing"));
    }
}
