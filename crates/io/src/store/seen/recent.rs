//! Recent changes of the seen set.
//!
//! Everything since the rows were last swept is in memory, to answer at once, and in a log on disk.
//!
//! Changes fill a **generation**. When it is full it is sorted and swept into the rows while the next one fills; when it is swept its
//! log goes.

use super::{
    super::journal::ReadFault,
    entry::{AsTheyAre, Entry},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::RangeInclusive,
};

/// The generation that fills.
#[derive(Debug, Default)]
pub(super) struct Filling {
    // unordered: looked up by site, and put in order when it is full
    sites: HashMap<u64, HashSet<Entry, AsTheyAre>>,
    len: usize,
}

impl Filling {
    /// How many pages it has.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn find(&self, site: u64, code: u64) -> Option<u8> {
        self.sites.get(&site)?.get(&Entry::new(code, 0)).map(|entry| entry.colour())
    }

    /// Enters pages, over what was known of them.
    pub(super) fn enter(&mut self, site: u64, entries: impl Iterator<Item = Entry>) {
        let pages = self.sites.entry(site).or_default();
        let before = pages.len();
        entries.for_each(|entry| {
            pages.replace(entry);
        });
        self.len += pages.len() - before;
    }

    fn forget(&mut self, sites: &RangeInclusive<u64>) {
        if sites.start() == sites.end() {
            self.len -= self.sites.remove(sites.start()).map_or(0, |pages| pages.len());
        } else {
            self.sites.retain(|site, _| !sites.contains(site));
            self.len = self.sites.values().map(HashSet::len).sum();
        }
    }
}

/// The generation that is swept: in order, so that each row is rewritten once.
#[derive(Debug, Default)]
pub(super) struct Full {
    sites: BTreeMap<u64, Vec<Entry>>,
    len: usize,
}

impl Full {
    fn of(filling: Filling) -> Full {
        let sorted = |pages: HashSet<Entry, AsTheyAre>| {
            let mut pages = Vec::from_iter(pages);
            pages.sort_unstable_by_key(|entry| entry.0);
            pages
        };
        Full { sites: filling.sites.into_iter().map(|(site, pages)| (site, sorted(pages))).collect(), len: filling.len }
    }

    fn find(&self, site: u64, code: u64) -> Option<u8> {
        let pages = self.sites.get(&site)?;
        let place = place(pages, code);
        pages.get(place).filter(|entry| entry.code() == code).map(|entry| entry.colour())
    }

    /// The first site from this number on, and its pages.
    pub(super) fn first_from(&self, site: u64) -> Option<(u64, &[Entry])> {
        self.sites.range(site..).next().map(|(site, pages)| (*site, pages.as_slice()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    fn forget(&mut self, sites: &RangeInclusive<u64>) {
        self.sites.extract_if(sites.clone(), |_, _| true).for_each(|(_, pages)| self.len -= pages.len());
    }
}

/// The first of the sorted pages whose code is not below this one. Codes are uniform, so it is looked for where it should be: among a million pages
/// that is a few steps instead of twenty.
fn place(pages: &[Entry], code: u64) -> usize {
    let (mut from, mut to) = (0, pages.len());
    for _ in 0..4 {
        if to - from < 16 {
            break;
        }
        let (first, last) = (pages[from].code(), pages[to - 1].code());
        if code <= first || code > last {
            break;
        }
        let guess = (u128::from(code - first) * (to - from - 1) as u128 / u128::from(last - first)) as usize;
        let about = (to - from).isqrt();
        let (low, high) = (from + guess.saturating_sub(about), (from + guess + about).min(to));
        if pages[low].code() < code {
            from = low;
        }
        if pages[high - 1].code() >= code {
            to = high;
        }
    }
    from + pages[from..to].partition_point(|entry| entry.code() < code)
}

/// Both generations of recently seen pages: the one that fills, and the full one before it.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pub(super) filling: Filling,
    pub(super) full: Full,
    /// The number of the generation that fills; those below are full.
    generation: u32,
    /// The next line of its log.
    line: u64,
}

impl Recent {
    /// What was remembered last of a page, if that was lately.
    pub(super) fn find(&self, site: u64, code: u64) -> Option<u8> {
        self.filling.find(site, code).or_else(|| self.full.find(site, code))
    }

    /// How many pages are in memory.
    pub(super) fn len(&self) -> usize {
        self.filling.len + self.full.len
    }

    pub(super) fn forget(&mut self, sites: &RangeInclusive<u64>) {
        self.filling.forget(sites);
        self.full.forget(sites);
    }

    /// The full generation has been swept: the one that fills is full now, and the next one begins.
    pub(super) fn turn(&mut self) {
        self.full = Full::of(std::mem::take(&mut self.filling));
        self.generation += 1;
        self.line = 0;
    }

    /// Where the log has the next line.
    pub(super) fn next_key(&mut self) -> [u8; 12] {
        self.line += 1;
        key(self.generation, self.line)
    }

    /// The log of full generations: from here up to there, which is not part of it.
    pub(super) fn full_log(&self) -> ([u8; 12], [u8; 12]) {
        (key(0, 0), key(self.generation, 0))
    }

    /// Reads the log back, lines in order.
    pub(super) fn read<'a>(lines: impl Iterator<Item = Result<(Box<[u8]>, Box<[u8]>), rocksdb::Error>> + 'a) -> Result<Recent, ReadFault> {
        let mut recent = Recent::default();
        for line in lines {
            let (key, line) = line?;
            let (generation, number) = key.split_first_chunk::<4>().ok_or(NONSENSE)?;
            let generation = u32::from_be_bytes(*generation);
            if generation != recent.generation {
                // A generation only begins when the one before the last has been swept and its log is gone.
                if !recent.full.is_empty() {
                    return Err(NONSENSE);
                }
                recent.turn();
                recent.generation = generation;
            }
            recent.line = u64::from_be_bytes(number.try_into().map_err(|_| NONSENSE)?);
            match Line::read(&line)? {
                Line::Entered { site, entries } => {
                    recent.filling.enter(site, entries.iter().map(|entry| Entry(u64::from_le_bytes(*entry))))
                }
                Line::Forgotten(sites) => recent.forget(&sites),
            }
        }
        Ok(recent)
    }
}

const NONSENSE: ReadFault = ReadFault::Nonsense("a line of the seen set's log cannot be read");

fn key(generation: u32, line: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&generation.to_be_bytes());
    key[4..].copy_from_slice(&line.to_be_bytes());
    key
}

/// A line of the log.
enum Line<'a> {
    Entered { site: u64, entries: &'a [[u8; 8]] },
    Forgotten(RangeInclusive<u64>),
}

impl Line<'_> {
    fn read(line: &[u8]) -> Result<Line<'_>, ReadFault> {
        let (kind, rest) = line.split_first().ok_or(NONSENSE)?;
        let (numbers, []) = rest.as_chunks::<8>() else { return Err(NONSENSE) };
        match (kind, numbers) {
            (0, [site, entries @ ..]) => Ok(Line::Entered { site: u64::from_le_bytes(*site), entries }),
            (1, [first, last]) => Ok(Line::Forgotten(u64::from_le_bytes(*first)..=u64::from_le_bytes(*last))),
            _ => Err(NONSENSE),
        }
    }
}

/// The line that enters pages of a site.
pub(super) fn entered(site: u64, entries: &[Entry]) -> Vec<u8> {
    let mut line = Vec::with_capacity(9 + entries.len() * 8);
    line.push(0);
    line.extend(site.to_le_bytes());
    line.extend(entries.iter().flat_map(|entry| entry.0.to_le_bytes()));
    line
}

/// The line that forgets sites.
pub(super) fn forgotten(sites: &RangeInclusive<u64>) -> Vec<u8> {
    let mut line = vec![1];
    line.extend(sites.start().to_le_bytes());
    line.extend(sites.end().to_le_bytes());
    line
}
