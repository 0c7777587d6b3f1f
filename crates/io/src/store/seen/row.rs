//! A row of the seen set: up to a thousand pages in five kilobytes.
//!
//! Their codes are sorted, by Elias and Fano's code; what became of them is in a column beside.
//!
//! A row has the pages of one site whose codes begin with the same bits. Elias-Fano: of what remains of each code the low bits stand
//! as they are, side by side; the high bits, which grow from 0 to about the number of pages, in unary: a one for each page, a zero for
//! each step. That is half a bit a page from the least that a sorted set can take, and nothing need be unpacked to find a page. The column
//! numbers what there is by how frequent it is and writes the numbers in the same manner, low bits as they are, the rest unary.
//!
//! ```text
//! pieces  1 byte     palette 1 byte (entries) + 1 (low bits of the column) + its bytes
//! piece   1 byte (bits known of each code) + 2 (pages): one for each
//! piece   low bits, then high bits, each from a whole byte on: one for each
//! column  low bits, then high bits
//! ```
//!
//! Pages that came while the site had fewer rows are known by fewer bits: they stay apart, in a piece of their own.

use super::{
    super::journal::ReadFault,
    bits::{self, Writer},
    entry::{CODE_BITS, Entry},
};

/// How many bits of a code are kept beyond those that all pages of a row share. With at most about 1,000 pages in a row, a page never met
/// is taken for known once in more than 4 * 10^9 times.
pub(super) const REMAINDER_BITS: u32 = 41;

/// Pages of which equally many bits are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// How many bits of each code are known; the others are zero.
    pub(super) bits: u32,
    /// In order, each once.
    pub(super) entries: Vec<Entry>,
}

/// How many bits are kept of a code that enters a site with rows for so many first bits.
pub(super) fn kept(depth: u32) -> u32 {
    (depth + REMAINDER_BITS).min(CODE_BITS)
}

/// Where the parts of a piece lie.
struct Layout {
    pages: usize,
    /// Bits of each code behind those that all of the row share.
    width: u32,
    /// Of these, how many are in the low part.
    low: u32,
    /// Where the low part begins.
    at: usize,
}

impl Layout {
    fn new(pages: usize, width: u32, at: usize) -> Layout {
        // As many steps as pages, or up to twice as many.
        Layout { pages, width, low: width.saturating_sub(pages.next_power_of_two().ilog2()), at }
    }

    fn high_at(&self) -> usize {
        self.at + (self.pages * self.low as usize).div_ceil(8)
    }

    fn end(&self) -> usize {
        self.high_at() + (self.pages + (1 << (self.width - self.low))).div_ceil(8)
    }

    /// The place of a page among those of the piece.
    fn find(&self, row: &[u8], wanted: u64) -> Option<usize> {
        let (high, low) = ((wanted >> self.low) as usize, wanted & ((1 << self.low) - 1));
        let highs = row.get(self.high_at()..self.end())?;
        let mut at = if high == 0 { 0 } else { bits::select_zero(highs, high - 1)? + 1 };
        while bits::get(highs, at, 1) == 1 {
            let place = at - high;
            match bits::get(row, self.at * 8 + place * self.low as usize, self.low) {
                found if found < low => {}
                found if found == low => return Some(place),
                _ => return None,
            }
            at += 1;
        }
        None
    }

    /// All remainders, in order.
    fn read(&self, row: &[u8], mut each: impl FnMut(u64)) -> Option<()> {
        let highs = row.get(self.high_at()..self.end())?;
        let (mut place, mut at) = (0, 0);
        while place < self.pages {
            let word = bits::get(highs, at, bits::MAX_BITS);
            let mut ones = word;
            while ones != 0 && place < self.pages {
                let high = at + ones.trailing_zeros() as usize - place;
                let low = bits::get(row, self.at * 8 + place * self.low as usize, self.low);
                each((high as u64) << self.low | low);
                ones &= ones - 1;
                place += 1;
            }
            at += bits::MAX_BITS as usize;
            if at > highs.len() * 8 + bits::MAX_BITS as usize {
                return None;
            }
        }
        Some(())
    }
}

/// What stands before the pieces.
struct Head<'a> {
    palette: &'a [u8],
    low: u32,
    /// Bits known and number of pages, three bytes each.
    pieces: &'a [[u8; 3]],
    at: usize,
}

impl<'a> Head<'a> {
    fn read(row: &'a [u8]) -> Option<Head<'a>> {
        let (&[pieces, colours, low], rest) = row.split_first_chunk()?;
        let (palette, rest) = rest.split_at_checked(colours as usize)?;
        let (heads, _) = rest.split_at_checked(pieces as usize * 3)?;
        let (heads, _) = heads.as_chunks::<3>();
        (low < 8).then_some(Head { palette, low: u32::from(low), pieces: heads, at: 3 + palette.len() + heads.len() * 3 })
    }

    /// The pieces one after another, each with the bits known and with how many pages are in those before.
    fn layouts(&self, depth: u32) -> impl Iterator<Item = Option<(u32, usize, Layout)>> {
        let (mut at, mut before) = (self.at, 0);
        self.pieces.iter().map(move |[known, low, high]| {
            let (known, pages) = (u32::from(*known), usize::from(u16::from_le_bytes([*low, *high])));
            let width = known.checked_sub(depth).filter(|width| *width <= bits::MAX_BITS && known <= CODE_BITS)?;
            let layout = Layout::new(pages, width, at);
            let found = (known, before, layout);
            at = found.2.end();
            before += pages;
            Some(found)
        })
    }

    /// What became of the page at `place`, if the column of `pages` begins at `at`.
    fn colour(&self, row: &[u8], at: usize, pages: usize, place: usize) -> Option<u8> {
        let lows = row.get(at..)?;
        let highs = lows.get((pages * self.low as usize).div_ceil(8)..)?;
        let from = if place == 0 { 0 } else { bits::select_one(highs, place - 1)? + 1 };
        let high = bits::select_one(highs, place)?.checked_sub(from)?;
        self.palette.get(high << self.low | bits::get(lows, place * self.low as usize, self.low) as usize).copied()
    }
}

const NONSENSE: ReadFault = ReadFault::Nonsense("a row of the seen set cannot be unpacked");

/// What became of a page with this code, if the row has it. All codes of the row share their first `depth` bits.
pub(super) fn find(row: &[u8], depth: u32, code: u64) -> Result<Option<u8>, ReadFault> {
    let head = Head::read(row).ok_or(NONSENSE)?;
    let mut found = None;
    let (mut pages, mut end) = (0, head.at);
    for layout in head.layouts(depth) {
        let (known, before, layout) = layout.ok_or(NONSENSE)?;
        if found.is_none() && layout.pages > 0 {
            let remainder = code >> (CODE_BITS - known) & ((1 << layout.width) - 1);
            found = layout.find(row, remainder).map(|place| before + place);
        }
        pages = before + layout.pages;
        end = layout.end();
    }
    found.map(|place| head.colour(row, end, pages, place).ok_or(NONSENSE)).transpose()
}

/// All pages of a row that has those whose codes begin with the `depth` bits of `bucket`.
pub(super) fn unpack(row: &[u8], depth: u32, bucket: u64) -> Result<Vec<Piece>, ReadFault> {
    let head = Head::read(row).ok_or(NONSENSE)?;
    let shared = if depth == 0 { 0 } else { bucket << (CODE_BITS - depth) };
    let mut pieces = Vec::with_capacity(head.pieces.len() + 1);
    let (mut pages, mut end) = (0, head.at);
    for layout in head.layouts(depth) {
        let (known, _, layout) = layout.ok_or(NONSENSE)?;
        let mut entries = Vec::with_capacity(layout.pages);
        layout.read(row, |remainder| entries.push(Entry::new(shared | remainder << (CODE_BITS - known), 0))).ok_or(NONSENSE)?;
        pages += layout.pages;
        end = layout.end();
        pieces.push(Piece { bits: known, entries });
    }
    let lows = row.get(end..).ok_or(NONSENSE)?;
    let highs = lows.get((pages * head.low as usize).div_ceil(8)..).ok_or(NONSENSE)?;
    let mut at = 0;
    for (place, entry) in pieces.iter_mut().flat_map(|piece| &mut piece.entries).enumerate() {
        // Numbers are small: mostly within one word.
        let mut high = 0;
        loop {
            let word = bits::get(highs, at, bits::MAX_BITS);
            if word != 0 {
                let zeros = word.trailing_zeros() as usize;
                high += zeros;
                at += zeros + 1;
                break;
            }
            high += bits::MAX_BITS as usize;
            at += bits::MAX_BITS as usize;
            if at > highs.len() * 8 {
                return Err(NONSENSE);
            }
        }
        let number = high << head.low | bits::get(lows, place * head.low as usize, head.low) as usize;
        *entry = Entry::new(entry.code(), *head.palette.get(number).ok_or(NONSENSE)?);
    }
    Ok(pieces)
}

/// Packs pieces, none of them empty, whose codes all begin with the same `depth` bits.
pub(super) fn pack(pieces: &[Piece], depth: u32, row: &mut Vec<u8>) {
    row.clear();
    let mut counts = [(0u32, 0u8); 256];
    let entries = || pieces.iter().flat_map(|piece| &piece.entries);
    entries().for_each(|entry| counts[entry.colour() as usize].0 += 1);
    (0..=255).for_each(|colour: u8| counts[colour as usize].1 = colour);
    // The most frequent first; what there is not is not written.
    let mut palette: Vec<(u32, u8)> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
    palette.sort_unstable_by(|a, b| b.cmp(a));
    let cost = |low: u32| {
        palette.iter().zip(0u64..).map(|((count, _), number)| u64::from(*count) * (u64::from(low) + (number >> low))).sum::<u64>()
    };
    let low = (0..8).min_by_key(|low| cost(*low)).unwrap_or(0);
    row.extend([pieces.len() as u8, palette.len() as u8, low as u8]);
    row.extend(palette.iter().map(|(_, colour)| colour));
    for piece in pieces {
        row.push(piece.bits as u8);
        row.extend((piece.entries.len() as u16).to_le_bytes());
    }
    for piece in pieces {
        let layout = Layout::new(piece.entries.len(), piece.bits - depth, 0);
        let remainder = |entry: &Entry| entry.code() >> (CODE_BITS - piece.bits) & ((1 << layout.width) - 1);
        let mut lows = Writer::new(row);
        piece.entries.iter().for_each(|entry| lows.put(remainder(entry) & ((1 << layout.low) - 1), layout.low));
        lows.finish();
        let mut highs = Writer::new(row);
        let mut reached = 0;
        for entry in &piece.entries {
            let high = remainder(entry) >> layout.low;
            highs.put_unary(high - reached);
            reached = high;
        }
        let steps = 1 << (layout.width - layout.low);
        let mut left = steps - reached;
        while left > 0 {
            let some = left.min(u64::from(bits::MAX_BITS));
            highs.put(0, some as u32);
            left -= some;
        }
        highs.finish();
    }
    let mut number = [0u8; 256];
    palette.iter().zip(0u8..=255).for_each(|((_, colour), nth)| number[*colour as usize] = nth);
    let mut lows = Writer::new(row);
    entries().for_each(|entry| lows.put(u64::from(number[entry.colour() as usize]) & ((1 << low) - 1), low));
    lows.finish();
    let mut highs = Writer::new(row);
    entries().for_each(|entry| highs.put_unary(u64::from(number[entry.colour() as usize]) >> low));
    highs.finish();
}
