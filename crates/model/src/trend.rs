//! Changes between two runs.
//!
//! Like is compared with like: only servers that were measured in both runs, and whose pages were chosen by the same rules in both, count. So a
//! server that did not answer, that one of the runs did not know, or that was crawled to another depth changes no figure; those are counted apart.

use super::{
    facts::software_word,
    record::{RunState, ServerStatus},
    run_history::RunSummary,
    server_rows::{HistoryRow, RunRow},
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;

/// By what a trend is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrendBy {
    /// The country of the server's address.
    Country,
    /// The server's software.
    Software,
    /// The top-level domain.
    Tld,
}

impl TrendBy {
    /// All of them.
    pub const ALL: [TrendBy; 3] = [TrendBy::Country, TrendBy::Software, TrendBy::Tld];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            TrendBy::Country => "country",
            TrendBy::Software => "software",
            TrendBy::Tld => "tld",
        }
    }

    /// What a server belongs to, as it was in this run.
    pub fn value(self, host: &Host, run: &RunRow) -> String {
        match self {
            TrendBy::Country => run.country.clone(),
            TrendBy::Software => software_word(run.summary.software.as_deref()),
            TrendBy::Tld => host.tld().unwrap_or("(address)").to_owned(),
        }
    }
}

/// A figure in both runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figure {
    /// Summed over the servers, in the first run.
    pub from: u64,
    /// Summed over the same servers, in the second run.
    pub to: u64,
    /// The second less the first.
    pub difference: i64,
    /// The difference as a fraction of the first; none if that is 0.
    pub rate: Option<f64>,
}

impl Figure {
    fn add(&mut self, from: u64, to: u64) {
        (self.from, self.to) = (self.from.saturating_add(from), self.to.saturating_add(to));
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.difference = signed(self.to).saturating_sub(signed(self.from));
        self.rate = share(self.difference as f64, self.from);
    }
}

fn share(part: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| part / of as f64)
}

/// How servers that were measured in both runs have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Compared {
    /// The servers.
    pub servers: u64,
    /// Servers (among them) that have another value of the split in the second run. They count where they were in the first one.
    pub servers_elsewhere: u64,
    /// Servers (among them) of which it is not known by which rules the pages of one of the runs were chosen: an earlier version crawled them.
    pub servers_of_unknown_rules: u64,
    /// HTML pages.
    pub pages: Figure,
    /// Size of all bodies, in bytes.
    pub page_bytes: Figure,
    /// Requests sent.
    pub requests: Figure,
    /// Requests without a usable answer.
    pub failed: Figure,
    /// Distinct external hosts, summed over servers.
    pub external_hosts: Figure,
    /// Servers (among `servers`) whose pages were evaluated in both runs by the same rules: only these count in the next two.
    pub servers_evaluated: u64,
    /// Pages that were evaluated.
    pub evaluated: Figure,
    /// Pages (among them) with a detected failure.
    pub failing: Figure,
    /// Servers (among `servers`) of which the second run compared pages with an earlier one: only these count in the next four.
    pub servers_with_changes: u64,
    /// Pages that they had in the run compared with.
    pub pages_before: u64,
    /// Pages that are new since then.
    pub new_pages: u64,
    /// Pages with other content than then.
    pub changed_pages: u64,
    /// Pages of then that are gone.
    pub gone_pages: u64,
    /// Changed and gone pages as a fraction of `pages_before`; none if that is 0.
    pub change_rate: Option<f64>,
}

impl Compared {
    fn add(&mut self, from: &RunSummary, to: &RunSummary, elsewhere: bool) {
        self.servers += 1;
        self.servers_elsewhere += u64::from(elsewhere);
        self.servers_of_unknown_rules += u64::from(from.crawled_by.is_none() || to.crawled_by.is_none());
        self.pages.add(from.pages, to.pages);
        self.page_bytes.add(from.page_bytes, to.page_bytes);
        self.requests.add(from.requests, to.requests);
        self.failed.add(from.failed, to.failed);
        self.external_hosts.add(from.external_hosts, to.external_hosts);
        if from.evaluated > 0 && to.evaluated > 0 && from.evaluation_rules == to.evaluation_rules {
            self.servers_evaluated += 1;
            self.evaluated.add(from.evaluated, to.evaluated);
            self.failing.add(from.failing, to.failing);
        }
        if to.compared_run.is_some() {
            self.servers_with_changes += 1;
            let sums = [&mut self.pages_before, &mut self.new_pages, &mut self.changed_pages, &mut self.gone_pages];
            let more = [to.pages_before, to.new_pages, to.changed_pages, to.gone_pages];
            sums.into_iter().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            self.change_rate = share(self.changed_pages.saturating_add(self.gone_pages) as f64, self.pages_before);
        }
    }
}

/// Servers that a trend leaves out. Each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// Servers of which the first run has no summary: they were not known, or it was not kept.
    pub only_in_to: u64,
    /// Servers of which the second run has none: it has not come to them, or they are not led to any more.
    pub only_in_from: u64,
    /// Servers in which one of the runs is not over.
    pub unfinished: u64,
    /// Servers that did not answer with pages, or let nothing be asked, in the first run only.
    pub not_measured_in_from: u64,
    /// The same in the second run only.
    pub not_measured_in_to: u64,
    /// The same in both.
    pub not_measured_in_both: u64,
    /// Servers whose pages were chosen by other rules in the second run than in the first one: another depth, `crawl.rule` or yield.
    pub crawled_otherwise: u64,
}

impl LeftOut {
    /// All of them.
    pub fn servers(&self) -> u64 {
        let LeftOut { only_in_to, only_in_from, unfinished, crawled_otherwise, .. } = self;
        let LeftOut { not_measured_in_from, not_measured_in_to, not_measured_in_both, .. } = self;
        only_in_to + only_in_from + unfinished + not_measured_in_from + not_measured_in_to + not_measured_in_both + crawled_otherwise
    }
}

/// What changed from one run to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trend {
    /// The number of the first run.
    pub from_run: u32,
    /// The number of the second run.
    pub to_run: u32,
    /// Servers that were measured in both.
    pub total: Compared,
    /// The same by the value that each server had in the first run, for the split that was asked for.
    pub by: BTreeMap<TrendBy, BTreeMap<String, Compared>>,
    /// Servers that do not count in all that.
    pub left_out: LeftOut,
    #[serde(skip)]
    split: Option<TrendBy>,
    #[serde(skip)]
    seen: BTreeSet<Host>,
}

/// Whether the pages of a server were counted in a run: it answered with pages, or with none. What was refused or unreachable was not.
fn is_measured(run: &RunSummary) -> bool {
    matches!(run.status, ServerStatus::Up | ServerStatus::NoPages)
}

fn is_over(run: &RunSummary) -> bool {
    !matches!(run.state, RunState::Running | RunState::PausedByBudget)
}

impl Trend {
    /// Without servers.
    pub fn new(from_run: u32, to_run: u32, split: Option<TrendBy>) -> Trend {
        let (total, left_out) = (Compared::default(), LeftOut::default());
        Trend { from_run, to_run, total, by: BTreeMap::new(), left_out, split, seen: BTreeSet::new() }
    }

    /// Which of the runs no server that was entered has on record: the first one, if it is so of both; none if each has servers.
    pub fn run_without_servers(&self) -> Option<u32> {
        let both = self.total.servers + self.left_out.servers() - self.left_out.only_in_from - self.left_out.only_in_to;
        let counts = [(self.from_run, both + self.left_out.only_in_from), (self.to_run, both + self.left_out.only_in_to)];
        counts.into_iter().find(|(_, servers)| *servers == 0).map(|(run, _)| run)
    }

    /// Whether fewer servers were entered that have one of the runs than in that one.
    pub fn is_less_than(&self, than: &Trend) -> bool {
        self.total.servers + self.left_out.servers() < than.total.servers + than.left_out.servers()
    }

    /// Enters a server. One that comes a second time, because another member owns it by now, is left aside.
    pub fn enter(&mut self, row: &HistoryRow) {
        let run = |number: u32| row.runs.iter().find(|run| run.summary.run == number);
        let left_out = &mut self.left_out;
        let (from, to) = match (run(self.from_run), run(self.to_run)) {
            (None, None) => return,
            _ if !self.seen.insert(row.host.clone()) => return,
            (None, Some(_)) => return left_out.only_in_to += 1,
            (Some(_), None) => return left_out.only_in_from += 1,
            (Some(from), Some(to)) => (from, to),
        };
        if !is_over(&from.summary) || !is_over(&to.summary) {
            return left_out.unfinished += 1;
        }
        match (is_measured(&from.summary), is_measured(&to.summary)) {
            (false, false) => return left_out.not_measured_in_both += 1,
            (false, true) => return left_out.not_measured_in_from += 1,
            (true, false) => return left_out.not_measured_in_to += 1,
            (true, true) => {}
        }
        let rules = from.summary.crawled_by.zip(to.summary.crawled_by);
        if rules.is_some_and(|(before, now)| !before.compares(&now)) {
            return left_out.crawled_otherwise += 1;
        }
        let values = self.split.map(|by| (by, by.value(&row.host, from), by.value(&row.host, to)));
        let elsewhere = values.as_ref().is_some_and(|(_, before, now)| before != now);
        self.total.add(&from.summary, &to.summary, elsewhere);
        if let Some((by, before, _)) = values {
            self.by.entry(by).or_default().entry(before).or_default().add(&from.summary, &to.summary, elsewhere);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawled_by::CrawledBy;

    fn run(number: u32, pages: u64, software: &str) -> RunSummary {
        let software = Some(software.to_owned());
        RunSummary { run: number, status: ServerStatus::Up, state: RunState::Complete, pages, software, ..RunSummary::default() }
    }

    fn row(host: &str, country: &str, runs: impl IntoIterator<Item = RunSummary>) -> HistoryRow {
        let (registry, organisation) = ("afrinic".to_owned(), "Museum".to_owned());
        let place =
            |summary| RunRow { country: country.to_owned(), registry: registry.clone(), organisation: organisation.clone(), summary };
        HistoryRow::of_runs(host, runs.into_iter().map(place))
    }

    fn trend(by: TrendBy, rows: &[HistoryRow]) -> Trend {
        let mut trend = Trend::new(1, 3, Some(by));
        rows.iter().for_each(|row| trend.enter(row));
        trend
    }

    #[test]
    fn pages_are_compared_by_the_value_of_the_first_run() {
        let rows = [
            row("a.ke", "KE", [run(1, 10, "nginx/1.18"), run(2, 900, "nginx"), run(3, 15, "nginx/1.24")]),
            row("b.ke", "KE", [run(1, 30, "Apache/2.4"), run(3, 21, "nginx/1.24")]),
            row("c.tz", "TZ", [run(1, 0, "nginx"), run(3, 5, "nginx")]),
        ];
        let by_software = trend(TrendBy::Software, &rows);
        let total = by_software.total;
        assert_eq!((total.servers, total.servers_elsewhere), (3, 1));
        assert_eq!(total.pages, Figure { from: 40, to: 41, difference: 1, rate: Some(0.025) });
        let (nginx, apache) = (by_software.by[&TrendBy::Software]["nginx"], by_software.by[&TrendBy::Software]["Apache"]);
        assert_eq!((nginx.servers, nginx.servers_elsewhere, nginx.pages.from, nginx.pages.to), (2, 0, 10, 20));
        assert_eq!((nginx.pages.rate, apache.servers_elsewhere), (Some(1.0), 1));
        assert_eq!(apache.pages, Figure { from: 30, to: 21, difference: -9, rate: Some(-0.3) });
        let by_country = trend(TrendBy::Country, &rows);
        let tz = by_country.by[&TrendBy::Country]["TZ"].pages;
        assert_eq!((by_country.by[&TrendBy::Country]["KE"].pages.difference, tz.difference, tz.rate), (-4, 5, None));
        let by_tld = trend(TrendBy::Tld, &rows);
        assert_eq!(by_tld.by[&TrendBy::Tld].keys().map(String::as_str).collect::<Vec<_>>(), ["ke", "tz"]);
        assert_eq!((by_tld.total.pages, by_tld.left_out), (total.pages, LeftOut::default()));
    }

    #[test]
    fn who_was_not_measured_in_both_runs_changes_nothing_and_is_counted_apart() {
        let with = |status, summary: RunSummary| RunSummary { status, ..summary };
        let like = row("a.ke", "KE", [run(1, 10, "nginx"), run(3, 12, "nginx")]);
        let mut rows = vec![
            like.clone(),
            row("down.ke", "KE", [run(1, 500, "nginx"), with(ServerStatus::Down, run(3, 0, "nginx"))]),
            row("back.ke", "KE", [with(ServerStatus::Refused, run(1, 0, "nginx")), run(3, 70, "nginx")]),
            row(
                "never.ke",
                "KE",
                [with(ServerStatus::Down, run(1, 0, "nginx")), with(ServerStatus::RobotsUnavailable, run(3, 0, "nginx"))],
            ),
            row("new.ke", "KE", [run(3, 70, "nginx")]),
            row("gone.ke", "KE", [run(1, 70, "nginx"), run(2, 70, "nginx")]),
            row("slow.ke", "KE", [run(1, 70, "nginx"), RunSummary { state: RunState::Running, ..run(3, 2, "nginx") }]),
            row("other.ke", "KE", [run(2, 70, "nginx")]),
        ];
        // It has moved to another member, which has it on record, too.
        rows.push(like.clone());
        let all = trend(TrendBy::Country, &rows);
        let alone = trend(TrendBy::Country, &[like]);
        assert_eq!((all.total, &all.by), (alone.total, &alone.by));
        assert_eq!((all.total.servers, all.total.pages.difference, all.total.pages.rate), (1, 2, Some(0.2)));
        let left_out = LeftOut {
            only_in_to: 1,
            only_in_from: 1,
            unfinished: 1,
            not_measured_in_from: 1,
            not_measured_in_to: 1,
            not_measured_in_both: 1,
            crawled_otherwise: 0,
        };
        assert_eq!((all.left_out, all.left_out.servers()), (left_out, 6));
    }

    #[test]
    fn runs_by_other_rules_are_no_trend_and_of_unknown_ones_that_is_said() {
        let by = |summary: RunSummary, by| RunSummary { crawled_by: Some(by), ..summary };
        let [shallow, deep, yields] =
            [(1, 0, 0), (5, 0, 0), (1, 4_000, 0)].map(|(depth, price, budget)| CrawledBy::new(depth, price, budget));
        let other_budget = CrawledBy::new(1, 0, 500);
        let rows = [
            row("cut.ke", "KE", [by(run(1, 1_000, "nginx"), deep), by(run(3, 30, "nginx"), shallow)]),
            row("yields.ke", "KE", [by(run(1, 40, "nginx"), shallow), by(run(3, 9, "nginx"), yields)]),
            row("like.ke", "KE", [by(run(1, 10, "nginx"), shallow), by(run(3, 12, "nginx"), other_budget)]),
            // The first run is of an earlier version.
            row("old.ke", "KE", [run(1, 100, "nginx"), by(run(3, 101, "nginx"), shallow)]),
        ];
        let trend = trend(TrendBy::Country, &rows);
        assert_eq!((trend.left_out, trend.left_out.servers()), (LeftOut { crawled_otherwise: 2, ..LeftOut::default() }, 2));
        assert_eq!((trend.total.servers, trend.total.servers_of_unknown_rules, trend.total.pages.difference), (2, 1, 3));
        assert_eq!(trend.by[&TrendBy::Country]["KE"], trend.total);
        assert_eq!(trend.run_without_servers(), None);
        let only_other = Trend::new(1, 3, None);
        let only_other = rows[..2].iter().fold(only_other, |mut trend, row| {
            trend.enter(row);
            trend
        });
        assert_eq!((only_other.run_without_servers(), only_other.total.servers), (None, 0), "both runs are on record");
    }

    #[test]
    fn a_run_that_no_server_has_is_named() {
        let rows = [row("a.ke", "KE", [run(1, 10, "nginx"), run(2, 12, "nginx")]), row("b.ke", "KE", [run(2, 12, "nginx")])];
        let without = |from, to| {
            let mut trend = Trend::new(from, to, None);
            rows.iter().for_each(|row| trend.enter(row));
            trend.run_without_servers()
        };
        assert_eq!([(1, 2), (1, 99), (2, 99), (98, 99)].map(|(from, to)| without(from, to)), [None, Some(99), Some(99), Some(98)]);
    }

    #[test]
    fn failures_are_compared_where_both_runs_have_the_same_rules_and_changes_where_there_was_a_run_before() {
        let evaluated =
            |summary: RunSummary, evaluated, failing, rules| RunSummary { evaluated, failing, evaluation_rules: Some(rules), ..summary };
        let changed = RunSummary {
            compared_run: Some(2),
            pages_before: 20,
            new_pages: 4,
            changed_pages: 3,
            gone_pages: 2,
            ..evaluated(run(3, 22, "nginx"), 22, 11, 4)
        };
        let rows = [
            row("a.ke", "KE", [evaluated(run(1, 20, "nginx"), 20, 12, 4), changed]),
            row("b.ke", "KE", [evaluated(run(1, 20, "nginx"), 20, 1, 3), evaluated(run(3, 20, "nginx"), 20, 20, 4)]),
        ];
        let total = trend(TrendBy::Country, &rows).total;
        assert_eq!((total.servers, total.servers_evaluated, total.servers_with_changes), (2, 1, 1));
        assert_eq!((total.evaluated.difference, total.failing.from, total.failing.to), (2, 12, 11));
        assert_eq!((total.pages_before, total.new_pages, total.changed_pages, total.gone_pages), (20, 4, 3, 2));
        assert_eq!(total.change_rate, Some(0.25));
    }
}
