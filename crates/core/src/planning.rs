//! Plans the depth and the cost of a crawl before anything is fetched, from the measured curve of load against coverage (LL-46).
//!
//! Every record tells for each level what it cost and how many external hosts it was the first to name. Added up over servers and
//! levels these are figure 3 of the paper: load against coverage, one point a depth. The least depth whose coverage is enough is
//! chosen; what single servers cost at that depth is read off their own records.

use nearcrawl_model::{
    account::LevelCounts,
    plan::{DepthPlan, Grounds, Pace, Plan, ServerPlan, Spread, TotalPlan},
    record::{HeldBack, RunState, ServerRecord},
    summary::{Summary, SwarmResults},
    time::Millis,
    url::Host,
};
use std::collections::BTreeSet;

/// What is known before anything is fetched.
#[derive(Clone, Debug)]
pub struct Basis {
    /// Where it comes from.
    pub grounds: Grounds,
    /// Costs and finds of each level, summed over `servers`.
    pub curve: Vec<LevelCounts>,
    /// Over how many servers.
    pub servers: u64,
    /// Single servers; may be fewer than `servers`, or none.
    pub records: Vec<ServerRecord>,
}

/// Which servers a plan is for.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Any: only a server's own costs are told.
    Any,
    /// These.
    Hosts(BTreeSet<Host>),
    /// So many.
    Count(u64),
}

/// Requests to a server at full depth, bytes and milliseconds of an answer, where nothing was measured: a guess that is told as one.
const ASSUMED: (u64, u64, Millis) = (100, 30_000, 300);

/// The paper's figures 1 and 3 as shares of depth 20, in thousandths, level by level up to 8. Anchors (LL-42, LL-44): 80 % of the
/// load and at least 99 % of the external URLs at depth 8, 80 % of them at 50-55 % of the load, a bend of the page curve at 7; between
/// the anchors straight lines. From 8 on the load grows evenly, and the external URLs level off at 9.
const PAPER: [(u64, u64); 9] = [(20, 60), (110, 210), (210, 360), (310, 510), (420, 660), (530, 800), (640, 900), (740, 965), (800, 990)];

/// The depth at which the paper stops counting.
const PAPER_DEPTH: u64 = 20;

impl Basis {
    /// Nothing but the paper.
    pub fn of_paper() -> Basis {
        let (requests, bytes, response_ms) = ASSUMED;
        let last = PAPER[8];
        let behind = (9..=PAPER_DEPTH).map(|level| (last.0 + (1000 - last.0) * (level - 8) / (PAPER_DEPTH - 8), 1000));
        let mut before = (0, 0);
        let levels = PAPER.into_iter().chain(behind).map(|(load, found)| {
            let (requests, hosts) = ((load - before.0) * requests, found - before.1);
            before = (load, found);
            LevelCounts { pages: requests, requests, bytes: requests * bytes, busy_ms: requests * response_ms, external_hosts: hosts }
        });
        Basis { grounds: Grounds::Paper { requests, bytes, response_ms }, curve: levels.collect(), servers: 1000, records: Vec::new() }
    }

    /// Records of servers that were asked at least once; none if there are none, or if they found no external host at all.
    pub fn of_records(records: Vec<ServerRecord>) -> Option<Basis> {
        let records: Vec<_> = records.into_iter().filter(|record| record.requests > 0 && !record.levels.is_empty()).collect();
        let mut curve: Vec<LevelCounts> = Vec::new();
        for record in &records {
            add_levels(&mut curve, &record.levels);
        }
        // That a server's links are not followed yet cuts nothing off here: they were counted.
        let own = |record: &ServerRecord| HeldBack { urls_not_queued: record.held_back.urls_not_queued, ..HeldBack::default() };
        let state = |record: &ServerRecord| match record.state {
            RunState::HeldBack => ServerRecord { held_back: own(record), ..record.clone() }.state_when_over(),
            state => state,
        };
        let cut_short = |record: &&ServerRecord| state(record) != RunState::Complete;
        let cut_short = records.iter().filter(cut_short).count() as u64;
        let found = curve.iter().any(|level| level.external_hosts > 0);
        let servers = records.len() as u64;
        found.then_some(Basis { grounds: Grounds::Measured { servers, cut_short }, curve, servers, records })
    }
}

impl Basis {
    /// What a swarm tells of all its servers; none if it found no external host.
    pub fn of_results(results: &SwarmResults) -> Option<Basis> {
        let Summary { total, levels, .. } = &results.summary;
        let found = levels.iter().any(|level| level.external_hosts > 0);
        let grounds = Grounds::Measured { servers: total.servers, cut_short: total.unfinished };
        found.then(|| Basis { grounds, curve: levels.clone(), servers: total.servers, records: Vec::new() })
    }

    /// The curve of the one that speaks for more servers, with the single servers of the other.
    pub fn joined(swarm: Option<Basis>, own: Option<Basis>) -> Option<Basis> {
        match (swarm, own) {
            (Some(swarm), Some(own)) if swarm.servers > own.servers => Some(Basis { records: own.records, ..swarm }),
            (swarm, own) => own.or(swarm),
        }
    }
}

/// Adds levels to levels.
fn add_levels(sum: &mut Vec<LevelCounts>, levels: &[LevelCounts]) {
    if sum.len() < levels.len() {
        sum.resize(levels.len(), LevelCounts::default());
    }
    sum.iter_mut().zip(levels).for_each(|(sum, level)| sum.add(level));
}

/// The sum of the levels down to a depth.
fn down_to(levels: &[LevelCounts], depth: u8) -> LevelCounts {
    let mut sum = LevelCounts::default();
    levels.iter().take(usize::from(depth) + 1).for_each(|level| sum.add(level));
    sum
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// How long a server is visited for these requests: its answers, and the rest after each.
fn duration(counts: &LevelCounts, crawl_delay: Option<Millis>, pace: &Pace) -> f64 {
    if counts.requests == 0 {
        return 0.0;
    }
    let took = counts.busy_ms as f64 / counts.requests as f64;
    let rest = (pace.min_delay_ms as f64).max(took * pace.delay_factor as f64).max(crawl_delay.unwrap_or(0) as f64);
    counts.requests as f64 * (took + rest)
}

/// Plans for `wanted`, a share of the external hosts between 0 and 1.
pub fn plan(basis: &Basis, wanted: f64, pace: Pace, targets: &Targets) -> Plan {
    let deepest = u8::try_from(basis.curve.len().saturating_sub(1)).unwrap_or(u8::MAX);
    let all = down_to(&basis.curve, deepest);
    let servers = basis.servers.max(1) as f64;
    let at = |depth: u8| {
        let sum = down_to(&basis.curve, depth);
        DepthPlan {
            depth,
            load_ratio: share(sum.requests, all.requests),
            load_bytes_ratio: share(sum.bytes, all.bytes),
            load_busy_ratio: share(sum.busy_ms, all.busy_ms),
            coverage_ratio: share(sum.external_hosts, all.external_hosts),
            requests: sum.requests as f64 / servers,
        }
    };
    let depths: Vec<DepthPlan> = (0..=deepest).map(at).collect();
    // The deepest one finds all that was found: there is always one.
    let chosen = depths.iter().copied().find(|plan| plan.coverage_ratio >= wanted).unwrap_or_else(|| at(deepest));
    let sum = down_to(&basis.curve, chosen.depth);
    let cut: Vec<_> = basis.records.iter().map(|record| (record, down_to(&record.levels, chosen.depth))).collect();
    let average = duration(&sum, None, &pace) / servers;
    let server = ServerPlan {
        requests: spread(sum.requests as f64 / servers, cut.iter().map(|(_, counts)| counts.requests as f64)),
        bytes: spread(sum.bytes as f64 / servers, cut.iter().map(|(_, counts)| counts.bytes as f64)),
        busy_ms: spread(sum.busy_ms as f64 / servers, cut.iter().map(|(_, counts)| counts.busy_ms as f64)),
        duration_ms: spread(average, cut.iter().map(|(record, counts)| duration(counts, record.crawl_delay_ms, &pace))),
    };
    let total = total(&server, &cut, &pace, targets);
    Plan { wanted_ratio: wanted, grounds: basis.grounds.clone(), depths, chosen, server, total, pace }
}

/// What the targets cost together: those with a record of their own what it says, the others the average.
fn total(server: &ServerPlan, cut: &[(&ServerRecord, LevelCounts)], pace: &Pace, targets: &Targets) -> Option<TotalPlan> {
    let (servers, own): (u64, Vec<_>) = match targets {
        Targets::Any => return None,
        Targets::Count(count) => (*count, Vec::new()),
        Targets::Hosts(hosts) => (hosts.len() as u64, cut.iter().filter(|(record, _)| hosts.contains(&record.host)).collect()),
    };
    let known = own.len() as u64;
    let others = servers.saturating_sub(known) as f64;
    let durations: Vec<f64> = own.iter().map(|(record, counts)| duration(counts, record.crawl_delay_ms, pace)).collect();
    let sum =
        |of: fn(&LevelCounts) -> u64, mean: f64| own.iter().map(|(_, counts)| of(counts)).sum::<u64>() + (others * mean).round() as u64;
    // A crawl is not done before the slowest server is; of servers that are not known the slowest is as slow as the slowest on record.
    let unknown = if others > 0.0 { server.duration_ms.max.unwrap_or(server.duration_ms.mean) } else { 0.0 };
    let slowest = durations.iter().copied().fold(unknown, f64::max);
    let together = durations.iter().sum::<f64>() + others * server.duration_ms.mean;
    Some(TotalPlan {
        servers,
        known,
        requests: sum(|counts| counts.requests, server.requests.mean),
        bytes: sum(|counts| counts.bytes, server.bytes.mean),
        busy_ms: sum(|counts| counts.busy_ms, server.busy_ms.mean),
        duration_ms: slowest.max(together / pace.max_parallel.max(1) as f64).round() as u64,
    })
}

fn spread(mean: f64, values: impl Iterator<Item = f64>) -> Spread {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (values.len() as f64 * share).ceil() as usize;
        values.get(place.saturating_sub(1)).copied()
    };
    Spread { mean, median: at(0.5), p90: at(0.9), max: values.last().copied() }
}

#[cfg(test)]
mod tests;
