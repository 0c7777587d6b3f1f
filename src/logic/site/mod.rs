//! Which page of this site next? The low-load server crawler (Nakahira, Hoshino, Mikami, WWW 2008), one host at a time.
//!
//! A [`Site`] is one host's part of a site tree in one run: the fold of its journal. Live and replayed entries go through the same
//! [`Site::apply`], so a new owner who reads the journal stands where the former one stood.

pub mod frontier;
pub mod replay;
pub mod robots;
mod standing;
pub mod yields;

use crate::model::{
    fetch::{FetchFailure, FetchOrder, FetchPurpose},
    fingerprint::{Fingerprint, FingerprintKey},
    journal::{JournalEntry, JournalKey, SkipReason, VisitOutcome},
    record::{RunState, ServerRecord, ServerStatus},
    time::{Millis, WallTime},
    url::{Host, Origin, PageUrl},
};
use frontier::{Frontier, Waiting};
use standing::RobotsStanding;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};
use yields::{Price, Yields};

/// How a site is crawled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteRules {
    /// The deepest level that is fetched.
    pub depth: u8,
    /// What a request must be expected to bring; at 0 the depth alone decides.
    pub price: Price,
    /// Pages a run, then the tree is paused; 0 is no limit.
    pub pages_per_run: u64,
    /// The product token that robots.txt knows us by.
    pub product_token: String,
}

/// The longest crawl-delay that is waited out (RFC 9309 knows no crawl-delay).
pub const LONGEST_CRAWL_DELAY: Millis = 300_000;

/// The rest after the first 429 or 503.
const FIRST_BACK_OFF: Millis = 30_000;

/// The rest after many of them in a row.
const LONGEST_BACK_OFF: Millis = 3_600_000;

/// How many starting URLs of a site are remembered for its next run.
const MOST_STARTS: usize = 10_000;

/// How many URLs that were left out by their yield may be brought back by a starting URL.
const MOST_LEFT_OUT: usize = 100_000;

/// How many distinct external hosts are counted exactly for one site.
const MOST_EXTERNAL_HOSTS: usize = 100_000;

/// Whether a status says that the server was asked too much, or is asked too much by all: 429 and 503.
pub fn asks_for_patience(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// What to ask next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this.
    Fetch(FetchOrder),
    /// Set this aside first; then ask again what is next.
    Skip(PageUrl, SkipReason),
    /// Nothing waits, or nothing may be asked now.
    Nothing,
}

/// What is being asked right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// robots.txt of this origin.
    Robots(Origin),
    /// A page.
    Page(Waiting),
}

/// One host in one run, at its owner.
#[derive(Debug)]
pub struct Site {
    /// Its journal.
    pub key: JournalKey,
    /// The pinned address.
    pub address: IpAddr,
    /// The starting host of the tree.
    pub tree: Host,
    /// The scope of its fingerprints in the seen set; new with every opening.
    pub number: u64,
    /// When the run began.
    pub opened: WallTime,
    /// The fold of the journal, for people.
    pub record: ServerRecord,
    /// URLs that wait.
    pub frontier: Frontier,
    /// What is being asked, if anything.
    pub asking: Option<Asking>,
    /// Set while the answer of the seen set is awaited after a visit.
    pub digesting: bool,
    /// Starting URLs, for the next run.
    pub starts: Vec<PageUrl>,
    next_sequence: u64,
    robots: BTreeMap<Origin, RobotsStanding>,
    scripts: BTreeSet<Fingerprint>,
    external: BTreeSet<u64>,
    budget_used: u64,
    slot: WallTime,
    last_took: Millis,
    last_rest: Millis,
    /// How many answers in a row were 429 or 503.
    setbacks: u32,
    yields: Yields,
    /// URLs that were left out by their yield, should they be named as starting URLs.
    left_out: BTreeSet<Fingerprint>,
}

impl Site {
    /// Opens a site: the fold of an empty journal.
    pub fn open(key: JournalKey, address: IpAddr, tree: Host, number: u64, opened: WallTime) -> Site {
        let record = ServerRecord {
            host: key.host.clone(),
            address: Some(address),
            tree: tree.clone(),
            run: key.run,
            status: Default::default(),
            state: RunState::Running,
            software: None,
            pages: 0,
            requests: 0,
            bytes: 0,
            busy_ms: 0,
            known: 0,
            cut_by_depth: 0,
            refused_by_robots: 0,
            cut_by_script: 0,
            cut_by_yield: 0,
            failed: 0,
            by_status: BTreeMap::new(),
            external_hosts: 0,
            deepest: 0,
            first_visit: None,
            last_visit: None,
            no_index: 0,
            no_follow: 0,
            crawl_delay_ms: None,
            refused_by_crawl_delay: 0,
        };
        Site {
            key,
            address,
            tree,
            number,
            opened,
            record,
            frontier: Frontier::default(),
            asking: None,
            digesting: false,
            starts: Vec::new(),
            next_sequence: 0,
            robots: BTreeMap::new(),
            scripts: BTreeSet::new(),
            external: BTreeSet::new(),
            budget_used: 0,
            slot: opened,
            last_took: 0,
            last_rest: 0,
            setbacks: 0,
            yields: Yields::default(),
            left_out: BTreeSet::new(),
        }
    }

    /// The sequence number of the next journal row.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Whether this link stays within the tree (LL-4): the starting host or one of its subdomains.
    pub fn is_internal(&self, host: &Host) -> bool {
        host.is_within(&self.tree)
    }

    /// Takes in the next journal entry, live or replayed. Everything that the site knows comes through here.
    pub fn apply(&mut self, entry: &JournalEntry, rules: &SiteRules, key: &FingerprintKey) {
        self.next_sequence += 1;
        match entry {
            JournalEntry::Resumed { at } => {
                self.budget_used = 0;
                self.slot = *at;
            }
            JournalEntry::Opened { .. } | JournalEntry::Forwarded { .. } | JournalEntry::TakenOver { .. } => {}
            JournalEntry::Admitted { urls } | JournalEntry::Raised { urls, .. } => {
                for (url, level, hops) in urls {
                    if *level == 0 && self.starts.len() < MOST_STARTS && !self.starts.contains(url) {
                        self.starts.push(url.clone());
                    }
                    let raised = matches!(entry, JournalEntry::Raised { .. });
                    self.enter(url, *level, *hops, raised, rules, key);
                }
            }
            JournalEntry::Robots { origin, at, answer, took } => {
                self.count_request(*at, *took);
                let standing = self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin));
                standing.answered(
                    *at,
                    answer.as_ref().map(|(status, body)| (*status, body.as_slice())).map_err(|f| *f),
                    &rules.product_token,
                );
                self.count_setback(answer.as_ref().ok().map(|(status, _)| *status));
                self.record.crawl_delay_ms = self.robots.values().filter_map(RobotsStanding::wanted_delay).max();
                if answer.is_err() {
                    self.record.failed += 1;
                }
            }
            JournalEntry::Visited { url, level, at, outcome, took, bytes, software, found, beyond_scope, outgoing, rest, .. } => {
                self.last_rest = rest.unwrap_or(0);
                self.frontier.remove(key.of(url.as_str()));
                if let Some(script) = url.script() {
                    self.scripts.insert(key.of(script));
                }
                self.budget_used += 1;
                self.count_request(*at, *took);
                self.count_outcome(outcome, *level);
                self.record.bytes += bytes;
                if let Some(software) = software {
                    self.record.software = Some(software.clone());
                }
                for (url, level, hops) in found {
                    self.enter(url, *level, *hops, false, rules, key);
                }
                let before = self.record.external_hosts;
                for host in beyond_scope.iter().cloned().chain(outgoing.iter().filter(|a| a.place.is_none()).map(|a| a.url.host())) {
                    if self.external.len() < MOST_EXTERNAL_HOSTS && self.external.insert(key.of(host.as_str()).0) {
                        self.record.external_hosts += 1;
                    }
                }
                self.yields.count(url, self.record.external_hosts - before, key);
            }
            JournalEntry::Skipped { url, reason } => {
                self.frontier.remove(key.of(url.as_str()));
                self.record.refused_by_crawl_delay += u64::from(*reason == SkipReason::CrawlDelay);
                match reason {
                    SkipReason::Robots | SkipReason::RobotsUnavailable | SkipReason::CrawlDelay => self.record.refused_by_robots += 1,
                    SkipReason::Script => self.record.cut_by_script += 1,
                    SkipReason::Yield => {
                        self.record.cut_by_yield += 1;
                        if self.left_out.len() < MOST_LEFT_OUT {
                            self.left_out.insert(key.of(url.as_str()));
                        }
                    }
                    SkipReason::Denied | SkipReason::TooManyRedirects => self.record.failed += 1,
                }
            }
        }
        self.record.status = self.status();
        self.record.state = self.state(rules);
    }

    /// A URL of this site becomes known, or comes nearer.
    fn enter(&mut self, url: &PageUrl, level: u8, hops: u8, raised: bool, rules: &SiteRules, key: &FingerprintKey) {
        let fingerprint = key.of(url.as_str());
        if level > rules.depth {
            self.record.cut_by_depth += 1;
            return;
        }
        let script = url.script().map(|script| key.of(script));
        if raised && self.left_out.remove(&fingerprint) {
            // It was counted as known before it was left out, and will be counted again.
            self.record.cut_by_yield = self.record.cut_by_yield.saturating_sub(1);
            self.record.known = self.record.known.saturating_sub(1);
        } else if raised && !self.frontier.contains(fingerprint) {
            // It had been cut by the depth, or waits nowhere: it counts as known from now on.
            self.record.cut_by_depth = self.record.cut_by_depth.saturating_sub(1);
        }
        if script.is_some_and(|script| self.scripts.contains(&script)) {
            self.record.cut_by_script += 1;
            return;
        }
        let entered = self.frontier.enter(Waiting { url: url.clone(), fingerprint, level, hops }, script);
        self.record.known += u64::from(entered.new);
        self.record.cut_by_script += u64::from(entered.beaten);
    }

    /// What to ask next, in the order of levels and within a level in the order of discovery (LL-3, LL-22).
    pub fn next(&self, now: WallTime, rules: &SiteRules, key: &FingerprintKey) -> Next {
        if self.asking.is_some() || self.digesting || self.state(rules) == RunState::PausedByBudget {
            return Next::Nothing;
        }
        let Some(waiting) = self.frontier.first() else { return Next::Nothing };
        // Starting URLs are what somebody asked for, whatever they bring.
        if waiting.level > 0 && self.yields.too_little(&waiting.url, rules.price, key) {
            return Next::Skip(waiting.url.clone(), SkipReason::Yield);
        }
        let origin = waiting.url.origin();
        let fresh = RobotsStanding::new(&origin);
        let standing = self.robots.get(&origin).unwrap_or(&fresh);
        if let Some(url) = standing.to_ask(now) {
            return Next::Fetch(FetchOrder { url, address: self.address, purpose: FetchPurpose::Robots });
        }
        if let Some(reason) = standing.forbids(&waiting.url) {
            return Next::Skip(waiting.url.clone(), reason);
        }
        if waiting.url.script().is_some_and(|script| self.scripts.contains(&key.of(script))) {
            return Next::Skip(waiting.url.clone(), SkipReason::Script);
        }
        Next::Fetch(FetchOrder { url: waiting.url.clone(), address: self.address, purpose: FetchPurpose::Page })
    }

    /// Notes that an order of [`Site::next`] is under way.
    pub fn sent(&mut self, order: &FetchOrder, key: &FingerprintKey) {
        self.asking = match order.purpose {
            // A robots.txt that moved may lie elsewhere; the question is still the origin's that waits first.
            FetchPurpose::Robots => self.frontier.first().map(|waiting| Asking::Robots(waiting.url.origin())),
            FetchPurpose::Page => self.frontier.get(key.of(order.url.as_str())).cloned().map(Asking::Page),
        };
    }

    /// robots.txt answered with a redirect. Returns whether it is followed (at most five hops, to other hosts too); if not, the
    /// caller enters it as "there is none".
    pub fn robots_moved(&mut self, origin: &Origin, to: &PageUrl) -> bool {
        self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin)).moved(to)
    }

    /// robots.txt moved to a host of which it is not known yet where it lives and who may ask it. Returns whether to look again
    /// soon; if not, the caller enters that it could not be had.
    pub fn robots_searched(&mut self, origin: &Origin) -> bool {
        self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin)).searched()
    }

    /// robots.txt could not be had. Returns for how long to wait before it is asked again, or none if it is given up for this
    /// run; then the caller enters the failure.
    pub fn robots_failed(&mut self, origin: &Origin) -> Option<Millis> {
        self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin)).failed()
    }

    /// The crawl-delay that robots.txt asks for, if it does.
    pub fn crawl_delay(&self, origin: &Origin) -> Option<Millis> {
        self.robots.get(origin)?.crawl_delay()
    }

    /// What the last request took: politeness waits a multiple of it.
    pub fn last_took(&self) -> Millis {
        self.last_took
    }

    /// For how long to leave the server alone after one more 429 or 503, whatever `Retry-After` says: twice as long each time.
    pub fn back_off(&self) -> Millis {
        FIRST_BACK_OFF.saturating_mul(1 << self.setbacks.min(16)).min(LONGEST_BACK_OFF)
    }

    /// For how long the server was to be left alone after its last answer: because it asked for that, or by [`Site::back_off`].
    pub fn last_rest(&self) -> Millis {
        self.last_rest
    }

    /// The longest crawl-delay of its origins.
    pub fn slowest_crawl_delay(&self) -> Option<Millis> {
        self.robots.values().filter_map(RobotsStanding::crawl_delay).max()
    }

    /// Whether a URL was left out because too little was to be expected of it.
    pub fn left_out(&self, url: Fingerprint) -> bool {
        self.left_out.contains(&url)
    }

    /// What robots.txt says of a URL, in words.
    pub fn robots_says(&self, url: &PageUrl) -> Option<String> {
        self.robots.get(&url.origin()).map(|standing| standing.words(url))
    }

    /// When the robots.txt that holds for a URL was answered, if it was.
    pub fn robots_since(&self, url: &PageUrl) -> Option<WallTime> {
        self.robots.get(&url.origin()).and_then(RobotsStanding::since)
    }

    /// What the server is, in one word, by its answers so far.
    fn status(&self) -> ServerStatus {
        let answers = &self.record.by_status;
        if self.record.pages > 0 {
            ServerStatus::Up
        } else if !answers.is_empty() {
            if answers.keys().all(|status| matches!(status, 401 | 403 | 429 | 451)) { ServerStatus::Refused } else { ServerStatus::NoPages }
        } else if self.record.requests == 0 {
            ServerStatus::Waiting
        } else if self.robots.values().all(RobotsStanding::unreachable) {
            ServerStatus::Down
        } else if self.record.refused_by_robots > 0 {
            ServerStatus::Robots
        } else if self.record.failed > 0 {
            ServerStatus::Down
        } else {
            ServerStatus::Waiting
        }
    }

    /// Whether something can be asked now or later in this slot.
    pub fn wants(&self, rules: &SiteRules) -> bool {
        !self.frontier.is_empty() && self.asking.is_none() && !self.digesting && self.state(rules) != RunState::PausedByBudget
    }

    /// Whether it is paused by its page budget, and since a slot's length.
    pub fn may_resume(&self, now: WallTime, slot: Millis) -> bool {
        self.record.state == RunState::PausedByBudget && now.0.saturating_sub(self.slot.0) >= slot
    }

    /// Whether this run is over: nothing waits, nothing is under way.
    pub fn finished(&self) -> bool {
        self.frontier.is_empty() && self.asking.is_none() && !self.digesting
    }

    fn state(&self, rules: &SiteRules) -> RunState {
        if self.frontier.is_empty() {
            if self.record.cut_by_yield > 0 {
                RunState::CutByYield
            } else if self.record.cut_by_depth > 0 {
                RunState::CutByDepth
            } else {
                RunState::Complete
            }
        } else if rules.pages_per_run > 0 && self.budget_used >= rules.pages_per_run {
            RunState::PausedByBudget
        } else {
            RunState::Running
        }
    }

    fn count_request(&mut self, at: WallTime, took: Millis) {
        self.last_took = took;
        self.record.requests += 1;
        self.record.busy_ms += took;
        self.record.first_visit.get_or_insert(at);
        self.record.last_visit = self.record.last_visit.max(Some(at));
    }

    /// Counts refusals for being asked too much; no answer at all says nothing of that.
    fn count_setback(&mut self, status: Option<u16>) {
        match status {
            Some(status) if asks_for_patience(status) => self.setbacks = self.setbacks.saturating_add(1),
            Some(_) => self.setbacks = 0,
            None => {}
        }
    }

    fn count_outcome(&mut self, outcome: &VisitOutcome, level: u8) {
        self.count_setback(outcome.status());
        if let VisitOutcome::RestrictedPage { no_index, no_follow, .. } = outcome {
            self.record.no_index += u64::from(*no_index);
            self.record.no_follow += u64::from(*no_follow);
        }
        match outcome {
            VisitOutcome::Page(status) | VisitOutcome::RestrictedPage { status, .. } => {
                self.record.pages += 1;
                self.record.deepest = self.record.deepest.max(level);
                *self.record.by_status.entry(*status).or_default() += 1;
            }
            VisitOutcome::NotHtml(status) | VisitOutcome::Redirect(status) | VisitOutcome::Status(status) => {
                *self.record.by_status.entry(*status).or_default() += 1;
            }
            VisitOutcome::Failed(FetchFailure::Cancelled) => {}
            VisitOutcome::Failed(_) => self.record.failed += 1,
        }
    }
}

#[cfg(test)]
mod tests;
