//! Expected results of surveys: their servers, what they say of these, and how far their crawl is.

use super::{record::Expected, runs::Run};
use crate::census::world::{NOWHERE, Study};
use nearcrawl_model::url::PageUrl;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The tree that a listed URL names: its host without `www.`.
fn tree_of(url: &str) -> String {
    PageUrl::parse(url).map(|url| url.host_str().trim_start_matches("www.").to_owned()).unwrap_or_default()
}

/// What the survey says of a server; none if it does not belong to it.
pub(crate) fn labels(study: &Study, server: &Expected) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let entries: Vec<_> = study.list.iter().filter(|(url, _)| tree_of(url) == server.tree).collect();
    let belongs = !entries.is_empty() || study.tlds.contains(&server.tld.as_str());
    let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, value) in entries.into_iter().flat_map(|(_, labels)| labels) {
        labels.entry((*name).to_owned()).or_default().insert(value.clone());
    }
    belongs.then_some(labels)
}

/// The servers of a survey.
pub(crate) fn members<'a>(study: &Study, run: &'a Run) -> Vec<&'a Expected> {
    run.servers.values().filter(|server| labels(study, server).is_some()).collect()
}

/// A run of which there is only what belongs to a survey.
pub(crate) fn part(study: &Study, run: &Run) -> Run {
    let servers = members(study, run).into_iter().map(|server| (server.host.clone(), server.clone())).collect();
    Run { servers, asked: BTreeMap::new() }
}

/// Its servers by label, as in `sector=museum`.
pub(crate) fn by_label<'a>(study: &Study, run: &'a Run) -> BTreeMap<String, Vec<&'a Expected>> {
    let mut by_label: BTreeMap<String, Vec<&Expected>> = BTreeMap::new();
    for server in run.servers.values() {
        let labels = labels(study, server).into_iter().flatten();
        let labels = labels.flat_map(|(name, values)| values.into_iter().map(move |value| format!("{name}={value}")));
        labels.for_each(|label| by_label.entry(label).or_default().push(server));
    }
    by_label
}

/// `survey show`, but for who made it and when.
pub(crate) fn shown(study: &Study, run: &Run) -> Value {
    let members = members(study, run);
    let failed = members.iter().filter(|server| server.status == "down").count();
    let held = members.iter().filter(|server| server.status != "down" && server.held_hosts > 0).count();
    let trees: BTreeSet<&str> = run.servers.values().map(|server| server.tree.as_str()).collect();
    let listed: BTreeSet<String> = study.list.iter().map(|(url, _)| tree_of(url)).collect();
    let is_nowhere = |tree: &String| *tree == tree_of(NOWHERE);
    let names: BTreeSet<&str> = study.list.iter().flat_map(|(_, labels)| labels.iter().map(|(name, _)| *name)).collect();
    let entries: Vec<Value> = study.list.iter().map(|(url, labels)| json!({"url": url, "labels": labels})).collect();
    json!({
        "survey": {
            "name": study.name, "state": "running", "revision": 1, "ends_at": null, "urls": study.list.len(), "hosts": listed.len(),
            "labels": names, "scope": {"tlds": study.tlds, "countries": [], "organisations": [], "asns": []}, "licence": "CC0-1.0",
            "description": "", "contact": "", "probe": null, "entries": entries,
            "wishes": {"depth": null, "min_delay_ms": null, "delay_factor": null, "evaluation": false, "interval_ms": null},
        },
        "hosts": {"known": members.len(), "crawled": members.len() - failed - held, "running": 0, "held_back": held, "failed": failed,
                  "without_address": listed.iter().filter(|tree| is_nowhere(tree)).count(),
                  "not_known": listed.iter().filter(|tree| !trees.contains(tree.as_str()) && !is_nowhere(tree)).count()},
        "placement": null, "missing_text": [],
    })
}

/// The surveys of a server as its row tells them: name and labels.
pub(crate) fn marks(studies: &[Study], server: &Expected) -> BTreeMap<String, Map<String, Value>> {
    let mark = |study: &Study| {
        let labels = labels(study, server)?;
        Some((study.name.to_owned(), labels.into_iter().map(|(name, values)| (name, json!(values))).collect()))
    };
    studies.iter().filter_map(mark).collect()
}
