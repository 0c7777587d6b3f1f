//! Expected changes from one run of each server to another, by the definition of `nearcrawl trend`: like for like.

use super::{record::Expected, runs::Reference};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Whether its pages were counted: it answered with pages, or with none.
fn is_measured(server: &Expected) -> bool {
    matches!(server.status, "up" | "no-pages")
}

/// Each server in its own runs of these numbers, as far as they are over when this run of the web is: who is named later is visited later.
fn pairs(reference: &Reference, over: u32, from: u32, to: u32) -> Vec<(Option<&Expected>, Option<&Expected>)> {
    let mut pairs: BTreeMap<&str, (Option<&Expected>, Option<&Expected>)> = BTreeMap::new();
    for server in reference.runs.iter().take(over as usize).flat_map(|run| run.servers.values()) {
        let pair = pairs.entry(&server.host).or_default();
        if server.run == from {
            pair.0 = Some(server);
        } else if server.run == to {
            pair.1 = Some(server);
        }
    }
    pairs.into_values().collect()
}

/// The answer of `trend --from … --to … --by …` after a run of the web.
pub(crate) fn trend(reference: &Reference, over: u32, from: u32, to: u32, by: &str) -> Value {
    // All members crawl by the same depth and rule, in every run.
    let not_measured = ["not_measured_in_from", "not_measured_in_to", "not_measured_in_both"];
    let others = ["only_in_to", "only_in_from", "unfinished", "crawled_otherwise"];
    let mut left_out: BTreeMap<&str, u64> = others.into_iter().chain(not_measured).map(|name| (name, 0)).collect();
    let (mut all, mut split): (Vec<_>, BTreeMap<String, Vec<_>>) = (Vec::new(), BTreeMap::new());
    for pair in pairs(reference, over, from, to) {
        let why = match pair {
            (None, None) => continue,
            (None, Some(_)) => "only_in_to",
            (Some(_), None) => "only_in_from",
            (Some(before), Some(now)) => match (is_measured(before), is_measured(now)) {
                (false, false) => "not_measured_in_both",
                (false, true) => "not_measured_in_from",
                (true, false) => "not_measured_in_to",
                (true, true) => {
                    all.push((before, now));
                    split.entry(before.value(by)).or_default().push((before, now));
                    continue;
                }
            },
        };
        *left_out.entry(why).or_default() += 1;
    }
    let values: Map<String, Value> = split.iter().map(|(value, pairs)| (value.clone(), compared(pairs, by))).collect();
    json!({"from_run": from, "to_run": to, "total": compared(&all, by), "by": {by: values}, "left_out": left_out})
}

type Pairs<'a> = [(&'a Expected, &'a Expected)];

fn figure(pairs: &Pairs<'_>, of: impl Fn(&Expected) -> u64) -> Value {
    let (from, to) = pairs.iter().fold((0, 0), |(from, to), (before, now)| (from + of(before), to + of(now)));
    let difference = to as i64 - from as i64;
    json!({"from": from, "to": to, "difference": difference, "rate": (from > 0).then(|| difference as f64 / from as f64)})
}

fn compared(pairs: &Pairs<'_>, by: &str) -> Value {
    let count = |holds: &dyn Fn(&Expected, &Expected) -> bool| pairs.iter().filter(|(before, now)| holds(before, now)).count();
    let is_evaluated = |before: &Expected, now: &Expected| before.counts()["evaluated"] > 0 && now.counts()["evaluated"] > 0;
    let evaluated: Vec<_> = pairs.iter().copied().filter(|(before, now)| is_evaluated(before, now)).collect();
    let changes = |at: usize| pairs.iter().filter_map(|(_, now)| now.compared).map(|compared| compared[at]).sum::<u64>();
    let (before, changed, gone) = (changes(0), changes(2), changes(4));
    let named = |name: &'static str| move |server: &Expected| server.counts()[name];
    json!({
        "servers": pairs.len(),
        "servers_elsewhere": count(&|before, now| before.value(by) != now.value(by)),
        "servers_of_unknown_rules": 0,
        "pages": figure(pairs, named("pages")),
        "page_bytes": figure(pairs, named("page_bytes")),
        "requests": figure(pairs, named("requests")),
        "failed": figure(pairs, named("failed")),
        "external_hosts": figure(pairs, named("external_hosts")),
        "servers_evaluated": evaluated.len(),
        "evaluated": figure(&evaluated, named("evaluated")),
        "failing": figure(&evaluated, Expected::failing),
        "servers_with_changes": count(&|_, now| now.compared.is_some()),
        "pages_before": before, "new_pages": changes(1), "changed_pages": changed, "gone_pages": gone,
        "change_rate": (before > 0).then(|| (changed + gone) as f64 / before as f64),
    })
}
