//! Summaries of many records: mergeable counts by a few dimensions.

use super::{
    access_point::AccessPoint,
    account::LevelCounts,
    estimates::Estimates,
    evaluation::EvaluationCounts,
    time::Millis,
    view::{Age, counted},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What counts can be split by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Country of the subnet, by the registries (ISO 3166 code, `ZZ` unknown).
    Country,
    /// Top-level domain of the host.
    Tld,
    /// Regional registry of the subnet.
    Registry,
    /// Organisation that holds the subnet.
    Organisation,
    /// The server's software.
    Software,
    /// The server's status in one word.
    Status,
    /// The language that the server's front page declares.
    Language,
    /// The script of most letters of its front page.
    Script,
    /// The HTTP version that it answers in, and the best that it offers besides.
    Http,
    /// The version of TLS.
    Tls,
    /// The family of its address.
    Family,
    /// The version of the rule set by which its pages were evaluated.
    RuleSet,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Dimension; 12] = [
        Dimension::Country,
        Dimension::Tld,
        Dimension::Registry,
        Dimension::Organisation,
        Dimension::Software,
        Dimension::Status,
        Dimension::Language,
        Dimension::Script,
        Dimension::Http,
        Dimension::Tls,
        Dimension::Family,
        Dimension::RuleSet,
    ];

    /// Its name wherever people see it, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Dimension::Country => "country",
            Dimension::Tld => "tld",
            Dimension::Registry => "registry",
            Dimension::Organisation => "organisation",
            Dimension::Software => "software",
            Dimension::Status => "status",
            Dimension::Language => "language",
            Dimension::Script => "script",
            Dimension::Http => "http",
            Dimension::Tls => "tls",
            Dimension::Family => "family",
            Dimension::RuleSet => "rule-set",
        }
    }

    /// What its values are, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Dimension::Country => "Country of the subnet, by the registries",
            Dimension::Tld => "Top-level domain of the host",
            Dimension::Registry => "Regional internet registry",
            Dimension::Organisation => "Organisation that holds the subnet",
            Dimension::Software => "The server's software",
            Dimension::Status => "The server's status",
            Dimension::Language => "Language that the front page declares",
            Dimension::Script => "Script of the front page (ISO 15924 code)",
            Dimension::Http => "HTTP version, and the best one offered besides",
            Dimension::Tls => "TLS version",
            Dimension::Family => "Family of the server's address",
            Dimension::RuleSet => "Version of the rule set that its pages were evaluated by",
        }
    }

    /// How many values one access point's roll-up may have; the rest is added to [`OTHER`].
    pub const fn most_values(self) -> usize {
        match self {
            Dimension::Country
            | Dimension::Tld
            | Dimension::Registry
            | Dimension::Organisation
            | Dimension::Software
            | Dimension::Status => MAX_VALUES,
            Dimension::Language => 24,
            Dimension::Script | Dimension::Http | Dimension::Tls | Dimension::Family => 12,
            Dimension::RuleSet => 4,
        }
    }
}

/// Sums over servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Servers (hosts) with a record.
    pub servers: u64,
    /// Of these, servers that answered with a page.
    pub up: u64,
    /// HTML pages fetched.
    pub pages: u64,
    /// Requests sent, robots.txt included.
    pub requests: u64,
    /// Bytes of bodies over the wire.
    pub bytes: u64,
    /// Response times added up, in milliseconds.
    pub busy_ms: u64,
    /// Links to external hosts, distinct per server.
    pub external_hosts: u64,
    /// External URLs, distinct per server; of servers with more than 256 an estimate.
    #[serde(default)]
    pub external_urls: u64,
    /// Registrable domains of external hosts, distinct per server; of servers with more than 600 an estimate.
    #[serde(default)]
    pub external_domains: u64,
    /// URLs cut by depth.
    pub cut_by_depth: u64,
    /// URLs refused by robots.txt.
    pub refused_by_robots: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// Servers of which no run is finished yet. While a server is visited again, its last whole run is what counts.
    pub unfinished: u64,
    /// Pages that were evaluated.
    #[serde(default)]
    pub evaluated: u64,
    /// Accessibility failures detected in them.
    #[serde(default)]
    pub detected_failures: u64,
    /// Size of the pages: what the body of each took over the wire when it was last downloaded, in the last run or an earlier one. Bodies that are
    /// no HTML page are not among it.
    #[serde(default)]
    pub page_bytes: u64,
    /// URLs that wait for their turn in the runs that the totals are of.
    #[serde(default)]
    pub waiting_urls: u64,
    /// Of these, the ones that wait because the page budget of their site's run is used up.
    #[serde(default)]
    pub waiting_urls_by_budget: u64,
    /// URLs that were not queued because as many waited as may.
    #[serde(default)]
    pub urls_not_queued: u64,
    /// New hosts that wait because a site has led to as many in a day as it may; distinct per server.
    #[serde(default)]
    pub hosts_held_by_site_limit: u64,
    /// New hosts that wait because as many of their domain were led to in a day as may be; distinct per server.
    #[serde(default)]
    pub hosts_held_by_domain_limit: u64,
}

impl Counts {
    /// Adds another's sums. What a member exaggerates stays at the end of the scale.
    pub fn add(&mut self, other: &Counts) {
        self.servers = self.servers.saturating_add(other.servers);
        self.up = self.up.saturating_add(other.up);
        self.pages = self.pages.saturating_add(other.pages);
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.busy_ms = self.busy_ms.saturating_add(other.busy_ms);
        self.external_hosts = self.external_hosts.saturating_add(other.external_hosts);
        self.external_urls = self.external_urls.saturating_add(other.external_urls);
        self.external_domains = self.external_domains.saturating_add(other.external_domains);
        self.cut_by_depth = self.cut_by_depth.saturating_add(other.cut_by_depth);
        self.refused_by_robots = self.refused_by_robots.saturating_add(other.refused_by_robots);
        self.failed = self.failed.saturating_add(other.failed);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.evaluated = self.evaluated.saturating_add(other.evaluated);
        self.detected_failures = self.detected_failures.saturating_add(other.detected_failures);
        self.page_bytes = self.page_bytes.saturating_add(other.page_bytes);
        self.waiting_urls = self.waiting_urls.saturating_add(other.waiting_urls);
        self.waiting_urls_by_budget = self.waiting_urls_by_budget.saturating_add(other.waiting_urls_by_budget);
        self.urls_not_queued = self.urls_not_queued.saturating_add(other.urls_not_queued);
        self.hosts_held_by_site_limit = self.hosts_held_by_site_limit.saturating_add(other.hosts_held_by_site_limit);
        self.hosts_held_by_domain_limit = self.hosts_held_by_domain_limit.saturating_add(other.hosts_held_by_domain_limit);
    }
}

impl Counts {
    /// Takes back sums that were added before.
    pub fn subtract(&mut self, other: &Counts) {
        self.servers = self.servers.saturating_sub(other.servers);
        self.up = self.up.saturating_sub(other.up);
        self.pages = self.pages.saturating_sub(other.pages);
        self.requests = self.requests.saturating_sub(other.requests);
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.busy_ms = self.busy_ms.saturating_sub(other.busy_ms);
        self.external_hosts = self.external_hosts.saturating_sub(other.external_hosts);
        self.external_urls = self.external_urls.saturating_sub(other.external_urls);
        self.external_domains = self.external_domains.saturating_sub(other.external_domains);
        self.cut_by_depth = self.cut_by_depth.saturating_sub(other.cut_by_depth);
        self.refused_by_robots = self.refused_by_robots.saturating_sub(other.refused_by_robots);
        self.failed = self.failed.saturating_sub(other.failed);
        self.unfinished = self.unfinished.saturating_sub(other.unfinished);
        self.evaluated = self.evaluated.saturating_sub(other.evaluated);
        self.detected_failures = self.detected_failures.saturating_sub(other.detected_failures);
        self.page_bytes = self.page_bytes.saturating_sub(other.page_bytes);
        self.waiting_urls = self.waiting_urls.saturating_sub(other.waiting_urls);
        self.waiting_urls_by_budget = self.waiting_urls_by_budget.saturating_sub(other.waiting_urls_by_budget);
        self.urls_not_queued = self.urls_not_queued.saturating_sub(other.urls_not_queued);
        self.hosts_held_by_site_limit = self.hosts_held_by_site_limit.saturating_sub(other.hosts_held_by_site_limit);
        self.hosts_held_by_domain_limit = self.hosts_held_by_domain_limit.saturating_sub(other.hosts_held_by_domain_limit);
    }
}

impl Counts {
    /// Whether anything is less than in others of what only a completed run, or an end of what is counted, takes away.
    pub fn is_less_than(&self, than: &Counts) -> bool {
        let figures = |counts: &Counts| {
            [
                counts.servers,
                counts.up,
                counts.pages,
                counts.requests,
                counts.bytes,
                counts.page_bytes,
                counts.external_hosts,
                counts.external_urls,
                counts.external_domains,
                counts.evaluated,
                counts.detected_failures,
            ]
        };
        figures(self).iter().zip(figures(than)).any(|(these, those)| *these < those)
    }

    /// What the servers' pages link to elsewhere, in words. These are sums over servers: a host that two servers name counts twice.
    pub fn external(&self) -> String {
        let (urls, hosts, domains) = (self.external_urls, self.external_hosts, self.external_domains);
        let (hosts, domains) = (counted(hosts, "host"), counted(domains, "domain"));
        format!("external links, summed over servers (not distinct): {}, {hosts}, {domains}", counted(urls, "URL"))
    }

    /// How many of the servers are in their first run, of which the sums contain what there is so far; in words, none if all runs are whole.
    pub fn first_runs(&self) -> Option<String> {
        let (are, have) = if self.unfinished == 1 { ("is in its first run", "it has") } else { ("are in their first run", "they have") };
        (self.unfinished > 0).then(|| format!("{} {are} and counted with what {have} so far", counted(self.unfinished, "server")))
    }

    /// What limits hold back until later, in words; none if nothing is held back.
    pub fn held_back(&self) -> Option<String> {
        let parts = [
            (self.waiting_urls_by_budget, "URL", "by the page budget"),
            (self.urls_not_queued, "URL", "not queued because too many waited"),
            (self.hosts_held_by_site_limit, "new host", "by the limit for a site and day"),
            (self.hosts_held_by_domain_limit, "new host", "by the limit for a domain and day"),
        ];
        let told = parts.iter().filter(|(count, ..)| *count > 0).map(|(count, what, why)| format!("{} {why}", counted(*count, what)));
        let told: Vec<_> = told.collect();
        (!told.is_empty()).then(|| format!("held back until later: {}", told.join(", ")))
    }
}

/// Totals with their splits. The splits of one dimension add up to the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The sums over all servers.
    pub total: Counts,
    /// By dimension and value.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Counts>>)]
    pub by: BTreeMap<Dimension, BTreeMap<String, Counts>>,
    /// What each level of the servers' trees cost and brought, at most [`MAX_LEVELS`] of them.
    #[serde(default)]
    pub levels: Vec<LevelCounts>,
    /// Accessibility failures detected in the servers' pages, by rule.
    #[serde(default)]
    pub evaluation: EvaluationCounts,
    /// What the sums come to where only a sample of the hosts of an address was visited.
    #[serde(default)]
    pub estimates: Estimates,
}

/// How many levels a summary tells apart: no tree is crawled deeper.
pub(crate) const MAX_LEVELS: usize = 64;

/// How many values one dimension of one access point's roll-up may have; the rest is added to `(other)`.
pub const MAX_VALUES: usize = 200;

/// What values beyond [`MAX_VALUES`] are counted as.
pub const OTHER: &str = "(other)";

/// The longest name of a value that a member may tell, in bytes.
pub const MAX_VALUE: usize = 512;

impl Summary {
    /// How many values it has, of all dimensions.
    pub fn values(&self) -> usize {
        self.by.values().map(BTreeMap::len).sum()
    }

    /// Whether a member may tell it: no more values, with no longer names, than one that keeps to [`MAX_VALUES`].
    pub fn is_tellable(&self) -> bool {
        let fits =
            |values: &BTreeMap<String, Counts>| values.len() <= MAX_VALUES + 1 && values.keys().all(|value| value.len() <= MAX_VALUE);
        self.levels.len() <= MAX_LEVELS && self.by.values().all(fits) && self.estimates.is_tellable()
    }

    /// Says what the estimates come to: they are whole.
    pub fn settle(&mut self) {
        self.estimates.settle(&self.total, &self.by);
    }

    /// By which versions of the rule set pages were evaluated, in words; none if none were. Failures by one version and by another do not add
    /// up to anything: a later version may see what an earlier one did not.
    pub fn rule_sets(&self) -> Option<String> {
        let values = self.by.get(&Dimension::RuleSet)?;
        let evaluated: Vec<_> = values.iter().filter(|(_, counts)| counts.evaluated > 0).collect();
        let told = |(version, counts): &(&String, &Counts)| {
            let (pages, servers) = (counted(counts.evaluated, "page"), counted(counts.servers, "server"));
            let failures = counted(counts.detected_failures, "failure");
            format!("rule set {version}: {failures} in {pages} of {servers}")
        };
        let warning = if evaluated.len() > 1 { "evaluated by several rule sets, whose failures do not compare: " } else { "" };
        let told = evaluated.iter().map(told).collect::<Vec<_>>().join(", ");
        (!evaluated.is_empty()).then(|| format!("{warning}{told}"))
    }

    /// Adds another summary.
    pub fn add(&mut self, other: &Summary) {
        self.total.add(&other.total);
        self.add_levels(&other.levels);
        self.evaluation.add(&other.evaluation);
        self.estimates.add(&other.estimates);
        for (dimension, values) in &other.by {
            let mine = self.by.entry(*dimension).or_default();
            for (value, counts) in values {
                match mine.get_mut(value) {
                    Some(known) => known.add(counts),
                    None => {
                        mine.insert(value.clone(), *counts);
                    }
                }
            }
        }
    }

    /// Adds what levels cost and brought.
    pub fn add_levels(&mut self, levels: &[LevelCounts]) {
        let levels = &levels[..levels.len().min(MAX_LEVELS)];
        if self.levels.len() < levels.len() {
            self.levels.resize(levels.len(), LevelCounts::default());
        }
        self.levels.iter_mut().zip(levels).for_each(|(sum, level)| sum.add(level));
    }
}

/// One access point's contribution: what it owns, with a digest by which each member sees whether the sum is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollUp {
    /// The access point that owns these subnets.
    pub owner: AccessPoint,
    /// Grows with each roll-up of one owner, also across restarts.
    pub version: u64,
    /// XOR over a hash of (subnet, epoch, owner) of all it holds.
    pub claims_digest: u64,
    /// How many subnets it owns.
    pub subnets: u64,
    /// How many members it counts when it asks itself whether it was cut off, itself included.
    pub sure_of: u32,
    /// Its load over the last minute: requests under way as a share of those it may have at once, in thousandths.
    pub busy_permille: u32,
    /// What a second of this member's time costs in the choice of an owner, in thousandths: 1000 is an unloaded member's, more is a
    /// busier one's.
    pub price_permille: u32,
    /// The sums over the servers that it owns.
    pub summary: Summary,
}

/// Whose numbers an answer contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Coverage {
    /// The access point.
    #[schema(value_type = String)]
    pub access_point: AccessPoint,
    /// How old its roll-up is, in milliseconds.
    pub roll_up_age_ms: Millis,
    /// Subnets it holds.
    pub subnets: u64,
    /// Servers in its roll-up.
    pub servers: u64,
}

/// What any access point answers to `results`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwarmResults {
    /// The access point that computed this answer.
    #[schema(value_type = String)]
    pub answered_by: AccessPoint,
    /// Whether the roll-ups add up to the ownership map: then the totals are exactly what was recorded. Readers are told so only if each server
    /// is counted with its last whole run: see [`SwarmResults::for_readers`].
    pub exact: bool,
    /// If not exact, why, in words.
    pub in_transition_text: Option<String>,
    /// Age of the oldest roll-up in it, in milliseconds.
    pub oldest_roll_up_age_ms: Millis,
    /// The access points whose roll-ups the sums contain.
    pub covers: Vec<Coverage>,
    /// The sums over all those roll-ups.
    pub summary: Summary,
    /// Where totals of before a change of owners answer, because not everybody has told those of after it: how long ago it began, in
    /// milliseconds, at most ten minutes. None if the newest totals of all answer.
    #[serde(default)]
    pub consistent_age_ms: Option<Millis>,
}

impl SwarmResults {
    /// Whether no server in the sums is in its first run.
    pub fn of_whole_runs(&self) -> bool {
        self.summary.total.unfinished == 0
    }

    /// As people are told them: totals with servers in their first run will grow until these are over, so they are not called exact, although
    /// the roll-ups add up.
    #[must_use]
    pub fn for_readers(mut self) -> SwarmResults {
        let first_runs = self.summary.total.first_runs().filter(|_| self.exact);
        if first_runs.is_some() {
            (self.exact, self.in_transition_text) = (false, first_runs);
        }
        self
    }

    /// Whether they are exact; else how old what answers is, and why; and what is of first runs. In words.
    pub fn freshness(&self) -> String {
        let first_runs = self.summary.total.first_runs().filter(|text| self.in_transition_text.as_ref() != Some(text));
        if self.exact && first_runs.is_none() {
            return "exact".to_owned();
        }
        let kept = self.consistent_age_ms.map(|age| format!("last consistent totals, as they were {} ago", Age(age)));
        let why: Vec<String> = self.in_transition_text.clone().into_iter().chain(first_runs).collect();
        let why = Some(why.join("; ")).filter(|why| !why.is_empty());
        [Some("in transition".to_owned()), kept, why].into_iter().flatten().collect::<Vec<_>>().join(": ")
    }
}
