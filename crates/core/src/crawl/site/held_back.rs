//! What limits hold back at a site: new hosts, and URLs of its own.
//!
//! It is the fold of its journal's rows, like the frontier.
//!
//! The pages of a site may lead to so many new external hosts a day; what they name beyond that waits here in the order in which it was
//! named, across restarts, take-overs and runs. URLs of its own for which the queue has no space are kept as if they lay too deep; here is
//! at which level they are to be queued. The limits themselves are the access point's.

use nearcrawl_model::{
    fingerprint::{Fingerprint, FingerprintKey},
    journal::{Arrival, HostLimit, JournalEntry},
    record,
    time::{Millis, WallTime},
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// For how long a limit on new hosts holds back what is beyond it, in milliseconds.
pub(crate) const DAY: Millis = 86_400_000;

/// URLs at new hosts that may wait at one site. What is named beyond that is only counted.
pub(crate) const MAX_HELD: usize = 10_000;

/// Hosts that a site is known to have led to. Further ones count as new whenever they are named.
const MAX_FOLLOWED: usize = 100_000;

/// URLs of a site that are queued when there is room. Further ones count as cut by the depth.
const MAX_NOT_QUEUED: usize = 20_000;

/// How many URLs, or hosts, one row of a journal names at most when a run passes them on to the next.
const IN_A_ROW: usize = 1_000;

/// A host that waits, with all that waits for it.
#[derive(Clone, Debug)]
struct WaitingHost {
    by: HostLimit,
    /// Its place in the line.
    place: u64,
    /// By their fingerprints.
    urls: BTreeMap<Fingerprint, Arrival>,
}

/// What waits at one site for limits to let go of it.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    /// Hosts that it led to, in this run or an earlier one.
    followed: BTreeSet<Fingerprint>,
    /// When the day began in which it led to so many new external ones.
    since: WallTime,
    today: u64,
    waiting: BTreeMap<Fingerprint, WaitingHost>,
    /// Those that wait, in the order in which they were named.
    line: BTreeMap<u64, Fingerprint>,
    /// How many ever stood in line.
    entered: u64,
    /// URLs of the site that were not queued, with the level at which they are to be, and those of them that were called already.
    not_queued: BTreeMap<Fingerprint, u8>,
    called: BTreeSet<Fingerprint>,
    counts: record::HeldBack,
}

/// What it is told.
impl Withheld {
    /// A site of which nothing is known was opened at this time.
    pub(super) fn new(since: WallTime) -> Withheld {
        Withheld { since, ..Withheld::default() }
    }

    /// Takes in the next journal entry. What a run passes on to the next one comes as entries, too.
    pub(super) fn apply(&mut self, entry: &JournalEntry, key: &FingerprintKey) {
        match entry {
            JournalEntry::Visited { at, outgoing, .. } => {
                self.roll(*at);
                outgoing.iter().for_each(|arrival| self.follow(arrival, key));
            }
            JournalEntry::HeldBack { by, urls } => urls.iter().for_each(|arrival| self.hold(*by, arrival, key)),
            JournalEntry::Released { at, outgoing } => {
                self.roll(*at);
                for arrival in outgoing {
                    self.follow(arrival, key);
                    self.let_go(print_of(arrival, key));
                }
            }
            JournalEntry::Followed { since, new, hosts } => {
                (self.since, self.today) = (*since, *new);
                self.followed.extend(hosts.iter().take(MAX_FOLLOWED.saturating_sub(self.followed.len())));
            }
            JournalEntry::NotKept { urls } => {
                self.counts.host_urls_not_kept = self.counts.host_urls_not_kept.saturating_add(*urls);
            }
            _ => {}
        }
    }

    /// A URL of the site was not queued, and is to be at this level. False if too many were not.
    pub(super) fn not_queued(&mut self, url: Fingerprint, level: u8) -> bool {
        let has_room = self.not_queued.len() < MAX_NOT_QUEUED;
        if has_room {
            self.counts.urls_not_queued += u64::from(self.not_queued.insert(url, level).is_none());
        }
        has_room
    }

    /// A URL of the site is queued. Whether it was not before.
    pub(super) fn queued(&mut self, url: Fingerprint) -> bool {
        let was_not = self.not_queued.remove(&url).is_some();
        self.called.remove(&url);
        self.counts.urls_not_queued -= u64::from(was_not);
        was_not
    }

    /// The next URLs to be queued, at most so many, with their levels. None is called twice.
    pub(crate) fn call(&mut self, most: usize) -> Vec<(Fingerprint, u8)> {
        let next = self.not_queued.iter().filter(|(url, _)| !self.called.contains(url)).take(most);
        let next: Vec<_> = next.map(|(url, level)| (*url, *level)).collect();
        self.called.extend(next.iter().map(|(url, _)| *url));
        next
    }

    /// A day after the last one began the next begins, if it is known by then.
    fn roll(&mut self, now: WallTime) {
        if self.is_past(now) {
            (self.since, self.today) = (now, 0);
        }
    }

    fn is_past(&self, now: WallTime) -> bool {
        now.0.saturating_sub(self.since.0) >= DAY
    }

    fn follow(&mut self, arrival: &Arrival, key: &FingerprintKey) {
        let host = print_of(arrival, key);
        let new = if self.followed.len() < MAX_FOLLOWED { self.followed.insert(host) } else { !self.followed.contains(&host) };
        self.today += u64::from(new && arrival.place.is_none());
    }

    fn hold(&mut self, by: HostLimit, arrival: &Arrival, key: &FingerprintKey) {
        if self.counts.host_urls >= MAX_HELD as u64 {
            self.counts.host_urls_not_kept = self.counts.host_urls_not_kept.saturating_add(1);
            return;
        }
        let (host, url) = (print_of(arrival, key), key.of(arrival.url.as_str()));
        let entered = &mut self.entered;
        let waiting = self.waiting.entry(host).or_insert_with(|| {
            *entered += 1;
            self.line.insert(*entered, host);
            *self.counts.of(by) += 1;
            WaitingHost { by, place: *entered, urls: BTreeMap::new() }
        });
        if waiting.by != by {
            *self.counts.of(waiting.by) -= 1;
            *self.counts.of(by) += 1;
            waiting.by = by;
        }
        let nearer = waiting.urls.get(&url).is_none_or(|known| level_of(arrival) < level_of(known));
        if nearer {
            self.counts.host_urls += u64::from(waiting.urls.insert(url, arrival.clone()).is_none());
        }
    }

    fn let_go(&mut self, host: Fingerprint) {
        let Some(waiting) = self.waiting.remove(&host) else { return };
        self.line.remove(&waiting.place);
        *self.counts.of(waiting.by) -= 1;
        self.counts.host_urls -= waiting.urls.len() as u64;
    }
}

/// The counter of a limit.
trait ByLimit {
    fn of(&mut self, by: HostLimit) -> &mut u64;
}

impl ByLimit for record::HeldBack {
    fn of(&mut self, by: HostLimit) -> &mut u64 {
        match by {
            HostLimit::Site => &mut self.hosts_by_site_limit,
            HostLimit::Domain => &mut self.hosts_by_domain_limit,
        }
    }
}

/// What it says.
impl Withheld {
    /// What is held back, for the record.
    pub(crate) fn counts(&self) -> record::HeldBack {
        self.counts
    }

    /// Whether a URL of the site is to be queued when there is room.
    pub(crate) fn calls(&self) -> bool {
        self.called.len() < self.not_queued.len()
    }

    /// Whether the site led to this host before.
    pub(crate) fn has_followed(&self, host: Fingerprint) -> bool {
        self.followed.contains(&host)
    }

    /// New external hosts that it has led to within a day of now.
    pub(crate) fn today(&self, now: WallTime) -> u64 {
        if self.is_past(now) { 0 } else { self.today }
    }

    /// In how long the limit for a site counts anew.
    pub(crate) fn next_day_in(&self, now: WallTime) -> Millis {
        DAY.saturating_sub(now.0.saturating_sub(self.since.0))
    }

    /// Whether this URL, at a level no deeper than this arrival's, waits at its host.
    pub(crate) fn holds(&self, host: Fingerprint, url: Fingerprint, arrival: &Arrival) -> bool {
        let waiting = self.waiting.get(&host).and_then(|waiting| waiting.urls.get(&url));
        waiting.is_some_and(|known| level_of(known) <= level_of(arrival))
    }

    /// The hosts that wait, the first named first, each with its fingerprint, the limit that holds it back, and its URLs.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = (Fingerprint, HostLimit, impl Iterator<Item = &Arrival>)> {
        let waiting = self.line.values().filter_map(|host| Some((*host, self.waiting.get(host)?)));
        waiting.map(|(host, waiting)| (host, waiting.by, waiting.urls.values()))
    }

    /// The names of the hosts that wait because of the limit for a domain.
    pub(crate) fn held_by_domain(&self) -> impl Iterator<Item = Host> {
        let waiting = self.waiting.values().filter(|waiting| waiting.by == HostLimit::Domain);
        waiting.filter_map(|waiting| waiting.urls.values().next().map(|arrival| arrival.url.host()))
    }

    /// The entries by which the next run, of this number, knows the same: no host is new in it that is not, and what waits goes on waiting.
    /// `in_scope` says whether a host may be led to still.
    pub(crate) fn passed_on(&self, run: u32, in_scope: impl Fn(&Arrival) -> bool) -> Vec<JournalEntry> {
        let followed: Vec<_> = self.followed.iter().copied().collect();
        let followed = followed.chunks(IN_A_ROW);
        let mut rows: Vec<_> =
            followed.map(|hosts| JournalEntry::Followed { since: self.since, new: self.today, hosts: hosts.to_vec() }).collect();
        let mut urls: Vec<(HostLimit, Arrival)> = Vec::new();
        let in_line = self.in_line().map(|(_, by, waiting)| (by, waiting.filter(|arrival| in_scope(arrival))));
        in_line.for_each(|(by, waiting)| urls.extend(waiting.map(|arrival| (by, Arrival { run, ..arrival.clone() }))));
        for same in urls.chunk_by(|(a, _), (b, _)| a == b).flat_map(|same| same.chunks(IN_A_ROW)) {
            let by = same.first().map_or(HostLimit::Site, |(by, _)| *by);
            rows.push(JournalEntry::HeldBack { by, urls: same.iter().map(|(_, arrival)| arrival.clone()).collect() });
        }
        rows
    }
}

fn print_of(arrival: &Arrival, key: &FingerprintKey) -> Fingerprint {
    key.of(arrival.url.host_str())
}

fn level_of(arrival: &Arrival) -> u8 {
    arrival.place.as_ref().map_or(0, |place| place.level)
}
