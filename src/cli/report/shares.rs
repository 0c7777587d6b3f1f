//! Reports of shares and quantiles: servers abroad, distances, answers, accessibility.

use super::{
    document::{Cell, Column, Document},
    gather::Row,
    interval::{Weighty, quantile, quantile_interval},
    maker::{By, Maker},
    weights::{Share, Weighed},
};
use crate::cli::chart::{Axis, Bar, Chart, Plot, Scale};
use nearcrawl_model::{evaluation::Rule, record::ServerStatus, split::NONE_DETECTED, view::counted};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, net::IpAddr};

/// The most rows that a figure has; the table has all.
const MAX_BARS: usize = 40;

/// What is said of every interval.
const INTERVAL: &str = "Intervals are those of Wilson at 95 %: how far the share may be from that of all such servers, if those on record are a \
                        random sample of them. They say nothing of servers that the crawl could not find.";

/// What is said of weights, where shares are of what a visit shows.
const WEIGHTS: &str = "At an address with more than 64 hosts of which not all that the report is of were visited, those visited in random \
                       order are a sample: each weighs as many hosts as it stands for. Hosts that are in no sample weigh nothing, nor do \
                       those of samples of fewer than ten; hosts visited out of turn weigh as themselves. The interval is that of the \
                       effective number of servers (Kish). Counts are of servers as they are on record, not weighted.";

/// Shares in rows, those of the most servers first.
fn shares_chart(title: String, axis: &str, rows: &[(String, Share)]) -> Chart {
    let bar = |(name, share): &(String, Share)| share.bar(name);
    let title = if rows.len() > MAX_BARS { format!("{title} (the {MAX_BARS} with most servers)") } else { title };
    let rows = rows.iter().take(MAX_BARS).map(bar).collect();
    Chart { title, plot: Plot::Rows { x: Axis::share(axis), rows, key: "dot: share, line: 95 % interval".to_owned() } }
}

/// The groups with the most of what `all` counts first.
fn ranked<V>(groups: BTreeMap<String, V>, all: impl Fn(&V) -> u64) -> Vec<(String, V)> {
    let mut ranked: Vec<_> = groups.into_iter().collect();
    ranked.sort_by(|a, b| all(&b.1).cmp(&all(&a.1)).then_with(|| a.0.cmp(&b.0)));
    ranked
}

/// Of the servers of a country's top-level domain those whose address lies in another country.
#[derive(Debug, Default)]
pub struct Offshore {
    /// By top-level domain: servers by country.
    domains: BTreeMap<String, BTreeMap<String, u64>>,
    /// Servers under a country's domain whose country the registries do not have.
    unknown: u64,
    /// Servers under other domains.
    elsewhere: u64,
}

/// The country that a top-level domain is that of, by ISO 3166; none of others. `.uk` and `.ac` are not named by their country's code, `.eu`
/// and `.su` are no country's.
fn country_of(tld: &str) -> Option<String> {
    match tld {
        "uk" => Some("GB".to_owned()),
        "ac" => Some("SH".to_owned()),
        "eu" | "su" => None,
        two if two.len() == 2 && two.bytes().all(|byte| byte.is_ascii_alphabetic()) => Some(two.to_ascii_uppercase()),
        _ => None,
    }
}

impl Maker for Offshore {
    fn enter(&mut self, row: &Row) {
        let tld = row.record.host.tld().unwrap_or_default().to_ascii_lowercase();
        match (country_of(&tld), row.place.country.as_str()) {
            (None, _) => self.elsewhere += 1,
            (Some(_), "" | "ZZ") => self.unknown += 1,
            (Some(_), country) => *self.domains.entry(tld).or_default().entry(country.to_owned()).or_default() += 1,
        }
    }

    fn finish(self: Box<Self>) -> Document {
        let domains = ranked(self.domains, |countries| countries.values().sum());
        let (mut rows, mut bars) = (Vec::new(), Vec::new());
        for (tld, countries) in &domains {
            let home = country_of(tld).unwrap_or_default();
            let all: u64 = countries.values().sum();
            let abroad = all - countries.get(&home).copied().unwrap_or(0);
            let mut others: Vec<_> = countries.iter().filter(|(country, _)| **country != home).collect();
            others.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
            let most: Vec<_> = others.iter().take(5).map(|(country, servers)| format!("{country} {servers}")).collect();
            let cells = [Cell::Text(format!(".{tld}")), Cell::Text(home), Cell::Count(all), Cell::Count(abroad)];
            let share = Share::of(&Weighed::of(abroad), &Weighed::of(all));
            rows.push(cells.into_iter().chain(share.cells()).chain([Cell::Text(most.join(", "))]).collect());
            bars.push((format!(".{tld}"), share));
        }
        let title = "Servers abroad, by country's top-level domain".to_owned();
        let left_out = format!(
            "{} under other domains, {} in no country that the registries know",
            counted(self.elsewhere, "server"),
            counted(self.unknown, "server")
        );
        Document {
            name: "offshore",
            charts: vec![shares_chart(title.clone(), "share of servers whose address lies in another country", &bars)],
            title,
            method: format!(
                "A server (host) counts once, under the top-level domain of its name. Its country is the one in which the registries have the \
                 subnet of its address registered; a server behind a network of many places (anycast) counts where that network is registered. \
                 Domains with two letters are taken for that country's; .uk is GB, .ac is SH, .eu and .su are no country's. Domain and country are \
                 known before a visit: all servers on record count, visited or not, and none is weighted. {INTERVAL}"
            ),
            facts: vec![("left out", left_out)],
            data: Map::from_iter([
                ("servers_of_other_domains".to_owned(), Value::from(self.elsewhere)),
                ("servers_of_unknown_country".to_owned(), Value::from(self.unknown)),
            ]),
            columns: vec![
                ("tld", "domain"),
                ("country", "country"),
                ("servers", "servers"),
                ("abroad", "abroad"),
                ("share_abroad", "share"),
                ("share_low", "95 % from"),
                ("share_high", "to"),
                ("most_abroad", "most in"),
            ],
            rows,
        }
    }
}

/// Distances of the servers of a group.
#[derive(Debug, Default)]
struct Distances {
    /// In milliseconds, each with the weight of its server.
    values: Vec<Weighty>,
    /// How much the servers of each address weigh together: they are equally far.
    addresses: BTreeMap<Option<IpAddr>, f64>,
}

/// The quantiles that are told.
const QUANTILES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

impl Distances {
    fn enter(&mut self, ms: f64, address: Option<IpAddr>, weight: f64) {
        self.values.push((ms, weight));
        *self.addresses.entry(address).or_default() += weight;
    }

    /// The quantiles with their 95 % intervals. Servers at one address say as much as one that weighs as much.
    fn quantiles(&mut self) -> [(f64, Option<(f64, f64)>); 5] {
        self.values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut addresses = Weighed::default();
        self.addresses.values().for_each(|weight| addresses.add(*weight));
        let effective = addresses.effective();
        QUANTILES.map(|share| (quantile(&self.values, share).unwrap_or_default(), quantile_interval(&self.values, share, effective)))
    }
}

/// How far servers are.
#[derive(Debug)]
pub struct Nearness {
    by: By,
    groups: BTreeMap<String, Distances>,
    /// The shortest distance that was measured to each address, in milliseconds.
    addresses: BTreeMap<IpAddr, f64>,
    /// Servers without a distance of their own: at which address, and where they count.
    unmeasured: Vec<(Option<IpAddr>, String, Counting)>,
    /// Servers that were visited where too few were, and servers that were not visited; only where the group is known by a visit.
    not_in_sample: u64,
    not_visited: u64,
}

/// How a server counts.
#[derive(Clone, Copy, Debug)]
enum Counting {
    /// With this weight.
    Weighs(f64),
    /// It was visited, but too few at its address were for a sample.
    InNoSample,
    /// It was not visited, so what is asked for is not known of it.
    NotVisited,
}

impl Nearness {
    /// By this split.
    pub fn by(by: By) -> Nearness {
        Nearness { by, groups: BTreeMap::new(), addresses: BTreeMap::new(), unmeasured: Vec::new(), not_in_sample: 0, not_visited: 0 }
    }
}

impl Nearness {
    /// How far an address is says nothing of its hosts: it is the same for all of them, visited or not, and where the group is known before a
    /// visit each counts once. Else those visited stand for the others.
    fn counting_of(&self, row: &Row) -> Counting {
        match row.weight {
            _ if self.by.is_known_before() => Counting::Weighs(1.0),
            weight if weight > 0.0 => Counting::Weighs(weight),
            _ if row.record.first_visit_at.is_some() => Counting::InNoSample,
            _ => Counting::NotVisited,
        }
    }

    fn enter_at(&mut self, group: String, ms: f64, address: Option<IpAddr>, counting: Counting) {
        match counting {
            Counting::Weighs(weight) => self.groups.entry(group).or_default().enter(ms, address, weight),
            Counting::InNoSample => self.not_in_sample += 1,
            Counting::NotVisited => self.not_visited += 1,
        }
    }

    /// What the report leaves out, in words.
    fn left_out(&self, unmeasured: u64) -> String {
        let parts = [
            (self.not_in_sample, "visited at addresses where fewer than ten are in the sample"),
            (self.not_visited, "not visited, for which those visited at the same address stand, if they are enough"),
        ];
        let parts = parts.into_iter().filter(|(servers, _)| *servers > 0);
        let parts: Vec<_> = parts.map(|(servers, why)| format!(", {} {why}", counted(servers, "server"))).collect();
        format!("{} without a measured distance{}", counted(unmeasured, "server"), parts.concat())
    }

    /// How servers count, in words.
    fn counting(&self) -> &'static str {
        if self.by.is_known_before() {
            "All servers at an address that was measured count, visited or not, and none is weighted: how far it is and where it lies is known \
             before a visit."
        } else {
            WEIGHTS
        }
    }

    /// Servers that were not measured are as far as their address; how many are at one that was not measured either.
    fn enter_unmeasured(&mut self) -> u64 {
        let mut without = 0;
        for (address, group, counting) in std::mem::take(&mut self.unmeasured) {
            match address.and_then(|address| self.addresses.get(&address).copied()) {
                Some(ms) => self.enter_at(group, ms, address, counting),
                None => without += 1,
            }
        }
        without
    }
}

impl Maker for Nearness {
    fn enter(&mut self, row: &Row) {
        let (address, group, counting) = (row.record.address, self.by.value(row), self.counting_of(row));
        let Some(us) = row.record.facts.as_ref().and_then(|facts| facts.rtt_us) else {
            return self.unmeasured.push((address, group, counting));
        };
        let ms = f64::from(us) / 1_000.0;
        if let Some(address) = address {
            self.addresses.entry(address).and_modify(|known| *known = known.min(ms)).or_insert(ms);
        }
        self.enter_at(group, ms, address, counting);
    }

    fn finish(mut self: Box<Self>) -> Document {
        let unmeasured = self.enter_unmeasured();
        let (left_out, counting) = (self.left_out(unmeasured), self.counting());
        let (mut rows, mut bars) = (Vec::new(), Vec::new());
        for (group, mut distances) in ranked(self.groups, |distances| distances.values.len() as u64) {
            let (servers, quantiles) = (distances.values.len() as u64, distances.quantiles());
            let cells = [Cell::Text(group.clone()), Cell::Count(servers)];
            let end = |end: Option<f64>| end.map_or(Cell::Nothing, Cell::Millis);
            let ends = quantiles.into_iter().flat_map(|(_, ends)| [end(ends.map(|ends| ends.0)), end(ends.map(|ends| ends.1))]);
            rows.push(cells.into_iter().chain(quantiles.map(|(value, _)| Cell::Millis(value))).chain(ends).collect());
            let [p10, p25, p50, p75, p90] = quantiles.map(|(value, _)| value);
            let note = format!("{p50:.1} ms, {}", counted(servers, "server"));
            bars.push(Bar { name: group, value: p50, interval: (p10, p90), middle: Some((p25, p75)), note });
        }
        let title = format!("Distance of servers from the members that crawl them, by {}", self.by.name());
        bars.truncate(MAX_BARS);
        let key = "dot: median, box: middle half, line: 10 % to 90 % of servers".to_owned();
        let x = Axis::powers("time of a TCP connect, in ms", Scale::Tenfold);
        Document {
            name: "nearness",
            charts: vec![Chart { title: title.clone(), plot: Plot::Rows { x, rows: bars, key } }],
            title,
            method: format!(
                "The distance of a server is the time of a TCP connect to it, as its owner measured it in the run that counts. It is measured \
                 once, from one place, on a network that changes: quantiles are of servers, not of measurements. A server to which no connection of \
                 its own was made is as far as the nearest at its address. Intervals are between order \
                 statistics, at 95 %, of as many values as there are addresses, since the servers of one are equally far; few addresses have \
                 none. {counting}"
            ),
            facts: vec![("left out", left_out)],
            data: Map::from_iter([
                ("by".to_owned(), Value::from(self.by.name())),
                ("servers_unmeasured".to_owned(), Value::from(unmeasured)),
                ("servers_in_no_sample".to_owned(), Value::from(self.not_in_sample)),
                ("servers_not_visited".to_owned(), Value::from(self.not_visited)),
            ]),
            columns: [(self.by.name(), self.by.name()), ("servers", "servers")].into_iter().chain(DISTANCE_COLUMNS).collect(),
            rows,
        }
    }
}

/// Of the intervals only that of the median is shown to people.
const DISTANCE_COLUMNS: [Column; 15] = [
    ("p10_ms", "10 % ms"),
    ("p25_ms", "25 %"),
    ("p50_ms", "median"),
    ("p75_ms", "75 %"),
    ("p90_ms", "90 %"),
    ("p10_low_ms", ""),
    ("p10_high_ms", ""),
    ("p25_low_ms", ""),
    ("p25_high_ms", ""),
    ("p50_low_ms", "median from"),
    ("p50_high_ms", "to"),
    ("p75_low_ms", ""),
    ("p75_high_ms", ""),
    ("p90_low_ms", ""),
    ("p90_high_ms", ""),
];

/// What became of servers.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    all: Weighed,
    up: Weighed,
    no_pages: u64,
    refused: u64,
    robots: u64,
    down: u64,
}

/// Which servers answer.
#[derive(Debug)]
pub struct Reachability {
    by: By,
    groups: BTreeMap<String, Answers>,
    waiting: u64,
    failures: BTreeMap<String, u64>,
}

impl Reachability {
    /// By this split.
    pub fn by(by: By) -> Reachability {
        Reachability { by, groups: BTreeMap::new(), waiting: 0, failures: BTreeMap::new() }
    }
}

impl Maker for Reachability {
    fn enter(&mut self, row: &Row) {
        if row.record.status == ServerStatus::Waiting {
            self.waiting += 1;
            return;
        }
        let group = self.groups.entry(self.by.value(row)).or_default();
        group.all.add(row.weight);
        let count = match row.record.status {
            ServerStatus::Up | ServerStatus::Waiting => return group.up.add(row.weight),
            ServerStatus::NoPages => &mut group.no_pages,
            ServerStatus::Refused => &mut group.refused,
            ServerStatus::Robots | ServerStatus::RobotsUnavailable => &mut group.robots,
            ServerStatus::Down => {
                let why = row.record.main_failure().map_or_else(|| "unknown".to_owned(), |failure| failure.word());
                *self.failures.entry(why).or_default() += 1;
                &mut group.down
            }
        };
        *count += 1;
    }

    fn finish(self: Box<Self>) -> Document {
        let groups = ranked(self.groups, |answers| answers.all.count);
        let row = |(group, answers): &(String, Answers)| {
            let Answers { all, up, no_pages, refused, robots, down } = *answers;
            let head = [Cell::Text(group.clone()), Cell::Count(all.count), Cell::Count(up.count)];
            head.into_iter().chain(Share::of(&up, &all).cells()).chain([no_pages, refused, robots, down].map(Cell::Count)).collect()
        };
        let bars: Vec<_> = groups.iter().map(|(group, answers)| (group.clone(), Share::of(&answers.up, &answers.all))).collect();
        let failures: Vec<_> = self.failures.iter().map(|(why, servers)| format!("{why} {servers}")).collect();
        let title = format!("Servers that answer with pages, by {}", self.by.name());
        let down = if failures.is_empty() { "none".to_owned() } else { failures.join(", ") };
        Document {
            name: "reachability",
            charts: vec![shares_chart(title.clone(), "share of servers that answer with a page", &bars)],
            title,
            method: format!(
                "Of the servers that were asked, by what their answers say: up is one that answered with an HTML page; one whose robots.txt \
                 allows no page, or could not be had, was not asked for any; refused is one that answered 401, 403, 429, 451 or a guard's \
                 challenge only; down could not be connected to from where its owner is. {INTERVAL} {WEIGHTS}"
            ),
            facts: vec![("down, by what went wrong", down), ("left out", format!("{} not asked yet", counted(self.waiting, "server")))],
            data: Map::from_iter([
                ("by".to_owned(), Value::from(self.by.name())),
                ("servers_waiting".to_owned(), Value::from(self.waiting)),
                ("down_by_failure".to_owned(), self.failures.iter().map(|(why, servers)| (why.clone(), Value::from(*servers))).collect()),
            ]),
            rows: groups.iter().map(row).collect(),
            columns: vec![
                (self.by.name(), self.by.name()),
                ("servers", "servers"),
                ("up", "up"),
                ("share_up", "share"),
                ("share_low", "95 % from"),
                ("share_high", "to"),
                ("no_pages", "no pages"),
                ("refused", "refused"),
                ("robots", "robots.txt"),
                ("down", "down"),
            ],
        }
    }
}

/// Servers that were evaluated in a group, and by rule those that fail it and their failures.
#[derive(Debug, Default)]
struct Evaluated {
    servers: Weighed,
    pages: u64,
    rules: BTreeMap<Rule, (Weighed, u64)>,
}

impl Evaluated {
    /// A row for each rule that is failed; where none is, one that says so, which is a result, too.
    fn rows(&self, group: &str) -> Vec<Vec<Cell>> {
        let row = |rule: &str, name: &str, servers: &Weighed, failures: u64| {
            let words = [group, rule, name].map(|word| Cell::Text(word.to_owned()));
            let counts = [self.servers.count, servers.count].map(Cell::Count);
            let [share, low, high] = Share::of(servers, &self.servers).cells();
            words.into_iter().chain(counts).chain([share, low, high, Cell::Count(failures)]).collect()
        };
        if self.rules.is_empty() && self.servers.count > 0 {
            return vec![row(NONE_DETECTED, "", &Weighed::default(), 0)];
        }
        self.rules.iter().map(|(rule, (servers, failures))| row(rule.id(), rule.name(), servers, *failures)).collect()
    }
}

/// Which rules servers fail.
#[derive(Debug)]
pub struct Accessibility {
    by: By,
    all: Evaluated,
    groups: BTreeMap<String, Evaluated>,
    unevaluated: u64,
    versions: BTreeMap<u32, u64>,
}

impl Accessibility {
    /// By this split.
    pub fn by(by: By) -> Accessibility {
        Accessibility { by, all: Evaluated::default(), groups: BTreeMap::new(), unevaluated: 0, versions: BTreeMap::new() }
    }
}

impl Maker for Accessibility {
    fn enter(&mut self, row: &Row) {
        let Some(sums) = row.record.evaluation.as_ref().filter(|sums| sums.pages > 0) else {
            self.unevaluated += 1;
            return;
        };
        *self.versions.entry(row.record.evaluation_rules.unwrap_or(0)).or_default() += 1;
        for group in [&mut self.all, self.groups.entry(self.by.value(row)).or_default()] {
            group.servers.add(row.weight);
            group.pages += sums.pages;
            for (rule, failures) in sums.failures.iter().filter(|(_, failures)| **failures > 0) {
                let (servers, sum) = group.rules.entry(*rule).or_default();
                servers.add(row.weight);
                *sum += failures;
            }
        }
    }

    fn finish(self: Box<Self>) -> Document {
        let evaluated = self.all.servers.count;
        let all = ("(all)".to_owned(), self.all);
        let named = |(rule, (servers, _)): (&Rule, &(Weighed, u64))| (format!("{} {}", rule.id(), rule.name()), *servers);
        let mut failed: Vec<_> = all.1.rules.iter().map(named).collect();
        failed.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
        let failed: Vec<_> = failed.into_iter().map(|(rule, servers)| (rule, Share::of(&servers, &all.1.servers))).collect();
        let groups = [all].into_iter().chain(ranked(self.groups, |group| group.servers.count));
        let rows = groups.flat_map(|(group, evaluated)| evaluated.rows(&group)).collect();
        let versions: Vec<_> =
            self.versions.iter().map(|(version, servers)| format!("{version}: {}", counted(*servers, "server"))).collect();
        let versions =
            if versions.is_empty() { "no page was evaluated; is evaluation switched on?".to_owned() } else { versions.join(", ") };
        let title = format!("Servers with pages that fail an accessibility rule, by rule and {}", self.by.name());
        Document {
            name: "accessibility",
            charts: vec![shares_chart("Servers with a page that fails the rule".to_owned(), "share of evaluated servers", &failed)],
            title,
            method: format!(
                "Of the servers of which pages were evaluated, those with at least one page that fails the rule. Rules are the W3C's (ACT), as far \
                 as markup alone proves a failure: a server without one may still have barriers. Failures are counted by element. A group in which no server fails \
                 any rule has one row, {NONE_DETECTED}. {INTERVAL} {WEIGHTS}"
            ),
            facts: vec![
                ("rule set", versions),
                ("evaluated", format!("{} of {}", counted(evaluated, "server"), evaluated + self.unevaluated)),
                ("left out", format!("{} without an evaluated page", counted(self.unevaluated, "server"))),
            ],
            data: Map::from_iter([
                ("by".to_owned(), Value::from(self.by.name())),
                ("servers_evaluated".to_owned(), Value::from(evaluated)),
                ("servers_unevaluated".to_owned(), Value::from(self.unevaluated)),
                (
                    "rule_sets".to_owned(),
                    self.versions.iter().map(|(version, servers)| (version.to_string(), Value::from(*servers))).collect(),
                ),
            ]),
            rows,
            columns: vec![
                (self.by.name(), self.by.name()),
                ("rule", "rule"),
                ("rule_name", "name"),
                ("servers", "evaluated"),
                ("failing", "failing"),
                ("share_failing", "share"),
                ("share_low", "95 % from"),
                ("share_high", "to"),
                ("failures", "failures"),
            ],
        }
    }
}
