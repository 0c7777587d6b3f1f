//! `report`: what studies ask of a crawl, as a table, figures or one page, made of the servers that all members have on record.

mod document;
mod gather;
mod interval;
mod load;
mod maker;
mod shares;
#[cfg(test)]
pub(crate) mod tests;
mod weights;

use document::Document;
pub use document::page_head;
use load::Load;
use maker::{By, Maker};

use super::{
    chart::Chart,
    error::{CommandError, Exit},
    json,
    owners::{Asked, Source},
    survey::{OffRecord, SurveyFilter},
    table::Style,
    walk::{self, Hosts, Missing, Sink, Walk},
};
use crate::io::snapshot;
use clap::{Args, Subcommand, ValueEnum};
use gather::{Gathered, Row, Sample};
use nearcrawl_model::{
    access_point::AccessPoint,
    server_rows::RowsOf,
    survey::{SurveyRef, SurveyView},
    view::StatusView,
};
use serde_json::Value;
use shares::{Accessibility, Nearness, Offshore, Reachability};
use std::path::{Path, PathBuf};

/// Shown under `report --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl report offshore\n  \
    nearcrawl report nearness --by registry --format csv\n  \
    nearcrawl report accessibility --format html --out accessibility.html\n  \
    nearcrawl report load --format svg --out load.svg\n  \
    nearcrawl report accessibility --survey universities\n  \
    nearcrawl report reachability --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…\n\n\
    Every member is asked for its servers. If rows of one are missing the report says so, and the exit status is 69.";

/// What is reported.
#[derive(Subcommand, Debug)]
pub enum ReportCommand {
    /// Of the servers of each country's top-level domain, the share whose address lies in another country
    #[command(after_help = "Examples:\n  nearcrawl report offshore --format csv")]
    Offshore(PlainArgs),
    /// How far servers are from the members that crawl them: quantiles of their distance
    #[command(after_help = "Examples:\n  nearcrawl report nearness --by registry")]
    Nearness(SplitArgs),
    /// Which share of the servers answers with pages, and why the others do not
    #[command(after_help = "Examples:\n  nearcrawl report reachability --format html --out reachability.html")]
    Reachability(SplitArgs),
    /// Which share of the servers has pages that fail each accessibility rule
    #[command(after_help = "Examples:\n  nearcrawl report accessibility --format html --out accessibility.html")]
    Accessibility(SplitArgs),
    /// What each level of the sites cost, and how many external hosts it brought
    #[command(after_help = "Examples:\n  nearcrawl report load --format svg --out load.svg")]
    Load(PlainArgs),
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Text,
    /// One line for each row
    Csv,
    /// The rows and what must be known of them
    Json,
    /// The figure
    Svg,
    /// One page with figures, table and method, that prints well
    Html,
}

/// The arguments of a report that has one split.
#[derive(Args, Clone, Debug)]
pub struct PlainArgs {
    /// How the report is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only servers that belong to this survey
    #[arg(long, value_name = "NAME")]
    survey: Option<SurveyRef>,
    /// Write to this file [default: -, standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
}

/// The arguments of a report that can be split in several ways.
#[derive(Args, Clone, Debug)]
pub struct SplitArgs {
    /// By what servers are told apart
    #[arg(long, value_enum, default_value_t)]
    by: By,
    #[command(flatten)]
    plain: PlainArgs,
}

/// Makes a report, which lacks something if there is an error beside it.
pub async fn report(command: &ReportCommand, style: Style) -> Result<(String, Option<CommandError>), CommandError> {
    let (maker, args): (Box<dyn Maker + Send>, _) = match command {
        ReportCommand::Offshore(args) => (Box::new(Offshore::default()), args),
        ReportCommand::Nearness(args) => (Box::new(Nearness::by(args.by)), &args.plain),
        ReportCommand::Reachability(args) => (Box::new(Reachability::by(args.by)), &args.plain),
        ReportCommand::Accessibility(args) => (Box::new(Accessibility::by(args.by)), &args.plain),
        ReportCommand::Load(args) => (Box::new(Load::default()), args),
    };
    let (document, gathered) = made(maker, args).await?;
    let written = match args.format {
        Format::Text => document.text(style),
        Format::Csv => document.csv()?,
        Format::Json => json(&document.json())?,
        Format::Svg => document.svg(),
        Format::Html => document.html(),
    };
    let text = match args.out.as_deref().filter(|out| *out != Path::new("-")) {
        None => written,
        Some(path) => {
            snapshot::write(path, written.as_bytes()).map_err(|why| CommandError::new(Exit::InUse, why.to_string()))?;
            String::new()
        }
    };
    let lacks =
        || CommandError::new(Exit::Unavailable, "rows are missing; the report says which").hint("make it again when all members answer");
    Ok((text, (!gather::is_whole(&gathered)).then(lacks)))
}

/// Gathers all rows and makes the report.
async fn made(mut maker: Box<dyn Maker + Send>, args: &PlainArgs) -> Result<(Document, Gathered), CommandError> {
    let mut source = Source::of(args.member.as_deref(), args.api.as_deref()).await?;
    let owners = source.owners().await?;
    let told = owners.iter().map(|owner| owner.servers).sum();
    let mut gathered = Gathered::of(told, args.survey.as_ref().map(ToString::to_string));
    if let Source::Daemon(api) = &source {
        let status: StatusView = api.get("/api/status", &[]).await?;
        let short: String = status.hierarchy.hash.chars().take(16).collect();
        gathered.hierarchy = Some(format!("edition {short}, made of {}", status.hierarchy.sources_text));
    }
    let (filter, undecided) = (SurveyFilter::new(args.survey.as_ref()), Vec::new());
    let mut rows = Rows { gathered: &mut gathered, maker: maker.as_mut(), filter, undecided };
    let what = Asked::Servers(RowsOf::Servers);
    let mut walk = Walk { source: &mut source, what, sink: &mut rows, seen: Hosts::default(), missing: Missing::default() };
    walk.walk(owners, None).await?;
    let missing = walk.missing.words();
    rows.finish()?;
    gathered.missing = missing;
    if let (Source::Daemon(api), Some(survey)) = (&source, &args.survey) {
        // A daemon that does not know the survey itself has no list of it.
        let survey: Option<SurveyView> = api.get("/api/survey", &[("name", &survey.to_string())]).await.ok();
        if let Some(survey) = survey {
            gathered.off_record = Some(OffRecord::of(api, &survey, &gathered.trees).await);
        }
    }
    let mut document = maker.finish();
    document.facts = gathered.facts().into_iter().chain(document.facts).collect();
    document.data = gathered.data().into_iter().chain(document.data).collect();
    Ok((document, gathered))
}

/// Rows of servers on their way into a report: each server once, though it changes hands meanwhile.
struct Rows<'a> {
    gathered: &'a mut Gathered,
    maker: &'a mut (dyn Maker + Send),
    filter: SurveyFilter,
    /// Rows whose weight depends on others at their addresses.
    undecided: Vec<Row>,
}

impl Rows<'_> {
    /// Takes in a row, if it is one.
    fn enter(&mut self, owner: AccessPoint, row: &str) -> bool {
        let Some(mut row) = self.gathered.enter(owner, row) else { return false };
        if Sample::weigh_alone(&mut row) {
            self.maker.enter(&row)
        } else {
            self.undecided.push(row)
        }
        true
    }

    /// All rows are there.
    fn finish(&mut self) -> Result<(), CommandError> {
        for mut row in self.undecided.drain(..) {
            self.gathered.sample.weigh(&mut row);
            self.maker.enter(&row);
        }
        self.filter.finish()
    }
}

impl Sink for Rows<'_> {
    fn row(&mut self, owner: AccessPoint, row: walk::Row) -> Result<bool, CommandError> {
        let Some(row) = self.filter.row(row, false) else {
            self.gathered.leave_out();
            return Ok(true);
        };
        Ok(self.enter(owner, &Value::Object(row).to_string()))
    }

    fn host_ends(&mut self) -> Result<(), CommandError> {
        Ok(())
    }

    fn host_fails(&mut self) -> Result<bool, CommandError> {
        // One row is all there is of a server.
        Ok(true)
    }
}

/// What rows of `export servers` in a file come to.
#[derive(Debug, Default)]
pub struct CrawlStatistics {
    /// Servers.
    pub servers: u64,
    /// Site trees.
    pub trees: u64,
    /// Requests, those for robots.txt included.
    pub requests: u64,
    /// Answers with a status of 200 to 299.
    pub successful: u64,
    /// HTML pages.
    pub pages: u64,
}

/// The rows of `export servers` in a file, with their weights among each other.
fn rows_in(path: &Path) -> Result<Vec<Row>, CommandError> {
    let text = std::fs::read_to_string(path)
        .map_err(|why| CommandError::new(Exit::NoInput, format!("{} cannot be read: {why}", path.display())))?;
    let row = |(number, line): (usize, &str)| {
        Row::of(line).ok_or_else(|| {
            let why = format!("{}, line {} is no row of `export servers`", path.display(), number + 1);
            CommandError::new(Exit::Data, why).hint("write it with `nearcrawl export servers --format jsonl`")
        })
    };
    let mut rows = text.lines().enumerate().map(row).collect::<Result<Vec<Row>, CommandError>>()?;
    let mut sample = Sample::default();
    rows.iter().for_each(|row| sample.enter(row));
    rows.iter_mut().for_each(|row| sample.weigh(row));
    Ok(rows)
}

impl CrawlStatistics {
    /// Reads them.
    pub fn read(path: &Path) -> Result<CrawlStatistics, CommandError> {
        let rows = rows_in(path)?;
        let mut sum = CrawlStatistics { servers: rows.len() as u64, ..CrawlStatistics::default() };
        for Row { record, .. } in &rows {
            sum.requests += record.requests;
            sum.pages += record.pages;
            sum.successful += record.by_status.range(200..300).map(|(_, answers)| answers).sum::<u64>();
        }
        sum.trees = rows.iter().map(|row| row.record.tree.as_str()).collect::<std::collections::BTreeSet<_>>().len() as u64;
        Ok(sum)
    }

    /// A count, and how much of the requests it is.
    pub fn share_of_requests(&self, count: u64) -> String {
        format!("{count} ({:.0} %)", 100.0 * count as f64 / self.requests.max(1) as f64)
    }
}

/// The figures of `report load` from rows in a file.
pub fn load_charts(path: &Path) -> Result<Vec<Chart>, CommandError> {
    let mut load = Box::new(Load::default());
    rows_in(path)?.iter().for_each(|row| load.enter(row));
    Ok(load.finish().charts)
}
