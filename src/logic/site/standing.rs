//! May we ask this? How we stand with one origin's robots.txt: unknown, moved, answered, or not to be had.

use super::{
    LONGEST_CRAWL_DELAY,
    robots::{Robots, RobotsVerdict, verdict},
};
use crate::model::{
    fetch::FetchFailure,
    journal::SkipReason,
    time::{Millis, WallTime},
    url::{Origin, PageUrl},
};

/// After a day robots.txt is asked for again (RFC 9309 §2.4).
const HOLDS: Millis = 24 * 3_600_000;

/// Redirects that are followed (RFC 9309 §2.3.1.2).
const MOST_HOPS: u8 = 5;

/// Waits before a robots.txt that could not be had is asked for again; then it is given up for this run.
const PATIENCE: [Millis; 2] = [3_000, 15_000];

#[derive(Debug)]
enum Known {
    Nothing,
    Rules(Robots),
    Unavailable,
}

/// One origin's robots.txt.
#[derive(Debug)]
pub struct RobotsStanding {
    known: Known,
    since: WallTime,
    ask: Option<PageUrl>,
    hops: u8,
    failures: usize,
    unreachable: bool,
}

impl RobotsStanding {
    /// Nothing known yet.
    pub fn new(origin: &Origin) -> RobotsStanding {
        RobotsStanding {
            known: Known::Nothing,
            since: WallTime(0),
            ask: origin.page("/robots.txt").ok(),
            hops: 0,
            failures: 0,
            unreachable: false,
        }
    }

    /// What to ask for before anything else may be asked; none if it is known.
    pub fn to_ask(&self, now: WallTime) -> Option<PageUrl> {
        let stale = now.0.saturating_sub(self.since.0) > HOLDS;
        if matches!(self.known, Known::Nothing) || stale { self.ask.clone() } else { None }
    }

    /// It moved. False if it moved too often.
    pub fn moved(&mut self, to: &PageUrl) -> bool {
        self.hops += 1;
        self.ask = Some(to.clone());
        self.hops <= MOST_HOPS
    }

    /// It could not be had: wait this long and ask again, or give up.
    pub fn failed(&mut self) -> Option<Millis> {
        self.failures += 1;
        PATIENCE.get(self.failures - 1).copied()
    }

    /// The answer that counts.
    pub fn answered(&mut self, at: WallTime, answer: Result<(u16, &[u8]), FetchFailure>, product_token: &str) {
        self.since = at;
        self.hops = 0;
        self.failures = 0;
        self.unreachable = answer.is_err();
        self.known = match verdict(answer, product_token) {
            RobotsVerdict::Rules(robots) => Known::Rules(robots),
            RobotsVerdict::Unavailable => Known::Unavailable,
        };
    }

    /// Why this page may not be asked for, if it may not.
    pub fn forbids(&self, url: &PageUrl) -> Option<SkipReason> {
        match &self.known {
            Known::Nothing => None,
            Known::Unavailable => Some(SkipReason::RobotsUnavailable),
            Known::Rules(robots) if robots.crawl_delay().is_some_and(|delay| delay > LONGEST_CRAWL_DELAY) => Some(SkipReason::CrawlDelay),
            Known::Rules(robots) => (!robots.allows(url.path_and_query())).then_some(SkipReason::Robots),
        }
    }

    /// Whether the last that was heard of this origin is that it did not answer at all.
    pub fn unreachable(&self) -> bool {
        self.unreachable
    }

    /// The crawl-delay it asks for.
    pub fn crawl_delay(&self) -> Option<Millis> {
        match &self.known {
            Known::Rules(robots) => robots.crawl_delay().map(|delay| delay.min(LONGEST_CRAWL_DELAY)),
            Known::Nothing | Known::Unavailable => None,
        }
    }

    /// When the answer that counts came, if one did.
    pub fn since(&self) -> Option<WallTime> {
        (!matches!(self.known, Known::Nothing)).then_some(self.since)
    }

    /// What it says of a URL, in words.
    pub fn words(&self, url: &PageUrl) -> String {
        match (&self.known, self.forbids(url)) {
            (Known::Nothing, _) => "not asked yet".to_owned(),
            (Known::Unavailable, _) => "could not be had, so nothing is asked".to_owned(),
            (_, Some(SkipReason::CrawlDelay)) => "asks for a longer delay than we wait, so nothing is asked".to_owned(),
            (_, Some(_)) => "forbids it".to_owned(),
            (_, None) => "allows it".to_owned(),
        }
    }
}
