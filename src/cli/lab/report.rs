//! Results as a table beside the paper's figures, with what must be known to compare them.

use crate::cli::table::{Style, Table, paragraph};
use nearcrawl_lab::delegation::score::Row;
use nearcrawl_model::view::counted;
use std::path::Path;

/// What the table does not contain and the lines below it say.
pub struct Remarks<'a> {
    /// How many nodes were left out as crawlers.
    pub lacking: usize,
    /// How many lines of round-trip times were about unknown nodes.
    pub strangers: u64,
    /// Where the plot was drawn.
    pub plot: Option<&'a Path>,
}

/// Two tables with one row for each policy, and the paper's: probes with what they found, and what that costs. One would be wider than 100
/// columns.
fn tables_of(rows: &[Row]) -> [Table; 2] {
    let mut found = Table::new(&["policy", ">probes", ">±", ">last 50", ">optimal", ">±", ">near"]);
    let mut costs = Table::new(&["policy", ">extra ms", ">if wrong", ">p90", ">time", ">seconds"]);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for row in rows {
        found.row(vec![
            row.label(),
            format!("{:.2}", row.probes_per_site),
            format!("{:.2}", row.probes_per_site_se),
            format!("{:.2}", row.probes_last_50),
            percent(row.optimal),
            percent(row.optimal_se),
            percent(row.within_10pct_or_2ms),
        ]);
        costs.row(vec![
            row.label(),
            format!("{:.2}", row.mean_extra_ms),
            format!("{:.1}", row.mean_extra_when_wrong_ms),
            format!("{:.1}", row.p90_extra_ms),
            format!("{:.2}", row.download_time_vs_random),
            format!("{:.2}", row.seconds),
        ]);
    }
    found.row(["the paper's", "2.99", "", "2.66", "74.6 %", "", ""].map(str::to_owned).to_vec());
    costs.row(["the paper's", "", "13", "", "0.1", ""].map(str::to_owned).to_vec());
    [found, costs]
}

/// The table and the remarks.
pub fn text(rows: &[Row], remarks: &Remarks, style: Style) -> String {
    let mut text = String::new();
    if let Some(row) = rows.first() {
        text += &format!(
            "{}, {} a round, the last {} evaluated; {}; crawlers placed {}\n\n",
            counted(row.crawlers, "crawler"),
            counted(row.sites, "site"),
            row.evaluated,
            counted(row.rounds, "round"),
            if row.placement == "spread" { "apart (spread)" } else { "at random" },
        );
    }
    let [found, costs] = tables_of(rows);
    text += &format!("{}\n{}", found.text(style), costs.text(style));
    text += "\n";
    text += &paragraph(
        "probes a site; optimal: got a nearest crawler; near: at most 10 % or 2 ms slower than it; ±: standard error; extra: ms more than \
         the nearest; time: of a page where round trips bound it, against random delegation; seconds: of one processor, a round",
    );
    text += &paragraph(
        "The paper had 12 crawlers, 1,000 sites and T = 50 ms, at places it does not tell. Where crawlers stand moves all of this more \
         than the policy does: compare figures of the same placement only.",
    );
    if remarks.lacking > 0 {
        let nodes = counted(remarks.lacking, "node");
        text += &paragraph(&format!("Not placed as crawlers: {nodes} with round-trip times to less than half of the targets."));
    }
    if let Some(row) = rows.first().filter(|row| row.unknown_pairs > 0.0) {
        let pairs = row.crawlers * (row.crawlers - 1) / 2;
        let pairs = counted(pairs, "pair");
        text += &paragraph(&format!("Of {pairs} of crawlers {:.1} do not know how far they are from each other.", row.unknown_pairs));
    }
    if remarks.strangers > 0 {
        let times = counted(remarks.strangers, "round-trip time");
        text += &paragraph(&format!("Left out: {times} of nodes that are not in the file of nodes."));
    }
    if let Some(path) = remarks.plot {
        text += &format!("drawn in {}\n", path.display());
    }
    text
}
