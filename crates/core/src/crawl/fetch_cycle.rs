//! Its turn has come: ask the server, then name what it links to.
//!
//! A visit goes through four steps: the front hands out an address's token → the site says what to ask → the answer comes back and the
//! address rests → the seen set says which links are new; only then the visit is a journal entry and the site may be asked again.

use crate::crawl::site::{Asking, Next, Site, asks_for_patience, former::Memory};
use crate::{
    crawl::{
        admission::{Candidate, SeenPurpose},
        revisits::change,
        robots::{Asked, SEARCH_AGAIN},
    },
    crawler::Crawler,
    event::{Command, StoreCommand},
};
use nearcrawl_model::{
    evaluation::Evaluated,
    fetch::{FetchError, FetchOutcome, FetchReport, PageFacts, ProbeKind},
    fingerprint::Fingerprint,
    journal::{Arrival, JournalEntry, Place, SkipReason, VisitOutcome},
    links::Links,
    revisit::{Former, Validators},
    seen::{SeenAnswer, SeenBatch, SeenVisit},
    url::{Host, PageUrl},
};
use std::{collections::BTreeSet, net::IpAddr};

/// Redirects that are followed in a row.
const MAX_HOPS: u8 = 5;

/// External hosts that one run of one site may name.
const MAX_NEW_HOSTS: u64 = 500;

/// The seen set tells levels apart up to here; links that leave the site are asked about at this depth, so that none is "cut".
const NO_DEPTH: u8 = 63;

/// A visit whose links wait for the seen set.
#[derive(Debug)]
pub(crate) struct Digest {
    host: Host,
    number: u64,
    entry: JournalEntry,
    /// What the next run needs of it, and what was named out of scope.
    further: Vec<JournalEntry>,
    internal: Vec<Candidate>,
    outgoing: Vec<Arrival>,
}

impl Digest {
    /// The host whose page was visited.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
}

impl Crawler {
    /// Sends what may be sent now.
    pub(crate) fn visit(&mut self) {
        if self.held_back().is_some() {
            return;
        }
        while let Some((address, host)) = self.crawl.scheduler.take(self.context.now.moment) {
            if !self.send(address, &host) {
                self.crawl.scheduler.give_back(address, self.context.now.moment);
            }
        }
    }

    /// Asks the site for its next question; false if it has none.
    pub(crate) fn send(&mut self, address: IpAddr, host: &Host) -> bool {
        loop {
            let Some(site) = self.crawl.sites.get(host) else { return false };
            let mine = self.ownership.register.claim(&site.key.subnet).is_some_and(|claim| claim.owner == self.context.me);
            if !mine || self.ownership.is_watched(&site.key.subnet) || self.migration.has_stopped(&site.key.subnet) || self.asleep(site) {
                return false;
            }
            if self.context.settings.scope.denies(host)
                && let Some(url) = site.frontier.first().map(|waiting| waiting.url.clone())
            {
                // Denied since it was named: what waits is set aside, and nothing is asked.
                let level = site.frontier.first().map_or(0, |first| first.level);
                self.skip(host, url, level, SkipReason::Denied);
                continue;
            }
            match site.next(self.context.now.wall, &self.context.settings.rules, &self.context.secret) {
                Next::Nothing => return false,
                Next::Skip(url, reason) => {
                    let level = site.frontier.first().map_or(0, |first| first.level);
                    self.skip(host, url, level, reason);
                }
                Next::Fetch(order) => {
                    let order = match self.place_of(host, order) {
                        Asked::There(order) if order.address == address => order,
                        // The token in hand is another server's.
                        Asked::There(order) => {
                            self.crawl.scheduler.want(order.address, host);
                            return false;
                        }
                        Asked::Later => {
                            self.crawl.scheduler.rest(address, self.context.now.moment.after(SEARCH_AGAIN));
                            self.crawl.scheduler.want(address, host);
                            return false;
                        }
                        Asked::Never => continue,
                    };
                    let Some(site) = self.crawl.sites.get_mut(host) else { return false };
                    site.sent(&order, &self.context.secret);
                    self.crawl.in_flight.insert(address, host.clone());
                    self.context.counters.requests += 1;
                    let request = self.request(host, order);
                    self.context.commands.push_back(request);
                    return true;
                }
            }
        }
    }

    /// Sets a URL aside. For the seen set it is settled like a visited one, so a shorter way to it does not open it again.
    pub(crate) fn skip(&mut self, host: &Host, url: PageUrl, level: u8, reason: SkipReason) {
        if reason == SkipReason::Yield {
            // It goes on waiting, in case it is named as a starting URL.
            return self.journal(host, JournalEntry::Skipped { url, reason });
        }
        let Some(site) = self.crawl.sites.get(host) else { return };
        let visited = Some(SeenVisit { page: self.context.secret.of(url.as_str()), level, children: Vec::new() });
        let batch = SeenBatch { site: site.number, depth: self.context.settings.rules.depth, visited, questions: Vec::new() };
        self.context.commands.push_back(Command::Store(StoreCommand::Seen { ticket: 0, batches: vec![batch] }));
        self.journal(host, JournalEntry::Skipped { url, reason });
    }

    /// Whether a site does not know yet where it stands.
    pub(crate) fn asleep(&self, site: &Site) -> bool {
        site.memory == Memory::Reading || self.crawl.awakening.contains_key(&site.number)
    }

    /// This site has something to ask, if it has.
    pub(crate) fn want(&mut self, host: &Host) {
        let Some(site) = self.crawl.sites.get(host) else { return };
        if site.wants(&self.context.settings.rules) && !self.asleep(site) {
            self.crawl.scheduler.want(site.address, host);
        }
    }

    /// An answer came, or none.
    pub(crate) fn fetched(&mut self, address: IpAddr, mut report: FetchReport, former: Option<Former>) {
        let read = self.read(address, &report.url);
        let rested = read.is_some();
        let (host, asking) = match read {
            Some((host, waiting)) => (host, waiting.map(Asking::Page)),
            None => {
                let Some(host) = self.crawl.in_flight.remove(&address) else { return };
                let asking = self.crawl.sites.get_mut(&host).and_then(|site| site.asking.take());
                (host, asking)
            }
        };
        let origin = report.url.origin();
        let delay = self.crawl.sites.get(&host).and_then(|site| site.crawl_delay(&origin));
        let patience = match &report.outcome {
            FetchOutcome::Status(status) | FetchOutcome::Robots { status, .. } => asks_for_patience(*status),
            FetchOutcome::Failed(failure) => {
                *self.context.counters.failures.entry(*failure).or_default() += 1;
                *failure == FetchError::Challenged
            }
            FetchOutcome::Page { .. } | FetchOutcome::NotModified { .. } | FetchOutcome::NotHtml { .. } | FetchOutcome::Redirect { .. } => {
                false
            }
        };
        if let Some(site) = self.crawl.sites.get(&host).filter(|_| patience) {
            report.retry_after = report.retry_after.max(Some(site.back_off()));
        }
        let rest = self.crawl.scheduler.politeness().rest_after(report.took, delay).max(report.retry_after.unwrap_or(0));
        let until = self.context.now.moment.after(rest);
        if rested {
            self.crawl.scheduler.rest(address, until)
        } else {
            self.crawl.scheduler.give_back(address, until)
        }
        self.context.counters.bytes += report.wire_bytes;
        let timing = match self.context.settings.probe {
            ProbeKind::Tcp => report.connect_us,
            ProbeKind::HttpHead => report.first_byte_us,
        };
        // A robots.txt that moved may have come from elsewhere.
        let subnet = self.crawl.sites.get(&host).filter(|site| site.address == address).map(|site| site.key.subnet);
        if let (Some(rtt_us), Some(subnet)) = (timing, subnet) {
            self.delegation.timed(&mut self.context, subnet, rtt_us);
        }
        if let Some(subnet) = subnet {
            self.time_access(subnet, &report);
        }
        match asking {
            None => {}
            Some(_) if report.outcome == FetchOutcome::Failed(FetchError::Cancelled) => self.want(&host),
            Some(Asking::Robots(origin)) => self.robots_came(&host, address, origin, report),
            Some(Asking::Page(waiting)) => {
                let candidate = Candidate { url: waiting.url, fingerprint: waiting.fingerprint, level: waiting.level, hops: waiting.hops };
                self.page_came(&host, candidate, report, former);
            }
        }
    }

    pub(crate) fn page_came(&mut self, host: &Host, page: Candidate, report: FetchReport, former: Option<Former>) {
        let Some(site) = self.crawl.sites.get_mut(host) else { return };
        site.digesting += 1;
        let (number, run, tree, external) = (site.number, site.key.run, site.tree.clone(), site.record.external_hosts);
        let software = report.software.filter(|software| site.record.software.as_ref() != Some(software));
        let not_modified = matches!(report.outcome, FetchOutcome::NotModified { .. });
        let (mut validators, mut content, mut size) = (Validators::default(), 0, report.wire_bytes);
        let (mut former, same_links) = former.map_or((None, Links::default()), |former| (Some(former.page), former.links));
        let mut evaluated = None;
        let (outcome, links, level, hops) = match report.outcome {
            FetchOutcome::Page { status, page: mut facts } => {
                (validators, content) = (std::mem::take(&mut facts.validators), facts.content);
                evaluated = facts.evaluation.take();
                (outcome_of(status, &facts), followed(facts), page.level + 1, 0)
            }
            // What the page asks of robots is asked still.
            FetchOutcome::NotModified { validators: now, no_index, no_follow } => {
                let was = former.as_ref();
                let (before_index, before_follow) = was.map_or((false, false), |was| was.outcome.asks_of_robots());
                (content, size) = was.map_or((0, 0), |was| (was.content, was.size));
                validators = was.map_or(now.clone(), |was| now.or(&was.validators));
                let (no_index, no_follow) = (no_index || before_index, no_follow || before_follow);
                let facts = PageFacts { links: same_links, no_index, no_follow, ..PageFacts::default() };
                (outcome_of(304, &facts), followed(facts), page.level + 1, 0)
            }
            FetchOutcome::Redirect { status, to } => (VisitOutcome::Redirect(status), Links::from_iter([to]), page.level, page.hops + 1),
            FetchOutcome::NotHtml { status, .. } => (VisitOutcome::NotHtml(status), Links::default(), 0, 0),
            FetchOutcome::Robots { status, .. } | FetchOutcome::Status(status) => (VisitOutcome::Status(status), Links::default(), 0, 0),
            FetchOutcome::Failed(failure) => (VisitOutcome::Failed(failure), Links::default(), 0, 0),
        };
        match &outcome {
            VisitOutcome::Page(_) | VisitOutcome::RestrictedPage { .. } => {
                self.context.counters.pages += 1;
                self.context.counters.not_modified += u64::from(not_modified);
            }
            VisitOutcome::Failed(_) => self.context.counters.failed += 1,
            VisitOutcome::NotHtml(_) | VisitOutcome::Redirect(_) | VisitOutcome::Status(_) => {}
        }
        let links = if hops > MAX_HOPS { Links::default() } else { links };
        let change = change(&outcome, content, not_modified, former.as_ref());
        let mut sorted = self.sort_links(host, &tree, run, level, hops, external, &links);
        let questions: Vec<_> = sorted.internal.iter().map(|c| (c.fingerprint, c.level)).collect();
        let visited = Some(SeenVisit { page: page.fingerprint, level: page.level, children: sorted.children.clone() });
        let depth = self.context.settings.rules.depth;
        let leaving = sorted.outgoing_prints.iter().map(|(print, level)| (*print, *level)).collect();
        let batches = vec![
            SeenBatch { site: number, depth, visited, questions },
            SeenBatch { site: self.crawl.links.scope(), depth: NO_DEPTH, visited: None, questions: leaving },
        ];
        if not_modified && let Some(former) = &mut former {
            evaluated = former.evaluation.take().map(|evaluation| Evaluated { evaluation, took_us: 0 });
            sorted.beyond_scope.append(&mut former.beyond_scope);
            sorted.beyond.append(&mut former.beyond);
        }
        let (elsewhere, named) = (std::mem::take(&mut sorted.elsewhere), std::mem::take(&mut sorted.named));
        let keep = change.is_some() || !elsewhere.is_empty();
        let kept = keep.then_some(JournalEntry::Kept {
            page: page.fingerprint,
            level: page.level,
            validators,
            content,
            size,
            change,
            elsewhere,
            named,
        });
        let beyond = (!sorted.beyond.is_empty()).then_some(JournalEntry::Beyond { page: page.fingerprint, urls: sorted.beyond });
        let evaluated =
            evaluated.map(|Evaluated { evaluation, took_us }| JournalEntry::Evaluated { page: page.fingerprint, evaluation, took_us });
        let further = kept.into_iter().chain(beyond).chain(evaluated).collect();
        let entry = JournalEntry::Visited {
            url: page.url,
            level: page.level,
            at: self.context.now.wall,
            outcome,
            took: report.took,
            first_byte_us: report.first_byte_us,
            bytes: report.wire_bytes,
            software,
            children: sorted.children,
            found: Vec::new(),
            outgoing: Vec::new(),
            beyond_scope: sorted.beyond_scope,
            rest: report.retry_after,
        };
        let digest = Digest { host: host.clone(), number, entry, further, internal: sorted.internal, outgoing: sorted.outgoing };
        let ticket = self.number();
        self.crawl.seen_pending.insert(ticket, SeenPurpose::Digest(Box::new(digest)));
        self.context.commands.push_back(Command::Store(StoreCommand::Seen { ticket, batches }));
    }

    /// Internal or external, in scope or not (LL-4, LL-5, LL-27); what the caches met lately is left out.
    #[expect(clippy::too_many_arguments, reason = "the site's traits are passed by value because the site itself is borrowed by its map")]
    pub(crate) fn sort_links(&mut self, host: &Host, tree: &Host, run: u32, level: u8, hops: u8, external: u64, links: &Links) -> Sorted {
        let mut sorted = Sorted { children: Vec::with_capacity(links.len()), ..Sorted::default() };
        let mut new_hosts = BTreeSet::new();
        let mut beyond = BTreeSet::new();
        let number = self.crawl.sites.get(host).map_or(0, |site| site.number);
        let crowded = self.crawl.waiting >= self.context.settings.max_waiting;
        for (url, fingerprint) in links.iter() {
            if url.host_str() == host.as_str() {
                if crowded {
                    // Not entered into the seen set either: whoever names it again later brings it back.
                    self.refuse("URLs beyond the limit of queued URLs");
                    continue;
                }
                sorted.children.push(fingerprint);
                if !self.crawl.links.met(number, fingerprint, level) {
                    sorted.internal.push(Candidate { url: url.to_url(), fingerprint, level, hops });
                }
                continue;
            }
            let target = url.host();
            if self.context.settings.scope.denies(&target) {
                self.refuse("hosts on the deny list");
                continue;
            }
            let place = if target.is_within(tree) {
                if level > self.context.settings.rules.depth {
                    continue;
                }
                Some(Place { tree: tree.clone(), level, hops })
            } else if !self.context.settings.scope.admits(&target) {
                beyond.insert(target);
                sorted.beyond.push(fingerprint.half());
                continue;
            } else {
                None
            };
            sorted.elsewhere.push(fingerprint);
            if self.crawl.sites.get(host).is_some_and(|site| !site.has_named(fingerprint)) {
                sorted.named.push(url.to_url());
            }
            let print = self.context.secret.of(target.as_str());
            if !self.crawl.links.admits_host(&target, print, self.context.now.moment) {
                // Not entered anywhere: tomorrow a link to it may be followed.
                self.refuse("new hosts beyond 50 per domain and day");
                continue;
            }
            if place.is_none() && !new_hosts.contains(&target) {
                if external + new_hosts.len() as u64 >= MAX_NEW_HOSTS {
                    self.refuse("new external hosts beyond 500 per site");
                    continue;
                }
                new_hosts.insert(target);
            }
            let level = place.as_ref().map_or(0, |place| place.level);
            let (known, print) = self.crawl.links.named(run, fingerprint, level);
            if !known {
                sorted.outgoing_prints.push((print, level));
                sorted.outgoing.push(Arrival { url: url.to_url(), place, run });
            }
        }
        self.context.counters.beyond_scope += beyond.len() as u64;
        sorted.beyond_scope = beyond.into_iter().collect();
        sorted
    }

    /// The seen set answered: the visit becomes a journal entry.
    pub(crate) fn digested(&mut self, digest: Digest, answers: Vec<Vec<SeenAnswer>>) {
        let Digest { host, number, mut entry, further, internal, outgoing } = digest;
        let Some(site) = self.crawl.sites.get_mut(&host).filter(|site| site.number == number) else { return };
        site.digesting = site.digesting.saturating_sub(1);
        // A shorter way was found while the page was on its way: what lies behind it comes nearer, too.
        let print =
            if let JournalEntry::Visited { url, level, .. } = &entry { Some((self.context.secret.of(url.as_str()), *level)) } else { None };
        let shorter =
            print.and_then(|(print, level)| site.frontier.get(print).filter(|page| page.level < level).map(|page| (print, page.level)));
        let depth = self.context.settings.rules.depth;
        let mut answers = answers.into_iter();
        let (mut found_here, mut nearer, mut cut) = (Vec::new(), Vec::new(), Vec::new());
        for (candidate, answer) in internal.into_iter().zip(answers.next().unwrap_or_default()) {
            match answer {
                SeenAnswer::New => {
                    if candidate.level > depth {
                        cut.push((candidate.fingerprint, candidate.url.as_str().to_owned()));
                    }
                    found_here.push((candidate.url, candidate.level, candidate.hops));
                }
                SeenAnswer::Known => {}
                SeenAnswer::Shorter { was } => nearer.push((candidate, was)),
            }
        }
        let leaving = outgoing.into_iter().zip(answers.next().unwrap_or_default());
        let leaving = leaving.filter(|(_, answer)| *answer != SeenAnswer::Known).map(|(arrival, _)| arrival).collect();
        if let JournalEntry::Visited { found, outgoing, .. } = &mut entry {
            *found = found_here;
            *outgoing = leaving;
        }
        if !cut.is_empty() {
            self.context.commands.push_back(Command::Store(StoreCommand::PutCut { site: number, urls: cut }));
        }
        self.journal(&host, entry);
        further.into_iter().for_each(|row| self.journal(&host, row));
        self.raise(&host, number, Vec::new(), shorter.into_iter().collect());
        self.came_nearer(&host, nearer);
        if let Some(subnet) = self.crawl.sites.get(&host).filter(|site| site.finished()).map(|site| site.key.subnet) {
            self.end_access(subnet);
        }
        self.want(&host);
    }
}

/// How a page is written down: what it asks of robots is kept, even if it has been obeyed already by leaving out the links.
fn outcome_of(status: u16, page: &PageFacts) -> VisitOutcome {
    let PageFacts { no_index, no_follow, .. } = *page;
    if no_index || no_follow { VisitOutcome::RestrictedPage { status, no_index, no_follow } } else { VisitOutcome::Page(status) }
}

/// The links that may be followed: none if the page says so, whatever the hand that read it brought.
fn followed(page: PageFacts) -> Links {
    if page.no_follow { Links::default() } else { page.links }
}

/// The links of one page, by where they lead.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    children: Vec<Fingerprint>,
    internal: Vec<Candidate>,
    outgoing: Vec<Arrival>,
    outgoing_prints: Vec<(Fingerprint, u8)>,
    beyond_scope: Vec<Host>,
    /// All that lead out of scope, each by half its fingerprint.
    beyond: Vec<u32>,
    /// All that lead to other sites in scope, and to other hosts of the tree.
    elsewhere: Vec<Fingerprint>,
    /// Those of them that the journal has not named yet.
    named: Vec<PageUrl>,
}
