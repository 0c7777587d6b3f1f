//! Diagrams that compare depth and yield: the paper's figures 1 to 3, with the rule of yield in the third.

use crate::cli::chart::{Axis, Chart, Plot, Point, Series, stacked};
use nearcrawl_lab::depth::score::Row;

/// The diagrams as SVG.
pub fn svg(rows: &[Row]) -> String {
    stacked("depth", "Coverage against load, by depth and by yield", &charts(&[rows.to_vec()]))
}

/// The figures of one run, or of several with other seeds, whose means have 95 % intervals then.
pub fn charts(runs: &[Vec<Row>]) -> Vec<Chart> {
    let by_depth = |x: &dyn Fn(&Row) -> f64, y: &dyn Fn(&Row) -> f64| means(runs, "depth", x, y);
    let depth = |row: &Row| f64::from(row.depth);
    let level = || Axis::linear("depth level (links from the starting URL)");
    let mut by_yield = means(runs, "yield", &|row| row.load, &|row| row.coverage_hosts);
    by_yield.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut coverage = vec![
        Series::line("external URLs, by depth", by_depth(&|row| row.load, &|row| row.coverage_urls)),
        Series::line("external hosts, by depth", by_depth(&|row| row.load, &|row| row.coverage_hosts)),
    ];
    if !by_yield.is_empty() {
        coverage.push(Series::line("external hosts, by yield", by_yield));
    }
    vec![
        Chart {
            title: "Pages and external URLs collected up to each depth level (the paper's figure 1)".to_owned(),
            plot: Plot::Plane {
                x: level(),
                y: Axis::linear("pages, or external URLs, collected"),
                series: vec![
                    Series::line("pages", by_depth(&depth, &|row| row.pages as f64)),
                    Series::line("external URLs", by_depth(&depth, &|row| row.urls as f64)),
                ],
            },
        },
        Chart {
            title: "Site trees by the depth level of their deepest page (the paper's figure 2)".to_owned(),
            plot: Plot::Plane {
                x: level(),
                y: Axis::linear("site trees"),
                series: vec![Series::line("site trees", by_depth(&depth, &|row| row.trees as f64))],
            },
        },
        Chart {
            title: "Coverage against load (the paper's figure 3)".to_owned(),
            plot: Plot::Plane {
                x: Axis::share("requests, as a share of the deepest crawl's"),
                y: Axis::share("found, as a share of what the deepest crawl finds"),
                series: coverage,
            },
        },
    ]
}

/// The points of one rule: means of all runs.
fn means(runs: &[Vec<Row>], rule: &str, x: &dyn Fn(&Row) -> f64, y: &dyn Fn(&Row) -> f64) -> Vec<Point> {
    let rows: Vec<Vec<&Row>> = runs.iter().map(|run| run.iter().filter(|row| row.rule == rule).collect()).collect();
    let length = rows.iter().map(Vec::len).min().unwrap_or(0);
    let at = |number: usize| {
        let all = |value: &dyn Fn(&Row) -> f64| rows.iter().map(|run| value(run[number])).collect::<Vec<f64>>();
        let across = all(x);
        Point::mean(across.iter().sum::<f64>() / across.len() as f64, &all(y))
    };
    (0..length).map(at).collect()
}
