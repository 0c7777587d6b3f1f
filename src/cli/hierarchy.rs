//! `nearcrawl hierarchy`: how is the shared hierarchy built, and what does it say of an address?

use crate::{
    io::snapshot::{self, FileFailure},
    logic::hierarchy::{AssemblyRefusal, Builder, Hierarchy, ReadRefusal, ReadReport, RoutedUse, SnapshotRefusal},
};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    fmt::Display,
    io::{self, Write},
    net::IpAddr,
    path::{Path, PathBuf},
};

/// What can be done with hierarchies.
#[derive(Debug, Subcommand)]
pub enum HierarchyCommand {
    /// Build a snapshot from the registries' statistics files
    #[command(after_help = "Examples:
  nearcrawl hierarchy build delegated-*-extended-latest --out world.snapshot.zst
  nearcrawl hierarchy build delegated-*.zst --asn asn-ipv4.csv --names-only --out world.snapshot.zst

The files are the \"delegated-extended\" statistics that every registry publishes daily, plain or packed with zstd.
All members of a swarm must use the same hierarchy: compare the hash that is printed.")]
    Build(BuildArgs),
    /// Show where an address lives: registry, country, organisation, subnet
    #[command(after_help = "Examples:
  nearcrawl hierarchy show 41.90.0.1
  nearcrawl hierarchy show 2c0f:fe38::1 --json
  nearcrawl hierarchy show 127.10.0.1 --snapshot laboratory.snapshot.zst")]
    Show(ShowArgs),
    /// Count the subnets, organisations and levels of a hierarchy
    #[command(after_help = "Examples:
  nearcrawl hierarchy stats
  nearcrawl hierarchy stats --snapshot world.snapshot.zst --json")]
    Stats(StatsArgs),
}

/// Arguments of `build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Statistics files, one or more for each registry, plain or zstd
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write the snapshot
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Table of routes (`first,last,AS number,"organisation"`): names of organisations, and finer networks inside the blocks
    #[arg(long, value_name = "FILE")]
    asn: Vec<PathBuf>,
    /// Take only names from the tables of routes, no finer networks
    #[arg(long, requires = "asn")]
    names_only: bool,
    /// Take files with too many bad lines or broken counts nevertheless (the bad lines are still left out)
    #[arg(long)]
    overrule: bool,
    /// Print the reports as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The address, IPv4 or IPv6
    ip: IpAddr,
    /// Ask this snapshot instead of the one in the program
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Ask this snapshot instead of the one in the program
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum HierarchyFailure {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileFailure),
    /// A file was refused.
    #[error(transparent)]
    Read(#[from] ReadRefusal),
    /// Everything together was refused.
    #[error(transparent)]
    Assembly(#[from] AssemblyRefusal),
    /// A snapshot was refused.
    #[error("{0}: {1}")]
    Snapshot(String, SnapshotRefusal),
    /// The answer could not be printed.
    #[error("cannot print the answer: {0}")]
    Print(#[source] io::Error),
}

impl HierarchyFailure {
    /// The exit code, as sysexits.h has them: 66 no such file, 73 cannot be written, 74 reading or printing broke off, 77 no permission, 65 bad data.
    pub fn exit_code(&self) -> u8 {
        match self {
            HierarchyFailure::File(failure) if failure.kind() == Some(io::ErrorKind::PermissionDenied) => 77,
            HierarchyFailure::File(FileFailure::Read { .. }) => 66,
            HierarchyFailure::File(FileFailure::Write { .. }) => 73,
            HierarchyFailure::Read(ReadRefusal::Io { .. }) | HierarchyFailure::Print(_) => 74,
            _ => 65,
        }
    }
}

/// Does what was asked, and prints to `out`; progress goes to the terminal, if there is one.
pub fn run(command: HierarchyCommand, out: &mut dyn Write) -> Result<(), HierarchyFailure> {
    match command {
        HierarchyCommand::Build(args) => build(&args, out),
        HierarchyCommand::Show(args) => {
            let hierarchy = load(args.snapshot.as_deref())?;
            print(out, args.json, &hierarchy.path(args.ip))
        }
        HierarchyCommand::Stats(args) => print(out, args.json, &load(args.snapshot.as_deref())?.stats()),
    }
}

/// A snapshot from a file, or the world's.
fn load(path: Option<&Path>) -> Result<Hierarchy, HierarchyFailure> {
    let Some(path) = path else {
        return Hierarchy::world().map_err(|e| HierarchyFailure::Snapshot("the hierarchy in the program".to_owned(), e));
    };
    Hierarchy::from_bytes(&snapshot::read(path)?).map_err(|e| HierarchyFailure::Snapshot(path.display().to_string(), e))
}

fn print(out: &mut dyn Write, json: bool, what: &(impl Display + serde::Serialize)) -> Result<(), HierarchyFailure> {
    if json {
        serde_json::to_writer_pretty(&mut *out, what).map_err(|e| HierarchyFailure::Print(e.into()))?;
        writeln!(out).map_err(HierarchyFailure::Print)
    } else {
        writeln!(out, "{what}").map_err(HierarchyFailure::Print)
    }
}

fn build(args: &BuildArgs, out: &mut dyn Write) -> Result<(), HierarchyFailure> {
    let sizes = args.files.iter().chain(&args.asn).map(|p| p.metadata().map_or(0, |m| m.len()));
    let bar = ProgressBar::new(sizes.sum());
    // A template that does not parse would be a pity, not a failure.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {msg}") {
        bar.set_style(style);
    }
    let result = read_all(args, &bar);
    bar.finish_and_clear();
    let (builder, reports) = result?;
    let hierarchy = builder.finish()?;
    snapshot::write(&args.out, &hierarchy.to_bytes())?;
    let built = Built { reports, stats: hierarchy.stats(), out: args.out.display().to_string() };
    print(out, args.json, &built)
}

fn read_all(args: &BuildArgs, bar: &ProgressBar) -> Result<(Builder, Vec<ReadReport>), HierarchyFailure> {
    let mut builder = Builder::new().overrule(args.overrule);
    let mut reports = Vec::new();
    let routed_use = if args.names_only { RoutedUse::Names } else { RoutedUse::NamesAndNetworks };
    for (is_table, path) in args.files.iter().map(|f| (false, f)).chain(args.asn.iter().map(|f| (true, f))) {
        let name = path.display().to_string();
        bar.set_message(name.clone());
        let watched = bar.clone();
        let input = snapshot::open_text(path, move |file| watched.wrap_read(file))?;
        reports.push(if is_table { builder.read_asn_csv(&name, input, routed_use)? } else { builder.read_delegated(&name, input)? });
    }
    bar.set_message("making the tree");
    Ok((builder, reports))
}

/// What `build` tells.
#[derive(serde::Serialize)]
struct Built {
    reports: Vec<ReadReport>,
    stats: crate::logic::hierarchy::Stats,
    out: String,
}

impl Display for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reports.iter().try_for_each(|report| writeln!(f, "{report}"))?;
        writeln!(f, "{}", self.stats)?;
        write!(f, "written to     {}", self.out)
    }
}

#[cfg(test)]
mod tests;
