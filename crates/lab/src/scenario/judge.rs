//! Did the swarm keep its promises? What servers saw, who owned what, what members answered, and what is left at the end.

use super::{
    build::{DELAY_FACTOR, MIN_DELAY},
    file::{Action, Clock, ClockChange, Scenario},
};
use crate::swarm::{
    Played,
    ledger::{Contact, Purpose},
    records::Repeated,
};
use nearcrawl_core::membership::HeldBack;
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey},
    subnet::Subnet,
    time::{Millis, Moment},
    url::{Host, PageUrl},
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
};

/// How often members are asked for their totals.
const ASK_EVERY: Millis = 10_000;

/// With more pairs of subnets and members than this, owners are looked at only when totals are.
const MANY: usize = 4_000;

/// Fetches of one subnet by two members belong to one overlap if no more time passes between them.
const OVERLAP_GAP: Millis = 60_000;

const DAY: f64 = 86_400_000.0;

/// What came of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Of everything random.
    pub seed: u64,
    /// SHA-256 over all contacts with servers, all stored claims and rows, and these figures but for the longest step.
    pub digest: String,
    /// Requests for pages and robots.txt.
    pub fetches: u64,
    /// Pairs of fetches of one subnet by two members at one time, or of one address before its pause was over.
    pub overlaps: u64,
    /// The longest time during which two members fetched one subnet.
    pub overlap_ms_max: Millis,
    /// Pairs of contacts with one address, whoever made them, without the daemon's pause between them.
    pub pauses_broken: u64,
    /// Pages that were asked for again in the run in which they were recorded.
    pub fetched_twice: u64,
    /// Pages and records that were recorded and are not with their owner at the end.
    pub lost: u64,
    /// Answers that were called exact and differ from what was recorded.
    pub exact_but_wrong: u64,
    /// The longest time for which a subnet had no living owner that may fetch.
    pub ownerless_ms_max: Millis,
    /// From the end of a member to a living owner of each of its subnets.
    pub failover_ms: Failover,
    /// Encoded bytes of messages, sent and received, for each member and day.
    pub bytes_member_day: u64,
    /// The longest time that a crawler took for one event, measured on this machine.
    pub longest_step_ms: f64,
    /// The first promise that was broken.
    pub first_violation: Option<Violation>,
    /// Whether all promises were kept: the exit status.
    #[serde(skip)]
    pub holds: bool,
    /// What the swarm did, to be drawn.
    #[serde(skip)]
    pub course: Vec<Sample>,
    /// What happened to it, to be drawn.
    #[serde(skip)]
    pub marks: Vec<(Millis, &'static str)>,
}

/// How long subnets of members that ended had no owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failover {
    /// Subnets.
    pub n: u64,
    /// The median.
    pub p50: Millis,
    /// The 99th percentile.
    pub p99: Millis,
    /// The longest.
    pub max: Millis,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Since the start.
    pub at_ms: Millis,
    /// What was seen, in a sentence.
    #[serde(rename = "what_text")]
    pub what: String,
}

/// The swarm at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the start.
    pub at: Millis,
    /// Processes that run.
    pub running: usize,
    /// Of these, those that may fetch.
    pub able: usize,
    /// Subnets that are known, and those with a living owner.
    pub known: usize,
    /// Of the known subnets, those with a living owner that may fetch.
    pub owned: usize,
    /// Requests so far.
    pub fetches: u64,
}

/// A subnet with servers.
#[derive(Debug)]
struct PlaceState {
    address: IpAddr,
    /// When it was last seen with an owner; none if it never had one.
    owned: Option<Millis>,
    /// The owner at the last look.
    owners: BTreeSet<usize>,
}

/// An answer that was called exact.
#[derive(Debug)]
struct Told {
    at: Millis,
    number: usize,
    servers: u64,
    pages: u64,
}

/// Sums of what is recorded at some moment, of which no exact answer may be short.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    at: Millis,
    servers: u64,
    pages: u64,
}

/// What was seen so far.
pub(super) struct Judge {
    begin: Moment,
    places: BTreeMap<Subnet, PlaceState>,
    /// Places whose owner ended, since when.
    waiting: BTreeMap<Subnet, Millis>,
    failovers: Vec<Millis>,
    ownerless: Millis,
    told: Vec<Told>,
    recorded: VecDeque<Recorded>,
    freshness: Millis,
    wrong: u64,
    first: Option<Violation>,
    /// Who lied, since when.
    liars: BTreeMap<usize, Moment>,
    /// Time lived by all members together.
    lived: Millis,
    looked: Millis,
    /// How much shorter than theirs the pauses of quick clocks may be.
    slack: f64,
    course: Vec<Sample>,
    marks: Vec<(Millis, &'static str)>,
}

impl Judge {
    pub(super) fn new(scenario: &Scenario, world: &Played) -> Judge {
        let members: u32 = scenario.members
            + scenario.steps.iter().map(|step| if let Action::Join { count, .. } = step.action { count } else { 0 }).sum::<u32>();
        let fastest = scenario.steps.iter().fold(1.0_f64, |most, step| match step.action {
            Action::Clock { change: ClockChange::Rate(rate, Clock::Boot), .. } => most.max(rate),
            _ => most,
        });
        let mut judge = Judge {
            begin: world.now(),
            places: BTreeMap::new(),
            waiting: BTreeMap::new(),
            failovers: Vec::new(),
            ownerless: 0,
            told: Vec::new(),
            recorded: VecDeque::new(),
            freshness: (300 * u64::from(members)).max(30_000),
            wrong: 0,
            first: None,
            liars: BTreeMap::new(),
            lived: 0,
            looked: 0,
            slack: 1.0 / fastest,
            course: Vec::new(),
            marks: Vec::new(),
        };
        judge.learn_places(world);
        judge
    }

    /// Notes where hosts are.
    pub(super) fn learn_places(&mut self, world: &Played) {
        for address in world.hosts().values() {
            let place = PlaceState { address: *address, owned: None, owners: BTreeSet::new() };
            self.places.entry(Subnet::around(*address, 24)).or_insert(place);
        }
    }

    /// Notes what a scenario does.
    pub(super) fn mark(&mut self, at: Millis, verb: &'static str) {
        self.marks.push((at, verb));
    }

    /// These members are not honest from now on.
    pub(super) fn lies(&mut self, numbers: &[usize], now: Moment) {
        for number in numbers {
            self.liars.entry(*number).or_insert(now);
        }
    }

    /// A member is about to end: its subnets wait for another owner, or for its return.
    pub(super) fn gone(&mut self, world: &Played, number: usize, now: Millis) {
        for (subnet, place) in &self.places {
            if owners_of(world, &able(world), place.address).contains(&number) {
                self.waiting.entry(*subnet).or_insert(now);
            }
        }
    }

    fn violated(&mut self, at_ms: Millis, what: impl FnOnce() -> String) {
        if self.first.as_ref().is_none_or(|first| at_ms < first.at_ms) {
            self.first = Some(Violation { at_ms, what: what() });
        }
    }

    /// Looks at everything, once a second.
    pub(super) fn look(&mut self, world: &Played, now: Millis) {
        let running = world.running_processes();
        self.lived += (now - self.looked) * running.len() as u64;
        self.looked = now;
        let asks = now.is_multiple_of(ASK_EVERY);
        if asks || self.places.len() * running.len() < MANY {
            self.look_at_owners(world, now);
        }
        if asks {
            self.judge_totals(world, now);
            self.ask_for_totals(world, now);
            let known = self.places.values().filter(|place| place.owned.is_some());
            self.course.push(Sample {
                at: now,
                running: running.len(),
                able: able(world).len(),
                known: known.clone().count(),
                owned: known.filter(|place| !place.owners.is_empty()).count(),
                fetches: world.ledger.requests(),
            });
        }
    }

    fn look_at_owners(&mut self, world: &Played, now: Millis) {
        let able = able(world);
        for (subnet, place) in &mut self.places {
            place.owners = owners_of(world, &able, place.address);
            if place.owners.is_empty() {
                self.ownerless = self.ownerless.max(place.owned.map_or(0, |owned| now - owned));
                continue;
            }
            place.owned = Some(now);
            if let Some(since) = self.waiting.remove(subnet) {
                self.failovers.push(now - since);
            }
        }
    }

    /// Judges the answers of the last time: what was recorded long enough before must be in them, what nobody asked for must not. Where a
    /// run follows on another, either may be told.
    fn judge_totals(&mut self, world: &Played, now: Millis) {
        let Some(records) = &world.records else { return };
        let (mut least, mut most) = (Recorded { at: now, servers: 0, pages: 0 }, (0, 0));
        for runs in records.runs.values() {
            let mut last = runs.values().rev();
            let (Some(present), before) = (last.next(), last.next()) else { continue };
            let before = before.unwrap_or(present);
            most = (most.0 + 1, most.1 + present.asked.max(before.asked));
            least.servers += u64::from(runs.values().any(|run| run.recorded > 0));
            least.pages += present.recorded.min(before.recorded);
        }
        self.recorded.push_back(least);
        for told in std::mem::take(&mut self.told) {
            let since = told.at.saturating_sub(self.freshness + ASK_EVERY);
            let recent = self.recorded.iter().filter(|recorded| recorded.at >= since);
            let floor = recent.fold((u64::MAX, u64::MAX), |floor, at| (floor.0.min(at.servers), floor.1.min(at.pages)));
            let (servers, pages) = (floor.0..=most.0, floor.1..=most.1);
            if !servers.contains(&told.servers) || !pages.contains(&told.pages) {
                self.wrong += 1;
                self.violated(told.at, || {
                    let Told { number, servers: told_servers, pages: told_pages, .. } = told;
                    format!(
                        "member {number} called {told_servers} servers and {told_pages} pages exact; recorded are {servers:?} and {pages:?}"
                    )
                });
            }
        }
        while self.recorded.front().is_some_and(|first| first.at + self.freshness + 3 * ASK_EVERY < now) {
            self.recorded.pop_front();
        }
    }

    fn ask_for_totals(&mut self, world: &Played, now: Millis) {
        for (number, process) in world.running_processes() {
            if self.liars.contains_key(&number) || world.is_frozen(&process) {
                continue;
            }
            let Some(results) = world.process(&process).map(|crawler| crawler.view().results()) else { continue };
            if results.exact {
                let total = results.summary.total;
                self.told.push(Told { at: now, number, servers: total.servers, pages: total.pages });
            }
        }
    }

    /// What is not as it should be at the end.
    fn unsettled(&self, world: &Played) -> Option<String> {
        let honest: Vec<_> = world.running_processes().into_iter().filter(|(number, _)| !self.liars.contains_key(number)).collect();
        let views: Vec<_> = honest.iter().filter_map(|(number, process)| Some((*number, world.process(process)?.view()))).collect();
        let Some((first, view)) = views.first() else { return Some("no member runs".to_owned()) };
        if let Some((other, _)) = views.iter().find(|(_, other)| other.map_digests() != view.map_digests()) {
            return Some(format!("the maps of members {first} and {other} differ"));
        }
        let able = able(world);
        for place in self.places.values().filter(|place| place.owned.is_some()) {
            let owners = owners_of(world, &able, place.address);
            if owners.len() != 1 {
                return Some(format!("{} has {} living owners that may fetch", place.address, owners.len()));
            }
        }
        let totals: Vec<_> = views.iter().map(|(number, view)| (number, view.results())).collect();
        if let Some((number, results)) = totals.iter().find(|(_, results)| !results.exact) {
            let why = results.in_transition_text.clone().unwrap_or_default();
            return Some(format!("the totals of member {number} are not exact: {why}"));
        }
        let differ = totals.iter().find(|(_, results)| results.summary != totals[0].1.summary);
        differ.map(|(other, _)| format!("the totals of members {first} and {other} differ"))
    }

    /// Whether all is as it should be at the end.
    pub(super) fn is_settled(&self, world: &Played) -> bool {
        self.unsettled(world).is_none()
    }

    /// All figures.
    pub(super) fn verdict(mut self, world: &Played, seed: u64, now: Millis) -> Verdict {
        self.judge_totals(world, now);
        let unsettled = self.unsettled(world);
        let (overlaps, overlap_ms_max) = self.overlaps(world);
        let pauses_broken = self.pauses(world);
        let (lost, lost_what) = lost(world);
        let all = world.records.iter().flat_map(|records| &records.repeated);
        let honest = |repeated: &&Repeated| self.liars.get(&repeated.by).is_none_or(|since| repeated.at < *since);
        let repeated: Vec<_> = all.filter(honest).collect();
        if let Some(first) = repeated.first() {
            self.violated(first.at.since(self.begin), || first.what.clone());
        }
        if let Some(what) = lost_what {
            self.violated(now, || what);
        }
        if let Some(what) = &unsettled {
            self.violated(now, || what.clone());
        }
        for since in std::mem::take(&mut self.waiting).into_values() {
            self.failovers.push(now - since);
        }
        let (bytes, longest) = world.records.as_ref().map_or((0, 0.0), |records| (records.bytes, records.longest_step.as_secs_f64()));
        let fetched_twice = repeated.len() as u64;
        let counts = [overlaps, pauses_broken, fetched_twice, lost, self.wrong];
        let mut verdict = Verdict {
            seed,
            digest: String::new(),
            fetches: world.ledger.requests(),
            overlaps,
            overlap_ms_max,
            pauses_broken,
            fetched_twice,
            lost,
            exact_but_wrong: self.wrong,
            ownerless_ms_max: self.ownerless,
            failover_ms: Failover::of(self.failovers),
            // Each message leaves one member and comes to another.
            bytes_member_day: (2.0 * bytes as f64 / (self.lived.max(1) as f64 / DAY)) as u64,
            longest_step_ms: 0.0,
            first_violation: self.first,
            holds: unsettled.is_none() && counts == [0; 5],
            course: self.course,
            marks: self.marks,
        };
        verdict.digest = digest(world, &verdict);
        verdict.longest_step_ms = (longest * 1e6).round() / 1e3;
        verdict
    }

    /// Whether a contact was made by an honest member.
    fn is_honest(&self, world: &Played, contact: &Contact) -> bool {
        let liar = world.number_of_process(&contact.by).and_then(|number| self.liars.get(&number));
        liar.is_none_or(|since| contact.begin < *since)
    }

    fn rest(&self, contact: &Contact) -> Millis {
        let rest = MIN_DELAY.max(DELAY_FACTOR * contact.end.since(contact.begin));
        (rest as f64 * self.slack) as Millis
    }

    /// Pairs of fetches, and the longest time in which two members fetched one subnet.
    fn overlaps(&mut self, world: &Played) -> (u64, Millis) {
        let mut recent: BTreeMap<Subnet, Vec<&Contact>> = BTreeMap::new();
        let mut spans: BTreeMap<(Subnet, AccessPoint, AccessPoint), (Moment, Moment)> = BTreeMap::new();
        let (mut pairs, mut longest, mut first) = (0, 0, None);
        for contact in world.ledger.contacts.iter().filter(|contact| contact.purpose != Purpose::Probe && self.is_honest(world, contact)) {
            let subnet = Subnet::around(contact.address, 24);
            let before = recent.entry(subnet).or_default();
            before.retain(|other| other.end.after(self.rest(other)) > contact.begin);
            for other in before.iter().filter(|other| other.by != contact.by) {
                if other.end <= contact.begin && other.address != contact.address {
                    continue;
                }
                pairs += 1;
                first.get_or_insert((contact.begin, other.by, contact.by, contact.address));
                let key = (subnet, other.by.min(contact.by), other.by.max(contact.by));
                let span = spans.entry(key).or_insert((other.begin, contact.end));
                if contact.begin.since(span.1) > OVERLAP_GAP {
                    span.0 = other.begin;
                }
                span.1 = span.1.max(contact.end);
                longest = longest.max(span.1.since(span.0));
            }
            before.push(contact);
        }
        if let Some((at, one, other, address)) = first {
            let number = |who| world.number_of_process(&who).map_or_else(|| "?".to_owned(), |number| number.to_string());
            let what = format!("members {} and {} fetched at {address}", number(one), number(other));
            self.violated(at.since(self.begin), || what);
        }
        (pairs, longest)
    }

    fn pauses(&mut self, world: &Played) -> u64 {
        let mut last: BTreeMap<IpAddr, &Contact> = BTreeMap::new();
        let (mut broken, mut first) = (0, None);
        for contact in world.ledger.contacts.iter().filter(|contact| self.is_honest(world, contact)) {
            if let Some(before) = last.insert(contact.address, contact)
                && contact.begin < before.end.after(self.rest(before))
            {
                broken += 1;
                first.get_or_insert((contact.begin, contact.address));
            }
        }
        if let Some((at, address)) = first {
            self.violated(at.since(self.begin), || format!("{address} was asked again before its pause was over"));
        }
        broken
    }
}

/// The processes that run and may fetch, with what they are called and the numbers of their members.
fn able(world: &Played) -> Vec<(usize, AccessPoint, AccessPoint)> {
    let may_fetch = |process: &AccessPoint| {
        let held_back = world.process(process).and_then(|crawler| crawler.view().held_back());
        !world.is_frozen(process) && !matches!(held_back, Some(HeldBack::Fenced(_) | HeldBack::NotJoined))
    };
    let running = world.running_processes().into_iter().filter(|(_, process)| may_fetch(process));
    running.map(|(number, process)| (number, process, world.name_of(process))).collect()
}

/// Who of these takes itself for the owner of an address.
fn owners_of(world: &Played, able: &[(usize, AccessPoint, AccessPoint)], address: IpAddr) -> BTreeSet<usize> {
    let owns = |(_, process, name): &&(usize, AccessPoint, AccessPoint)| {
        let claim = world.process(process).and_then(|crawler| crawler.view().claim_around(address));
        claim.is_some_and(|claim| claim.owner == *name && !claim.released)
    };
    able.iter().filter(owns).map(|(number, ..)| *number).collect()
}

/// Pages and records that were recorded and are not with their owner, and the first of them.
fn lost(world: &Played) -> (u64, Option<String>) {
    let Some(records) = &world.records else { return (0, None) };
    let mut expected: BTreeMap<&Host, BTreeMap<u32, BTreeSet<&PageUrl>>> = BTreeMap::new();
    for (host, run, url) in records.all_recorded() {
        expected.entry(host).or_default().entry(run).or_default().insert(url);
    }
    let mut kept: BTreeMap<AccessPoint, BTreeMap<Host, JournalKey>> = BTreeMap::new();
    for (_, process) in world.running_processes() {
        let newest = kept.entry(process).or_default();
        for key in world.disk_of(&process).into_iter().flat_map(|disk| disk.journals.keys()) {
            let known = newest.entry(key.host.clone()).or_insert_with(|| key.clone());
            if known.run < key.run {
                *known = key.clone();
            }
        }
    }
    let (mut lost, mut first) = (0, None);
    for (host, runs) in expected {
        let Some((run, pages)) = runs.last_key_value() else { continue };
        // Its owner by its present address, or by an earlier one under which its journal is filed.
        let owners = kept.iter().filter_map(|(process, newest)| {
            let view = world.process(process)?.view();
            let owns =
                |address: IpAddr| view.claim_around(address).is_some_and(|claim| claim.owner == world.name_of(*process) && !claim.released);
            let key = newest.get(host)?;
            let address =
                world.hosts().get(host).copied().filter(|address| owns(*address)).or(Some(key.subnet.first()).filter(|a| owns(*a)));
            address.map(|_| (process, key))
        });
        let missing = owners.map(|(process, key)| {
            if key.run != *run {
                return if key.run > *run { 0 } else { pages.len() as u64 + 1 };
            }
            let Some(disk) = world.disk_of(process) else { return pages.len() as u64 + 1 };
            let visited = visited(disk, key);
            pages.iter().filter(|page| !visited.contains(page)).count() as u64
        });
        let missing = missing.min().unwrap_or(pages.len() as u64 + 1);
        if missing > 0 {
            first.get_or_insert_with(|| {
                format!("of {host}, run {run}, {missing} of {} pages and the record are not with its owner", pages.len())
            });
        }
        lost += missing;
    }
    (lost, first)
}

/// The pages of a journal, up to its first gap.
fn visited(disk: &crate::swarm::Disk, key: &JournalKey) -> BTreeSet<PageUrl> {
    let rows = disk.read(key, 0, u64::MAX, &mut usize::MAX.clone());
    let whole = (0..).zip(rows).take_while(|(expected, row)| *expected == row.sequence);
    let entries = whole.filter_map(|(_, row)| postcard::from_bytes(&row.entry).ok());
    entries.filter_map(|entry| if let JournalEntry::Visited { url, .. } = entry { Some(url) } else { None }).collect()
}

impl Failover {
    fn of(mut all: Vec<Millis>) -> Failover {
        all.sort_unstable();
        let at = |share: f64| all.get(((all.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied().unwrap_or(0);
        Failover { n: all.len() as u64, p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// One hash over what servers saw, what is stored, and the figures.
fn digest(world: &Played, verdict: &Verdict) -> String {
    let mut hash = Sha256::new();
    for contact in &world.ledger.contacts {
        let Contact { address, begin, end, purpose, .. } = contact;
        let purpose = match purpose {
            Purpose::Probe => "probe".to_owned(),
            Purpose::Robots(url) => format!("robots {url}"),
            Purpose::Page(url) => format!("page {url}"),
        };
        hash.update(format!("{} {} {address} {:?} {purpose}\n", begin.0, end.0, world.number_of_process(&contact.by)));
    }
    for (number, process) in world.running_processes() {
        let Some(disk) = world.disk_of(&process) else { continue };
        for (subnet, proof) in &disk.claims {
            hash.update(format!("claim {number} {subnet}\n"));
            hash.update(&proof.bytes);
        }
        for (key, journal) in &disk.journals {
            hash.update(format!("journal {number} {} {} {}\n", key.subnet, key.host, key.run));
            journal.values().for_each(|entry| hash.update(entry));
        }
    }
    // Numbers and texts always encode.
    hash.update(serde_json::to_string(verdict).unwrap_or_default());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
