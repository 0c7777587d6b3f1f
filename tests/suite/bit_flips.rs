//! Tests with one flipped bit in what a daemon keeps: it is found and said, or changes nothing; no answer is silently wrong.
//!
//! A state directory that a stopped daemon left, and one that a killed daemon left (its last rows are in logs only), are copied again and
//! again, each time with one bit flipped, and read with the store that daemons use. Whole daemons start on some of the copies.
//! `NEARCRAWL_FLIPS` says how many flips there are, `NEARCRAWL_SEED` which.

use crate::support::{Ground, Habits, SmallWeb, Swarm, disk::copy};
use nearcrawl::io::store::{Growth, Store, StoreConfig};
use nearcrawl_lab::demo::daemons::DaemonError;
use nearcrawl_model::{
    claim::SignedClaim,
    fingerprint::Fingerprint,
    ids::SiteNumber,
    journal::{JournalKey, JournalRow},
    seen::{SeenAnswer, SeenBatch},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeMap,
    env, fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many flips, unless the environment says so.
const FLIPS: usize = 200;

/// Kinds of files that are damaged.
const KINDS: usize = 13;

/// Named values that daemons keep.
const NAMES: [&str; 8] = ["incarnation", "swarm", "members", "addresses", "seeds", "place", "store", "never"];

/// Pages that the seen set is told of, and as many that it is not.
const PAGES: u64 = 4_000;

const SOON: Duration = Duration::from_secs(60);

/// All that can be asked of a store.
#[derive(Clone, Debug, PartialEq)]
struct Contents {
    claims: Vec<SignedClaim>,
    voting: Vec<(Vec<u8>, Vec<u8>)>,
    journals: Vec<(JournalKey, u64)>,
    rows: Vec<JournalRow>,
    sizes: Growth,
    values: Vec<Option<Vec<u8>>>,
    /// None if the cache says that it was rebuilt.
    seen: Option<Vec<SeenAnswer>>,
}

/// What came of a flip, where nothing was silently wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    /// The store does not open, and says what is damaged.
    Refused,
    /// It opens, and says what is damaged when it is read.
    Found,
    /// The cache begins anew, and says why.
    Rebuilt,
    /// Every answer is the same.
    Same,
}

/// One bit of a file.
struct Flip {
    base: PathBuf,
    file: PathBuf,
    at: usize,
    bit: u8,
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flip { base, file, at, bit } = self;
        write!(f, "{}: bit {bit} of byte {at} of {}", base.file_name().unwrap_or_default().display(), file.display())
    }
}

impl Flip {
    /// In place of what is in a directory, which itself stays: one that is made anew would be taken for a copy.
    fn copied_to(&self, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(to).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        copy(&self.base, to);
        let path = to.join(&self.file);
        let mut bytes = fs::read(&path).unwrap();
        bytes[self.at] ^= 1 << self.bit;
        fs::write(&path, bytes).unwrap();
    }
}

fn config() -> StoreConfig {
    StoreConfig { memory_bytes: 8 << 20, ..StoreConfig::default() }
}

fn asked_about(which: std::ops::Range<u64>) -> SeenBatch {
    let questions = which.map(|page| (Fingerprint(page.wrapping_mul(0x9e37_79b9_7f4a_7c15)), 3)).collect();
    SeenBatch { site: SiteNumber(u64::from(u32::MAX)), depth: 8, visited: None, questions }
}

impl Contents {
    /// What a store says, or what it says is wrong with it.
    async fn read(directory: &Path) -> Result<Contents, (Came, String)> {
        let (store, report) = Store::open(directory, &config()).map_err(|why| (Came::Refused, why.to_string()))?;
        let seen_is_known = report.cache_rebuilt.is_none();
        let read = Contents::of(&store, seen_is_known).await;
        store.discard().await;
        read.map_err(|why| (Came::Found, why.to_string()))
    }

    async fn of(store: &Store, seen_is_known: bool) -> Result<Contents, nearcrawl::io::store::StoreError> {
        let journals = store.journals(None).await?;
        let mut rows = Vec::new();
        for (journal, _) in &journals {
            rows.extend(store.journal_read(journal.clone(), 0, usize::MAX).await?);
        }
        let mut values = Vec::new();
        for name in NAMES {
            values.push(store.meta_get(name).await?);
        }
        let seen = if seen_is_known { Some(store.seen(&asked_about(0..2 * PAGES)).await?) } else { None };
        let (claims, voting, sizes) = (store.claims_all().await?, store.voting_all().await?, store.journal_sizes().await?);
        Ok(Contents { claims, voting, journals, rows, sizes, values, seen })
    }

    /// What came of it when this is read instead of what was there.
    fn instead_of(&self, sound: &Contents) -> Option<Came> {
        let rebuilt = self.seen.is_none();
        let without_seen = Contents { seen: self.seen.clone(), ..sound.clone() };
        match (rebuilt, *self == without_seen, self.seen == sound.seen) {
            (true, true, _) => Some(Came::Rebuilt),
            (false, true, true) => Some(Came::Same),
            _ => None,
        }
    }

    /// In which answers two differ.
    fn differences(&self, sound: &Contents) -> String {
        let parts = [
            ("claims", self.claims != sound.claims),
            ("votes", self.voting != sound.voting),
            ("journals", self.journals != sound.journals),
            ("rows", self.rows != sound.rows),
            ("sizes", self.sizes != sound.sizes),
            ("values", self.values != sound.values),
            ("pages seen", self.seen != sound.seen),
        ];
        let named: Vec<&str> = parts.into_iter().filter(|(_, differ)| *differ).map(|(name, _)| name).collect();
        format!("{}; {} instead of {} rows", named.join(", "), self.rows.len(), sound.rows.len())
    }
}

/// Files of a directory by kind: the database and what RocksDB calls them.
fn kinds(base: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut kinds = BTreeMap::<String, Vec<PathBuf>>::new();
    for database in ["", "state", "cache"] {
        for entry in fs::read_dir(base.join(database)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let kind = name.rsplit_once('.').map_or(name.as_str(), |(_, end)| end).split('-').next().unwrap_or_default();
            // The key is checked by tests of its own; another token than before, and a log for people, hold nothing of a crawl.
            if path.is_file()
                && fs::metadata(&path).unwrap().len() > 0
                && !["key", "token", "lock"].contains(&kind)
                && !name.starts_with("LOG")
            {
                kinds.entry(format!("{database}/{kind}")).or_default().push(Path::new(database).join(name));
            }
        }
    }
    kinds
}

/// Draws bits: all kinds of files in turn, whatever their sizes.
fn draw(bases: &[PathBuf], count: usize, random: &mut StdRng) -> Vec<(String, Flip)> {
    let mut all = BTreeMap::<String, Vec<(PathBuf, PathBuf)>>::new();
    for base in bases {
        for (kind, files) in kinds(base) {
            all.entry(kind).or_default().extend(files.into_iter().map(|file| (base.clone(), file)));
        }
    }
    println!("kinds of files: {:?}", all.keys().collect::<Vec<_>>());
    for needed in ["state/sst", "state/log", "state/MANIFEST", "state/OPTIONS", "state/CURRENT", "cache/log", "/format"] {
        assert!(all.contains_key(needed), "there is no {needed} to be damaged");
    }
    assert_eq!(all.len(), KINDS);
    let kinds: Vec<_> = all.into_iter().collect();
    let flips = (0..count).map(|number| {
        let (kind, files) = &kinds[number % kinds.len()];
        let (base, file) = files[random.random_range(0..files.len())].clone();
        let length = fs::metadata(base.join(&file)).unwrap().len() as usize;
        (kind.clone(), Flip { base, file, at: random.random_range(0..length), bit: random.random_range(0..8) })
    });
    flips.collect()
}

/// What a daemon left that crawled a whole web: when it was killed, and when its store was closed.
struct Left {
    swarm: Swarm,
    state: PathBuf,
    pages: u64,
    bases: [PathBuf; 2],
}

impl Left {
    async fn behind() -> Left {
        let ground = Ground::claim();
        let web = Arc::new(SmallWeb::new(&ground, 6, 60, 0));
        let point = web.places.access_points[0];
        let habits = Habits { min_delay_ms: 20, delay_factor: 1, ..Habits::default() };
        let mut swarm = Swarm::prepare(ground, web.clone(), web.places.registry_files(), web.names(), &[point], habits).await;
        swarm.start([0]).await;
        swarm.seed(0, &web.seeds()).await;
        let pages = web.expected(&web.seeds()).pages() as u64;
        swarm.agree(pages, SOON).await;
        // Totals are told when pages are fetched; this is said when they are stored, too.
        let begun = Instant::now();
        while !swarm.cli(0, &["status", "--json"]).await.contains("no work: everything is fetched") {
            assert!(begun.elapsed() < SOON, "it does not come to an end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        swarm.daemons[0].kill().await;
        let directory = swarm.common.directory.clone();
        let (state, bases) = (directory.join(point.to_string()), ["killed", "stopped"].map(|base| directory.join(base)));
        copy(&state, &bases[0]);
        // The seen set is to have something to tell. Opening the copy makes tables of the daemon's logs; those of `state` stay as they are.
        let live = directory.join("live");
        copy(&state, &live);
        let (store, _) = Store::open(&live, &config()).unwrap();
        store.seen(&asked_about(0..PAGES)).await.unwrap();
        // What was answered in memory is in the log before anything is read that depends on it.
        store.children(SiteNumber(1), Fingerprint(0)).await.unwrap();
        fs::remove_dir_all(bases[0].join("cache")).unwrap();
        copy(&live.join("cache"), &bases[0].join("cache"));
        store.close().await;
        copy(&live, &bases[1]);
        Left { swarm, state, pages, bases }
    }
}

fn number(variable: &str, unless: usize) -> usize {
    env::var(variable).map_or(unless, |text| text.parse().unwrap_or_else(|why| panic!("{variable}: {why}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_flipped_bits_in_a_state_directory_none_makes_an_answer_silently_wrong() {
    let Left { mut swarm, bases, .. } = Left::behind().await;
    let copied = swarm.common.directory.join("copy");
    let mut sound = BTreeMap::new();
    for base in &bases {
        copy(base, &copied);
        let contents = Contents::read(&copied).await.unwrap();
        assert!(contents.rows.len() > 100 && !contents.claims.is_empty(), "{} rows", contents.rows.len());
        let known = contents.seen.as_ref().unwrap().iter().filter(|said| **said == SeenAnswer::Known).count();
        assert_eq!(known as u64, PAGES, "{}", base.display());
        fs::remove_dir_all(&copied).unwrap();
        sound.insert(base.clone(), contents);
    }
    let mut random = StdRng::seed_from_u64(number("NEARCRAWL_SEED", 1) as u64);
    let (mut wrong, mut table) = (Vec::new(), BTreeMap::<(String, Came), usize>::new());
    for (kind, flip) in draw(&bases, number("NEARCRAWL_FLIPS", FLIPS), &mut random) {
        flip.copied_to(&copied);
        let sound = &sound[&flip.base];
        let came = match Contents::read(&copied).await {
            Err((came, why)) => {
                assert!(why.contains("damaged") || why.contains("newer"), "{flip}: does not say what is wrong: {why}");
                Some(came)
            }
            Ok(read) => {
                let came = read.instead_of(sound);
                if came.is_none() {
                    wrong.push(format!("{flip}: {}", read.differences(sound)));
                }
                came
            }
        };
        if let Some(came) = came {
            *table.entry((kind, came)).or_default() += 1;
        }
    }
    for ((kind, came), count) in &table {
        println!("{count:4} × {kind}: {came:?}");
    }
    assert!(wrong.is_empty(), "{} silently wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(40)]);
    assert!(swarm.stop().await);
}

/// Whole daemons start on what is damaged: one for each kind of file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_with_a_flipped_bit_ends_and_says_so_or_tells_the_same_and_asks_for_nothing_again() {
    let Left { mut swarm, state, pages, bases } = Left::behind().await;
    let point = swarm.daemons[0].address;
    let mut random = StdRng::seed_from_u64(number("NEARCRAWL_SEED", 1) as u64);
    let (mut ended, mut same) = (0, 0);
    for (kind, flip) in draw(&bases, KINDS, &mut random) {
        flip.copied_to(&state);
        let (asked, begun) = (swarm.log().len(), Instant::now());
        swarm.daemons[0].start(&swarm.common).unwrap();
        loop {
            if let Some(DaemonError::Failed { status, said, .. }) = swarm.daemons[0].ended() {
                assert!(said.contains("damaged") || said.contains("newer"), "{flip}: {said}");
                assert!([Some(74), Some(78)].contains(&status.code()), "{flip}: {status}");
                ended += 1;
                break;
            }
            if let Ok(told) = swarm.asker.results(point).await
                && told.exact
            {
                assert_eq!(told.summary.total.pages, pages, "{flip}: exact, and wrong");
                same += 1;
                break;
            }
            assert!(begun.elapsed() < SOON, "{flip}: neither ends nor tells anything exactly");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        swarm.daemons[0].stop().await;
        assert_eq!(swarm.log().since(asked), [], "{kind}, {flip}: asked for again");
    }
    println!("{ended} ended and said why, {same} told the same");
    assert!(ended > 0 && same > 0);
}
