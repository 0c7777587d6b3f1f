//! Tests of estimates for an address with many hosts of which a part was visited: they are good, and their errors true.

use crate::{
    crawl::{
        scheduler::{InLine, place_of},
        site::Site,
    },
    report::tally::{Tally, Whereabouts},
};
use nearcrawl_model::{
    estimates::Estimate,
    fingerprint::FingerprintKey,
    ids::SiteNumber,
    journal::JournalKey,
    record::{RunState, ServerRecord, ServerStatus},
    summary::{Dimension, Summary},
    time::WallTime,
    url::Host,
};
use std::collections::BTreeMap;

/// Hosts of an address, the earlier ones larger and of other software than the later ones: whoever took them in the order of discovery would be
/// far off.
struct Portal {
    key: FingerprintKey,
    tally: Tally,
    hosts: Vec<Host>,
    /// Those that are known and were not visited, in line.
    line: BTreeMap<InLine, usize>,
    known: usize,
    seed: u64,
}

impl Portal {
    fn new(seed: u64, hosts: usize) -> Portal {
        let key = FingerprintKey(std::array::from_fn(|n| seed.rotate_left(n as u32 * 8) as u8 ^ n as u8));
        let hosts = (0..hosts).map(|n| format!("h{n}.blogs.ke").parse().unwrap()).collect();
        Portal { key, tally: Tally::default(), hosts, line: BTreeMap::new(), known: 0, seed }
    }

    /// What a host will turn out to be.
    fn truth(&self, number: usize) -> ServerRecord {
        let early = number < self.hosts.len() / 3;
        let chance = FingerprintKey([3; 16]).of(&format!("{number} {}", self.seed)).0;
        let record = self.unvisited(number);
        let status = if chance % 10 < 2 { ServerStatus::Down } else { ServerStatus::Up };
        let pages = if status == ServerStatus::Up { 1 + chance / 16 % if early { 40 } else { 10 } } else { 0 };
        let software = match (early, chance / 1024 % 20) {
            (_, 0) => "caddy",
            (true, 1..17) | (false, 1..5) => "nginx",
            _ => "apache",
        };
        let software = (status == ServerStatus::Up).then(|| software.to_owned());
        ServerRecord { status, pages, page_bytes: 1_000 * pages, state: RunState::Complete, software, requests: 2, known: 1, ..record }
    }

    fn unvisited(&self, number: usize) -> ServerRecord {
        let (host, address) = (self.hosts[number].clone(), "9.0.0.1".parse().unwrap());
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.clone(), run: 1 };
        let record = Site::open(key, address, host, SiteNumber(1), WallTime(0)).record;
        ServerRecord { known: 1, waiting: 1, ..record }
    }

    fn enter(&mut self, record: &ServerRecord) {
        self.tally.enter(record, Whereabouts::default(), place_of(&record.host, &self.key));
    }

    /// So many more hosts are named.
    fn discover(&mut self, more: usize) {
        for number in self.known..(self.known + more).min(self.hosts.len()) {
            self.line.insert(InLine { run: 1, place: place_of(&self.hosts[number], &self.key) }, number);
            self.enter(&self.unvisited(number));
        }
        self.known = (self.known + more).min(self.hosts.len());
    }

    /// The next ones in line are visited.
    fn visit(&mut self, count: usize) {
        for _ in 0..count {
            let Some((_, number)) = self.line.pop_first() else { return };
            self.enter(&self.truth(number));
        }
    }

    fn told(&mut self) -> Summary {
        self.tally.estimate();
        let mut told = self.tally.small_summary();
        assert!(told.is_tellable());
        told.settle();
        told
    }
}

/// Whether an interval has the true number in it.
fn is_right(estimate: &Estimate, truth: u64) -> bool {
    estimate.estimated.abs_diff(truth) <= estimate.margin
}

/// In how many of so many seeds the intervals are right, by what is estimated; `course` discovers and visits.
fn right(seeds: u64, hosts: usize, course: impl Fn(&mut Portal)) -> BTreeMap<&'static str, u64> {
    let mut right: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 1..=seeds {
        let mut portal = Portal::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), hosts);
        course(&mut portal);
        let told = portal.told();
        let mut all = Tally::default();
        (0..portal.known).for_each(|number| all.enter(&portal.truth(number), Whereabouts::default(), 0));
        let truth = all.summary();
        let estimates = &told.estimates;
        assert_eq!((estimates.addresses, estimates.hosts), (1, portal.known as u64));
        assert_eq!(told.total.servers, portal.known as u64, "how many there are is known");
        let mut note = |what, is_right| *right.entry(what).or_default() += u64::from(is_right);
        note("up", is_right(&estimates.up, truth.total.up));
        note("pages", is_right(&estimates.pages, truth.total.pages));
        note("page bytes", is_right(&estimates.page_bytes, truth.total.page_bytes));
        for (what, dimension, value) in [
            ("nginx", Dimension::Software, "nginx"),
            ("apache", Dimension::Software, "apache"),
            ("caddy", Dimension::Software, "caddy"),
            ("status up", Dimension::Status, "up"),
        ] {
            let estimate = estimates.servers(dimension, value).copied().unwrap_or_default();
            note(what, is_right(&estimate, truth.by[&dimension][value].servers));
        }
        let waiting = estimates.servers(Dimension::Status, "waiting").unwrap();
        assert_eq!(waiting.estimated, 0, "those that wait are among the others");
    }
    right
}

#[track_caller]
fn assert_right(right: &BTreeMap<&'static str, u64>, seeds: u64) {
    assert!(right.values().all(|right| *right * 100 >= 90 * seeds), "{right:?}");
}

#[test]
fn intervals_are_right_in_ninety_of_a_hundred_seeds_where_all_hosts_were_known_first() {
    let right = right(100, 2_000, |portal| {
        portal.discover(2_000);
        portal.visit(150);
    });
    assert_right(&right, 100);
}

#[test]
fn intervals_are_right_where_hosts_are_discovered_while_others_are_visited() {
    let right = right(100, 2_000, |portal| {
        // All that is known is visited at first; later more are named than can be.
        portal.discover(40);
        portal.visit(40);
        for _ in 0..20 {
            portal.discover(100);
            portal.visit(8);
        }
    });
    assert_right(&right, 100);
}

#[test]
fn few_hosts_or_all_of_them_are_counted_and_no_estimate_is_made_of_too_few() {
    let mut portal = Portal::new(5, 1_000);
    portal.discover(64);
    portal.visit(3);
    assert!(!portal.told().estimates.is_any(), "few are visited soon");
    let probability = |portal: &Portal, number: usize| portal.tally.inclusion_probability(&portal.hosts[number]);
    assert_eq!(probability(&portal, 0), Some(1.0));
    portal.discover(936);
    let told = portal.told();
    assert_eq!((told.estimates.addresses, told.estimates.not_estimated, told.estimates.sampled), (1, 1_000, 0));
    assert!((0..1_000).all(|number| probability(&portal, number).is_none()));
    portal.visit(200);
    let told = portal.told();
    let sampled = (0..1_000).filter(|number| probability(&portal, *number).is_some()).count();
    assert_eq!((told.estimates.not_estimated, told.estimates.sampled), (0, sampled as u64));
    assert!((200..=203).contains(&sampled), "{sampled}");
    let share = sampled as f64 / 1_000.0;
    assert!((0..1_000).filter_map(|number| probability(&portal, number)).all(|probability| probability == share));
    portal.visit(1_000);
    assert!(!portal.told().estimates.is_any() && (0..1_000).all(|number| probability(&portal, number) == Some(1.0)));
    (0..1_000).for_each(|number| portal.tally.remove(&portal.hosts[number].clone()));
    assert_eq!(portal.told(), Summary { by: portal.told().by, ..Summary::default() }, "nothing is left");
}
