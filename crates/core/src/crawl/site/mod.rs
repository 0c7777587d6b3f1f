//! One site of the low-load server crawler (Nakahira, Hoshino, Mikami, WWW 2008): which page of it is requested next.
//!
//! A [`Site`] is one host's part of a site tree in one run: the fold of its journal. Live and replayed entries go through the same
//! [`Site::apply`], so a new owner who reads the journal stands where the previous one stood.
//!
//! Three files use each other: a site holds what `standing` knows of each robots.txt and asks `ahead` which page may be asked for early;
//! both judge by the state of the site.

mod account;
mod ahead;
mod distinct;
mod facts;
pub mod frontier;
pub(crate) mod held_back;
pub mod previous_run;
pub(crate) mod replay;
pub mod robots;
mod standing;
mod whole_run;
pub mod yields;

use crate::{
    crawl::politeness::{FIRST_BACK_OFF, MAX_BACK_OFF},
    wishes::SiteWishes,
};
use distinct::Distinct;
use facts::Learning;
use frontier::{Frontier, Waiting};
use held_back::Withheld;
use nearcrawl_model::{
    account::Changes,
    crawled_by::CrawledBy,
    failing_pages::FailingPages,
    fetch::{FetchError, FetchOrder, FetchPurpose, FetchReason, FetchRule},
    fingerprint::{Fingerprint, FingerprintKey},
    ids::SiteNumber,
    journal::{JournalEntry, JournalKey, SkipReason, VisitOutcome},
    record::{RunState, ServerRecord, ServerStatus},
    revisit::Validators,
    run_history::{RunHistory, RunSummary},
    sketch::Sketch,
    subnet::Subnet,
    time::{Millis, WallTime},
    url::{Host, Origin, PageUrl},
};
use previous_run::Memory;
use standing::RobotsStanding;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};
use whole_run::{NamedHosts, WholeRun};
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

/// How many starting URLs of a site are remembered for its next run.
const MAX_STARTS: usize = 10_000;

/// How many links to other sites a journal names in full, so that the next run knows them without a download.
const MAX_NAMED: usize = 20_000;

/// How many redirects within a site are remembered. Where further ones lead counts as one link further.
const MAX_REDIRECTS: usize = 100_000;

/// How many pages of a site wait to be asked for once more. What fails beside them is not.
const MAX_TRIED: usize = 64;

/// How many scripts of a site are visited. Further ones are left out like a second URL of a script.
const MAX_SCRIPTS: usize = 100_000;

/// How many URLs that were left out by their yield may be brought back by a starting URL.
const MAX_LEFT_OUT: usize = 100_000;

/// How many distinct external hosts are counted exactly for one site.
const MAX_EXTERNAL_HOSTS: usize = 100_000;

/// Whether a status says that the server was asked too much, or is asked too much by all: 429 and 503.
pub(crate) fn asks_for_patience(status: u16) -> bool {
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
    /// The starting host of the tree, without `www.`.
    pub tree: Host,
    /// The scope of its fingerprints in the seen set; new with every opening.
    pub number: SiteNumber,
    /// When the run began.
    pub opened: WallTime,
    /// The fold of the journal, for people.
    pub record: ServerRecord,
    /// What the last whole run came to, while this one is not whole.
    whole: WholeRun,
    /// What earlier runs came to, in short.
    earlier: RunHistory,
    learning: Learning,
    /// Whether the software on record is from the run before.
    software_was: bool,
    /// Whether it leads to other hosts of its tree, which may lead back.
    has_parts: bool,
    /// URLs that wait.
    pub frontier: Frontier,
    /// What surveys wish for it.
    pub(crate) wishes: SiteWishes,
    /// The deepest level of this run, if a survey had a say in it.
    depth: Option<u8>,
    /// What limits hold back.
    pub(crate) held: Withheld,
    /// What is being asked, if anything.
    pub asking: Option<Asking>,
    /// The page that came last, while it is being read.
    pub reading: Option<Waiting>,
    /// Pages that were asked for once in vain and wait still, by failures that may be of the moment; at most [`MAX_TRIED`].
    tried: BTreeSet<Fingerprint>,
    /// How many visits await the answer of the seen set.
    pub digesting: u8,
    /// Starting URLs, for the next run.
    pub starts: BTreeSet<PageUrl>,
    /// Whether the run before can be asked what it knew of a page.
    pub memory: Memory,
    /// Links to other sites that the journal has named.
    named: BTreeSet<Fingerprint>,
    /// From which subnet to which one the host has moved, if it has in this run.
    moved: Option<(Subnet, Subnet)>,
    /// The address that the host has: the pinned one, unless its journal goes on elsewhere.
    moved_to: IpAddr,
    /// What was visited and redirects within the site; at most [`MAX_REDIRECTS`].
    redirects: BTreeSet<Fingerprint>,
    next_sequence: u64,
    robots: BTreeMap<Origin, RobotsStanding>,
    /// Scripts of which a URL was visited; at most [`MAX_SCRIPTS`].
    scripts: BTreeSet<Fingerprint>,
    external: BTreeSet<u64>,
    external_urls: Distinct,
    external_domains: Sketch,
    budget_used: u64,
    slot: WallTime,
    last_took: Millis,
    last_rest: Millis,
    /// How many answers in a row were 429 or 503.
    setbacks: u32,
    yields: Yields,
    /// URLs that were left out by their yield, should they be named as starting URLs.
    left_out: BTreeSet<Fingerprint>,
    /// The page that was visited last: further rows say more of it.
    visited_last: Option<PageUrl>,
}

impl Site {
    pub(super) fn order(&self, url: PageUrl, purpose: FetchPurpose) -> FetchOrder {
        let front = purpose == FetchPurpose::Page && self.may_be_front(&url);
        FetchOrder {
            url,
            address: self.address,
            purpose,
            validators: Validators::default(),
            front,
            evaluate: false,
            reason: FetchReason::default(),
        }
    }

    /// Why what is being asked is asked.
    pub(crate) fn reason(&self) -> FetchReason {
        let page = match &self.asking {
            Some(Asking::Page(waiting)) => Some(waiting),
            Some(Asking::Robots(_)) | None => None,
        };
        let rule = page.map_or(FetchRule::Robots, |waiting| match waiting {
            waiting if self.tried.contains(&waiting.fingerprint) => FetchRule::SecondTry,
            Waiting { hops: 1.., .. } => FetchRule::Redirect,
            Waiting { level: 0, .. } => FetchRule::Start,
            _ => FetchRule::Link,
        });
        let level = page.map_or(0, |waiting| waiting.level);
        FetchReason { rule, level, tree: Some(self.tree.clone()), run: self.key.run, surveys: Vec::new() }
    }

    /// Whether something of it is under way: a request, a page that is being read, a question to the seen set.
    pub(crate) fn is_busy(&self) -> bool {
        self.asking.is_some() || self.reading.is_some() || self.digesting > 0
    }

    /// Whether its server was asked something in this run, or is being.
    pub(crate) fn has_begun(&self) -> bool {
        self.record.requests > 0 || self.asking.is_some()
    }

    /// Opens a site: the fold of an empty journal.
    pub fn open(key: JournalKey, address: IpAddr, tree: Host, number: SiteNumber, opened: WallTime) -> Site {
        let record = new_record(&key, address, &tree);
        Site {
            key,
            address,
            tree,
            number,
            opened,
            record,
            whole: WholeRun::default(),
            earlier: RunHistory::default(),
            learning: Learning::default(),
            software_was: false,
            has_parts: false,
            frontier: Frontier::default(),
            wishes: SiteWishes::default(),
            depth: None,
            held: Withheld::new(opened),
            asking: None,
            reading: None,
            tried: BTreeSet::new(),
            digesting: 0,
            starts: BTreeSet::new(),
            memory: Memory::None,
            named: BTreeSet::new(),
            moved: None,
            moved_to: address,
            redirects: BTreeSet::new(),
            next_sequence: 0,
            robots: BTreeMap::new(),
            scripts: BTreeSet::new(),
            external: BTreeSet::new(),
            external_urls: Distinct::default(),
            external_domains: Sketch::default(),
            budget_used: 0,
            slot: opened,
            last_took: 0,
            last_rest: 0,
            setbacks: 0,
            yields: Yields::default(),
            left_out: BTreeSet::new(),
            visited_last: None,
        }
    }

    /// The deepest level of this run.
    pub(crate) fn depth(&self, rules: &SiteRules) -> u8 {
        self.depth.unwrap_or(rules.depth)
    }

    /// The row that says by which rules its pages are chosen now; none if the journal says so already. It is written before a visit: rules that
    /// change when a run is over leave its record as it is.
    pub(crate) fn crawled_by(&self, rules: &SiteRules) -> Option<JournalEntry> {
        let by = CrawledBy::new(self.depth(rules), rules.price.millionths(), rules.pages_per_run);
        (self.record.crawled_by != Some(by)).then_some(JournalEntry::CrawledBy(by))
    }

    /// What surveys wish for it from now on. A run that has left nothing out for its depth goes on deeper, another one stays as deep as it is.
    pub(crate) fn wish(&mut self, wishes: SiteWishes, rules: &SiteRules) {
        self.wishes = wishes;
        let (before, wanted) = (self.depth(rules), wishes.depth(rules));
        let is_new = self.record.requests == 0;
        if wanted != before && (is_new || (wanted > before && self.record.deepest < before)) {
            self.depth = Some(wanted);
        }
    }

    /// Whether a deeper run than this one is wanted.
    pub(crate) fn is_to_be_deeper(&self, rules: &SiteRules) -> bool {
        self.wishes.depth(rules) > self.depth(rules)
    }

    /// The sequence number of the next journal row.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Whether its journal has ended: the host has moved, and goes on in another subnet.
    pub(crate) fn has_ended(&self) -> bool {
        self.moved.is_some_and(|(_, to)| to != self.key.subnet)
    }

    /// Where the host goes on if the journal has ended: the subnet and the address.
    pub(crate) fn went_to(&self) -> Option<(Subnet, IpAddr)> {
        self.moved.filter(|(_, to)| *to != self.key.subnet).map(|(_, to)| (to, self.moved_to))
    }

    /// Of two journals of one host in different subnets of ours the one with the higher rank goes on.
    pub(crate) fn rank(&self) -> (u32, bool, u64) {
        (self.key.run, !self.has_ended(), self.next_sequence)
    }

    /// Whether its journal began in this subnet, where the host was before.
    pub(crate) fn came_from(&self, subnet: &Subnet) -> bool {
        self.moved.is_some_and(|(from, to)| to == self.key.subnet && from == *subnet)
    }

    /// Whether the tree starts here: then this site is visited again when its time has come, and not only when another host of the
    /// tree leads here. Both `www.example.ke` and `example.ke` may be starting hosts of one tree.
    pub(crate) fn is_home(&self) -> bool {
        !self.starts.is_empty() && self.key.host.may_start(&self.tree)
    }

    /// The row for the journal of the next run that says what the last whole run came to, if there was one.
    pub(crate) fn whole_run(&self) -> Option<JournalEntry> {
        self.whole.row(&self.record)
    }

    /// What is on record of the server: its last whole run, or the first one as far as it is.
    pub(crate) fn published(&self) -> ServerRecord {
        self.whole.published(&self.record)
    }

    /// The row for the journal of the next run that says what all runs so far came to, if there was one that asked for something.
    pub(crate) fn history_row(&self) -> Option<JournalEntry> {
        let mut history = self.earlier.clone();
        if self.record.known > 0 {
            history.enter(&self.record);
        }
        Some(JournalEntry::History(history)).filter(|_| self.record.known > 0 || !self.earlier.is_empty())
    }

    /// What the run that is on record named elsewhere; none if that is not known.
    pub(crate) fn named_hosts(&self) -> Option<NamedHosts> {
        match self.whole.named() {
            Some(named) => named.cloned(),
            None => Some(self.names_now()),
        }
    }

    /// The journal of this run says what the last whole one came to.
    fn remember_whole_run(&mut self, record: &[u8]) {
        self.whole.remember(record, &self.key, self.address);
        // Journals of earlier versions have no other row of it.
        self.whole.last().into_iter().for_each(|last| self.earlier.enter(last));
        self.remember_front_page();
        self.remember_software();
    }

    /// What this run has named elsewhere by now.
    fn names_now(&self) -> NamedHosts {
        let hosts = self.external.iter().map(|host| Fingerprint(*host)).collect();
        NamedHosts { hosts, domains: self.external_domains.clone() }
    }

    /// The row for the journal of the next run that says what the last whole run named. A run that asked for nothing passes on what is known
    /// of the one before.
    pub(crate) fn named_row(&self) -> Option<JournalEntry> {
        let named = if self.record.known > 0 { Some(self.names_now()) } else { self.named_hosts() };
        named.map(|NamedHosts { hosts, domains }| JournalEntry::NamedHosts { hosts, domains })
    }

    /// What each run came to, and how many were left out. The present one is the last of them, unless it is visited again and not whole.
    pub(crate) fn runs(&self) -> (Vec<RunSummary>, u64) {
        let present = self.published();
        let is_new = present.known > 0 && self.earlier.last_run().is_none_or(|last| last < present.run);
        let present = is_new.then(|| RunSummary::of(&present));
        (self.earlier.summaries().chain(present).collect(), self.earlier.left_out())
    }

    /// This run answers from now on, whatever it has found: its time is over.
    pub(crate) fn counts_as_whole(&mut self) {
        self.whole.ends();
    }

    /// Whether this link stays within the tree (LL-4): the starting host or one of its subdomains.
    pub(crate) fn is_internal(&self, host: &Host) -> bool {
        host.is_within(&self.tree)
    }

    fn move_to(&mut self, from: Subnet, to: Subnet, address: IpAddr) {
        self.moved = Some((from, to));
        self.moved_to = address;
        if to == self.key.subnet {
            self.address = address;
            self.record.address = Some(address);
            self.whole.moved(address);
        }
    }

    /// Takes in the next journal entry, live or replayed. Everything that the site knows comes through here.
    pub fn apply(&mut self, entry: &JournalEntry, rules: &SiteRules, key: &FingerprintKey) {
        self.next_sequence += 1;
        self.held.apply(entry, key);
        match entry {
            JournalEntry::Resumed { at } => {
                self.budget_used = 0;
                self.slot = *at;
            }
            JournalEntry::Opened { .. }
            | JournalEntry::Forwarded { .. }
            | JournalEntry::OwnershipHistory(_)
            | JournalEntry::HeldBack { .. }
            | JournalEntry::Followed { .. }
            | JournalEntry::NotKept { .. } => {}
            JournalEntry::Released { outgoing, .. } => self.has_parts |= outgoing.iter().any(|arrival| arrival.place.is_some()),
            JournalEntry::NotQueued { urls } => urls.iter().for_each(|(url, level)| {
                // It had come in as one beyond the depth.
                self.record.cut_by_depth = self.record.cut_by_depth.saturating_sub(u64::from(self.held.not_queued(*url, *level)));
            }),
            JournalEntry::TakenOver { .. } => self.learning.changes_owner(),
            JournalEntry::Learnt { facts } => self.learn(facts),
            JournalEntry::Admitted { urls } | JournalEntry::Raised { urls, .. } | JournalEntry::Reopened { urls } => {
                self.take_in(entry, urls, rules, key);
            }
            JournalEntry::WholeRun { record } => self.remember_whole_run(record),
            JournalEntry::NamedHosts { hosts, domains } => self.whole.remember_named(hosts, domains),
            JournalEntry::History(history) => self.earlier = history.clone(),
            JournalEntry::CrawledBy(by) => self.record.crawled_by = Some(*by),
            JournalEntry::Started { urls } => urls.iter().for_each(|url| self.start(url)),
            // Of no run that is not before this one: a journal may come from another member.
            JournalEntry::Follows { run, .. } if *run >= self.key.run => {}
            JournalEntry::Follows { run, pages } => {
                self.record.changes = Some(Changes { compared_run: *run, pages_before: *pages, ..Changes::default() });
            }
            JournalEntry::Kept { level, size, change, elsewhere, named, .. } => {
                self.count_change(*change, *level, *size);
                self.count_named(named, elsewhere, *level, rules, key);
            }
            JournalEntry::Evaluated { evaluation, took_us, .. } => self.count_evaluation(evaluation, *took_us, 0),
            JournalEntry::EvaluatedBy { evaluation, took_us, rules, .. } => self.count_evaluation(evaluation, *took_us, *rules),
            JournalEntry::EvaluatedAt { page, evaluation, took_us, rules, lines } => {
                self.count_evaluation(evaluation, *took_us, *rules);
                self.note_failing(*page, evaluation, lines, key);
            }
            JournalEntry::Beyond { urls, .. } => {
                urls.iter().for_each(|url| self.count_external_url(*url));
                self.tell(urls, 0, rules);
            }
            JournalEntry::Robots { origin, at, answer, took } => {
                self.count_request(*at, *took, 0);
                let answer = answer.as_ref().map(|(status, body)| (*status, body.as_slice())).map_err(|failure| *failure);
                self.robots_answered(origin, *at, answer, rules);
            }
            JournalEntry::Moved { from, to, address } => self.move_to(*from, *to, *address),
            JournalEntry::Visited { .. } => self.visited(entry, rules, key),
            JournalEntry::Skipped { url, reason: SkipReason::OtherScheme } => self.superseded(url),
            JournalEntry::Skipped { url, reason } => self.skipped(key.of(url.as_str()), *reason),
        }
        self.bring_up_to_date(rules);
    }

    /// What the record says of the whole run, after each entry.
    fn bring_up_to_date(&mut self, rules: &SiteRules) {
        self.record.status = self.status();
        self.record.held_back = self.held.counts();
        self.record.state = self.state(rules);
        self.record.waiting = self.frontier.len() as u64;
        self.count_gone();
        let waits = !self.frontier.is_empty() || self.record.held_back.urls_not_queued > 0;
        self.whole.replace(&self.record, waits, !self.is_home() || self.has_parts);
    }

    /// What came of asking for an origin's robots.txt: status and body, or why there is none.
    fn robots_answered(&mut self, origin: &Origin, at: WallTime, answer: Result<(u16, &[u8]), FetchError>, rules: &SiteRules) {
        let standing = self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin));
        standing.answered(at, answer, &rules.product_token);
        self.sum_up_robots(origin);
        self.count_setback(answer.ok().map(|(status, _)| status));
        self.record.crawl_delay_ms = self.robots.values().filter_map(RobotsStanding::wanted_delay).max();
        if let Err(failure) = answer {
            self.count_failure(failure);
        }
    }

    /// Takes in the URLs that an entry names: they are new, or were left out until now.
    fn take_in(&mut self, entry: &JournalEntry, urls: &[(PageUrl, u8, u8)], rules: &SiteRules, key: &FingerprintKey) {
        for (url, level, hops) in urls {
            if (*level, *hops) == (0, 0) {
                self.start(url);
            }
            let page = key.of(url.as_str());
            let waits = self.frontier.contains(page);
            match entry {
                JournalEntry::Raised { .. } if self.left_out.remove(&page) => {
                    self.record.cut_by_yield = self.record.cut_by_yield.saturating_sub(1);
                }
                JournalEntry::Raised { .. } if self.held.queued(page) => {}
                // It counts among what waits from now on.
                JournalEntry::Raised { .. } if !waits => self.record.cut_by_depth = self.record.cut_by_depth.saturating_sub(1),
                JournalEntry::Reopened { .. } if !waits => self.record.cut_by_script = self.record.cut_by_script.saturating_sub(1),
                _ => self.record.known += u64::from(!waits),
            }
            self.enter(url, *level, *hops, rules, key);
        }
    }

    /// A page was visited: what came of it, and what it names.
    fn visited(&mut self, entry: &JournalEntry, rules: &SiteRules, key: &FingerprintKey) {
        let JournalEntry::Visited {
            url,
            level,
            at,
            outcome,
            took,
            first_byte_us,
            bytes,
            software,
            children,
            found,
            beyond_scope,
            outgoing,
            rest,
        } = entry
        else {
            return;
        };
        first_byte_us.iter().for_each(|us| self.answered_after(*us));
        self.last_rest = rest.unwrap_or(0);
        self.has_parts |= outgoing.iter().any(|arrival| arrival.place.is_some());
        let page = key.of(url.as_str());
        let waited = self.frontier.remove(page);
        self.tried.remove(&page);
        if outcome.is_redirect() && !children.is_empty() && self.redirects.len() < MAX_REDIRECTS {
            self.redirects.insert(page);
        }
        // Another URL of its script took its place while it was being asked for; or it was asked for twice.
        let had_lost = !waited && url.script().is_some();
        self.record.cut_by_script = self.record.cut_by_script.saturating_sub(u64::from(had_lost));
        let answered = !matches!(outcome, VisitOutcome::Failed(_));
        self.record.fetched += u64::from(answered && (waited || had_lost));
        self.record.unanswered += u64::from(!answered && (waited || had_lost));
        if let Some(script) = url.script().filter(|_| self.scripts.len() < MAX_SCRIPTS) {
            self.scripts.insert(key.of(script));
        }
        self.visited_last = Some(url.clone());
        self.budget_used += 1;
        self.count_request(*at, *took, *level);
        self.count_outcome(outcome, *level);
        self.record.bytes = self.record.bytes.saturating_add(*bytes);
        let counts = self.level(*level);
        counts.bytes = counts.bytes.saturating_add(*bytes);
        if outcome.is_page() {
            self.record.page_bytes = self.record.page_bytes.saturating_add(*bytes);
        }
        self.learn_software(software.as_ref(), outcome);
        for (url, level, hops) in found {
            self.record.known += u64::from(!self.frontier.contains(key.of(url.as_str())));
            self.enter(url, *level, *hops, rules, key);
        }
        let before = self.record.external_hosts;
        for host in beyond_scope.iter().cloned().chain(outgoing.iter().filter(|a| a.place.is_none()).map(|a| a.url.host())) {
            self.count_external(&host, *level, key);
        }
        self.yields.ask(url, key);
        self.tell(&[], self.record.external_hosts - before, rules);
    }

    /// A page is not asked for in this run.
    fn skipped(&mut self, page: Fingerprint, reason: SkipReason) {
        self.tried.remove(&page);
        self.frontier.remove(page);
        self.record.refused_by_crawl_delay += u64::from(reason == SkipReason::CrawlDelay);
        self.record.refused_by_robots_unavailable += u64::from(reason == SkipReason::RobotsUnavailable);
        match reason {
            SkipReason::Robots | SkipReason::RobotsUnavailable | SkipReason::CrawlDelay => self.record.refused_by_robots += 1,
            SkipReason::Script => self.record.cut_by_script += 1,
            SkipReason::Yield => {
                self.record.cut_by_yield += 1;
                if self.left_out.len() < MAX_LEFT_OUT {
                    self.left_out.insert(page);
                }
            }
            SkipReason::Denied | SkipReason::TooManyRedirects => self.record.set_aside += 1,
            // Takes back what was counted, and counts nothing.
            SkipReason::OtherScheme => {}
        }
    }

    /// A starting URL was refused since its robots.txt could not be had, and stands for nothing any more.
    fn superseded(&mut self, url: &PageUrl) {
        if self.starts.remove(url) {
            let record = &mut self.record;
            for count in [&mut record.known, &mut record.refused_by_robots, &mut record.refused_by_robots_unavailable] {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Whether a URL is a starting one that was refused since its robots.txt could not be had.
    pub(crate) fn is_unreachable_start(&self, url: &PageUrl, key: &FingerprintKey) -> bool {
        let waits = self.frontier.contains(key.of(url.as_str()));
        self.starts.contains(url) && !waits && self.robots_refusal(url) == Some(SkipReason::RobotsUnavailable)
    }

    /// Whether no further URL of a script is asked for: one was, or no further script is visited.
    fn is_done_with(&self, script: Fingerprint) -> bool {
        self.scripts.contains(&script) || self.scripts.len() >= MAX_SCRIPTS
    }

    fn start(&mut self, url: &PageUrl) {
        if self.starts.len() < MAX_STARTS {
            self.starts.insert(url.clone());
        }
    }

    /// A URL of this site becomes known, or comes nearer.
    fn enter(&mut self, url: &PageUrl, level: u8, hops: u8, rules: &SiteRules, key: &FingerprintKey) {
        let fingerprint = key.of(url.as_str());
        if level > self.depth(rules) {
            self.record.cut_by_depth += 1;
            return;
        }
        let script = url.script().map(|script| key.of(script));
        if script.is_some_and(|script| self.is_done_with(script)) && !self.frontier.contains(fingerprint) {
            self.record.cut_by_script += 1;
            return;
        }
        let entered = self.frontier.enter(Waiting { url: url.clone(), fingerprint, level, hops }, script);
        self.record.cut_by_script += u64::from(entered.beaten);
    }

    /// What to ask next, in the order of levels and within a level in the order of discovery (LL-3, LL-22).
    pub fn next(&self, now: WallTime, rules: &SiteRules, key: &FingerprintKey) -> Next {
        if let Some(read) = &self.reading {
            return ahead::ahead_of(self, read, now, rules, key).map_or(Next::Nothing, Next::Fetch);
        }
        if self.is_busy() || self.state(rules) == RunState::PausedByBudget {
            return Next::Nothing;
        }
        let Some(waiting) = self.frontier.first() else { return Next::Nothing };
        // Starting URLs are what was asked for, whatever they bring.
        if waiting.level > 0 && self.yields.too_little(&waiting.url, rules.price, key) {
            return Next::Skip(waiting.url.clone(), SkipReason::Yield);
        }
        let origin = waiting.url.origin();
        let fresh;
        let standing = match self.robots.get(&origin) {
            Some(standing) => standing,
            None => {
                fresh = RobotsStanding::new(&origin);
                &fresh
            }
        };
        if let Some(url) = standing.to_ask(now) {
            return Next::Fetch(self.order(url, FetchPurpose::Robots));
        }
        if let Some(reason) = standing.forbids(&waiting.url) {
            return Next::Skip(waiting.url.clone(), reason);
        }
        if waiting.url.script().is_some_and(|script| self.is_done_with(key.of(script))) {
            return Next::Skip(waiting.url.clone(), SkipReason::Script);
        }
        Next::Fetch(self.order(waiting.url.clone(), FetchPurpose::Page))
    }

    /// Notes that an order of [`Site::next`] is under way.
    pub fn sent(&mut self, order: &FetchOrder, key: &FingerprintKey) {
        self.asking = match order.purpose {
            // A robots.txt that moved may lie elsewhere; the question is still the origin's that waits first.
            FetchPurpose::Robots => self.frontier.first().map(|waiting| Asking::Robots(waiting.url.origin())),
            FetchPurpose::Page => self.frontier.get(key.of(order.url.as_str())).cloned().map(Asking::Page),
        };
    }

    /// What the last request took: politeness waits a multiple of it.
    pub(crate) fn last_took(&self) -> Millis {
        self.last_took
    }

    /// For how long to leave the server alone after one more 429 or 503, whatever `Retry-After` says: twice as long each time.
    pub(crate) fn back_off(&self) -> Millis {
        FIRST_BACK_OFF.saturating_mul(1 << self.setbacks.min(16)).min(MAX_BACK_OFF)
    }

    /// For how long the server was to be left alone after its last answer: because it asked for that, or by [`Site::back_off`].
    pub(crate) fn last_rest(&self) -> Millis {
        self.last_rest
    }

    /// Whether a URL was left out because too little was to be expected of it.
    pub fn left_out(&self, url: Fingerprint) -> bool {
        self.left_out.contains(&url)
    }

    /// What the server is, in one word, by its answers so far.
    fn status(&self) -> ServerStatus {
        let answers = &self.record.by_status;
        if self.record.pages > 0 {
            ServerStatus::Up
        } else if !answers.is_empty() {
            if answers.keys().all(|status| matches!(status, 401 | 403 | 429 | 451)) { ServerStatus::Refused } else { ServerStatus::NoPages }
        } else if self.record.by_failure.contains_key(&FetchError::Challenged) {
            ServerStatus::Refused
        } else if self.record.requests == 0 {
            ServerStatus::Waiting
        } else if self.robots.values().all(RobotsStanding::unreachable) {
            ServerStatus::Down
        } else if self.record.refused_by_robots > self.record.refused_by_robots_unavailable {
            ServerStatus::Robots
        } else if self.record.refused_by_robots > 0 {
            ServerStatus::RobotsUnavailable
        } else if self.record.failed > 0 {
            ServerStatus::Down
        } else {
            ServerStatus::Waiting
        }
    }

    /// Whether something can be asked now or later in this slot.
    pub(crate) fn wants(&self, rules: &SiteRules) -> bool {
        let goes_on = !self.wishes.is_unwanted && self.state(rules) != RunState::PausedByBudget;
        self.frontier.first().is_some() && !self.is_busy() && goes_on
    }

    /// Whether it is paused by its page budget, and since a slot's length.
    pub(crate) fn may_resume(&self, now: WallTime, slot: Millis) -> bool {
        self.record.state == RunState::PausedByBudget && self.resumes_in(now, slot) == 0
    }

    /// In how long a run that its page budget paused goes on.
    pub(crate) fn resumes_in(&self, now: WallTime, slot: Millis) -> Millis {
        slot.saturating_sub(now.0.saturating_sub(self.slot.0))
    }

    /// Whether this run is over: nothing waits, nothing is under way.
    pub fn finished(&self) -> bool {
        self.frontier.is_empty() && !self.is_busy()
    }

    fn state(&self, rules: &SiteRules) -> RunState {
        if self.frontier.is_empty() {
            self.record.state_when_over()
        } else if rules.pages_per_run > 0 && self.budget_used >= rules.pages_per_run {
            RunState::PausedByBudget
        } else {
            RunState::Running
        }
    }
}

/// The record of a run of which nothing is known yet.
fn new_record(key: &JournalKey, address: IpAddr, tree: &Host) -> ServerRecord {
    ServerRecord {
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
        fetched: 0,
        unanswered: 0,
        waiting: 0,
        set_aside: 0,
        cut_by_depth: 0,
        refused_by_robots: 0,
        cut_by_script: 0,
        cut_by_yield: 0,
        failed: 0,
        by_status: BTreeMap::new(),
        external_hosts: 0,
        external_urls: 0,
        external_domains: 0,
        deepest: 0,
        first_visit_at: None,
        last_visit_at: None,
        no_index: 0,
        no_follow: 0,
        crawl_delay_ms: None,
        refused_by_crawl_delay: 0,
        refused_by_robots_unavailable: 0,
        changes: None,
        levels: Vec::new(),
        by_failure: BTreeMap::new(),
        evaluation: None,
        next_run: None,
        evaluation_rules: None,
        page_bytes: 0,
        held_back: Default::default(),
        facts: None,
        failing_pages: FailingPages::default(),
        crawled_by: None,
    }
}

#[cfg(test)]
mod tests;
