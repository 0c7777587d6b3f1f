//! Benchmark of the seen set as it grows.
//!
//! `cargo bench --bench seen` asks it, plain RocksDB keys, a hash set and `quick_cache` the same questions, each in a process of its own;
//! other sizes: `cargo bench --bench seen -- 1000000 10000000 100000000`, beyond ten million only what is on disk; other memory for those
//! on disk: `NEARCRAWL_SEEN_MEMORY=64` (MiB; 120 if not said).
//!
//! Half of the URLs are on sites of a thousand, a quarter on sites of a hundred thousand, the rest on one. Sorted: a million questions at a
//! time, half of them new, handed over site by site. Immediate: each on its own.

use nearcrawl::io::store::{LoneSeenSet, StoreConfig};
use nearcrawl_model::{
    fingerprint::Fingerprint,
    ids::SiteNumber,
    seen::{PageState, SeenAnswer, SeenBatch},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rocksdb::{BlockBasedOptions, Cache, ColumnFamily, DB, DBCompressionType, Options, WriteBatch};
use std::{collections::HashMap, path::Path, process::Command, time::Instant};

/// Beyond so many URLs, only those on disk are asked.
const MAX_IN_MEMORY: u64 = 10_000_000;

const SORTED: u64 = 1 << 20;
const IMMEDIATE: u64 = 200_000;

/// The nth URL: its site and its fingerprint.
fn url(n: u64) -> (u64, Fingerprint) {
    let site = match n % 4 {
        0 | 1 => 10 + n / 2_000,
        2 => 1_000_000_000 + n / 400_000,
        _ => 1,
    };
    (site, Fingerprint(n).scoped(99))
}

/// At what level it was found and what became of it: like the levels of a crawl of depth 8, most visited.
fn fate(url: Fingerprint) -> (u8, PageState) {
    let chance = url.scoped(5).0;
    let level = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 7, 7, 8, 9, 10][(chance % 22) as usize];
    let state = if level > 8 {
        PageState::Cut
    } else if chance >> 40 & 7 < 6 {
        PageState::Visited
    } else {
        PageState::Waiting
    };
    (level, state)
}

/// Whoever remembers URLs.
trait Contender {
    /// Enters URLs of a site that are not known.
    fn fill(&mut self, site: u64, urls: &[(Fingerprint, u8, PageState)]);
    /// How many of these are new; from now on they are known.
    fn ask(&mut self, site: u64, urls: &[Fingerprint]) -> usize;
    /// Bytes of files, and of those that are logs.
    fn disk(&self) -> (u64, u64);
}

struct Ours(LoneSeenSet);

impl Contender for Ours {
    fn fill(&mut self, site: u64, urls: &[(Fingerprint, u8, PageState)]) {
        self.0.load(site, urls).expect("the disk has room");
    }

    fn ask(&mut self, site: u64, urls: &[Fingerprint]) -> usize {
        let questions = urls.iter().map(|url| (*url, 10)).collect();
        let said = self.0.ask(&SeenBatch { site: SiteNumber(site), depth: 8, visited: None, questions }).expect("the disk has room");
        said.iter().filter(|said| **said == SeenAnswer::New).count()
    }

    fn disk(&self) -> (u64, u64) {
        let sizes = self.0.sizes().expect("it is open");
        (sizes.rows + sizes.log, sizes.log)
    }
}

/// One key for each URL, as the store had it until it was packed.
struct Plain(DB);

impl Plain {
    fn open(dir: &Path, memory: usize) -> Plain {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_write_buffer_size(memory / 8);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_max_open_files(256);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(memory / 2));
        blocks.set_bloom_filter(10.0, false);
        options.set_block_based_table_factory(&blocks);
        Plain(DB::open_cf_with_opts(&options, dir, [("seen", options.clone())]).expect("the directory can be written"))
    }

    fn family(&self) -> &ColumnFamily {
        self.0.cf_handle("seen").expect("it was opened")
    }

    fn key(site: u64, url: Fingerprint) -> [u8; 16] {
        (u128::from(site) << 64 | u128::from(url.0)).to_be_bytes()
    }
}

impl Contender for Plain {
    fn fill(&mut self, site: u64, urls: &[(Fingerprint, u8, PageState)]) {
        let mut batch = WriteBatch::default();
        urls.iter().for_each(|(url, level, state)| batch.put_cf(self.family(), Plain::key(site, *url), [*level << 2 | *state as u8]));
        self.0.write(batch).expect("the disk has room");
    }

    fn ask(&mut self, site: u64, urls: &[Fingerprint]) -> usize {
        if let [url] = urls {
            let key = Plain::key(site, *url);
            let new = self.0.get_pinned_cf(self.family(), key).expect("it is sound").is_none();
            if new {
                self.0.put_cf(self.family(), key, [40]).expect("the disk has room");
            }
            return usize::from(new);
        }
        let keys: Vec<_> = urls.iter().map(|url| Plain::key(site, *url)).collect();
        let mut batch = WriteBatch::default();
        for keys in keys.chunks(1_000) {
            for (key, found) in keys.iter().zip(self.0.batched_multi_get_cf(self.family(), keys, true)) {
                if found.expect("it is sound").is_none() {
                    batch.put_cf(self.family(), key, [40]);
                }
            }
        }
        let new = batch.len();
        self.0.write(batch).expect("the disk has room");
        new
    }

    fn disk(&self) -> (u64, u64) {
        (self.0.property_int_value_cf(self.family(), "rocksdb.total-sst-files-size").ok().flatten().unwrap_or(0), 0)
    }
}

struct InMemory(HashMap<(u64, u64), u8>);

impl Contender for InMemory {
    fn fill(&mut self, site: u64, urls: &[(Fingerprint, u8, PageState)]) {
        self.0.extend(urls.iter().map(|(url, level, state)| ((site, url.0), *level << 2 | *state as u8)));
    }

    fn ask(&mut self, site: u64, urls: &[Fingerprint]) -> usize {
        urls.iter().filter(|url| self.0.insert((site, url.0), 40).is_none()).count()
    }

    fn disk(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A cache with room for all.
struct QuickCache(quick_cache::unsync::Cache<(u64, u64), u8>);

impl Contender for QuickCache {
    fn fill(&mut self, site: u64, urls: &[(Fingerprint, u8, PageState)]) {
        urls.iter().for_each(|(url, level, state)| self.0.insert((site, url.0), *level << 2 | *state as u8));
    }

    fn ask(&mut self, site: u64, urls: &[Fingerprint]) -> usize {
        let mut new = 0;
        for url in urls {
            if self.0.get(&(site, url.0)).is_none() {
                self.0.insert((site, url.0), 40);
                new += 1;
            }
        }
        new
    }

    fn disk(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A line of /proc/self/status in bytes.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|l| l.strip_prefix(line)?.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1024.0
}

/// Seconds of processor time that this process has taken, all threads together.
fn processor_time() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure, which is ours, and zeros are valid for it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Calls and prints: nanoseconds a question by the clock, and of processors.
fn timed(questions: u64, ask: impl FnOnce()) -> (f64, f64) {
    let (since, before) = (Instant::now(), processor_time());
    ask();
    let each = 1e9 / questions as f64;
    (since.elapsed().as_secs_f64() * each, (processor_time() - before) * each)
}

/// URLs below `n`, and between them as many that are new, from `fresh` on; by site.
fn questions(random: &mut StdRng, n: u64, fresh: &mut u64, count: u64, half: bool) -> Vec<(u64, Fingerprint)> {
    let mut next = |i: u64| {
        let known = url(random.random_range(0..n));
        if half && i.is_multiple_of(2) {
            *fresh += 1;
            (known.0, Fingerprint(*fresh).scoped(98))
        } else {
            known
        }
    };
    (0..count).map(&mut next).collect()
}

fn run(contender: &mut dyn Contender, name: &str, size: u64) {
    let before = memory("VmRSS:");
    let (filled, fill_cpu) = timed(size, || {
        for from in (0..size).step_by(400_000) {
            let mut urls: Vec<_> = (from..(from + 400_000).min(size)).map(url).collect();
            urls.sort_unstable();
            for site in urls.chunk_by(|a, b| a.0 == b.0) {
                let pages: Vec<_> = site.iter().map(|(_, url)| (*url, fate(*url).0, fate(*url).1)).collect();
                contender.fill(site[0].0, &pages);
            }
        }
    });
    let (ram, (disk, logs)) = (memory("VmRSS:") - before, contender.disk());
    println!(
        "{name:>14} {size:>11}: {:.2} bytes a URL on disk ({:.2} of them the log), {:.2} in memory; filled at {filled:.0} ns a URL ({fill_cpu:.0} ns CPU)",
        disk as f64 / size as f64,
        logs as f64 / size as f64,
        ram / size as f64
    );
    let mut random = StdRng::seed_from_u64(1);
    let mut fresh = 0;
    let mut new = 0;
    let count = SORTED.min(size / 4);
    let mut batches: Vec<_> = (0..4).map(|_| questions(&mut random, size, &mut fresh, count, true)).collect();
    let (clock, cpu) = timed(count * 4, || {
        for batch in &mut batches {
            batch.sort_unstable();
            for site in batch.chunk_by(|a, b| a.0 == b.0) {
                let urls: Vec<_> = site.iter().map(|(_, url)| *url).collect();
                new += contender.ask(site[0].0, &urls);
            }
        }
    });
    assert_eq!(new as u64, fresh, "each is new once");
    println!("{:>28} sorted, half new {clock:.0} ns a question ({cpu:.0} ns CPU)", "");
    for (what, half) in [("all known", false), ("half new", true)] {
        let singles = questions(&mut random, size, &mut fresh, IMMEDIATE, half);
        let (clock, cpu) = timed(IMMEDIATE, || singles.iter().for_each(|(site, url)| new += contender.ask(*site, &[*url])));
        println!("{:>28} immediate, {what} {clock:.0} ns a question ({cpu:.0} ns CPU)", "");
    }
    assert_eq!(new as u64, fresh, "each is new once");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let memory = std::env::var("NEARCRAWL_SEEN_MEMORY").ok().and_then(|m| m.parse().ok()).unwrap_or(120) << 20;
    if let [name, size] = &*arguments
        && let (Err(_), Ok(size)) = (name.parse::<u64>(), size.parse())
    {
        let dir = tempfile::tempdir_in(".").expect("here can be written");
        match &**name {
            "nearcrawl" => {
                let config = StoreConfig { memory_bytes: memory, ..StoreConfig::default() };
                run(&mut Ours(LoneSeenSet::open(dir.path(), &config).expect("it can be created")), name, size);
            }
            "rocksdb" => run(&mut Plain::open(dir.path(), memory), name, size),
            "hash-set" => run(&mut InMemory(HashMap::new()), name, size),
            _ => run(&mut QuickCache(quick_cache::unsync::Cache::new(size as usize * 3)), name, size),
        }
        return;
    }
    let sizes: Vec<u64> = arguments.iter().filter_map(|size| size.parse().ok()).collect();
    for size in if sizes.is_empty() { vec![1_000_000, 4_000_000] } else { sizes } {
        for name in ["nearcrawl", "rocksdb", "hash-set", "quick-cache"] {
            if size <= MAX_IN_MEMORY || matches!(name, "nearcrawl" | "rocksdb") {
                let own = std::env::current_exe().expect("it runs");
                let done = Command::new(own).args([name, &size.to_string()]).status().expect("it starts");
                assert!(done.success(), "{name} with {size}");
            }
        }
    }
}
