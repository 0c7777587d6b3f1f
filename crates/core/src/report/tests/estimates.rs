//! Tests of estimates for an address with many hosts of which a part was visited: they are good, and their errors true.

use crate::{
    crawl::{
        scheduler::{InLine, place_of},
        site::Site,
    },
    report::{
        RowTable, RowTally, RunRows, RunSums,
        tally::{Tally, Whereabouts},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    estimates::{CellEstimates, Estimate, Estimates},
    evaluation::{EvaluationCounts, Rule},
    fingerprint::FingerprintKey,
    ids::SiteNumber,
    journal::JournalKey,
    record::{RunState, ServerRecord, ServerStatus},
    run_history::RunSummary,
    run_totals::{RunCounts, RunEstimates},
    server_rows::{HistoryRow, RunRow, ServerRow, Today},
    split::Split,
    summary::{Counts, Dimension, Summary},
    time::WallTime,
    url::Host,
};
use std::collections::{BTreeMap, BTreeSet};

/// How many pages the hosts of an address have.
#[derive(Clone, Copy, PartialEq)]
enum Pages {
    /// The earlier ones more than the later ones, and one in five none.
    Mixed,
    /// None to 20.
    Blogs,
    /// Lognormal with a standard deviation of the logarithm of 1.5: one in a hundred has 33 times as many as one in the middle.
    Lognormal,
}

/// Hosts of an address, the earlier ones larger and of other software than the later ones: whoever took them in the order of discovery would be
/// far off.
struct Portal {
    key: FingerprintKey,
    tally: Tally,
    hosts: Vec<Host>,
    /// Those that are known and were not visited, in line.
    line: BTreeMap<InLine, usize>,
    /// When each that was visited was asked first, in turns.
    began: BTreeMap<usize, u64>,
    known: usize,
    seed: u64,
    pages: Pages,
    /// How many pages the first one has, if not as many as the others.
    front: Option<u64>,
}

impl Portal {
    fn new(seed: u64, hosts: usize) -> Portal {
        let key = FingerprintKey(std::array::from_fn(|n| seed.rotate_left(n as u32 * 8) as u8 ^ n as u8));
        let hosts = (0..hosts).map(|n| format!("h{n}.blogs.ke").parse().unwrap()).collect();
        let (tally, line, began) = (Tally::default(), BTreeMap::new(), BTreeMap::new());
        Portal { key, tally, hosts, line, began, known: 0, seed, pages: Pages::Mixed, front: None }
    }

    /// The pages of a host that answers, by a number drawn for it.
    fn pages(&self, number: usize, chance: u64) -> u64 {
        let uniform = |salt: u8| (FingerprintKey([salt; 16]).of(&format!("{number} {}", self.seed)).0 >> 11) as f64 / (1_u64 << 53) as f64;
        match (self.pages, self.front.filter(|_| number == 0)) {
            (_, Some(pages)) => pages,
            (Pages::Mixed, _) => 1 + chance / 16 % if number < self.hosts.len() / 3 { 40 } else { 10 },
            (Pages::Blogs, _) => chance / 16 % 21,
            (Pages::Lognormal, _) => {
                let normal = (-2.0 * (1.0 - uniform(4)).ln()).sqrt() * (std::f64::consts::TAU * uniform(5)).cos();
                (1.5 + 1.5 * normal).exp() as u64
            }
        }
    }

    /// What a host will turn out to be.
    fn truth(&self, number: usize) -> ServerRecord {
        let early = number < self.hosts.len() / 3;
        let chance = FingerprintKey([3; 16]).of(&format!("{number} {}", self.seed)).0;
        let record = self.unvisited(number);
        let is_down = self.pages == Pages::Mixed && self.front.filter(|_| number == 0).is_none() && chance % 10 < 2;
        let status = if is_down { ServerStatus::Down } else { ServerStatus::Up };
        let pages = if status == ServerStatus::Up { self.pages(number, chance) } else { 0 };
        let software = match (early, chance / 1024 % 20) {
            (_, 0) => "caddy",
            (true, 1..17) | (false, 1..5) => "nginx",
            _ => "apache",
        };
        let software = (status == ServerStatus::Up).then(|| software.to_owned());
        let (page_bytes, first_visit_at) = (1_000 * pages, self.began.get(&number).map(|turn| WallTime(*turn)));
        ServerRecord { status, pages, page_bytes, state: RunState::Complete, software, requests: 2, known: 1, first_visit_at, ..record }
    }

    fn unvisited(&self, number: usize) -> ServerRecord {
        let (host, address) = (self.hosts[number].clone(), "9.0.0.1".parse().unwrap());
        let key = JournalKey { subnet: "9.0.0.0/24".parse().unwrap(), host: host.clone(), run: 1 };
        let record = Site::open(key, address, host, SiteNumber(1), WallTime(0)).record;
        ServerRecord { known: 1, waiting: 1, ..record }
    }

    fn enter(&mut self, record: &ServerRecord) {
        self.tally.enter(record, Whereabouts::default(), place_of(&record.host, &self.key));
    }

    /// So many more hosts are named.
    fn discover(&mut self, more: usize) {
        for number in self.known..(self.known + more).min(self.hosts.len()) {
            self.line.insert(InLine { run: 1, place: place_of(&self.hosts[number], &self.key) }, number);
            self.enter(&self.unvisited(number));
        }
        self.known = (self.known + more).min(self.hosts.len());
    }

    /// The next ones in line are visited.
    fn visit(&mut self, count: usize) {
        for _ in 0..count {
            let Some((_, number)) = self.line.pop_first() else { return };
            self.began.insert(number, 1 + self.began.len() as u64);
            self.enter(&self.truth(number));
        }
    }

    fn told(&mut self) -> Summary {
        self.tally.estimate();
        let mut told = self.tally.small_summary();
        assert!(told.is_tellable());
        told.settle();
        told
    }
}

/// Whether an interval has the true number in it.
fn is_right(estimate: &Estimate, truth: u64) -> bool {
    estimate.estimated.abs_diff(truth) <= estimate.margin
}

/// In how many of so many seeds the intervals are right, by what is estimated; `course` discovers and visits. Sums that are not estimated
/// are left out.
fn right(seeds: u64, hosts: usize, course: impl Fn(&mut Portal)) -> BTreeMap<&'static str, u64> {
    let mut right: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 1..=seeds {
        let mut portal = Portal::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), hosts);
        course(&mut portal);
        let told = portal.told();
        let mut all = Tally::default();
        (0..portal.known).for_each(|number| all.enter(&portal.truth(number), Whereabouts::default(), 0));
        let truth = all.summary();
        let estimates = &told.estimates;
        assert_eq!((estimates.addresses, estimates.hosts), (1, portal.known as u64));
        assert_eq!(told.total.servers, portal.known as u64, "how many there are is known");
        let mut note = |what, is_right| *right.entry(what).or_default() += u64::from(is_right);
        note("up", is_right(&estimates.up, truth.total.up));
        for (what, estimate, counted, truth) in [
            ("pages", estimates.pages, told.total.pages, truth.total.pages),
            ("page bytes", estimates.page_bytes, told.total.page_bytes, truth.total.page_bytes),
        ] {
            assert!(estimate.estimated >= estimate.low && estimate.low >= counted, "{what}: {counted} counted, {estimate:?}");
            if estimate.not_estimated == 0 {
                note(what, is_right(&estimate, truth));
            }
        }
        for (what, dimension, value) in [
            ("nginx", Dimension::Software, "nginx"),
            ("apache", Dimension::Software, "apache"),
            ("caddy", Dimension::Software, "caddy"),
            ("status up", Dimension::Status, "up"),
        ] {
            let estimate = estimates.servers(dimension, value).copied().unwrap_or_default();
            note(what, is_right(&estimate, truth.by[&dimension][value].servers));
        }
        let waiting = estimates.servers(Dimension::Status, "waiting").unwrap();
        assert_eq!(waiting.estimated, 0, "those that wait are among the others");
    }
    right
}

#[track_caller]
fn assert_right(right: &BTreeMap<&'static str, u64>, seeds: u64) {
    assert!(right.values().all(|right| *right * 100 >= 90 * seeds), "{right:?}");
}

#[test]
fn intervals_are_right_in_ninety_of_a_hundred_seeds_where_all_hosts_were_known_first() {
    let right = right(100, 2_000, |portal| {
        portal.discover(2_000);
        portal.visit(150);
    });
    assert_right(&right, 100);
}

#[test]
fn intervals_are_right_where_hosts_are_discovered_while_others_are_visited() {
    let right = right(100, 2_000, |portal| {
        // All that is known is visited at first; later more are named than can be.
        portal.discover(40);
        portal.visit(40);
        for _ in 0..20 {
            portal.discover(100);
            portal.visit(8);
        }
    });
    assert_right(&right, 100);
}

#[test]
fn intervals_are_right_where_a_host_with_most_of_the_pages_was_visited_out_of_its_turn() {
    let course = |portal: &mut Portal| {
        (portal.pages, portal.front) = (Pages::Blogs, Some(5_000));
        portal.discover(1);
        portal.visit(1);
        portal.discover(2_000);
        portal.visit(150);
    };
    let right = right(200, 2_001, course);
    assert!(right["pages"] * 100 >= 90 * 200 && right["page bytes"] * 100 >= 90 * 200, "{right:?}");
    // It stands for itself, unless it stands before the cut.
    let mut alone = 0;
    for seed in 1..=20_u64 {
        let mut portal = Portal::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), 2_001);
        course(&mut portal);
        let pages = portal.told().estimates.pages;
        let is_alone = portal.tally.inclusion_probability(&portal.hosts[0]) == Some(1.0);
        assert!(!is_alone || pages.margin < 5_000, "{pages:?}");
        alone += u64::from(is_alone);
    }
    assert!(alone >= 15, "{alone} of 20");
    let of_rows = right_of_rows(2_001, course);
    assert_each_right(&of_rows);
}

#[test]
fn intervals_are_right_where_many_hosts_of_another_kind_were_visited_before_the_others_were_known() {
    // The first 400 of the larger third: they stand for none of the others, wherever they are in line.
    for then in [150, 400, 1_200] {
        let right = right(100, 2_000, |portal| {
            portal.discover(400);
            portal.visit(400);
            portal.discover(1_600);
            portal.visit(then);
        });
        assert!(["pages", "page bytes", "up"].iter().all(|what| right[what] >= 90), "{then}: {right:?}");
    }
}

#[test]
fn intervals_of_sums_are_right_for_small_samples_and_long_tails_and_of_fewer_than_thirty_there_are_none() {
    for visited in [10, 20, 30, 150] {
        for pages in [Pages::Mixed, Pages::Lognormal] {
            let seeds = if visited < 30 { 40 } else { 100 };
            let right = right(seeds, 2_000, |portal| {
                portal.pages = pages;
                portal.discover(2_000);
                portal.visit(visited);
            });
            let enough = |what: &str| right.get(what).map(|right| *right * 100 >= 90 * seeds);
            assert_eq!(enough("up"), Some(true), "{visited}: {right:?}");
            let sums = if visited < 30 { None } else { Some(true) };
            assert_eq!((enough("pages"), enough("page bytes")), (sums, sums), "{visited}: {right:?}");
        }
    }
}

/// Rows of servers, and the labels that a survey has for each.
struct Rows(Vec<(ServerRow, BTreeMap<String, BTreeSet<String>>)>);

/// A survey that has two thirds of the earlier hosts and a third of the later ones: its hosts are others than those of the address.
fn is_in_survey(portal: &Portal, number: usize) -> bool {
    number % 3 < if number < portal.hosts.len() / 2 { 2 } else { 1 }
}

/// The row of a host as its owner tells it, or as it would be if all were visited.
fn row(portal: &Portal, number: usize, is_visited: bool, inclusion_probability: Option<f64>) -> ServerRow {
    let mut record = if is_visited { portal.truth(number) } else { portal.unvisited(number) };
    // Every second one that is up fails a rule, more often on more pages.
    record.evaluation = (record.pages > 0).then(|| EvaluationCounts {
        pages: record.pages,
        failures: (record.pages % 2 == 0).then_some((Rule::PageTitle, record.pages / 2)).into_iter().collect(),
        ..EvaluationCounts::default()
    });
    let (access_point, country, registry) = (AccessPoint([1; 32]), "KE".to_owned(), "afrinic".to_owned());
    let (organisation, surveys) = ("Portal".to_owned(), Vec::new());
    ServerRow { access_point, country, registry, organisation, inclusion_probability, surveys, record }
}

/// Of a table: the sums of each cell, what all come to, and what each cell comes to.
type CellsAndEstimates = (BTreeMap<Vec<String>, Counts>, Estimates, BTreeMap<Vec<String>, CellEstimates>);

impl Rows {
    /// The survey's: as the owner tells them, or in truth.
    fn of_survey(portal: &Portal, is_truth: bool) -> Rows {
        let waiting: BTreeSet<usize> = portal.line.values().copied().collect();
        let row = |number: usize| {
            let told = portal.tally.inclusion_probability(&portal.hosts[number]);
            let probability = if is_truth { Some(1.0) } else { told };
            let sector = if number.is_multiple_of(2) { "museum" } else { "university" };
            let labels = BTreeMap::from([("sector".to_owned(), BTreeSet::from([sector.to_owned()]))]);
            (row(portal, number, is_truth || !waiting.contains(&number), probability), labels)
        };
        Rows((0..portal.known).filter(|number| is_in_survey(portal, *number)).map(row).collect())
    }

    fn tally(&self) -> RowTally {
        let mut tally = RowTally::default();
        self.0.iter().for_each(|(row, labels)| tally.enter(row, labels));
        tally
    }

    /// By two splits: the sums of each cell, and what they are said to come to.
    fn table(&self, by: [Split; 2]) -> CellsAndEstimates {
        let mut table = RowTable::new(by.to_vec());
        for (row, labels) in &self.0 {
            table.enter(row, labels.iter().flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}"))));
        }
        let cells = table.cells();
        let (all, estimates) = table.estimates(&cells);
        (cells, all, estimates)
    }
}

/// How often the interval of a figure had the true one in it, and how often it was told.
type Outcomes = BTreeMap<String, (u64, u64)>;

fn note(right: &mut Outcomes, what: String, estimate: &Estimate, truth: u64) {
    let (right, told) = right.entry(what).or_default();
    *right += u64::from(is_right(estimate, truth));
    *told += 1;
}

/// Notes for each figure whether its interval has the true one in it.
fn note_figures(right: &mut Outcomes, name: &str, figures: [(&str, &Estimate, u64); 5], not_estimated: u64) {
    assert_eq!(not_estimated, 0, "{name}");
    let estimated = figures.into_iter().filter(|(_, estimate, _)| estimate.not_estimated == 0);
    estimated.for_each(|(what, estimate, truth)| note(right, format!("{name}: {what}"), estimate, truth));
}

fn note_cell(right: &mut Outcomes, name: &str, told: &CellEstimates, truth: &Counts) {
    let CellEstimates { servers, up, pages, page_bytes, detected_failures, not_estimated } = told;
    let figures = [
        ("servers", servers, truth.servers),
        ("up", up, truth.up),
        ("pages", pages, truth.pages),
        ("page bytes", page_bytes, truth.page_bytes),
        ("failures", detected_failures, truth.detected_failures),
    ];
    note_figures(right, name, figures, *not_estimated);
}

#[track_caller]
fn assert_each_right(right: &Outcomes) {
    let wrong: Vec<_> = right.iter().filter(|(_, (right, told))| right * 10 < told * 9).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

const TABLES: [[Split; 2]; 3] = [
    [Split::By(Dimension::Country), Split::Rule],
    [Split::Label, Split::By(Dimension::Software)],
    [Split::Label, Split::By(Dimension::Tld)],
];

/// In how many of 100 seeds the intervals of sums over rows are right; `course` discovers and visits. Sums that are not estimated are left
/// out.
fn right_of_rows(hosts: usize, course: impl Fn(&mut Portal)) -> Outcomes {
    let mut right = Outcomes::new();
    for seed in 1..=100_u64 {
        let mut portal = Portal::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), hosts);
        course(&mut portal);
        portal.told();
        let (told, truth) = (Rows::of_survey(&portal, false), Rows::of_survey(&portal, true));
        let ((summary, splits), tables) = (told.tally().summary(), TABLES.map(|by| told.table(by)));
        let true_tally = truth.tally();
        let (all, _) = true_tally.summary();
        assert_eq!((summary.total.servers, summary.estimates.hosts), (all.total.servers, all.total.servers), "how many there are is known");
        for (what, estimate, truth) in [
            ("up", summary.estimates.up, all.total.up),
            ("pages", summary.estimates.pages, all.total.pages),
            ("page bytes", summary.estimates.page_bytes, all.total.page_bytes),
        ] {
            note(&mut right, format!("all: {what}"), &estimate, truth);
        }
        for (split, values) in splits {
            let by = Dimension::ALL.into_iter().find(|dimension| dimension.name() == split);
            let truth = by.map_or_else(|| true_tally.labels(), |dimension| all.by[&dimension].clone());
            for (value, estimates) in values.iter().filter(|(value, _)| truth.contains_key(*value)) {
                note_cell(&mut right, &format!("{split} {value}"), estimates, &truth[value]);
            }
        }
        for (by, (_, of_all, cells)) in TABLES.into_iter().zip(tables) {
            assert_eq!((of_all.up, of_all.pages), (summary.estimates.up, summary.estimates.pages), "however they are split");
            let (truth, _, estimates) = truth.table(by);
            assert!(estimates.is_empty(), "nothing is estimated where all is known");
            for (cell, estimates) in cells.iter().filter(|(cell, _)| truth.contains_key(*cell)) {
                note_cell(&mut right, &cell.join(" "), estimates, &truth[cell]);
            }
        }
    }
    right
}

#[test]
fn intervals_of_a_survey_and_of_tables_over_rows_are_right_in_ninety_of_a_hundred_seeds() {
    let right = right_of_rows(2_000, |portal| {
        portal.discover(2_000);
        portal.visit(300);
    });
    assert!(
        ["all: pages", "software nginx: pages", "label sector=museum: up", "KE 2779a5: failures"]
            .iter()
            .all(|name| right.contains_key(*name))
    );
    assert_each_right(&right);
}

#[test]
fn intervals_over_rows_are_right_where_hosts_are_discovered_while_others_are_visited() {
    let right = right_of_rows(2_000, |portal| {
        portal.discover(40);
        portal.visit(40);
        for _ in 0..20 {
            portal.discover(98);
            portal.visit(14);
        }
    });
    assert_each_right(&right);
}

#[test]
fn rows_of_few_hosts_are_counted_and_nothing_is_estimated_of_those_of_whom_too_few_were_visited() {
    let mut portal = Portal::new(7, 1_000);
    portal.discover(1_000);
    portal.visit(25);
    portal.told();
    let labels: BTreeMap<String, BTreeSet<String>> = [("sector".to_owned(), ["museum".to_owned()].into())].into();
    let waiting: BTreeSet<usize> = portal.line.values().copied().collect();
    let (mut tally, mut table) = (RowTally::default(), RowTable::new(vec![Split::By(Dimension::Status)]));
    // One of twenty has the label: of so few visited it has less than ten.
    for number in 0..1_000 {
        let probability = portal.tally.inclusion_probability(&portal.hosts[number]);
        let row = row(&portal, number, !waiting.contains(&number), probability);
        tally.enter(&row, if number % 20 == 0 { &labels } else { &EMPTY });
        table.enter(&row, []);
    }
    let (summary, splits) = tally.summary();
    assert!(summary.estimates.not_estimated == 0 && summary.estimates.sampled >= 20, "{:?}", summary.estimates);
    assert_eq!(splits["label"]["sector=museum"].not_estimated, 50);
    assert_eq!(splits["label"]["sector=museum"].pages.estimated, tally.labels()["sector=museum"].pages, "only what was counted");
    assert_eq!(splits["label"]["sector=museum"].told(|told| told.servers), "50", "how many there are is known");
    assert!(splits["label"]["sector=museum"].told(|told| told.up).ends_with(" or more"));
    let status = &splits["status"]["waiting"];
    assert!(status.servers.estimated == 0 && status.servers.margin > 0, "those that wait are among the others: {status:?}");
    let cells = table.cells();
    let (_, estimates) = table.estimates(&cells);
    assert_eq!(estimates[&vec!["up".to_owned()]], splits["status"]["up"], "a table says the same");
    // Where nothing is estimated of the others no value is said to be sure.
    let mut tally = RowTally::default();
    (0..1_000).for_each(|number| tally.enter(&row(&portal, number, number < 5, None), &EMPTY));
    let (summary, splits) = tally.summary();
    assert!(summary.estimates.by.is_empty() && summary.estimates.not_estimated == 1_000, "{:?}", summary.estimates);
    assert_eq!(splits["status"]["up"].told(|told| told.servers), format!("{} or more", summary.total.up));
    // Of an address of which all were visited, some before their turn, nothing is estimated.
    let mut tally = RowTally::default();
    (0..1_000).for_each(|number| tally.enter(&row(&portal, number, true, None), &EMPTY));
    let (summary, splits) = tally.summary();
    assert!(!summary.estimates.is_any() && splits.is_empty(), "{:?}", summary.estimates);
}

static EMPTY: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();

#[test]
fn few_hosts_or_all_of_them_are_counted_and_no_estimate_is_made_of_too_few() {
    let mut portal = Portal::new(5, 1_000);
    portal.discover(64);
    portal.visit(3);
    assert!(!portal.told().estimates.is_any(), "few are visited soon");
    let probability = |portal: &Portal, number: usize| portal.tally.inclusion_probability(&portal.hosts[number]);
    assert_eq!(probability(&portal, 0), Some(1.0));
    portal.discover(936);
    let told = portal.told();
    assert_eq!((told.estimates.addresses, told.estimates.not_estimated, told.estimates.sampled), (1, 1_000, 0));
    assert!((0..1_000).all(|number| probability(&portal, number).is_none()));
    portal.visit(200);
    let told = portal.told();
    let sampled = (0..1_000).filter(|number| probability(&portal, *number).is_some()).count();
    assert_eq!((told.estimates.not_estimated, told.estimates.sampled), (0, sampled as u64));
    assert!((200..=203).contains(&sampled), "{sampled}");
    let share = sampled as f64 / 1_000.0;
    assert!((0..1_000).filter_map(|number| probability(&portal, number)).all(|probability| probability == share));
    portal.visit(1_000);
    assert!(!portal.told().estimates.is_any() && (0..1_000).all(|number| probability(&portal, number) == Some(1.0)));
    (0..1_000).for_each(|number| portal.tally.remove(&portal.hosts[number].clone()));
    assert_eq!(portal.told(), Summary { by: portal.told().by, ..Summary::default() }, "nothing is left");
}

/// The summary of a run of a host, as it is if it was visited in it.
fn run_of(portal: &Portal, number: usize, run: u32) -> RunRow {
    let record = portal.truth(number);
    let pages = record.pages * u64::from(run);
    let failing = if record.pages.is_multiple_of(2) { record.pages / 2 } else { 0 };
    let summary = RunSummary { run, pages, failing, page_bytes: 1_000 * pages, ..RunSummary::of(&record) };
    RunRow { country: "KE".to_owned(), registry: "afrinic".to_owned(), organisation: "Portal".to_owned(), summary }
}

/// The sums of the second run by one by one split, and by label and software: of the first `having` in line of those visited, or in truth.
fn second_run(portal: &Portal, having: usize, is_truth: bool) -> [RunSums; 2] {
    let waiting: BTreeSet<usize> = portal.line.values().copied().collect();
    let mut in_line: Vec<usize> = (0..portal.known).filter(|number| !waiting.contains(number)).collect();
    in_line.sort_by_key(|number| place_of(&portal.hosts[*number], &portal.key));
    let second: BTreeSet<usize> = in_line.into_iter().take(having).collect();
    let by = [Split::Label, Split::By(Dimension::Software)];
    let mut rows = [RunRows::new(2, &[]), RunRows::new(2, &by)];
    for number in 0..portal.known {
        let host = &portal.hosts[number];
        let inclusion_probability = if is_truth { Some(1.0) } else { portal.tally.inclusion_probability(host) };
        let runs = if is_truth || second.contains(&number) { vec![1, 2] } else { vec![1] };
        let row = HistoryRow {
            access_point: AccessPoint([1; 32]),
            host: host.clone(),
            tree: host.clone(),
            surveys: Vec::new(),
            runs_left_out: 0,
            today: Some(Today {
                address: portal.truth(number).address,
                country: "KE".to_owned(),
                registry: "afrinic".to_owned(),
                organisation: "Portal".to_owned(),
                inclusion_probability,
            }),
            runs: runs.into_iter().map(|run| run_of(portal, number, run)).collect(),
        };
        let sector = if number.is_multiple_of(2) { "sector=museum" } else { "sector=university" };
        rows.iter_mut().for_each(|rows| rows.enter(&row, [sector.to_owned()]));
    }
    rows.map(RunRows::sums)
}

fn note_run(right: &mut Outcomes, name: &str, told: &RunEstimates, truth: &RunCounts) {
    let RunEstimates { servers, up, pages, page_bytes, failing, not_estimated } = told;
    let figures = [
        ("servers", servers, truth.servers),
        ("up", up, truth.up),
        ("pages", pages, truth.pages),
        ("page bytes", page_bytes, truth.page_bytes),
        ("failing", failing, truth.failing),
    ];
    note_figures(right, name, figures, *not_estimated);
}

#[test]
fn intervals_of_a_run_that_a_part_of_the_hosts_has_are_right_in_nine_of_ten_seeds() {
    let mut right = Outcomes::new();
    for seed in 1..=200_u64 {
        let mut portal = Portal::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), 700);
        portal.discover(700);
        portal.visit(350);
        portal.told();
        let [one_by_one, crossed] = second_run(&portal, 200, false);
        let [truth, true_cells] = second_run(&portal, 200, true);
        assert!(truth.estimates.is_none() && truth.estimates_by.is_empty() && truth.totals.total.servers == 700);
        assert_eq!((one_by_one.totals.total.servers, one_by_one.totals.servers_without), (200, 500));
        assert_eq!((one_by_one.sample.addresses, one_by_one.sample.hosts, one_by_one.sample.sampled), (1, 700, 200));
        let all = one_by_one.estimates.unwrap();
        assert_eq!((all.servers.estimated, all.servers.margin), (700, 0), "how many there are is known");
        note_run(&mut right, "all", &all, &truth.totals.total);
        for (split, values) in &one_by_one.estimates_by {
            let by = Dimension::ALL.into_iter().find(|dimension| dimension.name() == split);
            let truth = by.map_or(&truth.totals.labels, |dimension| &truth.totals.by[&dimension]);
            values.iter().for_each(|(value, told)| note_run(&mut right, &format!("{split} {value}"), told, &truth[value]));
        }
        for cell in &crossed.totals.cells {
            let of_all = true_cells.totals.cells.iter().find(|other| other.values == cell.values).unwrap();
            note_run(&mut right, &cell.values.join(" "), &cell.estimates.unwrap(), &of_all.counts);
        }
    }
    for name in ["country KE: pages", "software nginx: servers", "label sector=museum: failing", "sector=museum nginx: pages"] {
        assert!(right.contains_key(name), "{name}");
    }
    assert_each_right(&right);
}

#[test]
fn of_a_run_of_few_hosts_and_of_hosts_that_were_elsewhere_nothing_is_estimated() {
    let mut portal = Portal::new(7, 1_000);
    portal.discover(1_000);
    portal.visit(100);
    portal.told();
    let [few, _] = second_run(&portal, 9, false);
    let all = few.estimates.unwrap();
    assert_eq!((all.not_estimated, few.sample.not_estimated, all.up.variance), (1_000, 1_000, 0.0));
    assert_eq!(all.up.estimated, few.totals.total.up, "what was counted");
    // All that have the run were at another address then, and so are those that have not: of none it is known where it stands.
    let mut rows = RunRows::new(1, &[]);
    for number in 0..100 {
        let host = &portal.hosts[number];
        let mut run = run_of(&portal, number, 1);
        run.summary.address = Some("9.0.0.2".parse().unwrap());
        let today = Today {
            address: Some("9.0.0.1".parse().unwrap()),
            country: "KE".to_owned(),
            registry: "afrinic".to_owned(),
            organisation: "Portal".to_owned(),
            inclusion_probability: Some(0.1),
        };
        let (access_point, tree) = (AccessPoint([1; 32]), host.clone());
        let (host, surveys, today, runs) = (host.clone(), Vec::new(), Some(today), vec![run]);
        rows.enter(&HistoryRow { access_point, host, tree, surveys, runs_left_out: 0, today, runs }, []);
    }
    let sums = rows.sums();
    assert!(sums.estimates.is_none() && sums.totals.total.servers == 100, "{:?}", sums.estimates);
}
