//! Tests of the seen set against a plain map, however often it is swept, split, closed and cut short.

use super::{
    super::{config::StoreConfig, counters::StoreCounters, database::Plan},
    entry::CODE_BITS,
    row::Piece,
    *,
};
use nearcrawl_model::{ids::SiteNumber, seen::SeenVisit};
use proptest::prelude::*;
use rocksdb::Cache;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

fn database(dir: &Path) -> Database {
    let config = StoreConfig { memory_bytes: 8 << 20, ..StoreConfig::default() };
    let plan = Plan::cache(&config, &Cache::new_lru_cache(config.block_cache_bytes()));
    Database::open(plan, dir, true, &Arc::new(StoreCounters::default())).unwrap()
}

/// Memory for generations of 3,000 pages.
const GENERATIONS: usize = 3_000 * RECENT_BYTES;

/// The nth page of a made-up crawl.
fn page(n: u64) -> Fingerprint {
    Fingerprint(n).scoped(7)
}

/// The set as it is told: a map, asked one question after another.
#[derive(Default)]
struct Told(HashMap<(u64, Fingerprint), (u8, PageState)>);

impl Told {
    fn ask(&mut self, batch: &SeenBatch) -> Vec<SeenAnswer> {
        if let Some(visit) = &batch.visited {
            let known = self.0.entry((batch.site.0, visit.page)).or_insert((visit.level, PageState::Visited));
            *known = (known.0.min(visit.level), PageState::Visited);
        }
        let within = |level| if level <= batch.depth { PageState::Waiting } else { PageState::Cut };
        let mut answer = |(page, level): &(Fingerprint, u8)| match self.0.get_mut(&(batch.site.0, *page)) {
            None => {
                self.0.insert((batch.site.0, *page), (*level, within(*level)));
                SeenAnswer::New
            }
            Some((known, _)) if *known <= *level => SeenAnswer::Known,
            Some((known, state)) => {
                let was = *state;
                *known = *level;
                *state = if was == PageState::Cut { within(*level) } else { was };
                SeenAnswer::Shorter { was }
            }
        };
        batch.questions.iter().map(&mut answer).collect()
    }
}

/// Batches of a crawl: one large site, some of a few hundred pages, many of a few; all are asked about again and again.
fn batch(n: u64) -> SeenBatch {
    let (site, pages) = match n % 4 {
        0 | 1 => (1, 12_000),
        2 => (10 + n % 20, 700),
        _ => (1000 + n % 1000, 20),
    };
    let of = |i: u64| page(Fingerprint(n * 100 + i).scoped(3).0 % pages);
    let level = |i: u64| (Fingerprint(n * 100 + i).scoped(4).0 % 12) as u8;
    let visited = (!n.is_multiple_of(3)).then(|| SeenVisit { page: of(99), level: level(99), children: vec![page(n)] });
    SeenBatch { site: SiteNumber(site), depth: 8, visited, questions: (0..40).map(|i| (of(i), level(i))).collect() }
}

#[test]
fn it_answers_as_told_through_sweeps_splits_and_reopenings() {
    let dir = tempfile::tempdir().unwrap();
    let (mut base, mut set, mut told) = (database(dir.path()), SeenSet::new(GENERATIONS), Told::default());
    for n in 0..4_000 {
        if n % 1_000 == 500 {
            // As after a kill: what was written without a log may be gone.
            drop(base);
            (base, set) = (database(dir.path()), SeenSet::new(GENERATIONS));
        }
        let batch = batch(n);
        assert_eq!(set.ask(&mut base, &batch).unwrap(), told.ask(&batch), "batch {n}");
    }
    assert!(set.depths[&1] >= 4, "the large site has been split twice: {:?}", set.depths);
    assert!(rows::depth_of(&set.depths, 1003) == 0, "a small site has one row");
    assert!(set.recent.len() < 8_000, "the rest is in rows: {}", set.recent.len());
    for ((site, page), (level, state)) in &told.0 {
        let mut asked = Asked::new(*site, [*page].into_iter());
        look(&mut base, |db| set.recall(db, *site, &mut asked, &set.reading.0)).unwrap();
        assert_eq!(asked.known(0), Some(Remembered { level: *level, state: *state }));
    }
}

#[test]
fn forgotten_sites_stay_forgotten_and_the_others_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let (mut base, mut set, mut told) = (database(dir.path()), SeenSet::new(GENERATIONS), Told::default());
    for n in 0..3_000 {
        if n % 500 == 250 {
            // Number 1 is deep, 12 has a row, 1003 may be in memory only; the range has them all but 1.
            let sites = [1..=1, 12..=12, 1003..=1003, 2..=u64::MAX][n as usize / 500 % 4].clone();
            told.0.retain(|(site, _), _| !sites.contains(site));
            set.forget(&mut base, &sites, WriteBatch::default()).unwrap();
        }
        if n % 700 == 260 {
            drop(base);
            (base, set) = (database(dir.path()), SeenSet::new(GENERATIONS));
        }
        let batch = batch(n);
        assert_eq!(set.ask(&mut base, &batch).unwrap(), told.ask(&batch), "batch {n}");
    }
}

#[test]
fn a_loaded_site_answers_like_one_that_was_crawled() {
    let dir = tempfile::tempdir().unwrap();
    let (mut base, mut set) = (database(dir.path()), SeenSet::new(GENERATIONS));
    let state = |n: u64| [PageState::Waiting, PageState::Cut, PageState::Visited][n as usize % 3];
    let all: Vec<_> = (0..20_000).map(|n| (page(n), (n % 10) as u8, state(n))).collect();
    // What was known before counts no more.
    let before =
        SeenBatch { site: SiteNumber(5), depth: 8, visited: None, questions: all[..3_000].iter().map(|(page, ..)| (*page, 0)).collect() };
    set.ask(&mut base, &before).unwrap();
    set.load(&mut base, 5, &all).unwrap();
    let questions = all.iter().map(|(page, level, _)| (*page, level.saturating_sub(1))).collect();
    let said = set.ask(&mut base, &SeenBatch { site: SiteNumber(5), depth: 8, visited: None, questions }).unwrap();
    for ((_, level, state), said) in all.iter().zip(said) {
        assert_eq!(said, if *level == 0 { SeenAnswer::Known } else { SeenAnswer::Shorter { was: *state } });
    }
}

/// A row with pages known by different numbers of bits, all codes beginning with the same.
fn pieces() -> impl Strategy<Value = (u32, u64, Vec<Piece>)> {
    (0u32..=12, any::<u64>(), prop::collection::vec((0u32..12, prop::collection::vec(any::<u64>(), 1..300)), 0..4)).prop_map(
        |(depth, bucket, parts)| {
            let bucket = bucket & ((1 << depth) - 1);
            let mut pieces: Vec<Piece> = Vec::new();
            for (less, codes) in parts {
                let bits = row::kept(depth) - less;
                let mask = (1 << (CODE_BITS - depth)) - 1;
                let shared = bucket << (CODE_BITS - depth);
                let entries: BTreeMap<u64, u8> = codes
                    .into_iter()
                    .map(|code| {
                        (Entry::new(shared | code & mask, 0).cut_to(bits).code(), ((code >> 57) as u8).wrapping_mul(less as u8 + 1))
                    })
                    .collect();
                if pieces.iter().all(|piece| piece.bits != bits) {
                    pieces.push(Piece { bits, entries: entries.into_iter().map(|(code, colour)| Entry::new(code, colour)).collect() });
                }
            }
            (depth, bucket, pieces)
        },
    )
}

proptest! {
    #[test]
    fn a_row_holds_what_was_packed((depth, bucket, pieces) in pieces(), others in prop::collection::vec(any::<u64>(), 50)) {
        let mut packed = Vec::new();
        row::pack(&pieces, depth, &mut packed);
        let Ok(unpacked) = row::unpack(&packed, depth, bucket) else { panic!("unpacked") };
        prop_assert_eq!(&unpacked, &pieces);
        let words = |pieces: &[Piece]| pieces.iter().flat_map(|piece| piece.entries.iter().map(|entry| entry.0)).collect::<Vec<_>>();
        prop_assert_eq!(words(&unpacked), words(&pieces), "and what became of them");
        let known = |code| pieces.iter().find_map(|piece| piece.entries.iter().find(|entry| **entry == Entry::new(code, 0).cut_to(piece.bits)));
        let in_row = |code: u64| bucket << (CODE_BITS - depth) | code & ((1 << (CODE_BITS - depth)) - 1);
        let all = pieces.iter().flat_map(|piece| &piece.entries).map(|entry| entry.code());
        for code in all.chain(others.into_iter().map(in_row)) {
            prop_assert_eq!(row::find(&packed, depth, code).ok(), Some(known(code).map(|entry| entry.colour())));
        }
    }

    /// Blocks are checked by RocksDB: this is for what else may go wrong.
    #[test]
    fn a_damaged_row_gives_an_error_or_a_wrong_answer_but_no_panic(
        (depth, bucket, pieces) in pieces(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        code in any::<u64>(),
    ) {
        let mut packed = Vec::new();
        row::pack(&pieces, depth, &mut packed);
        for (place, flip) in flips {
            let place = place.index(packed.len());
            packed[place] ^= flip;
        }
        let code = bucket << (CODE_BITS - depth) | code & ((1 << (CODE_BITS - depth)) - 1);
        for packed in [&packed[..], &packed[..cut.index(packed.len())]] {
            drop((row::find(packed, depth, code), row::unpack(packed, depth, bucket)));
        }
    }
}

/// Elias-Fano takes at most 0.56 bits a page more than the least that a sorted set of so many uniform codes can take.
#[test]
fn a_row_takes_little_more_than_it_must() {
    for pages in [100, 400, 512u64] {
        let codes: std::collections::BTreeSet<u64> =
            (0..pages).map(|n| Entry::new(page(n).0 >> 8, 0).cut_to(row::kept(0)).code()).collect();
        let colours = |n: usize| [2, 6, 6, 10, 10, 10, 14, 14, 14, 14, 18, 18, 18, 12, 16, 37][n % 16];
        let entries = codes.into_iter().enumerate().map(|(n, code)| Entry::new(code, colours(n))).collect();
        let mut packed = Vec::new();
        row::pack(&[Piece { bits: row::kept(0), entries }], 0, &mut packed);
        let least = f64::from(row::kept(0)) - (pages as f64).log2() + std::f64::consts::LOG2_E;
        let entropy = 2.9;
        let bits = (packed.len() as f64 - 20.0) * 8.0 / pages as f64;
        assert!(bits < least + 0.56 + entropy + 0.6, "{bits} bits a page, {least} and {entropy} at least");
    }
}
