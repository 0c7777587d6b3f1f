//! Expected totals of one run of each server, by the definition of `nearcrawl results --run`.

use super::{record::Expected, runs::Reference};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The splits whose values a run keeps.
pub(crate) const SPLITS: [&str; 8] = ["country", "tld", "registry", "organisation", "software", "status", "language", "family"];

/// The answer of `results --run …`, of the runs until `until`.
pub(crate) fn run_totals(reference: &Reference, run: u32, until: u32) -> Value {
    let whole = || reference.runs[..until as usize].iter().flat_map(|run| run.servers.values());
    let servers: Vec<&Expected> = whole().filter(|server| server.run == run).collect();
    let known: BTreeSet<&str> = whole().map(|server| server.host.as_str()).collect();
    let by: Map<String, Value> = SPLITS.map(|split| (split.to_owned(), Value::Object(values(&servers, split)))).into_iter().collect();
    json!({
        "run": run, "all_owners_answered": true, "missing_text": [], "consistent_age_ms": null,
        "total": counts(&servers), "by": by, "servers_without": known.len() - servers.len(),
    })
}

fn values(servers: &[&Expected], split: &str) -> Map<String, Value> {
    let mut groups: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    for server in servers {
        // A run keeps that a server was down, and not why.
        let value = if split == "status" { server.status.to_owned() } else { server.value(split) };
        groups.entry(value).or_default().push(server);
    }
    groups.into_iter().map(|(value, servers)| (value, counts(&servers))).collect()
}

fn counts(servers: &[&Expected]) -> Value {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for server in servers {
        let counts = server.counts();
        for name in ["servers", "up", "unfinished", "pages", "page_bytes", "bytes", "requests", "failed", "external_hosts", "evaluated"] {
            *sums.entry(name).or_default() += counts[name];
        }
        *sums.entry("failing").or_default() += server.failing();
    }
    json!(sums)
}
