//! State of one origin's robots.txt (unknown, moved, answered, or not to be had), and whether a page may be requested by it.

use super::{
    Asking, MAX_TRIED, Site,
    robots::{Robots, RobotsVerdict, verdict},
};
use crate::crawl::politeness::MAX_CRAWL_DELAY;
use nearcrawl_model::{
    facts::RobotsSummary,
    fetch::FetchError,
    fingerprint::Fingerprint,
    journal::SkipReason,
    time::{Millis, WallTime},
    url::{Host, Origin, PageUrl},
    view::Span,
};

/// After a day robots.txt is asked for again (RFC 9309 §2.4).
const HOLDS: Millis = 24 * 3_600_000;

/// Redirects of a robots.txt that are followed in a row: five are the least that RFC 9309 §2.3.1.2 asks for.
const MAX_ROBOTS_REDIRECTS: u8 = 5;

/// How often is asked where a robots.txt that moved to another host is, about once a second; then it is given up for this run.
const MAX_SEARCHES: u8 = 60;

/// Waits before a robots.txt that could not be had is asked for again; then it is given up for this run.
const ROBOTS_RETRY_DELAYS: [Millis; 2] = [3_000, 15_000];

/// How long a server rests after it did not answer for a page, at least, before it is asked for that once more.
const PAGE_AGAIN: Millis = 5_000;

#[derive(Debug)]
enum Known {
    Nothing,
    Rules(Robots),
    Unavailable,
}

/// One origin's robots.txt.
#[derive(Debug)]
pub(crate) struct RobotsStanding {
    known: Known,
    since: WallTime,
    /// Where the origin's own lies; none if there is no such URL.
    home: Option<PageUrl>,
    /// Where it was last said to have moved to.
    moved: Option<PageUrl>,
    hops: u8,
    searches: u8,
    failures: usize,
    unreachable: bool,
    /// What the answer that counts comes to.
    summary: Option<RobotsSummary>,
}

impl RobotsStanding {
    /// Nothing known yet.
    pub(super) fn new(origin: &Origin) -> RobotsStanding {
        RobotsStanding {
            known: Known::Nothing,
            since: WallTime(0),
            home: origin.page("/robots.txt").ok(),
            moved: None,
            hops: 0,
            searches: 0,
            failures: 0,
            unreachable: false,
            summary: None,
        }
    }

    /// What to ask for before anything else may be asked; none if it is known.
    pub(crate) fn to_ask(&self, now: WallTime) -> Option<PageUrl> {
        let stale = now.0.saturating_sub(self.since.0) > HOLDS;
        if matches!(self.known, Known::Nothing) || stale { self.moved.clone().or_else(|| self.home.clone()) } else { None }
    }

    /// It moved. False if it moved too often.
    pub(super) fn moved(&mut self, to: &PageUrl) -> bool {
        self.hops += 1;
        self.moved = Some(to.clone());
        self.hops <= MAX_ROBOTS_REDIRECTS
    }

    /// It moved to a host whose address is not known yet. False if that has taken too long.
    pub(crate) fn searched(&mut self) -> bool {
        self.searches += 1;
        self.searches <= MAX_SEARCHES
    }

    /// It could not be had: wait this long and ask again, or give up.
    pub(super) fn failed(&mut self) -> Option<Millis> {
        self.failures += 1;
        ROBOTS_RETRY_DELAYS.get(self.failures - 1).copied()
    }

    /// The answer that counts.
    pub(super) fn answered(&mut self, at: WallTime, answer: Result<(u16, &[u8]), FetchError>, product_token: &str) {
        self.since = at;
        // Tomorrow the origin is asked itself: it may have moved elsewhere.
        self.moved = None;
        self.hops = 0;
        self.searches = 0;
        self.failures = 0;
        // A server that sent us where we cannot ask did answer.
        self.unreachable = answer.is_err_and(|failure| failure != FetchError::BadRedirect);
        let is_file = answer.is_ok_and(|(status, _)| (200..=299).contains(&status));
        (self.summary, self.known) = match verdict(answer, product_token) {
            RobotsVerdict::Rules(robots) => (Some(if is_file { robots.summary() } else { RobotsSummary::Absent }), Known::Rules(robots)),
            RobotsVerdict::Unavailable => (Some(RobotsSummary::Unavailable), Known::Unavailable),
        };
    }

    /// Why this page may not be asked for, if it may not.
    pub(crate) fn forbids(&self, url: &PageUrl) -> Option<SkipReason> {
        match &self.known {
            // Nothing may be asked before it is known; there is nothing to wait for if it has no URL.
            Known::Nothing | Known::Unavailable => Some(SkipReason::RobotsUnavailable),
            Known::Rules(robots) if robots.crawl_delay().is_some_and(|delay| delay > MAX_CRAWL_DELAY) => Some(SkipReason::CrawlDelay),
            Known::Rules(robots) => (!robots.allows(url.path_and_query())).then_some(SkipReason::Robots),
        }
    }

    /// What the answer that counts comes to, if one came.
    pub(super) fn summary(&self) -> Option<RobotsSummary> {
        self.summary
    }

    /// How it wants content to be used, by its first such line.
    pub(super) fn content_usage(&self) -> Option<&str> {
        match &self.known {
            Known::Rules(robots) => robots.content_usage(),
            Known::Nothing | Known::Unavailable => None,
        }
    }

    /// Whether the last that was heard of this origin is that it did not answer at all.
    pub(super) fn unreachable(&self) -> bool {
        self.unreachable
    }

    /// The crawl-delay it asks for, however long.
    pub(crate) fn wanted_delay(&self) -> Option<Millis> {
        match &self.known {
            Known::Rules(robots) => robots.crawl_delay(),
            Known::Nothing | Known::Unavailable => None,
        }
    }

    /// The crawl-delay that is waited out. Where it is longer than that, nothing is asked, so there is nothing to wait for.
    pub(crate) fn crawl_delay(&self) -> Option<Millis> {
        self.wanted_delay().filter(|delay| *delay <= MAX_CRAWL_DELAY)
    }

    /// When the answer that counts came, if one did.
    pub(super) fn since(&self) -> Option<WallTime> {
        (!matches!(self.known, Known::Nothing)).then_some(self.since)
    }

    /// Why this page is not asked for in this run, once that is known.
    pub(super) fn refusal(&self, url: &PageUrl) -> Option<SkipReason> {
        self.forbids(url).filter(|_| !matches!(self.known, Known::Nothing))
    }

    /// What it says of a URL, in words.
    pub(super) fn words(&self, url: &PageUrl) -> String {
        match (&self.known, self.forbids(url)) {
            (Known::Nothing, _) => "not fetched yet".to_owned(),
            (Known::Unavailable, _) => "could not be fetched, so nothing is requested".to_owned(),
            (_, Some(SkipReason::CrawlDelay)) => format!(
                "demands a pause of {} between requests, more than the limit of {}, so nothing is requested",
                Span(self.wanted_delay().unwrap_or(Millis::MAX)),
                Span(MAX_CRAWL_DELAY)
            ),
            (_, Some(_)) => "forbids it".to_owned(),
            (_, None) => "allows it".to_owned(),
        }
    }
}

impl Site {
    /// robots.txt answered with a redirect. Returns whether it is followed (at most five hops, to other hosts too); if not, the
    /// caller enters it as "there is none".
    pub(crate) fn robots_moved(&mut self, origin: &Origin, to: &PageUrl) -> bool {
        self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin)).moved(to)
    }

    /// robots.txt moved to a host of which it is not known yet where it is and who may ask it. Returns whether to look again
    /// soon; if not, the caller enters that it could not be had.
    pub(crate) fn robots_searched(&mut self, origin: &Origin) -> bool {
        self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin)).searched()
    }

    /// robots.txt could not be had. Returns for how long to wait before it is asked again, or none if it is given up for this
    /// run; then the caller enters the failure.
    pub(crate) fn robots_failed(&mut self, origin: &Origin) -> Option<Millis> {
        self.robots.entry(origin.clone()).or_insert_with(|| RobotsStanding::new(origin)).failed()
    }

    /// A page could not be had. Returns for how long to wait before it is asked for once more, or none if it has been already, or if that
    /// would not help; then the caller enters the failure. It is not written down: a new owner has tries of its own.
    pub(crate) fn page_failed(&mut self, page: Fingerprint, failure: FetchError) -> Option<Millis> {
        let again = failure.is_transient() && self.tried.len() < MAX_TRIED && !self.tried.contains(&page);
        again.then(|| {
            self.tried.insert(page);
            PAGE_AGAIN
        })
    }

    /// The crawl-delay that robots.txt asks for, if it does.
    pub(crate) fn crawl_delay(&self, origin: &Origin) -> Option<Millis> {
        self.robots.get(origin)?.crawl_delay()
    }

    /// The longest crawl-delay of its origins.
    pub(crate) fn slowest_crawl_delay(&self) -> Option<Millis> {
        self.robots.values().filter_map(RobotsStanding::crawl_delay).max()
    }

    /// The host that is being asked: this one, unless it is for a robots.txt that moved to another one.
    pub(crate) fn asked_host(&self, now: WallTime) -> Host {
        let moved = match &self.asking {
            Some(Asking::Robots(origin)) => self.robots.get(origin).and_then(|standing| standing.to_ask(now)),
            Some(Asking::Page(_)) | None => None,
        };
        moved.map_or_else(|| self.key.host.clone(), |url| url.host())
    }

    /// Why robots.txt keeps a URL from being asked for, if it does.
    pub(crate) fn robots_refusal(&self, url: &PageUrl) -> Option<SkipReason> {
        self.robots.get(&url.origin()).and_then(|standing| standing.refusal(url))
    }

    /// What robots.txt says of a URL, in words.
    pub(crate) fn robots_says(&self, url: &PageUrl) -> Option<String> {
        self.robots.get(&url.origin()).map(|standing| standing.words(url))
    }

    /// When the robots.txt that holds for a URL was answered, if it was.
    pub(crate) fn robots_since(&self, url: &PageUrl) -> Option<WallTime> {
        self.robots.get(&url.origin()).and_then(RobotsStanding::since)
    }
}
