//! One fetch: request, response, extracted links.
//!
//! A visit goes through four steps: the scheduler hands out an address's token → the site says what to ask → the answer comes back and the
//! address rests → the seen set says which links are new; only then the visit is a journal entry and the site may be asked again.

use super::{
    Crawl, CrawlReads,
    digest::{Digest, Reading, Request},
    fetches::Returned,
    link_filter::Candidate,
    revisits::request,
    robots::{self, Asked, SEARCH_AGAIN},
    seen_questions::SeenPurpose,
    site::{Asking, Next, Site, asks_for_patience},
};
use crate::{
    context::Context,
    event::{Command, StoreCommand},
    replication::Replication,
    signal::Signal,
};
use nearcrawl_model::{
    facts::Vantage,
    fetch::{FetchError, FetchOrder, FetchOutcome, FetchReport, ProbeKind},
    fingerprint::Fingerprint,
    ids::SeenTicket,
    journal::{Arrival, JournalEntry, SkipReason},
    previous_run::PreviousVersion,
    seen::{SeenAnswer, SeenBatch, SeenVisit},
    subnet::Subnet,
    time::Millis,
    url::{Host, Origin, PageUrl},
};
use std::net::IpAddr;

/// The seen set tells levels apart up to here; links that leave the site are asked about at this depth, so that none is "cut".
const NO_DEPTH: u8 = 63;

/// How often in a row it is a site's turn still because a URL was set aside or a robots.txt given up. Then its address rests for
/// [`SEARCH_AGAIN`], so that everything else goes on between.
pub(super) const MAX_AGAIN: usize = 1_024;

/// What came of a site's turn at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its server is asked something.
    Asked,
    /// A URL was set aside, or a robots.txt given up: it is its turn still.
    Again,
    /// It asks nothing now.
    Over,
}

/// An answer that its server has given.
#[derive(Debug)]
pub(crate) struct Answered {
    returned: Returned,
    /// Where its server is, if the answer came from there, and what that says of the way, in microseconds, if anything.
    pub(crate) subnet: Option<Subnet>,
    pub(crate) rtt_us: Option<u32>,
}

/// Servers are asked.
impl Crawl {
    /// Hands out the token of an address that may be asked now, with the site whose turn it is.
    pub(crate) fn next_turn(&mut self, cx: &Context) -> Option<(IpAddr, Host)> {
        self.fetches.next_turn(cx.now.moment)
    }

    /// Asks the site for its next question; `again` is how often it was its turn still. The address is free again if it has none.
    pub(crate) fn take_turn(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        others: CrawlReads<'_>,
        (address, host): (IpAddr, &Host),
        again: usize,
    ) -> Turn {
        let turn = match again {
            MAX_AGAIN.. => self.ask_later(cx, address, host),
            _ => self.ask_next(cx, replication, others, address, host),
        };
        if turn == Turn::Over {
            self.fetches.give_back(address, cx.now.moment);
        }
        turn
    }

    fn ask_next(&mut self, cx: &mut Context, replication: &mut Replication, others: CrawlReads<'_>, address: IpAddr, host: &Host) -> Turn {
        let Some(site) = self.sites.get(host).filter(|site| self.may_ask(cx, others, site)) else { return Turn::Over };
        if cx.is_denied(host, Some(site.address))
            && let Some(url) = site.frontier.first().map(|waiting| waiting.url.clone())
        {
            // Denied since it was named: what waits is set aside, and nothing is asked.
            self.skip(cx, replication, host, url, SkipReason::Denied);
            return Turn::Again;
        }
        // Whose robots.txt is asked for, wherever that may have moved: what comes of it counts for this origin, or it is asked for again.
        let Some(origin) = site.frontier.first().map(|waiting| waiting.url.origin()) else { return Turn::Over };
        let order = match site.next(cx.now.wall, &cx.settings.rules, &cx.secret) {
            Next::Nothing => return Turn::Over,
            Next::Skip(url, reason) => {
                self.skip(cx, replication, host, url, reason);
                return Turn::Again;
            }
            Next::Fetch(order) => FetchOrder { evaluate: site.wishes.evaluation, ..order },
        };
        match robots::place_of(cx, &mut self.sites, &mut self.links, replication, others, (host, &origin), order) {
            Asked::There(order) if order.address == address => {
                let Some(site) = self.sites.get_mut(host) else { return Turn::Over };
                site.sent(&order, &cx.secret);
                self.fetches.sent(address, host);
                cx.counters.requests += 1;
                let request = request(cx, site, order);
                cx.commands.push_back(request);
                Turn::Asked
            }
            // The token in hand is another server's.
            Asked::There(order) => {
                self.fetches.want_there(order.address, host);
                Turn::Over
            }
            Asked::Later => self.ask_later(cx, address, host),
            Asked::Never => self.given_up(cx, replication, host, origin),
        }
    }

    /// The site has its turn at this address once more in a while.
    fn ask_later(&mut self, cx: &Context, address: IpAddr, host: &Host) -> Turn {
        self.fetches.rest(address, cx.now.moment.after(SEARCH_AGAIN));
        self.fetches.want_there(address, host);
        Turn::Over
    }

    /// The server did answer, with a redirect that leads nowhere for us: the rules there cannot be had (RFC 9309 §2.3.1.4).
    fn given_up(&mut self, cx: &mut Context, replication: &mut Replication, host: &Host, origin: Origin) -> Turn {
        let answer = Err(FetchError::BadRedirect);
        self.journal(cx, replication, host, JournalEntry::Robots { origin, at: cx.now.wall, answer, took: 0 });
        Turn::Again
    }

    /// Whether a site's server may be asked anything now: it is ours for sure and stays so, and the site knows where it stands.
    pub(super) fn may_ask(&self, cx: &Context, others: CrawlReads<'_>, site: &Site) -> bool {
        let subnet = &site.key.subnet;
        let mine = others.ownership.register().claim(subnet).is_some_and(|claim| claim.owner == cx.me);
        let stays = !site.has_ended() && !self.moved.has_stopped(&site.key.host);
        let wanted = !site.wishes.is_unwanted;
        mine && stays
            && wanted
            && !cx.opted_out.covers(&site.key.host, Some(site.address))
            && !others.ownership.is_watched(subnet)
            && !others.migration.has_stopped(subnet)
            && !self.sites.is_asleep(site)
    }

    /// Sets the first URL that waits aside. For the seen set it is settled like a visited one, so a shorter way to it does not open it again.
    fn skip(&mut self, cx: &mut Context, replication: &mut Replication, host: &Host, url: PageUrl, reason: SkipReason) {
        // One that brings too little goes on waiting, in case it is named as a starting URL.
        if reason != SkipReason::Yield {
            let Some(site) = self.sites.get(host) else { return };
            let level = site.frontier.first().map_or(0, |first| first.level);
            let visited = Some(SeenVisit { page: cx.secret.of(url.as_str()), level, children: Vec::new() });
            let batch = SeenBatch { site: site.number, depth: site.depth(&cx.settings.rules), visited, questions: Vec::new() };
            cx.commands.push_back(Command::Store(StoreCommand::Seen { ticket: SeenTicket::NO_ANSWER, batches: vec![batch] }));
        }
        self.journal(cx, replication, host, JournalEntry::Skipped { url, reason });
    }

    /// A starting URL was a guess, and is asked for over another scheme: if its robots.txt could not be had it counts no more.
    pub(crate) fn supersede(&mut self, cx: &mut Context, replication: &mut Replication, url: PageUrl) {
        let host = url.host();
        if self.sites.get(&host).is_some_and(|site| site.is_unreachable_start(&url, &cx.secret)) {
            self.journal(cx, replication, &host, JournalEntry::Skipped { url, reason: SkipReason::OtherScheme });
        }
    }
}

/// Servers answer.
impl Crawl {
    /// A page came and is being read.
    pub(crate) fn body_received(&mut self, cx: &Context, address: IpAddr, took: Millis) {
        self.fetches.body_received(cx.now.moment, &mut self.sites, address, took);
    }

    /// An answer came, or none: its address rests. None if nothing was asked there.
    pub(crate) fn answer_came(&mut self, cx: &mut Context, address: IpAddr, report: &mut FetchReport) -> Option<Answered> {
        let returned = self.fetches.returned(&mut self.sites, address, &report.url)?;
        let site = self.sites.get(&returned.host);
        let patience = match &report.outcome {
            FetchOutcome::Status(status) | FetchOutcome::Robots { status, .. } => asks_for_patience(*status),
            FetchOutcome::Failed(failure) => {
                *cx.counters.failures.entry(*failure).or_default() += 1;
                *failure == FetchError::Challenged
            }
            FetchOutcome::Page { .. } | FetchOutcome::NotModified { .. } | FetchOutcome::NotHtml { .. } | FetchOutcome::Redirect { .. } => {
                false
            }
        };
        if let Some(site) = site.filter(|_| patience) {
            report.retry_after = report.retry_after.max(Some(site.back_off()));
        }
        let delay = site.and_then(|site| site.crawl_delay(&report.url.origin()));
        let wishes = site.map(|site| site.wishes).unwrap_or_default();
        let rest = wishes.rest_after(self.fetches.scheduler().politeness(), report.took, delay).max(report.retry_after.unwrap_or(0));
        self.fetches.rest_after(address, cx.now.moment.after(rest), returned.given_back);
        cx.counters.bytes += report.wire_bytes;
        let rtt_us = match cx.settings.probe {
            ProbeKind::Tcp => report.connect_us,
            ProbeKind::HttpHead => report.first_byte_us,
        };
        // A robots.txt that moved may have come from elsewhere.
        let subnet = site.filter(|site| site.address == address).map(|site| site.key.subnet);
        Some(Answered { returned, subnet, rtt_us })
    }

    /// The answer is read: a robots.txt, or a page.
    pub(crate) fn read_answer(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        address: IpAddr,
        answered: Answered,
        report: FetchReport,
        previous: Option<PreviousVersion>,
    ) {
        let Returned { host, asking, .. } = answered.returned;
        if asking.is_some() {
            self.learn(cx, replication, &host, &report);
        }
        match asking {
            None => {}
            Some(_) if report.outcome == FetchOutcome::Failed(FetchError::Cancelled) => self.want(cx, &host),
            Some(Asking::Robots(origin)) => self.robots_came(cx, replication, &host, address, origin, report),
            Some(Asking::Page(waiting)) => {
                if let FetchOutcome::Failed(failure) = report.outcome
                    && let Some(pause) = self.sites.get_mut(&host).and_then(|site| site.page_failed(waiting.fingerprint, failure))
                {
                    // It is the first that waits still.
                    self.fetches.rest(address, cx.now.moment.after(pause));
                    return self.want(cx, &host);
                }
                let candidate = Candidate { url: waiting.url, fingerprint: waiting.fingerprint, level: waiting.level, hops: waiting.hops };
                self.page_came(cx, &host, candidate, report, previous);
            }
        }
    }

    /// What an answer says of its server besides its pages is written down if it is new.
    fn learn(&mut self, cx: &mut Context, replication: &mut Replication, host: &Host, report: &FetchReport) {
        let Some(site) = self.sites.get(host) else { return };
        let facts = site.news(report, &vantage(cx));
        if !facts.is_empty() {
            self.journal(cx, replication, host, JournalEntry::Learnt { facts });
        }
    }

    /// robots.txt was answered: with a redirect, with rules, or not.
    fn robots_came(
        &mut self,
        cx: &mut Context,
        replication: &mut Replication,
        host: &Host,
        address: IpAddr,
        origin: Origin,
        report: FetchReport,
    ) {
        let Some(site) = self.sites.get_mut(host) else { return };
        let took = report.took;
        let Some(answer) = robots::answer(site, &origin, report.outcome) else { return self.want(cx, host) };
        if robots::is_failure(&answer)
            && let Some(pause) = site.robots_failed(&origin)
        {
            self.fetches.rest(address, cx.now.moment.after(pause));
            return self.want(cx, host);
        }
        self.journal(cx, replication, host, JournalEntry::Robots { origin: origin.clone(), at: cx.now.wall, answer, took });
        if let Some(site) = self.sites.get(host)
            && let Some(delay) = site.crawl_delay(&origin)
        {
            // It holds from the answer that says so.
            self.fetches.rest(site.address, cx.now.moment.after(delay));
        }
        self.want(cx, host);
    }

    /// A page came: the seen set is asked which of its links are new.
    fn page_came(&mut self, cx: &mut Context, host: &Host, page: Candidate, report: FetchReport, previous: Option<PreviousVersion>) {
        let Some(site) = self.sites.get_mut(host) else { return };
        site.digesting += 1;
        let site = &*site;
        let FetchReport { outcome, took, first_byte_us, wire_bytes, retry_after, software, .. } = report;
        let software = software.filter(|software| site.is_new_software(software));
        let number = site.number;
        let reading = Reading::of(outcome, &page, previous, wire_bytes);
        reading.count(&mut cx.counters);
        let crowded = self.sites.waiting() >= cx.settings.max_waiting;
        let Some(site) = self.sites.get(host) else { return };
        let mut sorted = self.links.sort(cx, site, crowded, (reading.level, reading.hops), &reading.links);
        let visited = Some(SeenVisit { page: page.fingerprint, level: page.level, children: sorted.children.clone() });
        let questions = sorted.internal.iter().map(|c| (c.fingerprint, c.level)).collect();
        let leaving = std::mem::take(&mut sorted.outgoing_prints);
        let batches = vec![
            SeenBatch { site: number, depth: site.depth(&cx.settings.rules), visited, questions },
            SeenBatch { site: self.links.scope(), depth: NO_DEPTH, visited: None, questions: leaving },
        ];
        let request = Request { took, first_byte_us, wire_bytes, retry_after, software };
        let digest = reading.digest(cx, (host.clone(), number), page, request, sorted);
        self.questions.ask(cx, batches, SeenPurpose::Digest(Box::new(digest)));
    }

    /// The seen set answered: the visit becomes a journal entry.
    pub(super) fn digested(&mut self, cx: &mut Context, replication: &mut Replication, digest: Digest, answers: Vec<Vec<SeenAnswer>>) {
        let Digest { host, site: number, mut entry, further, internal, outgoing: named, not_queued } = digest;
        let Some(site) = self.sites.numbered_mut(&host, number) else { return };
        site.digesting = site.digesting.saturating_sub(1);
        let (shorter, depth) = (shorter_meanwhile(cx, site, &entry), site.depth(&cx.settings.rules));
        let mut answers = answers.into_iter();
        let (mut found_here, mut nearer, mut cut, mut waits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (candidate, answer) in internal.into_iter().zip(answers.next().unwrap_or_default()) {
            match answer {
                SeenAnswer::New => {
                    if candidate.level > depth {
                        cut.push((candidate.fingerprint, candidate.url.as_str().to_owned()));
                    }
                    waits.extend(not_queued.get(&candidate.fingerprint).map(|level| (candidate.fingerprint, *level)));
                    found_here.push((candidate.url, candidate.level, candidate.hops));
                }
                SeenAnswer::Known => {}
                SeenAnswer::Shorter { was } => nearer.push((candidate, was)),
            }
        }
        if let JournalEntry::Visited { found, outgoing, .. } = &mut entry {
            (*found, *outgoing) = (found_here, not_known(named, answers.next().unwrap_or_default()));
        }
        if !cut.is_empty() {
            cx.commands.push_back(Command::Store(StoreCommand::PutCut { site: number, urls: cut }));
        }
        let by = self.sites.get(&host).and_then(|site| site.crawled_by(&cx.settings.rules));
        by.into_iter().chain([entry]).for_each(|row| self.journal(cx, replication, &host, row));
        if !waits.is_empty() {
            self.journal(cx, replication, &host, JournalEntry::NotQueued { urls: waits });
        }
        further.into_iter().for_each(|row| self.journal(cx, replication, &host, row));
        self.raise(cx, replication, (&host, number), Vec::new(), shorter.into_iter().collect());
        self.came_nearer(cx, replication, &host, nearer);
        if let Some(site) = self.sites.get(&host).filter(|site| site.finished()) {
            cx.signal(Signal::SiteFinished(site.key.subnet));
        }
        self.want(cx, &host);
    }
}

/// Where this access point is, by the first of its addresses that the hierarchy knows.
fn vantage(cx: &Context) -> Vantage {
    let place = |address: IpAddr| Some((address, cx.hierarchy.locate(address)?));
    let Some((address, position)) = cx.settings.own_addresses.iter().copied().find_map(place) else { return Vantage::default() };
    let country = Some(cx.hierarchy.country(position)).filter(|country| *country != "ZZ").map(str::to_owned);
    Vantage { country, asn: cx.hierarchy.asn_of(address) }
}

/// A shorter way to the visited page that was found while the page was on its way: what lies behind it comes nearer, too.
fn shorter_meanwhile(cx: &Context, site: &Site, visit: &JournalEntry) -> Option<(Fingerprint, u8)> {
    let JournalEntry::Visited { url, level, .. } = visit else { return None };
    let print = cx.secret.of(url.as_str());
    site.frontier.get(print).filter(|page| page.level < *level).map(|page| (print, page.level))
}

/// What leaves the site and was not named before.
fn not_known(named: Vec<Arrival>, answers: Vec<SeenAnswer>) -> Vec<Arrival> {
    named.into_iter().zip(answers).filter(|(_, answer)| *answer != SeenAnswer::Known).map(|(arrival, _)| arrival).collect()
}
