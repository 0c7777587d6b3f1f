//! Totals of one run: sums over the servers that have it on record, each where it was then.

use super::{
    estimates::Estimate,
    facts::{family_word, language_word, rule_set_word, software_word},
    record::{RunState, ServerStatus},
    run_history::RunSummary,
    server_rows::{HistoryRow, RunRow},
    split::{NO_LABEL, Split},
    summary::Dimension,
    url::Host,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The sums of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Servers that have the run on record.
    pub servers: u64,
    /// Servers (among them) that answered with a page.
    pub up: u64,
    /// Servers (among them) whose run is not over.
    pub unfinished: u64,
    /// HTML pages.
    pub pages: u64,
    /// Size of the pages, in bytes.
    pub page_bytes: u64,
    /// Bytes of bodies over the wire.
    pub bytes: u64,
    /// Requests sent, robots.txt included.
    pub requests: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// Distinct external hosts of each server, summed over the servers.
    pub external_hosts: u64,
    /// Pages that were evaluated.
    pub evaluated: u64,
    /// Pages (among them) with a detected failure.
    pub failing: u64,
    /// Servers whose run is over but for what a limit holds back until later.
    pub held_back: u64,
}

impl RunCounts {
    fn add(&mut self, run: &RunSummary) {
        let more = RunCounts {
            servers: 1,
            up: u64::from(run.status == ServerStatus::Up),
            unfinished: u64::from(matches!(run.state, RunState::Running | RunState::PausedByBudget)),
            pages: run.pages,
            page_bytes: run.page_bytes,
            bytes: run.bytes,
            requests: run.requests,
            failed: run.failed,
            external_hosts: run.external_hosts,
            evaluated: run.evaluated,
            failing: run.failing,
            held_back: u64::from(run.state == RunState::HeldBack),
        };
        for (sum, more) in self.numbers_mut().into_iter().zip(more.numbers()) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Those of one server.
    pub fn of(run: &RunSummary) -> RunCounts {
        let mut counts = RunCounts::default();
        counts.add(run);
        counts
    }

    /// Whether one of the sums is less than in those, other than of what goes down as a run goes on.
    pub fn is_less_than(&self, than: &RunCounts) -> bool {
        let goes_down = ["unfinished", "held_back"];
        let pairs = RunCounts::NAMES.iter().zip(self.numbers().into_iter().zip(than.numbers()));
        pairs.filter(|(name, _)| !goes_down.contains(*name)).any(|(_, (one, other))| one < other)
    }

    fn numbers_mut(&mut self) -> [&mut u64; 12] {
        [
            &mut self.servers,
            &mut self.up,
            &mut self.unfinished,
            &mut self.pages,
            &mut self.page_bytes,
            &mut self.bytes,
            &mut self.requests,
            &mut self.failed,
            &mut self.external_hosts,
            &mut self.evaluated,
            &mut self.failing,
            &mut self.held_back,
        ]
    }

    /// All of them in the order of [`RunCounts::NAMES`].
    pub fn numbers(mut self) -> [u64; 12] {
        self.numbers_mut().map(|number| *number)
    }

    /// What they are called, as in JSON.
    pub const NAMES: [&'static str; 12] = [
        "servers",
        "up",
        "unfinished",
        "pages",
        "page_bytes",
        "bytes",
        "requests",
        "failed",
        "external_hosts",
        "evaluated",
        "failing",
        "held_back",
    ];
}

/// What one run came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTotals {
    /// Its number.
    pub run: u32,
    /// The sums over all servers that have it on record.
    pub total: RunCounts,
    /// The same for each value of each split, by where the server was and what it answered in this run.
    pub by: BTreeMap<Dimension, BTreeMap<String, RunCounts>>,
    /// The same for each label, as in `sector=university`; a server with two values of a label counts for both.
    pub labels: BTreeMap<String, RunCounts>,
    /// The two splits that are shown together, if any are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crossed_by: Vec<String>,
    /// The sums over the servers that have both values, in the order of the values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<RunCell>,
    /// Servers without this run on record: it has not come to them, they were not known then, or it was too long ago to be kept.
    pub servers_without: u64,
    #[serde(skip)]
    seen: BTreeSet<Host>,
    #[serde(skip)]
    pair: Option<[Split; 2]>,
}

/// What servers with two values come to in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCell {
    /// The values of the two splits.
    pub values: [String; 2],
    /// The sums.
    pub counts: RunCounts,
    /// What they come to with the hosts of crowded addresses that were not visited in the run; none if all is counted.
    #[serde(default)]
    pub estimates: Option<RunEstimates>,
}

/// The splits of which a run's summary keeps the value.
pub const RUN_SPLITS: [Dimension; 9] = [
    Dimension::Country,
    Dimension::Tld,
    Dimension::Registry,
    Dimension::Organisation,
    Dimension::Software,
    Dimension::Status,
    Dimension::Language,
    Dimension::Family,
    Dimension::RuleSet,
];

/// What a server was in a run; none of what a run does not keep.
pub fn value(split: Dimension, host: &Host, run: &RunRow) -> Option<String> {
    let summary = &run.summary;
    Some(match split {
        Dimension::Country => run.country.clone(),
        Dimension::Tld => host.tld().unwrap_or("(address)").to_owned(),
        Dimension::Registry => run.registry.clone(),
        Dimension::Organisation => run.organisation.clone(),
        Dimension::Software => software_word(summary.software.as_deref()),
        Dimension::Status => summary.status.word().to_owned(),
        Dimension::Language => language_word(summary.language.as_deref(), summary.pages),
        Dimension::Family => family_word(summary.address).to_owned(),
        Dimension::RuleSet => rule_set_word(summary.evaluation_rules),
        Dimension::Script | Dimension::Http | Dimension::Tls => return None,
    })
}

impl RunTotals {
    /// Without servers.
    pub fn new(run: u32) -> RunTotals {
        let (by, labels) = (RUN_SPLITS.map(|split| (split, BTreeMap::new())).into(), BTreeMap::new());
        RunTotals {
            run,
            total: RunCounts::default(),
            by,
            labels,
            crossed_by: Vec::new(),
            cells: Vec::new(),
            servers_without: 0,
            seen: BTreeSet::new(),
            pair: None,
        }
    }

    /// Also by these splits together, if they are two of which a run keeps the values.
    pub fn crossed(mut self, by: &[Split]) -> RunTotals {
        if let [one, other] = *by {
            (self.pair, self.crossed_by) = (Some([one, other]), [one, other].map(|split| split.name().to_owned()).into());
        }
        self
    }

    fn enter_cells(&mut self, pair: [Split; 2], (host, run): (&Host, &RunRow), labels: &[String]) {
        let values = pair.map(|split| match split {
            Split::By(split) => value(split, host, run).into_iter().collect(),
            Split::Label if labels.is_empty() => vec![NO_LABEL.to_owned()],
            Split::Label => labels.to_vec(),
            Split::Rule => Vec::new(),
        });
        let [ones, others] = &values;
        for values in ones.iter().flat_map(|one| others.iter().map(move |other| [one.clone(), other.clone()])) {
            let at = self.cells.binary_search_by(|cell| cell.values.cmp(&values)).unwrap_or_else(|at| {
                self.cells.insert(at, RunCell { values, counts: RunCounts::default(), estimates: None });
                at
            });
            self.cells[at].counts.add(&run.summary);
        }
    }

    /// Enters a server with its labels. One that comes a second time, because another member owns it by now, is left aside: false.
    pub fn enter(&mut self, row: &HistoryRow, labels: impl IntoIterator<Item = String>) -> bool {
        if !self.seen.insert(row.host.clone()) {
            return false;
        }
        let Some(run) = row.runs.iter().find(|run| run.summary.run == self.run) else {
            self.servers_without += 1;
            return true;
        };
        self.total.add(&run.summary);
        for (split, values) in &mut self.by {
            let Some(value) = value(*split, &row.host, run) else { continue };
            values.entry(value).or_default().add(&run.summary);
        }
        let labels: Vec<String> = labels.into_iter().collect();
        if let Some(pair) = self.pair {
            self.enter_cells(pair, (&row.host, run), &labels);
        }
        for label in labels {
            self.labels.entry(label).or_default().add(&run.summary);
        }
        true
    }
}

/// What the sums of a run come to with the hosts of crowded addresses that were not visited in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEstimates {
    /// Servers that would have the run. They are certain, unless it is not known before a visit whether a host is among them.
    pub servers: Estimate,
    /// Of these, the ones that would answer with a page.
    pub up: Estimate,
    /// HTML pages that would be fetched of them.
    pub pages: Estimate,
    /// Size of all their bodies, in bytes.
    pub page_bytes: Estimate,
    /// Evaluated pages (among them) with a detected failure.
    pub failing: Estimate,
    /// Hosts that are among them, or may be, at addresses of which so few were visited that nothing can be said of the others.
    pub not_estimated: u64,
}

impl RunEstimates {
    /// What nothing is estimated of: what was counted.
    pub fn counted(counts: &RunCounts) -> RunEstimates {
        let mut estimates = RunEstimates::default();
        estimates.settle(counts);
        estimates
    }

    /// Says what they come to beside what was counted.
    pub fn settle(&mut self, counts: &RunCounts) {
        self.servers.settle(counts.servers);
        self.up.settle(counts.up);
        self.pages.settle(counts.pages);
        self.page_bytes.settle(counts.page_bytes);
        self.failing.settle(counts.failing);
    }

    /// One of them in words, as [`Estimate::told`].
    pub fn told(&self, of: impl Fn(&RunEstimates) -> Estimate) -> String {
        of(self).told(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u32, country: &str, pages: u64) -> RunRow {
        let summary = RunSummary {
            run: number,
            status: ServerStatus::Up,
            state: RunState::Complete,
            address: Some([192, 0, 2, 1].into()),
            pages,
            requests: pages + 1,
            software: Some("nginx/1.24".to_owned()),
            language: Some("sw-KE".to_owned()),
            ..RunSummary::default()
        };
        RunRow { country: country.to_owned(), registry: "afrinic".to_owned(), organisation: "Museum".to_owned(), summary }
    }

    fn sums(of: &BTreeMap<String, RunCounts>) -> RunCounts {
        let mut sum = RunCounts::default();
        for counts in of.values() {
            sum.numbers_mut().into_iter().zip(counts.numbers()).for_each(|(sum, more)| *sum += more);
        }
        sum
    }

    #[test]
    fn a_run_is_summed_over_the_servers_that_have_it_by_where_they_were_then() {
        let mut down = run(2, "KE", 0);
        (down.summary.status, down.summary.software) = (ServerStatus::Down, None);
        down.summary.state = RunState::HeldBack;
        let mut running = run(2, "TZ", 3);
        running.summary.state = RunState::Running;
        let rows = [
            HistoryRow::of_runs("a.ke", [run(1, "KE", 10), run(2, "ZA", 12)]),
            HistoryRow::of_runs("b.ke", [run(1, "KE", 5), down]),
            HistoryRow::of_runs("c.tz", [running]),
            HistoryRow::of_runs("new.tz", [run(1, "TZ", 99)]),
        ];
        let mut totals = RunTotals::new(2);
        // The first one has moved to another member, which has it on record, too.
        for row in rows.iter().chain(&rows[..1]) {
            totals.enter(row, ["sector=museum".to_owned()].into_iter().filter(|_| row.host.tld() == Some("ke")));
        }
        let total = totals.total;
        assert_eq!((total.servers, total.up, total.unfinished, total.pages, total.requests), (3, 2, 1, 15, 18));
        assert_eq!((total.held_back, totals.by[&Dimension::Status]["down"].held_back, totals.servers_without), (1, 1, 1));
        let by_country = &totals.by[&Dimension::Country];
        assert_eq!(by_country.keys().map(String::as_str).collect::<Vec<_>>(), ["KE", "TZ", "ZA"]);
        assert_eq!((by_country["ZA"].pages, totals.by[&Dimension::Software]["unknown"].servers), (12, 1));
        assert_eq!((totals.by[&Dimension::Status]["down"].servers, totals.by[&Dimension::Language]["sw"].servers), (1, 3));
        assert_eq!((totals.labels["sector=museum"].servers, totals.labels["sector=museum"].pages), (2, 12));
        for (split, values) in &totals.by {
            assert_eq!(sums(values), total, "{split:?}: every server has a value");
        }
    }

    #[test]
    fn two_splits_go_together_and_a_server_counts_for_each_of_its_labels() {
        let mut totals = RunTotals::new(1).crossed(&[Split::Label, Split::By(Dimension::Country)]);
        let labels = ["sector=museum".to_owned(), "size=small".to_owned()];
        totals.enter(&HistoryRow::of_runs("a.ke", [run(1, "KE", 10)]), labels.clone());
        totals.enter(&HistoryRow::of_runs("b.ke", [run(1, "KE", 5)]), [labels[0].clone()]);
        totals.enter(&HistoryRow::of_runs("c.tz", [run(1, "TZ", 3)]), []);
        let cells: Vec<_> = totals.cells.iter().map(|cell| (cell.values.join(" "), cell.counts.servers, cell.counts.pages)).collect();
        let expected = [("(none) TZ", 1, 3), ("sector=museum KE", 2, 15), ("size=small KE", 1, 10)];
        assert_eq!(cells, expected.map(|(values, servers, pages)| (values.to_owned(), servers, pages)));
    }

    #[test]
    fn names_of_the_sums_are_those_of_json() {
        let json = serde_json::to_value(RunCounts { external_hosts: 7, ..RunCounts::default() }).unwrap();
        assert_eq!(json.as_object().unwrap().len(), RunCounts::NAMES.len());
        assert!(RunCounts::NAMES.iter().all(|name| json.get(name).is_some()));
        assert_eq!(json["external_hosts"], 7);
    }
}
