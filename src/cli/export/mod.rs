//! `export`: what the swarm has on record, row by row.
//!
//! `export servers`, `history`, `pages` and `links` ask each owner, through the daemon on this machine or through any member; `export
//! events` asks that daemon alone.

mod column;
mod derived;
mod events;
mod file;
mod history;
mod links;
mod origin;
mod output;
mod pages;
mod parquet;
mod placement;
mod progress;
mod servers;
mod sink;
mod text;
mod trace;

use super::{
    error::{CommandError, Exit},
    owners::{Asked, Place, Source},
    survey::{SurveyFilter, one_of},
    walk::{Hosts, Missing, Walk},
};
use clap::{Args, Subcommand, ValueEnum};
use column::Column;
use links::Links;
use nearcrawl_model::{
    exported::ExportOf,
    server_rows::{RowsOf, ServerOwner},
    survey::{SurveyRef, SurveyView},
};
use origin::Origin;
use output::Output;
use progress::Progress;
use sink::{Belonging, Kind, RowSink, To, Wanted};
use std::{
    io,
    path::{Path, PathBuf},
};
use text::Format;
use trace::Trace;

/// Shown under `export --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl export servers > servers.jsonl\n  \
    nearcrawl export servers --format csv --out servers.csv\n  \
    nearcrawl export servers --survey universities > universities.jsonl\n  \
    nearcrawl export servers --out servers.jsonl --resume\n  \
    nearcrawl export history --format csv > runs.csv\n  \
    nearcrawl export pages --format parquet --out pages.parquet\n  \
    nearcrawl export links --format csv > hosts.csv\n  \
    nearcrawl export events --format csv > events.csv\n  \
    nearcrawl export placement --survey near --nodes nodes.csv --rtt rtt.csv\n  \
    nearcrawl export servers --member /ip4/192.0.2.7/tcp/4817/p2p/12D3KooW…";

/// Shown under `export history --help`.
pub const HISTORY_EXAMPLES: &str = "Examples:\n  \
    nearcrawl export history > runs.jsonl\n  \
    nearcrawl export history --format csv --out runs.csv\n  \
    nearcrawl export history --out runs.jsonl --resume\n\n\
    duration_ms is the time from the first request of a run to its last one, its pauses included. A run that is not over is among the rows only if it is the first one of its server (state: running). Of more than 240 runs some older \
    ones are left out (runs_left_out); the first one and the latest 120 stay.";

/// Shown under `export pages --help`.
pub const PAGES_EXAMPLES: &str = "Examples:\n  \
    nearcrawl export pages > pages.jsonl\n  \
    nearcrawl export pages --format parquet --out pages.parquet\n  \
    nearcrawl export pages --format parquet --out pages.parquet --resume\n\n\
    Each visit of the last whole run of each server is a row, whatever came of it (outcome: page, not-html, redirect, status or failed). A run \
    that is not over is among them only if it is the first one of its server (run_state: running or paused-by-budget). The bodies of pages are \
    not kept, and so are not there.";

/// Shown under `export links --help`.
pub const LINKS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl export links > hosts.jsonl\n  \
    nearcrawl export links --by page --format parquet --out links.parquet\n  \
    nearcrawl export links --trace links.tsv --hosts hosts.tsv\n  \
    nearcrawl lab cache --trace links.tsv --hosts hosts.tsv\n\n\
    A row says how many pages of a host link to another host (or to other pages of its own), and by how many links; with --by page each link is \
    a row. Of what lies out of scope only the host is on record. Runs are those of `export pages`.";

/// What is exported.
#[derive(Subcommand, Debug)]
pub enum ExportCommand {
    /// One row for each server: where it is, what its owner has on record, and who that is
    #[command(after_help = EXAMPLES)]
    Servers(ServersArgs),
    /// One row for each server and run: what each run of it came to, since it is known
    #[command(after_help = HISTORY_EXAMPLES)]
    History(ServersArgs),
    /// One row for each page that was visited: when, what came of it, and its size
    #[command(after_help = PAGES_EXAMPLES)]
    Pages(ServersArgs),
    /// Which hosts link to which, or which pages
    #[command(after_help = LINKS_EXAMPLES)]
    Links(LinksArgs),
    /// Which member is how far from which server of a survey's sample
    #[command(after_help = placement::EXAMPLES, override_usage = placement::USAGE)]
    Placement(placement::PlacementArgs),
    /// One row for each delegation, judgement and move that ended lately at a member
    #[command(after_help = events::EXAMPLES)]
    Events(events::EventsArgs),
}

/// The arguments of all exports.
#[derive(Args, Clone, Debug)]
pub struct ServersArgs {
    /// How rows are written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Only servers that belong to this survey; rows of servers and history have its labels
    #[arg(long, value_name = "NAME")]
    survey: Option<SurveyRef>,
    /// Write to this file [default: -, standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on behind the last row of the file of --out, if it is there; FILE.export says of which export it is
    #[arg(long, requires = "out")]
    resume: bool,
    /// Ask this member over the network, instead of the daemon on this machine; --api is not used then
    #[arg(long, value_name = "MULTIADDR")]
    member: Option<String>,
    /// The daemon's API [default: as configured, else http://127.0.0.1:4880]
    #[arg(long, value_name = "URL", env = "NEARCRAWL_API")]
    api: Option<String>,
}

/// What links are between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Hosts: how many pages and links of one lead to another
    #[default]
    Host,
    /// Pages: each link
    Page,
}

/// The arguments of `export links`.
#[derive(Args, Clone, Debug)]
pub struct LinksArgs {
    /// What links are between
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// Write links between numbered pages to this file, as `lab cache --trace` reads it
    #[arg(long, value_name = "EDGES.tsv", requires = "hosts", conflicts_with_all = ["by", "format", "out", "resume"])]
    trace: Option<PathBuf>,
    /// And the hosts of the pages to this file, as `lab cache --hosts` reads it
    #[arg(long, value_name = "MAP.tsv", requires = "trace")]
    hosts: Option<PathBuf>,
    #[command(flatten)]
    common: ServersArgs,
}

/// Exports.
pub async fn export(command: &ExportCommand) -> Result<String, CommandError> {
    match command {
        ExportCommand::Servers(args) => rows(args, Asked::Servers(RowsOf::Servers), Kind::Servers, &servers::COLUMNS).await,
        ExportCommand::History(args) => rows(args, Asked::Servers(RowsOf::History), Kind::History, &history::COLUMNS).await,
        ExportCommand::Pages(args) => rows(args, Asked::Export(ExportOf::Pages), Kind::Pages, &pages::COLUMNS).await,
        ExportCommand::Placement(args) => placement::placement(args).await,
        ExportCommand::Events(args) => events::events(args).await,
        ExportCommand::Links(LinksArgs { trace: Some(trace), hosts: Some(hosts), common, .. }) => graph(common, trace, hosts).await,
        ExportCommand::Links(LinksArgs { by, common, .. }) => {
            let by_page = *by == By::Page;
            let (of, columns) =
                if by_page { (ExportOf::PageLinks, &links::PAGE_COLUMNS) } else { (ExportOf::HostLinks, &links::HOST_COLUMNS) };
            rows(common, Asked::Export(of), Kind::Links(Box::new(Links::new(by_page))), columns).await
        }
    }
}

async fn rows(args: &ServersArgs, what: Asked, kind: Kind, columns: &[Column]) -> Result<String, CommandError> {
    let mut seen = Hosts::default();
    let belong = what != Asked::Servers(RowsOf::Servers);
    let mut source = Source::of(args.member.as_deref(), args.api.as_deref()).await?;
    let args = &one_survey(args, &mut source).await?;
    let wanted = wanted(args, what, &mut source).await?;
    let owners = source.owners().await?;
    let rows_at = file::rows_at(args.format, args.out.as_deref());
    let origin = Origin::new(kind.word(), args.format, args.survey.as_ref(), &owners);
    if let Some(file) = rows_at.as_ref().filter(|_| args.resume) {
        origin.check(file)?;
    }
    let (output, place) = open(args, columns, belong, &mut seen)?;
    rows_at.iter().for_each(|file| origin.write(file));
    write((source, owners), what, (kind, To::Rows(Box::new(output))), wanted, (seen, place)).await
}

/// The same arguments with the whole creator of the survey, so that no file is begun with the rows of several of one name. A member over the
/// network lists no surveys: there it is said when the rows are read.
async fn one_survey(args: &ServersArgs, source: &mut Source) -> Result<ServersArgs, CommandError> {
    let (Some(survey), Source::Daemon(api)) = (&args.survey, source) else { return Ok(args.clone()) };
    let known: Vec<SurveyView> = api.get("/api/surveys", &[]).await?;
    Ok(ServersArgs { survey: Some(one_of(survey, &known)?), ..args.clone() })
}

/// Which rows are meant. Rows of pages and links do not say to which surveys their servers belong: those of servers are asked for first.
async fn wanted(args: &ServersArgs, what: Asked, source: &mut Source) -> Result<Wanted, CommandError> {
    let mut filter = SurveyFilter::new(args.survey.as_ref());
    if matches!(what, Asked::Servers(_)) {
        return Ok(Wanted::Servers { filter, as_text: args.format != Format::Jsonl });
    }
    if args.survey.is_none() {
        return Ok(Wanted::All);
    }
    let owners = source.owners().await?;
    let mut belonging = Belonging { filter: &mut filter, hosts: Hosts::default() };
    let what = Asked::Servers(RowsOf::Servers);
    let mut walk = Walk { source, what, sink: &mut belonging, seen: Hosts::default(), missing: Missing::default() };
    walk.walk(owners, None).await?;
    let missing = walk.missing.words();
    let hosts = belonging.hosts;
    filter.finish()?;
    if let Some(missing) = missing.first() {
        let why = format!("which servers belong to the survey is not known of all: {missing}");
        return Err(CommandError::new(Exit::Unavailable, why).hint("try again when all members answer"));
    }
    Ok(Wanted::Hosts(hosts))
}

/// The files that `lab cache` takes.
async fn graph(args: &ServersArgs, trace: &Path, hosts: &Path) -> Result<String, CommandError> {
    let mut source = Source::of(args.member.as_deref(), args.api.as_deref()).await?;
    let args = &one_survey(args, &mut source).await?;
    let what = Asked::Export(ExportOf::PageLinks);
    let wanted = wanted(args, what, &mut source).await?;
    let create = |why: io::Error| CommandError::new(Exit::InUse, format!("{} or {}: {why}", trace.display(), hosts.display()));
    let to = To::Trace(Box::new(Trace::create(trace, hosts).map_err(create)?));
    let kind = Kind::Links(Box::new(Links::new(true)));
    let owners = source.owners().await?;
    write((source, owners), what, (kind, to), wanted, (Hosts::default(), None)).await
}

async fn write(
    (mut source, owners): (Source, Vec<ServerOwner>),
    what: Asked,
    (kind, to): (Kind, To),
    wanted: Wanted,
    (seen, place): (Hosts, Place),
) -> Result<String, CommandError> {
    let progress = Progress::new(owners.iter().map(|owner| owner.servers).sum());
    let mut sink = RowSink::new(kind, to, progress, wanted);
    let mut walk = Walk { source: &mut source, what, sink: &mut sink, seen, missing: Missing::default() };
    walk.walk(owners, place).await?;
    let missing = walk.missing;
    sink.finish(&missing.words())
}

/// Where rows go, and behind which they go on.
fn open(args: &ServersArgs, columns: &[Column], belong: bool, seen: &mut Hosts) -> Result<(Output, Place), CommandError> {
    file::open((args.format, args.out.as_deref(), args.resume), columns, belong, seen)
}

#[cfg(test)]
mod tests;
