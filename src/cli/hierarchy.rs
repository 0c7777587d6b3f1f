//! `nearcrawl hierarchy`: where do the files of the shared hierarchy come from, how is it built, and what does it say?

mod build;
mod fetch;
pub(super) mod look;
#[cfg(test)]
mod tests;

pub use build::BuildArgs;
pub use fetch::FetchArgs;
pub use look::{DiffArgs, ShowArgs, StatsArgs};

use crate::{
    io::{registry::DownloadFailure, snapshot::FileFailure},
    logic::hierarchy::{AssemblyRefusal, Change, ReadRefusal, SnapshotRefusal},
    node::config::ConfigError,
};
use clap::Subcommand;
use std::{
    fmt::Display,
    io::{self, Write},
};

/// What can be done with hierarchies.
#[derive(Debug, Subcommand)]
pub enum HierarchyCommand {
    /// Download the registries' newest files
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(FetchArgs),
    /// Build a snapshot from the registries' files
    #[command(after_help = build::EXAMPLES)]
    Build(BuildArgs),
    /// Show where an address lives: registry, country, organisation, subnet
    #[command(after_help = look::SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Count the subnets, organisations and levels of a hierarchy
    #[command(after_help = look::STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Tell what differs between two hierarchies
    #[command(after_help = look::DIFF_EXAMPLES)]
    Diff(DiffArgs),
}

/// Shown under `hierarchy --help`.
pub const EXAMPLES: &str = "Examples:
  nearcrawl hierarchy show 196.200.16.1
  nearcrawl hierarchy stats
  nearcrawl hierarchy fetch --dir registries
  nearcrawl hierarchy build registries --out world.snapshot.zst
  nearcrawl hierarchy diff built-in world.snapshot.zst";

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
    /// It differs too much from the one before.
    #[error("not written, it differs too much from {0}: {1}; check the files, or overrule if you know better")]
    Change(String, Change),
    /// A snapshot was refused.
    #[error("{0}: {1}")]
    Snapshot(String, SnapshotRefusal),
    /// Some files could not be fetched; the others were.
    #[error("{}", .0.iter().map(|failure| failure.to_string()).collect::<Vec<_>>().join("\n"))]
    Downloads(Vec<DownloadFailure>),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The answer could not be printed.
    #[error("cannot print the answer: {0}")]
    Print(#[source] io::Error),
}

impl HierarchyFailure {
    /// The exit code, as sysexits.h has them: 64 wrong command line, 65 bad data, 66 no such file, 69 server not there, 70 a fault of the program,
    /// 73 cannot be written, 74 reading or printing broke off, 77 no permission, 78 wrong configuration.
    pub fn exit_code(&self) -> u8 {
        match self {
            HierarchyFailure::File(failure) if failure.kind() == Some(io::ErrorKind::PermissionDenied) => 77,
            HierarchyFailure::File(failure) if failure.kind() == Some(io::ErrorKind::InvalidData) => 65,
            HierarchyFailure::File(FileFailure::Read { .. }) => 66,
            HierarchyFailure::File(FileFailure::Write { .. }) => 73,
            HierarchyFailure::Read(ReadRefusal::Io { .. }) | HierarchyFailure::Print(_) => 74,
            HierarchyFailure::Downloads(failures) => failures.first().map_or(70, download_code),
            HierarchyFailure::Config(_) => 78,
            HierarchyFailure::Usage(_) => 64,
            _ => 65,
        }
    }
}

fn download_code(failure: &DownloadFailure) -> u8 {
    match failure {
        DownloadFailure::Broken { .. } | DownloadFailure::Status { .. } | DownloadFailure::OutOfTime(_) => 69,
        DownloadFailure::TooLarge(..) | DownloadFailure::Checksum { .. } | DownloadFailure::Refused { .. } => 65,
        DownloadFailure::Disk { kind: io::ErrorKind::PermissionDenied, .. } => 77,
        DownloadFailure::Disk { .. } => 73,
        DownloadFailure::Client(_) => 70,
    }
}

/// Does what was asked, and prints to `out`; progress goes to the terminal, if there is one.
pub async fn run(command: HierarchyCommand, out: &mut (dyn Write + Send)) -> Result<(), HierarchyFailure> {
    match command {
        HierarchyCommand::Fetch(args) => fetch::fetch(&args, out).await,
        HierarchyCommand::Build(args) => build::build(&args, out),
        HierarchyCommand::Show(args) => look::show(&args, out),
        HierarchyCommand::Stats(args) => look::stats(&args, out),
        HierarchyCommand::Diff(args) => look::diff(&args, out),
    }
}

fn print(out: &mut dyn Write, json: bool, what: &(impl Display + serde::Serialize)) -> Result<(), HierarchyFailure> {
    if json {
        serde_json::to_writer_pretty(&mut *out, what).map_err(|e| HierarchyFailure::Print(e.into()))?;
        writeln!(out).map_err(HierarchyFailure::Print)
    } else {
        writeln!(out, "{what}").map_err(HierarchyFailure::Print)
    }
}
