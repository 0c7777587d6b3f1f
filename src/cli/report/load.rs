//! Report of what each level of the sites cost and brought.
//!
//! It has the figures of the paper on low-load crawling (WWW 2008), from the crawl so far.

use super::{
    document::{Cell, Document},
    gather::Row,
    interval::Z,
    maker::Maker,
};
use crate::cli::chart::{Axis, Chart, Plot, Point, Series};
use nearcrawl_model::{account::LevelCounts, url::Host, view::counted};
use serde_json::Map;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

/// Into how many groups trees fall; each is left out once to see how far the shares depend on it.
const GROUPS: usize = 20;

/// With fewer groups the spread between them says too little.
const MIN_GROUPS: usize = GROUPS / 2;

/// Requests and external hosts of a level, each server's times what it stands for.
type Weighed = (f64, f64);

/// Sums by level, of all servers and of each group of trees.
#[derive(Debug, Default)]
pub struct Load {
    levels: Vec<LevelCounts>,
    groups: [Vec<Weighed>; GROUPS],
    /// The deepest level at which a tree has a page.
    trees: BTreeMap<Host, usize>,
    cut_by_depth: u64,
    unfinished: u64,
}

fn add(sum: &mut Vec<Weighed>, levels: impl ExactSizeIterator<Item = Weighed>) {
    sum.resize(sum.len().max(levels.len()), Weighed::default());
    sum.iter_mut().zip(levels).for_each(|(sum, level)| *sum = (sum.0 + level.0, sum.1 + level.1));
}

/// Up to each level: requests and external hosts, as shares of all.
fn shares(levels: &[Weighed]) -> Vec<(f64, f64)> {
    let mut sum = Weighed::default();
    let sums: Vec<_> = levels
        .iter()
        .map(|level| {
            sum = (sum.0 + level.0, sum.1 + level.1);
            sum
        })
        .collect();
    let share = |these: f64, all: f64| if all > 0.0 { these / all } else { 0.0 };
    sums.iter().map(|up_to| (share(up_to.0, sum.0), share(up_to.1, sum.1))).collect()
}

impl Load {
    /// The sums of all groups but one.
    fn without(&self, left_out: Option<usize>) -> Vec<Weighed> {
        let mut sum = vec![Weighed::default(); self.levels.len()];
        let groups = self.groups.iter().enumerate().filter(|(number, _)| Some(*number) != left_out);
        groups.for_each(|(_, group)| add(&mut sum, group.iter().copied()));
        sum
    }

    fn filled(&self) -> Vec<usize> {
        (0..GROUPS).filter(|number| !self.groups[*number].is_empty()).collect()
    }

    /// 95 % intervals of load and coverage up to each level, by leaving out each group of trees once (jackknife); none of few trees.
    fn intervals(&self) -> Option<Vec<[(f64, f64); 2]>> {
        let filled = self.filled();
        if filled.len() < MIN_GROUPS {
            return None;
        }
        let count = filled.len() as f64;
        let (all, parts) =
            (shares(&self.without(None)), filled.iter().map(|number| shares(&self.without(Some(*number)))).collect::<Vec<_>>());
        let error = |values: Vec<f64>| {
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            Z * (squares * (count - 1.0) / count).sqrt()
        };
        let around = |value: f64, error: f64| ((value - error).max(0.0), (value + error).min(1.0));
        let level = |(number, all): (usize, &(f64, f64))| {
            let (load, coverage) = (parts.iter().map(|part| part[number].0).collect(), parts.iter().map(|part| part[number].1).collect());
            [around(all.0, error(load)), around(all.1, error(coverage))]
        };
        Some(all.iter().enumerate().map(level).collect())
    }

    /// Why there is no interval; none if there is one.
    fn no_interval(&self) -> Option<String> {
        let (trees, filled) = (self.trees.len() as u64, self.filled().len());
        (filled < MIN_GROUPS && !self.levels.is_empty()).then(|| {
            format!(
                "none: {} with pages are in {filled} of {GROUPS} groups, and the spread between fewer than {MIN_GROUPS} says too little",
                counted(trees, "tree")
            )
        })
    }

    fn charts(&self, levels: &[LevelCounts], trees: &[u64]) -> Vec<Chart> {
        let (shares, intervals) = (shares(&self.without(None)), self.intervals());
        let point = |number: usize, x: f64, y: f64, which: usize| Point {
            x,
            y,
            interval: intervals.as_ref().map(|intervals| intervals[number][which]),
        };
        let up_to = |count: fn(&LevelCounts) -> u64| {
            let mut sum = 0;
            levels
                .iter()
                .enumerate()
                .map(|(number, level)| {
                    sum += count(level);
                    (number as f64, sum as f64)
                })
                .collect::<Vec<_>>()
        };
        let depth = || Axis::linear("depth level (links from the starting URL)");
        let by_load: Vec<_> = shares.iter().enumerate().map(|(number, (load, coverage))| point(number, *load, *coverage, 1)).collect();
        let mut from_nothing =
            vec![Point { x: 0.0, y: 0.0, interval: by_load.first().and_then(|first| first.interval).map(|_| (0.0, 0.0)) }];
        from_nothing.extend(by_load);
        vec![
            Chart {
                title: "Coverage of external hosts (mentions, summed over servers) against load, up to each depth level".to_owned(),
                plot: Plot::Plane {
                    x: Axis::share("requests up to the level, as a share of all requests"),
                    y: Axis::share("mentions of external hosts found up to the level"),
                    series: vec![Series::line(
                        if intervals.is_some() {
                            "mentions, by level; band: 95 % interval"
                        } else {
                            "mentions, by level; no interval: too few trees"
                        },
                        from_nothing,
                    )],
                },
            },
            Chart {
                title: "Pages and mentions of external hosts collected up to each depth level".to_owned(),
                plot: Plot::Plane {
                    x: depth(),
                    y: Axis::linear("pages, or mentions of external hosts (summed over servers)"),
                    series: vec![
                        Series::line("pages", up_to(|level| level.pages)),
                        Series::line("mentions of external hosts", up_to(|level| level.external_hosts)),
                    ],
                },
            },
            Chart {
                title: "Site trees by the depth level of their deepest page".to_owned(),
                plot: Plot::Plane {
                    x: depth(),
                    y: Axis::linear("site trees"),
                    series: vec![Series::line("site trees", trees.iter().enumerate().map(|(level, trees)| (level as f64, *trees as f64)))],
                },
            },
        ]
    }
}

impl Maker for Load {
    fn enter(&mut self, row: &Row) {
        let record = &row.record;
        self.cut_by_depth += record.cut_by_depth;
        self.unfinished += u64::from(record.waiting > 0);
        if record.levels.is_empty() {
            return;
        }
        self.levels.resize(self.levels.len().max(record.levels.len()), LevelCounts::default());
        self.levels.iter_mut().zip(&record.levels).for_each(|(sum, level)| sum.add(level));
        let mut hasher = DefaultHasher::new();
        record.tree.as_str().hash(&mut hasher);
        let weighed = record.levels.iter().map(|level| (row.weight * level.requests as f64, row.weight * level.external_hosts as f64));
        if row.weight > 0.0 {
            add(&mut self.groups[hasher.finish() as usize % GROUPS], weighed);
        }
        if let Some(deepest) = record.levels.iter().rposition(|level| level.pages > 0) {
            let known = self.trees.entry(record.tree.clone()).or_default();
            *known = deepest.max(*known);
        }
    }

    fn finish(self: Box<Self>) -> Document {
        let levels = self.levels.clone();
        let mut trees = vec![0_u64; levels.len()];
        self.trees.values().for_each(|deepest| trees[*deepest] += 1);
        let (shares, intervals) = (shares(&self.without(None)), self.intervals());
        let row = |(number, level): (usize, &LevelCounts)| {
            let (load, coverage) = shares[number];
            let [_, (low, high)] = intervals.as_ref().map_or([(0.0, 0.0); 2], |intervals| intervals[number]);
            let error = if intervals.is_some() { [Cell::Share(low), Cell::Share(high)] } else { [Cell::Nothing, Cell::Nothing] };
            let counts = [number as u64, level.requests, level.pages, level.external_hosts, trees[number]].map(Cell::Count);
            counts.into_iter().chain([Cell::Share(load), Cell::Share(coverage)]).chain(error).collect()
        };
        let no_interval = self.no_interval();
        let half = shares.iter().find(|(_, coverage)| *coverage >= 0.8);
        let paper = half.map(|(load, coverage)| {
            format!(
                "{:.0} % of the mentions of external hosts are found with {:.0} % of the requests; the paper found 80 % with nearly half of the load",
                100.0 * coverage,
                100.0 * load
            )
        });
        Document {
            name: "load",
            title: "Load against coverage, by depth level".to_owned(),
            method: "Requests (robots.txt at level 0), pages and external hosts of the servers' last whole runs, by the depth level of the page. An \
                     external host counts at the level at which a server's pages name it first; sums over servers, so that a host which two \
                     servers name counts twice, as the external URLs of the paper do (Nakahira, Hoshino, Mikami: Low Load Server Crawler, WWW \
                     2008, figures 1 to 3). The band is a 95 % interval by the jackknife over 20 groups of trees; there is none of few trees. \
                     Shares are weighted where only a sample of an address's hosts was visited; counts are not."
                .to_owned(),
            facts: paper
                .map(|paper| ("beside the paper", paper))
                .into_iter()
                .chain(no_interval.clone().map(|why| ("interval", why)))
                .chain([(
                    "not in it",
                    format!("{} cut by the depth limit; URLs that wait at {}", counted(self.cut_by_depth, "URL"), counted(self.unfinished, "server")),
                )])
                .collect(),
            data: Map::from_iter([
                ("no_interval_text".to_owned(), no_interval.into()),
                ("trees".to_owned(), (self.trees.len() as u64).into()),
                ("cut_by_depth".to_owned(), self.cut_by_depth.into()),
                ("servers_waiting".to_owned(), self.unfinished.into()),
            ]),
            charts: if levels.is_empty() { Vec::new() } else { self.charts(&levels, &trees) },
            rows: levels.iter().enumerate().map(row).collect(),
            columns: vec![
                ("level", "level"),
                ("requests", "requests"),
                ("pages", "pages"),
                ("external_hosts", "host mentions"),
                ("trees", "trees"),
                ("load", "load up to it"),
                ("coverage", "coverage"),
                ("coverage_low", "95 % from"),
                ("coverage_high", "to"),
            ],
        }
    }
}
