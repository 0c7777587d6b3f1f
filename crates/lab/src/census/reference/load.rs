//! Expected reports on what was measured and spent: distances, and what each level cost and brought.

use super::{
    record::{Expected, Level},
    runs::Run,
    shares::{DEVIATIONS, data},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
};

/// Into how many groups of trees the interval divides the web, and how many of them must have any.
const GROUPS: u64 = 20;
const ENOUGH: usize = 10;

/// The value below which this share of some lies: between the two nearest in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, part) = (sorted[at as usize], at.fract());
    sorted.get(at as usize + 1).map_or(low, |high| low * (1.0 - part) + high * part)
}

/// `report nearness`, of these distances by host, in milliseconds.
pub(crate) fn nearness(run: &Run, by: &str, distances: &BTreeMap<String, f64>) -> Value {
    let at = |address: &str| {
        let there = run.servers.values().filter(|server| server.address == address);
        there.filter_map(|server| distances.get(&server.host).copied()).min_by(f64::total_cmp)
    };
    let known = |server: &Expected| distances.get(&server.host).copied().or_else(|| at(&server.address));
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for server in run.servers.values() {
        known(server).into_iter().for_each(|ms| groups.entry(server.value(by)).or_default().push(ms));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, distances)| std::cmp::Reverse(distances.len()));
    let row = |(value, mut distances): (String, Vec<f64>)| {
        distances.sort_by(f64::total_cmp);
        let [p10, p25, p50, p75, p90] = [0.1, 0.25, 0.5, 0.75, 0.9].map(|share| quantile(&distances, share));
        json!({by: value, "servers": distances.len(), "p10_ms": p10, "p25_ms": p25, "p50_ms": p50, "p75_ms": p75, "p90_ms": p90})
    };
    let unmeasured = run.servers.values().filter(|server| known(server).is_none()).count();
    let rows: Vec<Value> = groups.into_iter().map(row).collect();
    json!({"rows": rows, "data": data(run, json!({"by": by, "servers_unmeasured": unmeasured}))})
}

/// What all levels of some servers together come to.
fn levels<'a>(servers: impl Iterator<Item = &'a Expected>, count: usize) -> Vec<Level> {
    let mut sums = vec![Level::default(); count];
    for (depth, level) in servers.flat_map(|server| server.levels.iter().enumerate()) {
        let sum = &mut sums[depth];
        sum.pages += level.pages;
        sum.requests += level.requests;
        sum.external_hosts += level.external_hosts;
    }
    sums
}

/// Which share of all is there up to each level.
fn up_to(levels: &[Level], of: impl Fn(&Level) -> u64) -> Vec<f64> {
    let all: u64 = levels.iter().map(&of).sum();
    let up_to = |level: usize| levels[..=level].iter().map(&of).sum::<u64>() as f64;
    (0..levels.len()).map(|level| if all == 0 { 0.0 } else { up_to(level) / all as f64 }).collect()
}

/// Half of the 95 % interval of the coverage up to each level, by the jackknife over groups of trees; none of few.
fn errors(run: &Run, count: usize) -> Option<Vec<f64>> {
    let group = |server: &Expected| {
        let mut hasher = DefaultHasher::new();
        server.tree.as_str().hash(&mut hasher);
        hasher.finish() % GROUPS
    };
    let groups: BTreeSet<u64> = run.servers.values().map(group).collect();
    let n = groups.len() as f64;
    let without = |left_out: &u64| {
        let others = run.servers.values().filter(|server| group(server) != *left_out);
        up_to(&levels(others, count), |level| level.external_hosts)
    };
    let parts: Vec<Vec<f64>> = groups.iter().map(without).collect();
    let error = |level: usize| {
        let mean = parts.iter().map(|part| part[level]).sum::<f64>() / n;
        let variance = parts.iter().map(|part| (part[level] - mean).powi(2)).sum::<f64>() * (n - 1.0) / n;
        DEVIATIONS * variance.sqrt()
    };
    (groups.len() >= ENOUGH).then(|| (0..count).map(error).collect())
}

/// `report load`.
pub(crate) fn load(run: &Run) -> Value {
    let count = run.servers.values().map(|server| server.levels.len()).max().unwrap_or(0);
    let sums = levels(run.servers.values(), count);
    let (load, coverage) = (up_to(&sums, |level| level.requests), up_to(&sums, |level| level.external_hosts));
    let mut deepest: BTreeMap<&str, usize> = BTreeMap::new();
    for server in run.servers.values() {
        if let Some(level) = server.levels.iter().rposition(|level| level.pages > 0) {
            let known = deepest.entry(&server.tree).or_default();
            *known = level.max(*known);
        }
    }
    let errors = errors(run, count);
    let row = |depth: usize| {
        let error = errors.as_ref().map(|errors| errors[depth]);
        let (low, high) = (error.map(|error| (coverage[depth] - error).max(0.0)), error.map(|error| (coverage[depth] + error).min(1.0)));
        let trees = deepest.values().filter(|deepest| **deepest == depth).count();
        let Level { requests, pages, external_hosts, .. } = sums[depth];
        json!({"level": depth, "requests": requests, "pages": pages, "external_hosts": external_hosts, "trees": trees,
               "load": load[depth], "coverage": coverage[depth], "coverage_low": low, "coverage_high": high})
    };
    let rows: Vec<Value> = (0..count).map(row).collect();
    let cut: u64 = run.servers.values().map(|server| server.cut_by_depth).sum();
    json!({"rows": rows, "data": data(run, json!({"trees": deepest.len(), "cut_by_depth": cut, "servers_waiting": 0}))})
}
