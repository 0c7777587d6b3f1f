//! Results as a table: a line for each rule, with its totals at a few runs, and how soon it was there.

use crate::cli::table::{Style, Table};
use nearcrawl_lab::migration::{Outcome, score::Row};
use std::path::Path;

/// The runs that are shown; the last one, too.
const SHOWN: [usize; 7] = [0, 5, 10, 20, 50, 100, 200];

/// The table and the remarks.
pub fn text(outcome: &Outcome, plot: Option<&Path>, style: Style) -> String {
    let last = outcome.rows.iter().map(|row| row.run).max().unwrap_or(0);
    let shown: Vec<usize> = SHOWN.into_iter().filter(|run| *run < last).chain([last]).collect();
    let mut headings = vec!["policy".to_owned(), ">access points".to_owned(), ">sites".to_owned()];
    headings.extend(shown.iter().map(|run| format!(">run {run}")));
    headings.extend([">all runs", ">to 1.05", ">all right", ">right", ">moves", ">makespan"].map(str::to_owned));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for reached in &outcome.reached {
        let of_this = |row: &&Row| row.policy == reached.policy && row.access_points == reached.access_points && row.sites == reached.sites;
        let rows: Vec<&Row> = outcome.rows.iter().filter(of_this).collect();
        let mut cells = vec![reached.policy.clone(), reached.access_points.to_string(), reached.sites.to_string()];
        cells.extend(shown.iter().map(|run| rows.get(*run).map_or_else(String::new, |row| format!("{:.3}", row.total_vs_oracle))));
        let runs = |runs: Option<f64>| runs.map_or_else(|| "never".to_owned(), |runs| format!("{runs:.0}"));
        let late: Vec<&Row> = rows.iter().copied().filter(|row| row.run * 2 >= last && row.run < last).collect();
        let mean = |of: &dyn Fn(&Row) -> f64, rows: &[&Row]| rows.iter().map(|row| of(row)).sum::<f64>() / rows.len().max(1) as f64;
        cells.extend([
            format!("{:.3}", mean(&|row| row.total_vs_oracle, &rows)),
            runs(reached.within_a_twentieth),
            runs(reached.all_right),
            rows.last().map_or_else(String::new, |row| format!("{:.1} %", 100.0 * row.right_place)),
            format!("{:.2} %", 100.0 * mean(&|row| row.moves, &late)),
            rows.last().map_or_else(String::new, |row| format!("{:.3}", row.makespan_vs_bound)),
        ]);
        table.row(cells);
    }
    let mut text = table.text(style);
    text += "\nrun n, all runs: what all sites take, over what they take where the oracle has them; to 1.05, all right: runs until it is at most a\n\
        twentieth more, and until every site is where the oracle has it, if that happened in all rounds; right: sites that are, at the end;\n\
        moves: sites that move in a run, of the second half; makespan: the busiest access point over the linear program's bound, at the end\n\
        The paper: duration falls by half; the number of access points matters a great deal, that of sites hardly.\n";
    if let Some(path) = plot {
        text += &format!("drawn in {}\n", path.display());
    }
    text
}
