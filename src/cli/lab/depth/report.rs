//! Results as a table: a line for each depth and each price, beside what the paper says.

use crate::cli::table::{Style, Table};
use nearcrawl_lab::depth::{score::Row, sensitivity};
use nearcrawl_model::view::counted;
use std::path::Path;

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The table and the remarks.
pub fn text(rows: &[Row], sites: u64, plot: Option<&Path>, style: Style) -> String {
    let mut table = Table::new(&["rule", ">depth", ">price", ">pages", ">load", ">bytes", ">seconds", ">hosts", ">URLs", ">trees"]);
    for row in rows {
        table.row(vec![
            row.rule.to_owned(),
            row.depth.to_string(),
            row.price.map(|price| price.to_string()).unwrap_or_default(),
            row.pages.to_string(),
            percent(row.load),
            percent(row.load_bytes),
            percent(row.load_seconds),
            percent(row.coverage_hosts),
            percent(row.coverage_urls),
            row.trees.to_string(),
        ]);
    }
    let mut text = format!("{}\n\n{}", counted(sites, "site"), table.text(style));
    text += "\nload: requests; bytes, seconds: what servers sent, and were busy; hosts, URLs: external ones that were named; all as shares of the\n\
        deepest crawl's. trees: by depth, with the deepest page just there; by yield, of which something was left out\n\
        The paper: pages bend at depth 7 and do not level off by 20, external URLs level off at 9, few trees end at 8 or deeper; depth 8 has\n\
        80 % of the load and nearly all external URLs, and four fifths of them cost about half of the load.\n";
    if let Some(path) = plot {
        text += &format!("drawn in {}\n", path.display());
    }
    text
}

/// The same for webs that differ in one number.
pub fn sensitivity(rows: &[sensitivity::Row], style: Style) -> String {
    let mut table = Table::new(&["web", ">pages", ">hosts at depth 8", ">load", ">load for 80 %", ">for 99 %", "within 20 % and 50 %"]);
    let load = |load: Option<f64>| load.map_or_else(|| "never".to_owned(), percent);
    for row in rows {
        let within = |load: Option<f64>, most: f64| load.is_some_and(|load| load <= most);
        let holds = match (within(row.load_for_80, 0.2), within(row.load_for_99, 0.5)) {
            (true, true) => "both",
            (true, false) => "only 80 %",
            (false, true) => "only 99 %",
            (false, false) => "neither",
        };
        table.row(vec![
            row.web.clone(),
            row.pages.to_string(),
            percent(row.hosts_at_8),
            percent(row.load_at_8),
            load(row.load_for_80),
            load(row.load_for_99),
            holds.to_owned(),
        ]);
    }
    format!(
        "{}\nload for a share of the external hosts, by the rule of yield, between two prices; at depth 8: by the paper's rule\n",
        table.text(style)
    )
}
