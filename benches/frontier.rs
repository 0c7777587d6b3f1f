//! Benchmark of ten million URLs waiting on a hundred thousand servers: `cargo bench --bench frontier`.
//!
//! The daemon's own frontiers, front and store. Printed are the memory of the whole process, what each waiting URL takes of it, and
//! how long it takes to find the next due server and its next URL, for ever more servers: `FRONTIER_SERVERS=1000,10000,100000`,
//! `FRONTIER_URLS=100` on each.

use nearcrawl::io::store::{Store, StoreConfig};
use nearcrawl_core::crawl::{
    politeness::Politeness,
    scheduler::{Asks, InLine, Scheduler},
    site::frontier::{Frontier, MAX_IN_MEMORY, Waiting},
};
use nearcrawl_model::{fingerprint::Fingerprint, ids::SiteNumber, time::Moment, url::PageUrl};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

/// How many times the next URL of the next server is taken.
const PICKS: usize = 200_000;

fn numbers(name: &str, default: &[usize]) -> Vec<usize> {
    let named = std::env::var(name).ok();
    let named = named.map(|text| text.split(',').filter_map(|part| part.trim().parse().ok()).collect());
    named.unwrap_or_else(|| default.to_vec())
}

/// Bytes of memory that are no file's.
fn memory() -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).unwrap_or(0) * 1024
}

fn waiting(server: usize, page: usize) -> Waiting {
    let url = format!("http://server-{server}.test/department/of-{}/page-{page}.html", page % 7);
    let fingerprint = Fingerprint((server as u64) << 32 | page as u64).scoped(1);
    Waiting { url: PageUrl::parse(&url).expect("it is a URL"), fingerprint, level: 1 + (page % 7) as u8, hops: 0 }
}

struct World {
    store: Store,
    front: Scheduler,
    sites: Vec<Frontier>,
    max_in_memory: usize,
}

impl World {
    async fn fill(servers: usize, urls: usize, store: Store) -> World {
        let max_in_memory = (MAX_IN_MEMORY / servers).max(1);
        let mut front = Scheduler::new(Politeness { min_delay: 1, factor: 0, parallel: 1, per_block: 1 });
        let mut sites = Vec::with_capacity(servers);
        for server in 0..servers {
            let (mut frontier, mut aside) = (Frontier::default(), Vec::new());
            for page in 0..urls {
                frontier.enter(waiting(server, page), None);
                let texts = frontier.set_aside(max_in_memory);
                aside.extend(texts);
            }
            store.cut_put(SiteNumber(server as u64), aside).await.expect("there is room");
            let first = InLine { run: 1, place: server as u64 };
            front.want(address(server), &waiting(server, 0).url.host(), Asks::First(first));
            sites.push(frontier);
        }
        World { store, front, sites, max_in_memory }
    }

    /// Takes URLs in turn; says how long choosing the server took, and how long the store.
    async fn take(&mut self, picks: usize) -> (Duration, Duration) {
        let (mut choosing, mut reading) = (Duration::ZERO, Duration::ZERO);
        for pick in 0..picks {
            let since = Instant::now();
            let (address, host) = self.front.take(Moment(pick as u64)).expect("somebody is due");
            choosing += since.elapsed();
            let number = number(address);
            let site = &mut self.sites[number];
            let since = Instant::now();
            let called = site.call_back(self.max_in_memory);
            if !called.is_empty() {
                let texts = self.store.cut_take(SiteNumber(number as u64), called.clone()).await.expect("it can be read");
                site.come_back(called.into_iter().zip(texts), |_| Fingerprint(0));
            }
            if let Some(first) = site.first().map(|waiting| waiting.fingerprint) {
                site.remove(first);
            }
            reading += since.elapsed();
            let since = Instant::now();
            self.front.give_back(address, Moment(pick as u64 + 1));
            self.front.want(address, &host, Asks::Further);
            choosing += since.elapsed();
        }
        (choosing, reading)
    }
}

fn address(server: usize) -> IpAddr {
    Ipv4Addr::from_bits(0x0900_0000 + server as u32).into()
}

fn number(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => (address.to_bits() - 0x0900_0000) as usize,
        IpAddr::V6(_) => 0,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let urls = numbers("FRONTIER_URLS", &[100])[0];
    println!("servers      URLs  memory MB  bytes a URL  ns to choose a server  us for its next URL");
    for servers in numbers("FRONTIER_SERVERS", &[1_000, 10_000, 100_000]) {
        let directory = tempfile::tempdir().expect("there is room");
        let (store, _) = Store::open(directory.path(), &StoreConfig::default()).expect("the directory is new");
        let before = memory();
        let mut world = World::fill(servers, urls, store.clone()).await;
        let waiting: usize = world.sites.iter().map(Frontier::len).sum();
        let taken = memory();
        let (choosing, reading) = world.take(PICKS).await;
        println!(
            "{servers:7} {waiting:9} {:10.1} {:12.1} {:22.0} {:20.2}",
            taken as f64 / 1e6,
            taken.saturating_sub(before) as f64 / waiting as f64,
            choosing.as_nanos() as f64 / PICKS as f64,
            reading.as_micros() as f64 / PICKS as f64,
        );
        store.close().await;
    }
}
