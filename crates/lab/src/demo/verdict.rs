//! Verdict on the demonstration: what was observed, row by row against what is wanted; pure.

use super::{
    asking::{Owned, Told},
    world::{Land, World},
};
use crate::{
    oracle::Expected,
    web::server::{Log, RequestSeen},
};
use nearcrawl_model::{url::PageUrl, view::counted};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

/// At least so many per cent of the subnets shall belong to the nearest living access point.
const NEAREST_PERCENT: usize = 80;

/// Fewer probes than this shall be needed for a subnet.
const PROBES_A_SUBNET: f64 = 4.0;

/// What the killed daemon had asked for within this time before its end need not have been recorded: copies go out every two
/// seconds, and are waited for.
const NOT_YET_RECORDED: Duration = Duration::from_secs(5);

/// How a daemon's end was dealt with. Times count from the start of the servers' log.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailOver {
    /// When the daemon was killed.
    pub killed: Option<Duration>,
    /// The subnets that it held then.
    pub held: BTreeSet<String>,
    /// When the last of them had a living owner.
    pub taken_over: Option<Duration>,
}

/// All observations that the verdict is based on.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    /// The made-up web and where its servers are.
    pub world: &'a World,
    /// What a crawl of it must come to.
    pub expected: &'a Expected,
    /// What the servers saw.
    pub log: &'a Log,
    /// Peer ids of the access points, in the world's order.
    pub peers: &'a [String],
    /// The owners of all subnets at the end.
    pub ownership: &'a [Owned],
    /// The end of one of them.
    pub fail_over: &'a FailOver,
    /// The totals that each daemon answered.
    pub told: &'a [(String, Option<Told>)],
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    /// What was looked at.
    pub what: String,
    /// What is wanted; empty if the row is only for information.
    pub wanted: String,
    /// What was found.
    pub found: String,
    /// Whether it is as wanted.
    pub holds: bool,
    /// Examples of what is not, a few.
    pub examples: Vec<String>,
}

/// A row that must hold.
fn row(what: &str, wanted: impl Into<String>, found: impl Into<String>, holds: bool) -> Row {
    Row { what: what.to_owned(), wanted: wanted.into(), found: found.into(), holds, examples: Vec::new() }
}

/// The same with examples of what went wrong.
fn with(row: Row, examples: impl IntoIterator<Item = String>) -> Row {
    Row { examples: examples.into_iter().take(5).collect(), ..row }
}

/// Where the servers' log files a URL.
pub fn key(url: &PageUrl) -> (String, String) {
    (url.host().to_string(), url.path_and_query().to_owned())
}

impl Observed<'_> {
    /// The verdict as a table: one row for each property, with what was expected and observed.
    pub(crate) fn table(&self) -> Vec<Row> {
        let mut rows = vec![self.nearest(), self.probes()];
        rows.extend(self.pages());
        rows.push(self.requests_at_once());
        rows.push(self.connections_at_once());
        rows.push(self.pause());
        rows.push(self.totals());
        rows.push(self.fail_over());
        rows
    }

    /// Whose a subnet is: the claim to the smallest subnet around its first server.
    fn owner_of(&self, server: IpAddr) -> Option<usize> {
        let around = self.ownership.iter().filter(|owned| !owned.released && owned.subnet.contains(server));
        let smallest = around.max_by_key(|owned| owned.subnet.length())?;
        self.peers.iter().position(|peer| *peer == smallest.owner)
    }

    fn is_dead(&self, point: usize) -> bool {
        self.fail_over.killed.is_some() && point == self.world.victim()
    }

    fn nearest(&self) -> Row {
        let mut right = 0;
        let mut wrong = Vec::new();
        let mut judged = BTreeSet::new();
        for server in &self.world.servers {
            let server = IpAddr::V4(*server);
            let Some(land) = self.world.land_of(server).filter(|land| judged.insert(*land)) else { continue };
            let place = &self.world.places.lands[land];
            let nearest = place.nearest(|point| !self.is_dead(point));
            let owner = self.owner_of(server);
            if owner.is_some() && owner == nearest {
                right += 1;
            } else {
                wrong.push(self.misplacement(place, owner, nearest));
            }
        }
        let percent = right * 100 / judged.len().max(1);
        let found = format!("{percent} % ({right} of {})", judged.len());
        with(
            row("subnets owned by the nearest living access point", format!("≥ {NEAREST_PERCENT} %"), found, percent >= NEAREST_PERCENT),
            wrong,
        )
    }

    /// The owner of a subnet and the expected one, in words.
    fn misplacement(&self, place: &Land, owner: Option<usize>, nearest: Option<usize>) -> String {
        let at = |point: usize| format!("{} at {} ms", self.world.access_points()[point], place.delays[point]);
        let owner = match owner {
            None => "has no owner".to_owned(),
            Some(point) if self.is_dead(point) => format!("owner is {}, killed", self.world.access_points()[point]),
            Some(point) => format!("owner is {}", at(point)),
        };
        let nearest = nearest.map_or("no member is alive".to_owned(), |point| format!("nearest is {}", at(point)));
        format!("{} ({}): {owner}; {nearest}", place.subnet, place.organisation)
    }

    fn probes(&self) -> Row {
        let subnets = self.world.inhabited().len().max(1);
        let each = self.log.probes() as f64 / subnets as f64;
        row("probes a subnet, counted by the servers", format!("< {PROBES_A_SUBNET}"), format!("{each:.2}"), each < PROBES_A_SUBNET)
    }

    /// Fetched, fetched again, and not to be fetched at all.
    fn pages(&self) -> [Row; 4] {
        let fetches = self.log.fetches();
        let must: BTreeMap<(String, String), &PageUrl> = self.expected.fetched.keys().map(|url| (key(url), url)).collect();
        let missing: Vec<String> = must.iter().filter(|(key, _)| !fetches.contains_key(*key)).map(|(_, url)| url.to_string()).collect();
        let all = must.len();
        let fetched = format!("{} of {all}", all - missing.len());
        let reachable = with(row("reachable URLs fetched", format!("{all}"), fetched, missing.is_empty()), missing);

        let forbidden: Vec<String> = fetches
            .keys()
            .filter(|key| !must.contains_key(*key))
            .map(|(host, path)| {
                let url = PageUrl::parse(&format!("http://{host}:{}{path}", super::world::WEB_PORT)).ok();
                format!("{host}{path}: {}", url.and_then(|url| self.expected.forbidden(&url)).unwrap_or("no page links to it"))
            })
            .collect();
        let forbidden = with(row("URLs fetched that must not be", "0", forbidden.len().to_string(), forbidden.is_empty()), forbidden);

        let again: Vec<&(String, String)> = fetches.iter().filter(|(_, count)| **count > 1).map(|(key, _)| key).collect();
        let requests = self.log.requests();
        let unexplained: Vec<String> = again
            .iter()
            .filter(|key| !self.unrecorded(requests.iter().filter(|request| is_fetch_of(request, key))))
            .map(|(host, path)| format!("{host}{path}"))
            .collect();
        let found = format!("{}, and {} in flight at the kill", unexplained.len(), again.len() - unexplained.len());
        let twice = with(row("URLs fetched again", "0", found, unexplained.is_empty()), unexplained);

        let pages = self.expected.pages() as u64;
        let told: Vec<u64> = self.told.iter().flat_map(|(_, told)| told).map(|told| told.summary.total.pages).collect();
        let found = told.iter().max().map_or("no member answered".to_owned(), u64::to_string);
        let holds = !told.is_empty() && told.iter().all(|told| *told == pages);
        [reachable, forbidden, twice, row("pages recorded, each once", pages.to_string(), found, holds)]
    }

    /// Whether all but the last of these fetches were the killed daemon's, just before its end.
    fn unrecorded<'r>(&self, fetches: impl Iterator<Item = &'r RequestSeen>) -> bool {
        let Some(killed) = self.fail_over.killed else { return false };
        let victim = IpAddr::V4(self.world.access_points()[self.world.victim()]);
        let fetches: Vec<&RequestSeen> = fetches.collect();
        let Some((_, earlier)) = fetches.split_last() else { return true };
        earlier.len() == 1
            && earlier.iter().all(|request| request.peer == victim && request.end.is_none_or(|end| end + NOT_YET_RECORDED >= killed))
    }

    fn requests_at_once(&self) -> Row {
        let most = self.log.most_requests_at_once();
        let row = row("most requests at once at any server", "1", most.at_once.to_string(), most.at_once == 1);
        with(row, most.server.filter(|_| most.at_once > 1).map(|server| server.to_string()))
    }

    fn connections_at_once(&self) -> Row {
        let most = self.log.most_connections_at_once();
        let row = row("most connections at once at any server", "1", most.at_once.to_string(), most.at_once == 1);
        with(row, most.server.filter(|_| most.at_once > 1).map(|server| server.to_string()))
    }

    fn pause(&self) -> Row {
        let found =
            self.log.shortest_pause().map_or("none".to_owned(), |pause| format!("{} ms at {}", pause.lasted.as_millis(), pause.server));
        row("shortest pause between two requests to a server", "", found, true)
    }

    fn totals(&self) -> Row {
        let mut told = self.told.iter().map(|(who, told)| (who, told.as_ref()));
        let first = told.next().and_then(|(_, told)| told);
        let agree = first.is_some_and(|first| first.exact) && told.all(|(_, other)| other == first);
        let examples = self.told.iter().map(|(who, told)| match told {
            None => format!("{who}: no answer"),
            Some(told) => format!(
                "{who}: {}, {}, {}",
                counted(told.summary.total.pages, "page"),
                counted(told.summary.total.servers, "server"),
                exactness(told)
            ),
        });
        let found = if agree { "equal" } else { "they differ, or are not exact" };
        let row = row("totals told by two members and a non-member", "equal", found, agree && self.told.len() >= 3);
        if row.holds { row } else { with(row, examples) }
    }

    fn fail_over(&self) -> Row {
        let FailOver { killed, held, taken_over } = self.fail_over;
        let lasted = taken_over.zip(*killed).map(|(then, killed)| then.saturating_sub(killed));
        let found = match (killed, lasted) {
            (None, _) => "no member was killed".to_owned(),
            (Some(_), None) => format!("no living owner for {}", counted(held.len(), "subnet")),
            (Some(_), Some(lasted)) => format!("{:.1} s for {}", lasted.as_secs_f64(), counted(held.len(), "subnet")),
        };
        row("fail-over: from kill -9 to a living owner for all", "done", found, lasted.is_some() && !held.is_empty())
    }
}

fn exactness(told: &Told) -> &'static str {
    if told.exact { "exact" } else { "in transition" }
}

fn is_fetch_of(request: &RequestSeen, key: &(String, String)) -> bool {
    request.method == "GET" && request.host == key.0 && request.path == key.1
}

#[cfg(test)]
mod tests;
