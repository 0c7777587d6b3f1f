//! `hierarchy show`, `stats` and `diff`: show what a hierarchy says.

use super::{HierarchyError, print::print};
use crate::io::snapshot;
use clap::Args;
use nearcrawl_hierarchy::{Diff, Hierarchy, Stats, unpack, world};
use std::{
    fmt::{self, Display},
    io::{self, BufRead, Write},
    net::IpAddr,
    path::{Path, PathBuf},
};

/// What stands for the hierarchy in the program where a file is expected.
const BUILT_IN: &str = "built-in";

pub(super) const SHOW_EXAMPLES: &str = "Examples:
  nearcrawl hierarchy show 41.90.0.1 196.200.16.1
  cut -f 1 addresses.tsv | nearcrawl hierarchy show -
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
    /// Addresses, IPv4 or IPv6; - reads them from standard input, one a line
    #[arg(required = true, value_name = "IP")]
    addresses: Vec<String>,
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
    let addresses = addresses(&args.addresses)?;
    let paths: Vec<_> = addresses.into_iter().map(|address| nearcrawl_hierarchy::Path::to(&hierarchy, address)).collect();
    match &paths[..] {
        [only] if args.addresses.iter().all(|address| address != "-") => print(out, args.json, only),
        _ => print(out, args.json, &Several(paths)),
    }
}

/// What is said of several addresses: one behind the other, or a list.
#[derive(serde::Serialize)]
struct Several<'a>(Vec<nearcrawl_hierarchy::Path<'a>>);

impl Display for Several<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, path) in self.0.iter().enumerate() {
            let between = if place > 0 { "\n\n" } else { "" };
            write!(f, "{between}{path}")?;
        }
        Ok(())
    }
}

/// The addresses that were named, or stand on standard input.
fn addresses(texts: &[String]) -> Result<Vec<IpAddr>, HierarchyError> {
    let wrong = |text: &str, place: String| {
        HierarchyError::Address(format!("{place}{text} is no address; write it like 41.90.0.1 or 2c0f:fe38::1"))
    };
    let mut addresses = Vec::new();
    for text in texts {
        if text != "-" {
            addresses.push(text.parse().map_err(|_| wrong(text, String::new()))?);
            continue;
        }
        for (number, line) in (1..).zip(io::stdin().lock().lines()) {
            let line = line.map_err(|why| HierarchyError::Address(format!("standard input: {why}")))?;
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                addresses.push(line.parse().map_err(|_| wrong(line, format!("standard input, line {number}: ")))?);
            }
        }
    }
    Ok(addresses)
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
