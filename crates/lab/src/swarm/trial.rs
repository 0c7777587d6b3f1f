//! Trial of whether a change of the program changes what swarms do: one hash over everything that a made-up swarm did and kept.
//!
//! A trial is a swarm on a random web with one kind of faults, all drawn from a seed. Its digest covers every contact with a server, every
//! stored claim and journal row, and the totals that each member answers, minute by minute. What is hashed are texts, numbers and stored
//! bytes, never names of types: two builds that behave alike have equal digests, however differently they are written.

use crate::swarm::ledger::{Contact, Purpose};
use crate::swarm::world::{World, WorldConfig, edition_of, own_address};
use crate::web::table::{TableShape, TableWeb};
use nearcrawl_core::{
    crawl::{politeness::Politeness, scope::Scope, site::SiteRules},
    crawler::Settings,
    delegation::Policy,
    event::{DiskRoom, Event},
    membership::{RosterConfig, SwimConfig},
    migration::judge::{MigrationSettings, Rule},
    routing::locator::MAX_LOOKUPS,
};
use nearcrawl_hierarchy::{Builder, FurtherPrefix, Hierarchy};
use nearcrawl_model::{
    fetch::ProbeKind,
    subnet::Subnet,
    summary::{Counts, Dimension, SwarmResults},
    time::Millis,
    url::PageUrl,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, fmt::Write, net::IpAddr, sync::Arc};

const SECOND: Millis = 1_000;
const MINUTE: Millis = 60_000;

/// The most members of a trial: what a machine can hold of simulated ones.
pub const MAX_MEMBERS: u32 = 1_000;

/// The most subnets of a trial.
pub const MAX_SUBNETS: u32 = 50_000;

/// What happens to the members of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Faults {
    /// All members run until the end.
    None,
    /// Members are killed, leave, stop for a while and restart; disks are full for a while.
    Kills,
    /// The network is partitioned and healed; messages are lost.
    Partitions,
    /// Subnets move, on an operator's request and by the migration rule, while round-trip times grow and the hierarchy changes.
    Moves,
}

/// A trial's size.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Members, all there from the start.
    pub members: u32,
    /// Number of subnets with servers: two hosts in each.
    pub subnets: u32,
    /// Its duration, in simulated minutes.
    pub minutes: u32,
    /// Faults and changes in the course of it.
    pub faults: Faults,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The seed of the trial.
    pub seed: u64,
    /// SHA-256 over contacts, claims, rows and totals, in hexadecimal digits.
    pub digest: String,
    /// Contacts with servers: requests and probes.
    pub contacts: u64,
    /// Of these, the number of probes.
    pub probes: u64,
    /// Distinct pages that were asked for.
    pub pages: u64,
    /// Pairs of contacts with one address that overlapped or were too close in time.
    pub too_close: u64,
    /// Claims on all disks together.
    pub claims: u64,
    /// Journal rows on all disks together.
    pub rows: u64,
    /// Members that ran at the end.
    pub running: u64,
    /// Of these, members whose totals were exact at the end.
    pub exact: u64,
}

impl Trial {
    /// Runs it; `minute` is told after each simulated minute.
    pub fn run(&self, minute: &dyn Fn()) -> Outcome {
        let mut course = Course::new(*self);
        let mut record = Record::default();
        for number in 0..self.minutes {
            course.minute(number);
            record.totals(&course.world, number);
            minute();
        }
        record.finish(&course.world, self.seed)
    }
}

/// A running trial.
struct Course {
    trial: Trial,
    world: World,
    random: StdRng,
    away: BTreeSet<usize>,
    subnets: Vec<Subnet>,
}

impl Course {
    fn new(trial: Trial) -> Course {
        let shape = TableShape { hosts: 2 * trial.subnets as usize, hosts_per_subnet: 2, pages: 12, shared: 9 };
        let web = TableWeb::random(&shape, trial.seed);
        let mut random = StdRng::seed_from_u64(trial.seed ^ 0x0073_7761_726d);
        let hierarchies = [hierarchy(&trial, 7), hierarchy(&trial, 5)];
        let addresses: BTreeSet<IpAddr> = web.addresses.values().copied().collect();
        let subnets: BTreeSet<Subnet> = addresses.iter().map(|address| hierarchies[0].subnet_of(*address)).collect();
        let config = WorldConfig {
            seed: trial.seed,
            settings: settings(trial.faults),
            hierarchy: hierarchies[0].clone(),
            places: (0..trial.members).map(|_| random.random_range(0..=100)).collect(),
        };
        let mut world = World::new(config, web);
        world.reading = 20;
        if trial.faults == Faults::Moves {
            world.editions = hierarchies.iter().map(|hierarchy| (edition_of(hierarchy).hash, hierarchy.clone())).collect();
        }
        for number in 0..trial.members as usize {
            world.start(number);
            world.run(100);
        }
        Course { trial, world, random, away: BTreeSet::new(), subnets: subnets.into_iter().collect() }
    }

    fn member(&mut self) -> usize {
        self.random.random_range(0..self.trial.members as usize)
    }

    /// One simulated minute: half of it, something that happens, the other half.
    fn minute(&mut self, number: u32) {
        let before = self.random.random_range(SECOND..MINUTE - SECOND);
        self.world.run(before);
        if number == 0 {
            self.seed(0, 0);
        } else if number == self.trial.minutes / 2 {
            let (at, host) = (self.member(), self.random.random_range(0..2 * self.trial.subnets));
            self.seed(at, host);
        } else if number >= 2 {
            match self.trial.faults {
                Faults::None => {}
                Faults::Kills => self.kill_or_return(),
                Faults::Partitions => self.part_or_heal(),
                Faults::Moves => self.move_something(),
            }
        }
        self.world.run(MINUTE - before);
    }

    fn seed(&mut self, at: usize, host: u32) {
        let urls: Vec<_> = PageUrl::parse(&format!("http://s{host}.test/")).into_iter().collect();
        self.world.seed(at, urls);
    }

    fn kill_or_return(&mut self) {
        let victim = self.member();
        if self.world.crawler(victim).is_none() {
            self.away.remove(&victim);
            self.world.start(victim);
            return;
        }
        // Those who are there stay the greater half of all.
        let few_left = 2 * (self.away.len() + 1) >= self.trial.members as usize;
        match self.random.random_range(0..6) {
            0 => self.world.tell_member(victim, Event::Room(DiskRoom::LittleFree)),
            1 => self.world.tell_member(victim, Event::Room(DiskRoom::Enough)),
            _ if few_left => {
                if let Some(back) = self.away.pop_first() {
                    self.world.start(back);
                }
            }
            2 => {
                self.away.insert(victim);
                self.world.leave(victim);
            }
            3 => {
                self.away.insert(victim);
                self.world.drain(victim);
            }
            _ => {
                self.away.insert(victim);
                self.world.kill(victim);
            }
        }
    }

    fn part_or_heal(&mut self) {
        match self.random.random_range(0..4) {
            0 => {
                let all = 0..self.trial.members as usize;
                let (one, other): (Vec<usize>, Vec<usize>) = all.partition(|_| self.random.random_bool(0.4));
                self.world.split(&[&one, &other]);
            }
            1 => {
                let alone = self.member();
                self.world.split(&[&[alone]]);
            }
            2 => (self.world.loss, self.world.gossip_loss) = (0.03, 0.05),
            _ => {
                self.world.heal();
                (self.world.loss, self.world.gossip_loss) = (0.0, 0.0);
            }
        }
    }

    fn move_something(&mut self) {
        let (one, other) = (self.member(), self.member());
        match self.random.random_range(0..5) {
            0 => {
                let more_us = self.random.random_range(0..200_000);
                self.world.detour(one, more_us);
            }
            1 => self.world.give(one, hierarchy(&self.trial, 5)),
            2 => {
                let host = format!("s{}.test", self.random.random_range(0..2 * self.trial.subnets));
                if let Ok(host) = host.parse() {
                    self.world.tell_member(one, Event::Wanted(host));
                }
            }
            _ => {
                let subnet = self.subnets[self.random.random_range(0..self.subnets.len())];
                let owner = (0..self.trial.members as usize).find(|number| {
                    let claim = self.world.crawler(*number).and_then(|crawler| crawler.view().claim_of(&subnet));
                    claim.is_some_and(|claim| claim.owner == self.world.member(*number))
                });
                if let Some(owner) = owner {
                    self.world.move_subnet(owner, subnet, other);
                }
            }
        }
    }
}

/// A subnet for every /24 of the web and of the members, of two countries and `holders` organisations.
fn hierarchy(trial: &Trial, holders: u32) -> Arc<Hierarchy> {
    let mut builder = Builder::new();
    let mut add = |address: IpAddr, organisation: String, number: u32| {
        let IpAddr::V4(address) = address else { return };
        let [a, b, c, _] = address.octets();
        let country = if number.is_multiple_of(2) { "KE" } else { "JP" }.to_owned();
        let Ok(prefix) = format!("{a}.{b}.{c}.0/24").parse() else { return };
        // Every prefix is one of its own, so none is refused.
        let _ = builder.add_prefix(&FurtherPrefix { prefix, country, organisation, registry: "lab".to_owned() });
    };
    for subnet in 0..trial.subnets {
        add(std::net::Ipv4Addr::from(0x1400_0001 + (subnet << 8)).into(), format!("holder {}", subnet % holders), subnet);
    }
    for member in 0..trial.members {
        add(own_address(member as usize), format!("site {member}"), member);
    }
    match builder.finish() {
        Ok(hierarchy) => Arc::new(hierarchy),
        Err(why) => unreachable!("a hierarchy of distinct /24 is whole: {why}"),
    }
}

fn settings(faults: Faults) -> Settings {
    let migration = match faults {
        Faults::Moves => MigrationSettings { rule: Rule::Nearcrawl, requests_per_access: 4, states: 1 },
        Faults::None | Faults::Kills | Faults::Partitions => MigrationSettings::default(),
    };
    Settings {
        rules: SiteRules { depth: 5, price: Default::default(), pages_per_run: 0, product_token: "nearcrawl".to_owned() },
        scope: Scope { tlds: ["test".to_owned()].into(), ..Scope::default() },
        politeness: Politeness { min_delay: 500, factor: 10, parallel: 32, per_block: 4 },
        policy: Policy::Nearcrawl { price_us: 5_000 },
        migration,
        probe: ProbeKind::Tcp,
        home_port: None,
        max_parallel_rounds: 8,
        contacts_per_subnet: 15,
        ignore_orders_of: Default::default(),
        admission: Default::default(),
        max_lookups: MAX_LOOKUPS,
        // So often that there are several runs within an hour.
        revisit: 15 * MINUTE,
        new_hosts: Default::default(),
        max_waiting: 1_000_000,
        // So few that there are always URLs waiting on disk.
        max_in_memory: 64,
        max_kept_per_owner: 1 << 30,
        cache_entries: 4_096,
        own_addresses: Vec::new(),
        joins: false,
        founds: false,
        member: true,
        membership: SwimConfig::default(),
        roster: RosterConfig::default(),
    }
}

/// Everything that a trial did, being hashed.
#[derive(Default)]
struct Record(Sha256);

impl Record {
    fn line(&mut self, line: &str) {
        self.0.update(line.as_bytes());
        self.0.update(b"\n");
    }

    fn totals(&mut self, world: &World, minute: u32) {
        for number in world.running() {
            if let Some(results) = world.results(number) {
                self.line(&format!("totals {minute} {number} {}", told(&results)));
            }
        }
    }

    fn finish(mut self, world: &World, seed: u64) -> Outcome {
        let running = world.running();
        let number_of = |contact: &Contact| (0..world.members.len()).find(|number| world.member(*number) == contact.by);
        let mut contacts: Vec<String> = world
            .ledger
            .contacts
            .iter()
            .map(|contact| {
                let Contact { address, begin, end, purpose, .. } = contact;
                let purpose = match purpose {
                    Purpose::Probe => "probe".to_owned(),
                    Purpose::Robots(url) => format!("robots {url}"),
                    Purpose::Page(url) => format!("page {url}"),
                };
                format!("contact {} {} {address} {:?} {purpose}", begin.0, end.0, number_of(contact))
            })
            .collect();
        contacts.sort_unstable();
        contacts.iter().for_each(|contact| self.line(contact));
        let (mut claims, mut rows) = (0, 0);
        for number in 0..world.members.len() {
            let Some(disk) = world.disk(number) else { continue };
            for (subnet, proof) in &disk.claims {
                claims += 1;
                self.line(&format!("claim {number} {subnet} {}", digits(&Sha256::digest(&proof.bytes))));
            }
            for (key, journal) in &disk.journals {
                for (sequence, entry) in journal {
                    rows += 1;
                    let entry = digits(&Sha256::digest(entry));
                    self.line(&format!("row {number} {} {} {} {sequence} {entry}", key.subnet, key.host, key.run));
                }
            }
        }
        let exact = running.iter().filter(|number| world.results(**number).is_some_and(|results| results.exact)).count();
        Outcome {
            seed,
            digest: digits(&self.0.finalize()),
            contacts: world.ledger.contacts.len() as u64,
            probes: world.ledger.probes(),
            pages: world.ledger.fetches().len() as u64,
            too_close: world.ledger.too_close(500, 10).len() as u64,
            claims,
            rows,
            running: running.len() as u64,
            exact: exact as u64,
        }
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An answer to `results` as numbers.
fn told(results: &SwarmResults) -> String {
    let summary = &results.summary;
    let mut text = format!("{} {} {}", results.exact, results.covers.len(), counts(&summary.total));
    for (dimension, values) in &summary.by {
        let dimension = match dimension {
            Dimension::Country => 0,
            Dimension::Tld => 1,
            Dimension::Registry => 2,
            Dimension::Organisation => 3,
            Dimension::Software => 4,
            Dimension::Status => 5,
            Dimension::Language => 6,
            Dimension::Script => 7,
            Dimension::Http => 8,
            Dimension::Tls => 9,
            Dimension::Family => 10,
            Dimension::RuleSet => 11,
        };
        for (value, of_value) in values {
            // Writing into a text cannot fail.
            let _ = write!(text, " {dimension} {value} {}", counts(of_value));
        }
    }
    text
}

fn counts(of: &Counts) -> String {
    let numbers = [
        of.servers,
        of.up,
        of.pages,
        of.requests,
        of.bytes,
        of.busy_ms,
        of.external_hosts,
        of.external_urls,
        of.external_domains,
        of.cut_by_depth,
        of.refused_by_robots,
        of.failed,
        of.unfinished,
        of.evaluated,
        of.detected_failures,
    ];
    numbers.map(|number| number.to_string()).join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(faults: Faults, seed: u64) -> Outcome {
        Trial { members: 4, subnets: 6, minutes: 8, faults, seed }.run(&|| {})
    }

    #[test]
    fn equal_seeds_have_equal_digests_and_others_have_others() {
        for faults in [Faults::None, Faults::Kills, Faults::Partitions, Faults::Moves] {
            let (one, again, other) = (outcome(faults, 1), outcome(faults, 1), outcome(faults, 2));
            assert_eq!(one, again, "{faults:?}");
            assert_ne!(one.digest, other.digest, "{faults:?}");
            assert!(one.pages > 60 && one.rows > 100 && one.claims > 0, "{faults:?}: something happened: {one:?}");
        }
    }

    #[test]
    fn one_message_more_delays_no_other() {
        let trial = Trial { members: 3, subnets: 2, minutes: 1, faults: Faults::None, seed: 5 };
        let delays = |extra: bool| {
            let mut course = Course::new(trial);
            let (from, to, third) = (course.world.member(0), course.world.member(1), course.world.member(2));
            let mut delays = Vec::new();
            for _ in 0..20 {
                if extra {
                    course.world.transmission(from, third, 0, 0.0);
                    course.world.transmission(from, to, 9, 0.0);
                }
                delays.push(course.world.transmission(from, to, 0, 0.0).delay);
            }
            delays
        };
        assert_eq!(delays(false), delays(true));
        assert!(delays(false).iter().collect::<BTreeSet<_>>().len() > 5, "they differ");
    }

    /// A commit that changes what swarms do on purpose prints these anew and says so in the commit; a rebuilding leaves them alone.
    #[test]
    fn a_swarm_does_what_it_did_before() {
        let recorded = [
            (Faults::None, 1, "109e739e85b9841a"),
            (Faults::Kills, 1, "a9a8b471f482011d"),
            (Faults::Kills, 2, "e7ea6c8c72496415"),
            (Faults::Partitions, 1, "1e4bd057303851b8"),
            (Faults::Partitions, 2, "d2b006f86d070f2d"),
            (Faults::Moves, 1, "3de910a6935de590"),
        ];
        let play = |(faults, seed, _): &(Faults, u64, &str)| {
            let outcome = Trial { members: 5, subnets: 8, minutes: 24, faults: *faults, seed: *seed }.run(&|| {});
            (*faults, *seed, outcome.digest[..16].to_owned())
        };
        let played: Vec<_> = recorded.iter().map(play).collect();
        let expected: Vec<_> = recorded.map(|(faults, seed, digest)| (faults, seed, digest.to_owned())).to_vec();
        assert_eq!(played, expected);
    }
}
