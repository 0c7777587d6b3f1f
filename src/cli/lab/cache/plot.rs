//! Diagrams that compare the rules.
//!
//! They show miss rate against size, and as many times MIN's: the paper's figures 2 and 3, or 4 and 5.

use crate::cli::chart::{Axis, Chart, Plot, Point, Scale, Series, stacked};
use nearcrawl_lab::cache::score::Row;

/// The diagrams as SVG.
pub fn svg(rows: &[Row]) -> String {
    stacked("cache", "Miss rates of URL caches", &charts(&[rows.to_vec()], ""))
}

/// The figures of one run, or of several with other seeds, whose means have 95 % intervals then. `of`: what is looked up, for the titles.
pub fn charts(runs: &[Vec<Row>], of: &str) -> Vec<Chart> {
    let size = || Axis::powers("entries of the cache", Scale::Doubling);
    let of = if of.is_empty() { String::new() } else { format!(", {of}") };
    vec![
        Chart {
            title: format!("Share of look-ups that miss{of}"),
            plot: Plot::Plane {
                x: size(),
                y: Axis::share("share of look-ups that miss"),
                series: series(runs, false, |row| row.miss_rate),
            },
        },
        Chart {
            title: format!("Misses as a multiple of those of MIN{of}; without sizes at which a rule misses nothing"),
            plot: Plot::Plane {
                x: size(),
                y: Axis::powers("misses, as a multiple of MIN's (each mark doubles)", Scale::Doubling),
                series: series(runs, true, |row| row.vs_min),
            },
        },
    ]
}

fn series(runs: &[Vec<Row>], is_by_powers: bool, value: impl Fn(&Row) -> f64) -> Vec<Series> {
    let rules = runs.first().map(Vec::as_slice).unwrap_or_default().chunk_by(|a, b| a.policy == b.policy);
    let mut at = 0;
    let one = |rows: &[Row]| {
        let points: Vec<Point> = rows
            .iter()
            .enumerate()
            .map(|(number, row)| {
                let values: Vec<f64> = runs.iter().filter_map(|run| run.get(at + number)).map(&value).collect();
                Point::mean(row.size as f64, &values)
            })
            // An axis by powers has no 0.
            .filter(|point| point.y > 0.0 || !is_by_powers)
            .collect();
        at += rows.len();
        Series::line(rows[0].policy.clone(), points)
    };
    rules.map(one).collect()
}
