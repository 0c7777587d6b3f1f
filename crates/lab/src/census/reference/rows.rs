//! A record as reports show it: the sums that it adds to them, its rows, the values by which it is split.

use super::{
    record::{Expected, Level},
    runs::Run,
};
use nearcrawl_model::evaluation::RULE_SET;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Figures by their names in JSON.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

impl Expected {
    /// Evaluated pages, those that fail a rule, and how often each rule is failed.
    fn evaluation(&self) -> (u64, u64, BTreeMap<&'static str, u64>) {
        let mut failures: BTreeMap<&'static str, u64> = BTreeMap::new();
        for page in self.pages.values().filter(|_| self.evaluates) {
            page.failures.iter().for_each(|(rule, (count, _))| *failures.entry(*rule).or_default() += count);
        }
        let failing = self.pages.values().filter(|page| self.evaluates && !page.failures.is_empty()).count();
        (if self.evaluates { self.pages.len() as u64 } else { 0 }, failing as u64, failures)
    }

    /// How often each rule is failed.
    pub(crate) fn failures(&self) -> BTreeMap<&'static str, u64> {
        self.evaluation().2
    }

    /// Pages that fail a rule.
    pub(crate) fn failing(&self) -> u64 {
        self.evaluation().1
    }

    /// What it adds to the sums. What is measured is not among it.
    pub(crate) fn counts(&self) -> Counts {
        let (evaluated, _, failures) = self.evaluation();
        BTreeMap::from([
            ("servers", 1),
            ("up", u64::from(self.status == "up")),
            ("pages", self.pages.len() as u64),
            ("requests", self.requests),
            ("bytes", self.bytes),
            ("page_bytes", self.page_bytes),
            ("external_hosts", self.external_hosts.len() as u64),
            ("external_urls", self.external_urls.len() as u64),
            ("external_domains", self.external_domains.len() as u64),
            ("cut_by_depth", self.cut_by_depth),
            ("refused_by_robots", self.refused_by_robots),
            ("failed", self.failed),
            ("unfinished", 0),
            ("evaluated", evaluated),
            ("detected_failures", failures.values().sum()),
            ("waiting_urls", 0),
            ("waiting_urls_by_budget", 0),
            ("urls_not_queued", 0),
            ("hosts_held_by_site_limit", self.held_hosts),
            ("hosts_held_by_domain_limit", 0),
        ])
    }

    /// What each of its levels adds.
    pub(crate) fn level_counts(&self) -> impl Iterator<Item = Counts> + '_ {
        self.levels.iter().map(|level: &Level| {
            let Level { pages, requests, bytes, external_hosts } = *level;
            BTreeMap::from([("pages", pages), ("requests", requests), ("bytes", bytes), ("external_hosts", external_hosts)])
        })
    }

    /// Its value in a split.
    pub(crate) fn value(&self, split: &str) -> String {
        let fact = |name: &str| self.facts.as_ref().and_then(|facts| facts.get(name)).and_then(Value::as_str).map(str::to_owned);
        match split {
            "country" => self.country.clone(),
            "registry" => self.registry.clone(),
            "organisation" => self.organisation.clone(),
            "tld" => self.tld.clone(),
            "software" => self.software.and_then(|software| software.split(['/', ' ']).next()).unwrap_or("unknown").to_owned(),
            "status" => self.down.map_or_else(|| self.status.to_owned(), |why| format!("down: {why}")),
            "language" => match fact("language") {
                Some(tag) => tag.split('-').next().unwrap_or_default().to_owned(),
                // Who has served no page has had nowhere to declare one.
                None => if self.pages.is_empty() { "unknown" } else { "undeclared" }.to_owned(),
            },
            "script" => fact("script").unwrap_or("unknown".to_owned()),
            "http" => self.http(fact("http_version")),
            "tls" => fact("tls_version").unwrap_or_else(|| if fact("http_version").is_some() { "none" } else { "unknown" }.to_owned()),
            "family" => "ipv4".to_owned(),
            "rule-set" => {
                if self.counts()["evaluated"] > 0 {
                    RULE_SET.to_string()
                } else {
                    "none".to_owned()
                }
            }
            _ => "no such split".to_owned(),
        }
    }

    fn http(&self, version: Option<String>) -> String {
        let offers = self.facts.as_ref().and_then(|facts| facts["alt_svc"].as_array()).and_then(|offers| offers.first()?.as_str());
        match (version, offers) {
            (None, _) => "unknown".to_owned(),
            (Some(version), None) => version,
            (Some(version), Some(best)) => format!("{version}, offers {best}"),
        }
    }

    /// Its row in `export servers`, but for what is measured.
    pub(crate) fn server_row(&self) -> Map<String, Value> {
        let (evaluated, failing, failures) = self.evaluation();
        let compared = self.compared.map(|[before, new, changed, unchanged, gone]| {
            json!({"compared_run": self.run - 1, "pages_before": before, "new": new, "changed": changed, "unchanged": unchanged, "gone": gone,
                   "missed": 0})
        });
        let evaluation = (evaluated > 0).then(|| json!({"pages": evaluated, "failing": failing, "failures": failures, "refused": {}}));
        let row = json!({
            "host": self.host, "tree": self.tree, "address": self.address, "run": self.run,
            "country": self.country, "registry": self.registry, "organisation": self.organisation,
            "status": self.status, "state": self.state, "software": self.software,
            "pages": self.pages.len(), "requests": self.requests, "bytes": self.bytes, "page_bytes": self.page_bytes,
            "known": self.known, "fetched": self.fetched, "unanswered": self.unanswered, "waiting": 0, "set_aside": 0,
            "cut_by_depth": self.cut_by_depth, "cut_by_script": self.cut_by_script, "cut_by_yield": 0,
            "refused_by_robots": self.refused_by_robots,
            "refused_by_robots_unavailable": self.refused_by_robots_unavailable, "refused_by_crawl_delay": 0,
            "failed": self.failed, "by_failure": self.by_failure, "by_status": self.by_status,
            "external_hosts": self.external_hosts.len(), "external_urls": self.external_urls.len(),
            "external_domains": self.external_domains.len(),
            "deepest": self.deepest, "no_index": self.no_index, "no_follow": self.no_follow, "crawl_delay_ms": self.crawl_delay_ms,
            "held_back": {"hosts_by_site_limit": self.held_hosts, "hosts_by_domain_limit": 0, "host_urls": self.held_urls,
                          "host_urls_not_kept": 0, "urls_not_queued": 0},
            "levels": self.level_counts().collect::<Vec<_>>(),
            "changes": compared, "evaluation": evaluation, "evaluation_rules": (evaluated > 0).then_some(RULE_SET),
            "facts": self.facts,
        });
        if let Value::Object(row) = row { row } else { Map::new() }
    }

    /// The same row as a table has it: its facts and its answers in columns of their own.
    pub(crate) fn server_cells(&self) -> Map<String, Value> {
        let mut row = self.server_row();
        let facts = self.facts.clone().unwrap_or_default();
        row.remove("facts");
        let offers: Vec<&str> = facts.get("alt_svc").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let offers = (!offers.is_empty()).then(|| offers.join("; "));
        row.extend(facts.into_iter().filter(|(name, _)| name != "alt_svc"));
        let answers = |is_counted: &dyn Fn(u16) -> bool| {
            self.by_status.iter().filter(|(status, _)| is_counted(**status)).map(|(_, count)| count).sum::<u64>()
        };
        let cells = json!({
            "alt_svc": offers, "address_family": "ipv4",
            "fetch_200": answers(&|status| (200..300).contains(&status)),
            "fetch_redirPerm": answers(&|status| [301, 308].contains(&status)),
            "fetch_redirTemp": answers(&|status| [302, 307].contains(&status)),
            "fetch_notModified": answers(&|status| status == 304),
            "fetch_3xx": answers(&|status| (300..400).contains(&status) && ![301, 302, 304, 307, 308].contains(&status)),
            "fetch_gone": answers(&|status| [404, 410].contains(&status)),
            "fetch_4xx": answers(&|status| (400..500).contains(&status) && ![404, 410].contains(&status)),
            "fetch_5xx": answers(&|status| (500..600).contains(&status)),
            "fetch_other": answers(&|status| !(200..600).contains(&status)),
        });
        if let Value::Object(cells) = cells {
            row.extend(cells);
        }
        row
    }

    /// Its row in `export history`, but for what is measured.
    pub(crate) fn history_row(&self) -> Map<String, Value> {
        let (evaluated, failing, failures) = self.evaluation();
        let [before, new, changed, _, gone] = self.compared.unwrap_or_default();
        let language = self.facts.as_ref().map(|facts| facts["language"].clone());
        let row = json!({
            "host": self.host, "tree": self.tree, "address": self.address, "run": self.run,
            "country": self.country, "registry": self.registry, "organisation": self.organisation,
            "status": self.status, "state": self.state, "software": self.software, "language": language,
            "known": self.known, "pages": self.pages.len(), "page_bytes": self.page_bytes, "bytes": self.bytes, "requests": self.requests,
            "failed": self.failed, "external_hosts": self.external_hosts.len(), "external_urls": self.external_urls.len(),
            "external_domains": self.external_domains.len(),
            "compared_run": self.compared.map(|_| self.run - 1), "pages_before": before, "new_pages": new, "changed_pages": changed,
            "gone_pages": gone, "evaluated": evaluated, "failing": failing, "detected_failures": failures.values().sum::<u64>(),
            "evaluation_rules": (evaluated > 0).then_some(RULE_SET), "runs_left_out": 0,
        });
        if let Value::Object(row) = row { row } else { Map::new() }
    }

    /// The pages that fail each rule, with the line of the first element that does.
    pub(crate) fn failing_pages(&self) -> BTreeMap<&'static str, BTreeMap<String, u32>> {
        let mut failing: BTreeMap<&'static str, BTreeMap<String, u32>> = BTreeMap::new();
        for (key, page) in self.pages.iter().filter(|_| self.evaluates) {
            let url = if key.starts_with(&format!("{}:8443", self.host)) {
                format!("https://{key}")
            } else {
                format!("http://{}", key.replacen(&self.host, &format!("{}:8080", self.host), 1))
            };
            page.failures.iter().for_each(|(rule, (_, line))| {
                failing.entry(*rule).or_default().insert(url.clone(), *line);
            });
        }
        failing
    }
}

/// How many different ones there are: not sums over servers.
pub(crate) fn distinct(run: &Run) -> Counts {
    let servers = || run.servers.values();
    let count = |of: fn(&Expected) -> &str| servers().map(of).collect::<BTreeSet<_>>().len() as u64;
    BTreeMap::from([
        ("servers", servers().count() as u64),
        ("addresses", count(|server| &server.address)),
        ("domains", count(|server| &server.domain)),
        ("external_hosts", servers().flat_map(|server| &server.external_hosts).collect::<BTreeSet<_>>().len() as u64),
        ("external_domains", servers().flat_map(|server| &server.external_domains).collect::<BTreeSet<_>>().len() as u64),
    ])
}

/// The sums of some servers.
pub(crate) fn sums<'a>(servers: impl Iterator<Item = &'a Expected>) -> Counts {
    let mut sums = Counts::new();
    for server in servers {
        server.counts().into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
    }
    sums
}
