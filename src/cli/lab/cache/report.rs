//! Results as a table: a line for each size, a column for each rule, and what must be known to compare them.

use crate::cli::table::{Style, Table};
use nearcrawl_lab::cache::{
    graph::Graph,
    score::Row,
    stream::{Part, Stream},
    trace::Crawl,
};
use nearcrawl_model::view::counted;
use std::path::Path;

/// What the table does not contain and the lines below it say.
pub struct Remarks<'a> {
    /// What was crawled.
    pub graph: &'a Graph,
    /// In which order it was crawled, by how many threads.
    pub crawl: &'a Crawl,
    /// Which links were looked up.
    pub part: Part,
    /// What the caches were asked for, each.
    pub streams: &'a [Stream],
    /// Where the plot was drawn.
    pub plot: Option<&'a Path>,
}

/// The table and the remarks.
pub fn text(rows: &[Row], remarks: &Remarks, style: Style) -> String {
    let mut names: Vec<&str> = rows.iter().map(|row| row.policy.as_str()).collect();
    names.dedup();
    let headings: Vec<String> = ["size", "a thread"].into_iter().chain(names.iter().copied()).map(|name| format!(">{name}")).collect();
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    // Rule by rule, each with the same sizes.
    let sizes = rows.len() / names.len().max(1);
    for (number, row) in rows.iter().take(sizes).enumerate() {
        let mut cells = vec![row.size.to_string(), format!("{:.1}", row.size as f64 / remarks.crawl.threads as f64)];
        cells.extend(rows.iter().skip(number).step_by(sizes).map(|row| format!("{:.2} %", 100.0 * row.miss_rate)));
        table.row(cells);
    }

    let (graph, crawl) = (remarks.graph, remarks.crawl);
    let requests: usize = remarks.streams.iter().map(|stream| stream.items().len()).sum();
    let times = counted(requests, "time");
    let distinct: usize = remarks.streams.iter().map(Stream::distinct).sum();
    let mut text = format!(
        "{} of {}, {}; {} in progress at once\n",
        counted(graph.pages(), "page"),
        counted(graph.sites(), "site"),
        counted(graph.link_count(), "link"),
        counted(crawl.threads, "site")
    );
    text += &match remarks.part {
        Part::Full => format!("looked up: all, {times}, {distinct} different\n"),
        Part::Within => format!("looked up: links within a site, {times}, {distinct} different\n"),
        Part::Between => format!("looked up: links from one site to another, {times}, {distinct} different\n"),
        Part::Cross => {
            let processes = counted(crawl.processes, "process");
            format!("looked up: what leaves the first of {processes}, {times}, {distinct} different\n")
        }
    };
    if remarks.streams.len() > 1 {
        text += &format!("{} caches, one for each thread: size is of all together, different is counted in each\n", remarks.streams.len());
    }
    text += &format!("\n{}\nshare of look-ups that miss; size: entries; a thread: entries for each site in progress\n", table.text(style));
    text += "static is not charged for being loaded (the paper's account), static-charged is\n\
        The paper (§5, 500 threads): about 20 % at 50,000 entries, 100 a thread; from there on a larger cache brings little.\n";
    if let Some(path) = remarks.plot {
        text += &format!("drawn in {}\n", path.display());
    }
    text
}
