//! Sensitivity of the experiment to the made-up web: the same with each number of the web halved, and doubled.

use super::{Experiment, score};
use crate::web::endless::shape::Shape;
use serde::Serialize;
use std::num::NonZero;

/// What coverage costs in one web.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which number is how many times as large: `uneven x 0.5`.
    pub web: String,
    /// Pages of the deepest crawl.
    pub pages: u64,
    /// External hosts that a crawl to depth 8 finds, as a share of the deepest crawl's …
    pub hosts_at_8: f64,
    /// … and its load.
    pub load_at_8: f64,
    /// The load at which the rule of yield has four fifths of the external hosts; none if no price has …
    pub load_for_80: Option<f64>,
    /// … and 99 % of them.
    pub load_for_99: Option<f64>,
}

/// The webs that are tried, by name: the usual one first.
pub fn variants() -> Vec<(String, Shape)> {
    let mut variants = vec![("as it is".to_owned(), Shape::default())];
    for index in 0..Shape::default().numbers().len() {
        for factor in [0.5, 2.0] {
            let mut shape = Shape::default();
            let mut numbers = shape.numbers();
            let (name, number) = &mut numbers[index];
            **number *= factor;
            variants.push((format!("{name} x {factor}"), shape));
        }
    }
    variants
}

/// Crawls them all, and calls `crawled` after each web.
pub fn run(usual: &Experiment, threads: NonZero<usize>, crawled: &dyn Fn()) -> Vec<Row> {
    let row = |(name, shape)| {
        let experiment = Experiment { web: usual.web.clone().shaped(shape), ..usual.clone() };
        let rows = experiment.run(threads, &|| {});
        crawled();
        Row::of(name, &rows)
    };
    variants().into_iter().map(row).collect()
}

impl Row {
    fn of(web: String, rows: &[score::Row]) -> Row {
        let by_depth = || rows.iter().filter(|row| row.rule == "depth");
        let at_8 = by_depth().find(|row| row.depth == 8).or(by_depth().next_back());
        Row {
            web,
            pages: by_depth().next_back().map_or(0, |row| row.pages),
            hosts_at_8: at_8.map_or(1.0, |row| row.coverage_hosts),
            load_at_8: at_8.map_or(1.0, |row| row.load),
            load_for_80: load_for(rows, 0.8),
            load_for_99: load_for(rows, 0.99),
        }
    }
}

/// The load at which the rule of yield reaches this coverage of hosts: on the line between the two prices around it.
pub(crate) fn load_for(rows: &[score::Row], coverage: f64) -> Option<f64> {
    let mut points: Vec<(f64, f64)> = rows.iter().filter(|row| row.rule == "yield").map(|row| (row.load, row.coverage_hosts)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Without a request there are no results.
    points.insert(0, (0.0, 0.0));
    let (before, after) = points.iter().zip(&points[1..]).find(|(before, after)| before.1 < coverage && after.1 >= coverage)?;
    Some(before.0 + (after.0 - before.0) * (coverage - before.1) / (after.1 - before.1))
}
