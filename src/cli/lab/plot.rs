//! Diagrams that compare the policies: probes a site against share of optimal delegations, and probes as the hierarchy learns.

use crate::cli::chart::{Axis, Chart, Plot, Point, Series, stacked};
use nearcrawl_lab::delegation::score::Row;
use nearcrawl_model::view::counted;

/// Probes a site, share of optimal delegations: the paper's evaluation (12 crawlers, 1,000 sites, T = 50 ms).
const PAPER: (f64, f64) = (2.99, 0.746);

/// Standard deviations to each side of an error.
const Z: f64 = 1.96;

/// The diagrams as SVG.
pub fn svg(rows: &[Row]) -> String {
    stacked("delegation", "Delegation of sites to crawlers: probes and nearness", &charts(rows))
}

/// The figures.
pub fn charts(rows: &[Row]) -> Vec<Chart> {
    let setup = rows.first().map_or_else(String::new, |row| {
        format!("{}, {} a round, mean of {}", counted(row.crawlers, "crawler"), counted(row.sites, "site"), counted(row.rounds, "round"))
    });
    vec![nearness(rows, &setup), over_time(rows, &setup)]
}

/// The rows of each policy, in the order in which policies come.
fn by_policy(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| group[0].policy == row.policy) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn nearness(rows: &[Row], setup: &str) -> Chart {
    let number = |row: &Row| row.price.or(row.threshold_ms).unwrap_or(0.0);
    let series_of = |mut group: Vec<&Row>| {
        group.sort_by(|a, b| number(a).total_cmp(&number(b)));
        let point = |row: &&Row| {
            let error = Z * row.optimal_se;
            Point {
                x: row.probes_per_site,
                y: row.optimal,
                interval: Some(((row.optimal - error).max(0.0), (row.optimal + error).min(1.0))),
            }
        };
        let numbers: Vec<String> = group.iter().map(|row| number(row).to_string()).collect();
        let name = match (group[0].price, group[0].threshold_ms) {
            (Some(_), _) => format!("{}, price of a probe {} ms", group[0].policy, numbers.join(", ")),
            (None, Some(_)) => format!("{}, T = {} ms", group[0].policy, numbers.join(", ")),
            _ => group[0].policy.to_owned(),
        };
        let points: Vec<Point> = group.iter().map(point).collect();
        if points.len() > 1 { Series::line(name, points) } else { Series::points(name, points) }
    };
    let mut series: Vec<Series> = by_policy(rows).into_iter().map(series_of).collect();
    series.push(Series::points("IPMicra's paper: 2.99 probes, 75 % (12 crawlers, T = 50 ms)", [PAPER]));
    Chart {
        title: format!("Probes a site and sites that got a nearest crawler ({setup}; 95 % intervals)"),
        plot: Plot::Plane { x: Axis::linear("probes a site"), y: Axis::share("sites that got a nearest crawler"), series },
    }
}

fn over_time(rows: &[Row], setup: &str) -> Chart {
    let point = |(block, (probes, error)): (usize, &(f64, f64))| Point {
        x: 50.0 * (block + 1) as f64,
        y: *probes,
        interval: Some(((probes - Z * error).max(0.0), probes + Z * error)),
    };
    let series = |row: &Row| Series::line(row.label(), row.probes_over_time.iter().enumerate().map(point));
    let mut series: Vec<Series> = rows.iter().filter(|row| !row.probes_over_time.is_empty()).map(series).collect();
    // The paper tells two means of its evaluated sites: of the first 300, which are the sites 651 to 950, and of the last 50.
    series.push(Series::points("IPMicra's paper: sites 651 to 950, and the last 50", [(800.0, 3.05), (1_000.0, 2.66)]));
    Chart {
        title: format!("Probes a site as the hierarchy learns, over each 50 sites ({setup}; 95 % intervals)"),
        plot: Plot::Plane { x: Axis::linear("sites delegated so far"), y: Axis::linear("probes a site, mean of 50 sites"), series },
    }
}
