//! What does the swarm know? Totals and their splits, as tables, JSON or CSV.

use super::{
    client::{ApiArgs, ApiClient},
    evaluate,
    failure::{Exit, Failure},
    json,
    run::results_of_peer,
    table::{Style, Table, bytes},
};
use crate::model::{
    summary::{Counts, Dimension, SwarmResults},
    view::Span,
};
use clap::{Args, ValueEnum};

/// Shown under `results --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl results\n  \
    nearcrawl results --by tld --csv > tlds.csv\n  \
    nearcrawl results --json | jq .exact\n  \
    nearcrawl results --peer /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    --peer asks a swarm without being a member of it.";

/// What to split by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Country of the subnet, by the registries
    Country,
    /// Top-level domain of the host
    Tld,
    /// Regional internet registry
    Registry,
    /// Organisation that holds the subnet
    Organisation,
    /// The server's software
    Software,
    /// The server's status
    Status,
}

impl By {
    fn dimension(self) -> Dimension {
        match self {
            By::Country => Dimension::Country,
            By::Tld => Dimension::Tld,
            By::Registry => Dimension::Registry,
            By::Organisation => Dimension::Organisation,
            By::Software => Dimension::Software,
            By::Status => Dimension::Status,
        }
    }
}

/// For `results`.
#[derive(Args, Clone, Debug)]
pub struct ResultsArgs {
    /// Show only this split
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Print the splits as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Ask this member over the swarm's own protocol, instead of a daemon on this machine
    #[arg(long, value_name = "MULTIADDR", conflicts_with = "api")]
    peer: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Asks and shows.
pub async fn results(args: &ResultsArgs, style: Style) -> Result<String, Failure> {
    let mut results: SwarmResults = match &args.peer {
        Some(peer) => results_of_peer(peer).await?,
        None => ApiClient::new(&args.api)?.get("/api/results", &[]).await?,
    };
    if let Some(by) = args.by {
        results.summary.by.retain(|dimension, _| *dimension == by.dimension());
    }
    match (args.api.json, args.csv) {
        (true, _) => json(&results),
        (_, true) => csv(&results),
        _ => Ok(text(&results, style)),
    }
}

/// The name that a dimension has everywhere people see it.
fn name(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Country => "country",
        Dimension::Tld => "tld",
        Dimension::Registry => "registry",
        Dimension::Organisation => "organisation",
        Dimension::Software => "software",
        Dimension::Status => "status",
    }
}

fn text(results: &SwarmResults, style: Style) -> String {
    let total = &results.summary.total;
    let freshness = match &results.in_transition {
        _ if results.exact => "exact".to_owned(),
        Some(why) => format!("in transition: {why}"),
        None => "in transition".to_owned(),
    };
    let headline =
        format!("{} servers ({} up), {} pages, {} requests, {}", total.servers, total.up, total.pages, total.requests, bytes(total.bytes));
    let mut text = format!("{}\n", style.heading(&headline));
    let points = results.covers.len();
    let points = format!("{points} access point{}", if points == 1 { "" } else { "s" });
    text += &format!("{freshness}; {points}, oldest numbers {} old, as told by {}\n", Span(results.oldest_ms), results.answered_by);
    text += &format!("{}, counted once a server\n", total.external());
    text += &evaluate::told(&results.summary.evaluation, style);
    for (dimension, values) in &results.summary.by {
        let mut rows: Vec<_> = values.iter().collect();
        rows.sort_by(|a, b| b.1.servers.cmp(&a.1.servers).then(a.0.cmp(b.0)));
        let mut table = Table::new(&[
            name(*dimension),
            ">servers",
            ">up",
            ">pages",
            ">requests",
            ">bytes",
            ">cut",
            ">robots",
            ">failed",
            ">unfinished",
        ]);
        for (value, counts) in rows {
            table.row(vec![
                value.clone(),
                counts.servers.to_string(),
                counts.up.to_string(),
                counts.pages.to_string(),
                counts.requests.to_string(),
                bytes(counts.bytes),
                counts.cut_by_depth.to_string(),
                counts.refused_by_robots.to_string(),
                counts.failed.to_string(),
                counts.unfinished.to_string(),
            ]);
        }
        text += &format!("\n{}", table.text(style));
    }
    text
}

/// One row for each value of each split; the values of one split add up to the total.
fn csv(results: &SwarmResults) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |why: &dyn std::fmt::Display| Failure::new(Exit::Internal, format!("the answer cannot be written as CSV: {why}"));
    let head = [
        "dimension",
        "value",
        "servers",
        "up",
        "pages",
        "requests",
        "bytes",
        "busy_ms",
        "external_hosts",
        "external_urls",
        "external_domains",
        "cut_by_depth",
        "refused_by_robots",
        "failed",
        "unfinished",
        "evaluated",
        "detected_failures",
    ];
    writer.write_record(head).map_err(|why| failed(&why))?;
    for (dimension, values) in &results.summary.by {
        for (value, counts) in values {
            let numbers = columns(counts).map(|number| number.to_string());
            let row = [name(*dimension), value].into_iter().chain(numbers.iter().map(String::as_str));
            writer.write_record(row).map_err(|why| failed(&why))?;
        }
    }
    let bytes = writer.into_inner().map_err(|why| failed(&why))?;
    String::from_utf8(bytes).map_err(|why| failed(&why))
}

fn columns(counts: &Counts) -> [u64; 15] {
    [
        counts.servers,
        counts.up,
        counts.pages,
        counts.requests,
        counts.bytes,
        counts.busy_ms,
        counts.external_hosts,
        counts.external_urls,
        counts.external_domains,
        counts.cut_by_depth,
        counts.refused_by_robots,
        counts.failed,
        counts.unfinished,
        counts.evaluated,
        counts.detected_failures,
    ]
}
