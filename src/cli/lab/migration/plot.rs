//! Diagrams that compare the rules, as the paper's figures.
//!
//! They show totals by run (2, and 3 if the world changes), and runs until sites are right, against access points and against sites (4).

use crate::cli::chart::{Axis, Chart, Plot, Point, Scale, Series, stacked};
use nearcrawl_lab::migration::{
    Outcome,
    score::{Reached, Row},
};

/// After how many runs a policy met a criterion; none if it did not.
type Runs = fn(&Reached) -> Option<f64>;

/// The picture: figure 2 or 3, and figure 4 for as many numbers as there were of access points and of sites.
pub fn svg(outcome: &Outcome) -> String {
    stacked("migration", "How fast sites move to their fastest crawlers", &charts(std::slice::from_ref(outcome)))
}

/// The figures of one run, or of several with other seeds, whose means have 95 % intervals then.
pub fn charts(outcomes: &[Outcome]) -> Vec<Chart> {
    let Some(first) = outcomes.first() else { return Vec::new() };
    let count = |of: &dyn Fn(&Reached) -> usize| {
        let mut all: Vec<usize> = first.reached.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (access_points, sites) = (count(&|reached| reached.access_points), count(&|reached| reached.sites));
    let mut charts = vec![totals(outcomes, access_points.len() * sites.len() > 1)];
    if let (true, Some(largest)) = (access_points.len() > 1, sites.last().copied()) {
        let title = format!("Runs until {largest} sites are right, against access points (the paper's figure 4)");
        charts.push(reached(outcomes, title, "access points", |reached| reached.sites == largest, |reached| reached.access_points));
    }
    if sites.len() > 1 {
        for number in access_points {
            let title = format!("Runs until sites are right, against sites, {number} access points (the paper's figure 4)");
            charts.push(reached(outcomes, title, "sites", |reached| reached.access_points == number, |reached| reached.sites));
        }
    }
    charts
}

/// Figures 2 and 3.
fn totals(outcomes: &[Outcome], several: bool) -> Chart {
    let same = |a: &Row, b: &Row| a.policy == b.policy && a.access_points == b.access_points && a.sites == b.sites;
    let mut at = 0;
    let series = |rows: &[Row]| {
        let points: Vec<Point> = rows
            .iter()
            .enumerate()
            .map(|(number, row)| {
                let values: Vec<f64> =
                    outcomes.iter().filter_map(|outcome| outcome.rows.get(at + number)).map(|row| row.total_vs_oracle).collect();
                Point::mean(row.run as f64, &values)
            })
            .collect();
        at += rows.len();
        let Row { policy, access_points, sites, .. } = &rows[0];
        Series::line(if several { format!("{policy}, {access_points} access points, {sites} sites") } else { policy.clone() }, points)
    };
    let changes = outcomes.iter().any(|outcome| outcome.changes);
    let figure = if changes { "in a world that changes (the paper's figure 3)" } else { "in a world that stays (the paper's figure 2)" };
    Chart {
        title: format!("Duration of all accesses by crawler run, {figure}"),
        plot: Plot::Plane {
            x: Axis::linear("crawler runs"),
            y: Axis::linear("duration of all accesses, as a multiple of the oracle's"),
            series: outcomes[0].rows.chunk_by(same).map(series).collect(),
        },
    }
}

/// Figure 4, against one of its two numbers, by both criteria.
fn reached(
    outcomes: &[Outcome],
    title: String,
    below: &str,
    is_meant: impl Fn(&Reached) -> bool,
    number: impl Fn(&Reached) -> usize,
) -> Chart {
    let mut names: Vec<&str> = Vec::new();
    outcomes[0].reached.iter().for_each(|reached| {
        if !names.contains(&reached.policy.as_str()) {
            names.push(&reached.policy);
        }
    });
    let mut series = Vec::new();
    for policy in names {
        let criteria: [(&str, Runs); 2] =
            [("all sites right", |reached| reached.all_right), ("total within 5 %", |reached| reached.within_a_twentieth)];
        for (criterion, runs) in criteria {
            let those = outcomes[0].reached.iter().enumerate().filter(|(_, reached)| reached.policy == policy && is_meant(reached));
            let points: Vec<Point> = those
                .filter_map(|(place, first)| {
                    let values: Vec<f64> = outcomes.iter().filter_map(|outcome| runs(outcome.reached.get(place)?)).collect();
                    // Only where it came about each time there is a mean.
                    (values.len() == outcomes.len()).then(|| Point::mean(number(first) as f64, &values))
                })
                .collect();
            if !points.is_empty() {
                series.push(Series::line(format!("{policy}: {criterion}"), points));
            }
        }
    }
    Chart {
        title,
        plot: Plot::Plane {
            x: Axis::powers(below, if below == "sites" { Scale::Tenfold } else { Scale::Doubling }),
            y: Axis::linear("crawler runs"),
            series,
        },
    }
}
