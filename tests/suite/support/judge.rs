//! Judges whether the web was crawled as it must be: the servers' log against what an independent traversal expects.

use nearcrawl_lab::demo::verdict::key;
use nearcrawl_lab::oracle::Expected;
use nearcrawl_lab::web::server::{Log, RequestSeen};
use nearcrawl_model::url::PageUrl;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// How much less than owed a pause may seem: the crawler and the servers take the time at different places.
const SLACK: Duration = Duration::from_millis(5);

/// Pages go into the record at least this often.
const RECORDED_WITHIN: Duration = Duration::from_secs(2);

/// Between asking for a page and handing its copy over on two busy cores.
const ON_THE_WAY: Duration = Duration::from_millis(1000);

/// Pauses are so many times as long as the answer before them.
const FACTOR: u32 = 10;

/// The sudden end of a daemon.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// Whose.
    pub who: Ipv4Addr,
    /// When, by the log's clock.
    pub when: Duration,
}

/// A log, and what it must show.
pub struct Judge<'a> {
    pub expected: &'a Expected,
    pub log: &'a Log,
    pub min_delay: Duration,
}

impl Judge<'_> {
    /// How many of the URLs that must be fetched were.
    pub fn fetched(&self) -> usize {
        let fetches = self.log.fetches();
        self.expected.fetched.keys().filter(|url| fetches.contains_key(&key(url))).count()
    }

    /// `Ok` if all were.
    pub fn all_fetched(&self) -> Result<(), String> {
        let (done, all) = (self.fetched(), self.expected.fetched.len());
        if done == all { Ok(()) } else { Err(format!("{done} of {all} URLs fetched")) }
    }

    /// All rules at once.
    pub fn check(&self, kills: &[Kill]) {
        self.everything_once_and_nothing_else(kills);
        self.one_at_a_time();
        self.pauses_kept();
    }

    /// Every reachable URL once, nothing below the depth or behind robots.txt; fetched again is only what had just been fetched by
    /// a daemon that was killed.
    pub fn everything_once_and_nothing_else(&self, kills: &[Kill]) {
        let mut by_url: BTreeMap<(String, String), Vec<RequestSeen>> = BTreeMap::new();
        let pages = self.log.requests().into_iter().filter(|request| request.method == "GET" && request.path != "/robots.txt");
        for request in pages {
            by_url.entry((request.host.clone(), request.path.clone())).or_default().push(request);
        }
        let must: BTreeSet<(String, String)> = self.expected.fetched.keys().map(key).collect();
        let missing: Vec<_> = must.iter().filter(|url| !by_url.contains_key(*url)).collect();
        assert!(missing.is_empty(), "{} never fetched: {:?}", missing.len(), &missing[..missing.len().min(10)]);
        let mut wrong = Vec::new();
        let mut again = Vec::new();
        for (url, requests) in &by_url {
            if !must.contains(url) {
                let parsed = PageUrl::parse(&format!("http://{}:8080{}", url.0, url.1)).ok();
                wrong.push(format!("{url:?}: {}", parsed.and_then(|url| self.expected.forbidden(&url)).unwrap_or("nobody links to it")));
            }
            let (last, earlier) = requests.split_last().expect("asked for at least once");
            again.extend(earlier.iter().filter(|request| !unrecorded(request, kills)).map(|request| format!("{request:?} and {last:?}")));
            if requests.len() > 1 + kills.len() {
                again.push(format!("{url:?} {} times", requests.len()));
            }
        }
        assert!(wrong.is_empty(), "{} fetched that must not be: {:?}", wrong.len(), &wrong[..wrong.len().min(10)]);
        let repeated = by_url.values().filter(|requests| requests.len() > 1).count();
        println!("{} URLs fetched, {repeated} of them twice because they were not recorded at a kill", by_url.len());
        assert!(again.is_empty(), "{} fetched again: {:#?}; {kills:?}", again.len(), &again[..again.len().min(10)]);
    }

    /// Never two requests at one address at once, probes included, and never two connections.
    fn one_at_a_time(&self) {
        assert_eq!(self.log.not_kept(), 0);
        let (requests, connections) = (self.log.most_requests_at_once(), self.log.most_connections_at_once());
        assert_eq!(requests.at_once, 1, "{requests:?}: {:#?}", self.overlaps());
        assert_eq!(connections.at_once, 1, "{connections:?}");
    }

    /// Requests that began at an address while another one was under way there, with that one.
    fn overlaps(&self) -> Vec<(RequestSeen, RequestSeen)> {
        let mut last: BTreeMap<IpAddr, RequestSeen> = BTreeMap::new();
        let mut overlaps = Vec::new();
        for request in self.log.requests() {
            if let Some(before) = last.insert(request.server, request.clone())
                && before.end.is_none_or(|end| end > request.start)
            {
                overlaps.push((before, request));
            }
        }
        overlaps
    }

    /// Between two requests at one address, whoever sent them, lies at least what politeness asks for.
    pub fn pauses_kept(&self) {
        let mut last: BTreeMap<IpAddr, RequestSeen> = BTreeMap::new();
        let mut short = Vec::new();
        let mut least = Duration::MAX;
        for request in self.log.requests() {
            if let Some(before) = last.insert(request.server, request.clone()) {
                let end = before.end.unwrap_or(before.start);
                let owed = self.min_delay.max((end - before.start) * FACTOR);
                let pause = request.start.saturating_sub(end);
                least = least.min(pause);
                if pause + SLACK < owed {
                    short.push(format!("{pause:?} instead of {owed:?} between {before:?} and {request:?}"));
                }
            }
        }
        println!("shortest pause {least:?}, owed at least {:?}", self.min_delay);
        assert!(short.is_empty(), "{} pauses too short: {:#?}", short.len(), &short[..short.len().min(10)]);
    }
}

/// Whether a daemon that was killed had asked for this so shortly before that it need not have been recorded.
fn unrecorded(request: &RequestSeen, kills: &[Kill]) -> bool {
    let since = |kill: &&Kill| request.end.is_none_or(|end| end + RECORDED_WITHIN + ON_THE_WAY >= kill.when);
    kills.iter().filter(|kill| request.peer == IpAddr::V4(kill.who)).any(|kill| since(&kill))
}
