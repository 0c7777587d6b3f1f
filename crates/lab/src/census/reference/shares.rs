//! Expected reports on shares: servers abroad, answers, accessibility.
//!
//! They follow the definitions that the reports print as their method.

use super::{record::Expected, runs::Run};
use nearcrawl_model::evaluation::{RULE_SET, Rule};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Standard deviations to each side that hold 95 % of a normal distribution.
pub(super) const DEVIATIONS: f64 = 1.959_963_985;

/// The values by which the reports tell servers apart.
pub(crate) const REPORT_SPLITS: [&str; 5] = ["country", "tld", "registry", "organisation", "software"];

/// A share with its interval (Wilson, 95 %): those shares `p` from which this one is no more than so many deviations away, which are the
/// solutions of `(share - p)² = z² p (1 - p) / all`. Nothing of none.
fn share(these: u64, all: u64) -> [Value; 3] {
    if all == 0 {
        return [Value::Null, Value::Null, Value::Null];
    }
    let (share, a) = (these as f64 / all as f64, DEVIATIONS * DEVIATIONS / all as f64);
    let (half, root) = (share + a / 2.0, ((share + a / 2.0).powi(2) - (1.0 + a) * share * share).max(0.0).sqrt());
    [share, (half - root) / (1.0 + a), (half + root) / (1.0 + a)].map(|value| json!(value))
}

/// What every report says of its data.
pub(super) fn data(run: &Run, more: Value) -> Value {
    let runs: BTreeSet<u32> = run.servers.values().map(|server| server.run).collect();
    let mut data = json!({
        "runs": runs, "servers": run.servers.len(), "servers_told": run.servers.len(), "survey": null, "servers_not_in_survey": 0,
        "servers_unfinished": 0, "rows_unreadable": 0, "missing_text": [],
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    data
}

/// Servers by their value in a split: the groups with most servers first, of equal ones by name.
fn groups<'a>(servers: impl Iterator<Item = &'a Expected>, by: &str) -> Vec<(String, Vec<&'a Expected>)> {
    let mut groups: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    servers.for_each(|server| groups.entry(server.value(by)).or_default().push(server));
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, servers)| std::cmp::Reverse(servers.len()));
    groups
}

/// `report offshore`.
pub(crate) fn offshore(run: &Run) -> Value {
    let is_of_country = |server: &&Expected| server.tld.len() == 2;
    let row = |(tld, servers): (String, Vec<&Expected>)| {
        let home = tld.to_uppercase();
        let abroad = groups(servers.iter().copied().filter(|server| server.country != home), "country");
        let most: Vec<String> = abroad.iter().take(5).map(|(country, servers)| format!("{country} {}", servers.len())).collect();
        let abroad: usize = abroad.iter().map(|(_, servers)| servers.len()).sum();
        let [share, low, high] = share(abroad as u64, servers.len() as u64);
        json!({"tld": format!(".{tld}"), "country": home, "servers": servers.len(), "abroad": abroad, "share_abroad": share,
               "share_low": low, "share_high": high, "most_abroad": most.join(", ")})
    };
    let rows: Vec<Value> = groups(run.servers.values().filter(is_of_country), "tld").into_iter().map(row).collect();
    let others = run.servers.values().filter(|server| !is_of_country(server)).count();
    json!({"rows": rows, "data": data(run, json!({"servers_of_other_domains": others, "servers_of_unknown_country": 0}))})
}

/// `report reachability`.
pub(crate) fn reachability(run: &Run, by: &str) -> Value {
    let row = |(value, servers): (String, Vec<&Expected>)| {
        let count = |wanted: &[&str]| servers.iter().filter(|server| wanted.contains(&server.status)).count();
        let [share, low, high] = share(count(&["up"]) as u64, servers.len() as u64);
        json!({by: value, "servers": servers.len(), "up": count(&["up"]), "share_up": share, "share_low": low, "share_high": high,
               "no_pages": count(&["no-pages"]), "refused": count(&["refused"]), "robots": count(&["robots", "robots-unavailable"]),
               "down": count(&["down"])})
    };
    let mut down: BTreeMap<&str, u64> = BTreeMap::new();
    run.servers.values().filter_map(|server| server.down).for_each(|why| *down.entry(why).or_default() += 1);
    let rows: Vec<Value> = groups(run.servers.values(), by).into_iter().map(row).collect();
    json!({"rows": rows, "data": data(run, json!({"by": by, "servers_waiting": 0, "down_by_failure": down}))})
}

/// `report accessibility`.
pub(crate) fn accessibility(run: &Run, by: &str) -> Value {
    let evaluated = || run.servers.values().filter(|server| server.counts()["evaluated"] > 0);
    let all = ("(all)".to_owned(), evaluated().collect::<Vec<_>>());
    let mut rows = Vec::new();
    for (value, servers) in [all].into_iter().chain(groups(evaluated(), by)) {
        let mut rules: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (rule, failures) in servers.iter().flat_map(|server| server.failures()) {
            let (servers, sum) = rules.entry(rule).or_default();
            (*servers, *sum) = (*servers + 1, *sum + failures);
        }
        if rules.is_empty() && !servers.is_empty() {
            rules.insert("(none detected)", (0, 0));
        }
        for (rule, (failing, failures)) in rules {
            let [share, low, high] = share(failing, servers.len() as u64);
            let name = Rule::ALL.into_iter().find(|known| known.id() == rule).map_or("", Rule::name);
            rows.push(json!({by: value, "rule": rule, "rule_name": name, "servers": servers.len(), "failing": failing,
                             "share_failing": share, "share_low": low, "share_high": high, "failures": failures}));
        }
    }
    let count = evaluated().count();
    let sets: Map<String, Value> = (count > 0).then(|| (RULE_SET.to_string(), json!(count))).into_iter().collect();
    let more = json!({"by": by, "servers_unevaluated": run.servers.len() - count, "rule_sets": sets});
    json!({"rows": rows, "data": data(run, more)})
}
