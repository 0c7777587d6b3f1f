//! `hierarchy show`, `stats` and `diff`: what does a hierarchy say?

use super::{HierarchyError, print::print};
use crate::io::snapshot;
use clap::Args;
use nearcrawl_hierarchy::{Diff, Hierarchy, Stats, unpack, world};
use std::{
    io::Write,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// What stands for the hierarchy in the program where a file is expected.
const BUILT_IN: &str = "built-in";

pub(super) const SHOW_EXAMPLES: &str = "Examples:
  nearcrawl hierarchy show 41.90.0.1
  nearcrawl hierarchy show 2c0f:fe38::1 --json
  nearcrawl hierarchy show 127.10.0.1 --snapshot laboratory.snapshot.zst";

pub(super) const STATS_EXAMPLES: &str = "Examples:
  nearcrawl hierarchy stats
  nearcrawl hierarchy stats --snapshot world.snapshot.zst --json";

pub(super) const DIFF_EXAMPLES: &str = "Examples:
  nearcrawl hierarchy diff world.snapshot.zst next.snapshot.zst
  nearcrawl hierarchy diff built-in next.snapshot.zst --json

Addresses count as moved if their smallest subnet is another one, appeared or disappeared. The verdict is that of \
`hierarchy build --previous OLD` on NEW: at most 20 % of the subnets per year may differ, or 5 % if that is more.";

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The address, IPv4 or IPv6
    ip: IpAddr,
    /// Use this snapshot instead of the built-in one
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Use this snapshot instead of the built-in one
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The old snapshot; `built-in` is the one in the program
    old: PathBuf,
    /// The new snapshot; `built-in` is the one in the program
    new: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn show(args: &ShowArgs, out: &mut dyn Write) -> Result<(), HierarchyError> {
    let hierarchy = load(args.snapshot.as_deref())?;
    print(out, args.json, &nearcrawl_hierarchy::Path::to(&hierarchy, args.ip))
}

pub(super) fn stats(args: &StatsArgs, out: &mut dyn Write) -> Result<(), HierarchyError> {
    print(out, args.json, &Stats::of(&load(args.snapshot.as_deref())?))
}

pub(super) fn diff(args: &DiffArgs, out: &mut dyn Write) -> Result<(), HierarchyError> {
    let named = |path: &Path| load(Some(path).filter(|path| *path != Path::new(BUILT_IN)));
    let (old, new) = (named(&args.old)?, named(&args.new)?);
    print(out, args.json, &Diff::between(&old, &new))
}

/// A snapshot from a file, or the world's.
pub(in crate::cli) fn load(path: Option<&Path>) -> Result<Hierarchy, HierarchyError> {
    let Some(path) = path else {
        return world().map_err(|e| HierarchyError::Snapshot("the hierarchy in the program".to_owned(), e));
    };
    unpack(&snapshot::read(path)?).map_err(|e| HierarchyError::Snapshot(path.display().to_string(), e))
}
