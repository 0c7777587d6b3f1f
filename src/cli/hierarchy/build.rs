//! `hierarchy build`: makes a snapshot of registry files.

use super::{HierarchyError, look, print::print};
use crate::io::{
    snapshot::{self, FileError},
    text,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nearcrawl_hierarchy::{Builder, Change, Format, Hierarchy, ReadError, ReadReport, RoutedUse, Stats, pack};
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

pub(super) const EXAMPLES: &str = "Examples:
  nearcrawl hierarchy build --out world.zst delegated-*-extended-latest
  nearcrawl hierarchy build --out world.zst registries asn.csv.gz --names-only
  nearcrawl hierarchy build --out fine.zst delegated-* ripe.db.gz nets.tsv
  nearcrawl hierarchy build --out next.zst delegated-* --previous world.zst

The format of a file is recognised by its first lines, or given by --delegated, --whois, --networks, --asn or --countries. Files may be \
compressed with gzip or zstd. A directory stands for the files in it, as written by `hierarchy fetch`. The order of files does not matter.

  delegated   delegated-extended statistics: blocks and their holders
  WHOIS       bulk data, RPSL or ARIN's form: networks inside blocks;
              records of persons are skipped
  networks    prefix,country,asn,name with commas or TABs: networks in blocks
  routes      first,last,AS number,\"organisation\": names of organisations,
              and networks inside blocks
  countries   first,last,country: networks in another country than their block

Two editions of one registry are refused. A file is refused if more than one line in a thousand is malformed, if its own counts do not agree, if it has no usable record, or if it is \
older than the source of the previous snapshot. The snapshot is refused if it differs more from the previous one than \
20 % of the subnets per year of age, or 5 % if that is more. The previous snapshot is the one that --out replaces, unless --previous names another or --fresh says that there \
is none. --overrule accepts all of this.

A swarm uses the version that most of its members announce: docs/OPERATING.md, \"A newer hierarchy\".";

/// Arguments of `build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Files of the formats below, or directories of them
    #[arg(required_unless_present_any = ["delegated", "whois", "networks", "asn", "countries"], value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write the snapshot
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// A registry's delegated-extended statistics
    #[arg(long, value_name = "FILE")]
    delegated: Vec<PathBuf>,
    /// A registry's bulk WHOIS data, RPSL or ARIN's form
    #[arg(long, value_name = "FILE")]
    whois: Vec<PathBuf>,
    /// Nested networks (`prefix,country,asn,name`, commas or TABs)
    #[arg(long, value_name = "FILE")]
    networks: Vec<PathBuf>,
    /// Table of routes (`first,last,AS number,"organisation"`)
    #[arg(long, value_name = "FILE")]
    asn: Vec<PathBuf>,
    /// Ranges and their countries (`first,last,country`)
    #[arg(long, value_name = "FILE")]
    countries: Vec<PathBuf>,
    /// Take only names from tables of routes, no networks
    #[arg(long)]
    names_only: bool,
    /// The previous snapshot, if it is not the one that --out replaces
    #[arg(long, value_name = "FILE", conflicts_with = "fresh")]
    previous: Option<PathBuf>,
    /// Compare with no previous snapshot
    #[arg(long)]
    fresh: bool,
    /// Accept doubtful files and changes (malformed lines are still skipped)
    #[arg(long)]
    overrule: bool,
    /// Print the reports as JSON
    #[arg(long)]
    json: bool,
}

impl BuildArgs {
    /// All files, with what they are said to be.
    fn inputs(&self) -> Result<Vec<(PathBuf, Option<Format>)>, HierarchyError> {
        let mut inputs = Vec::new();
        for path in &self.files {
            inputs.extend(files_of(path)?.into_iter().map(|path| (path, None)));
        }
        let said = [
            (&self.delegated, Format::Delegated),
            (&self.whois, Format::Whois),
            (&self.networks, Format::Networks),
            (&self.asn, Format::Routes),
            (&self.countries, Format::Countries),
        ];
        inputs.extend(said.into_iter().flat_map(|(paths, format)| paths.iter().map(move |path| (path.clone(), Some(format)))));
        Ok(inputs)
    }

    /// The snapshot before, and where it is.
    fn before(&self) -> Result<Option<(&Path, Hierarchy)>, HierarchyError> {
        match &self.previous {
            Some(path) => Ok(Some((path, look::load(Some(path))?))),
            // What is there may be anything; only a snapshot is worth a comparison.
            None if !self.fresh && self.out.is_file() => Ok(look::load(Some(&self.out)).ok().map(|before| (self.out.as_path(), before))),
            None => Ok(None),
        }
    }
}

/// The files that a directory stands for, in the order of their names: those that are no business of `fetch` alone. Anything else stands
/// for itself.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, HierarchyError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error| FileError::Read { path: path.to_owned(), error };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = [".part", ".notes", ".new", ".md5"].iter().any(|ending| name.ends_with(ending));
        if file.is_file() && !aside && !name.starts_with('.') {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn build(args: &BuildArgs, out: &mut dyn Write) -> Result<(), HierarchyError> {
    let before = args.before()?;
    let before = before.as_ref().map(|(path, before)| (path.display().to_string(), before));
    let routed_use = if args.names_only { RoutedUse::Names } else { RoutedUse::NamesAndNetworks };
    let Made { reports, change, hierarchy } = make(&args.inputs()?, before, routed_use, args.overrule)?;
    snapshot::write(&args.out, &pack(&hierarchy))?;
    let built = Built { reports, change, stats: Stats::of(&hierarchy), out: args.out.display().to_string() };
    print(out, args.json, &built)
}

/// A hierarchy that passed all checks, or was to be made in spite of them.
pub(super) struct Made {
    /// What was read, file by file.
    pub(super) reports: Vec<ReadReport>,
    /// What changed since the one before, if there is one.
    pub(super) change: Option<Change>,
    /// What was made.
    pub(super) hierarchy: Hierarchy,
}

/// Reads the files, makes a tree of them, and compares it with the one before, which is called by its name in a refusal.
pub(super) fn make(
    inputs: &[(PathBuf, Option<Format>)],
    before: Option<(String, &Hierarchy)>,
    routed_use: RoutedUse,
    overrule: bool,
) -> Result<Made, HierarchyError> {
    let bar = ProgressBar::new(inputs.iter().map(|(path, _)| path.metadata().map_or(0, |m| m.len())).sum());
    // A template that does not parse would be a pity, not a failure.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {msg}") {
        bar.set_style(style);
    }
    let mut builder = Builder::new().overrule(overrule);
    if let Some((_, before)) = &before {
        builder = builder.in_use(before.sources());
    }
    let reports = inputs.iter().map(|(path, said)| read(&mut builder, path, *said, routed_use, &bar)).collect::<Result<_, _>>();
    let reports = reports.and_then(|reports: Vec<ReadReport>| if overrule { Ok(reports) } else { of_one_edition(reports) });
    bar.set_message("making the tree");
    let hierarchy = reports.and_then(|reports| Ok((reports, builder.finish()?)));
    bar.finish_and_clear();
    let (reports, hierarchy) = hierarchy?;
    let change = before.as_ref().map(|(_, before)| Change::between(before, &hierarchy));
    if let (Some((name, _)), Some(change)) = (before, &change)
        && change.is_doubtful()
        && !overrule
    {
        return Err(HierarchyError::Change(name, change.clone()));
    }
    Ok(Made { reports, change, hierarchy })
}

/// Refuses files that are of one registry, and of different dates.
fn of_one_edition(reports: Vec<ReadReport>) -> Result<Vec<ReadReport>, HierarchyError> {
    let mut editions: BTreeMap<(Option<Format>, &str), (&str, &str)> = BTreeMap::new();
    for report in &reports {
        let (Some(registry), Some(date)) = (&report.registry, &report.date) else { continue };
        let (one, one_date) = *editions.entry((report.format, registry.as_str())).or_insert((report.source.as_str(), date.as_str()));
        if one_date != date {
            let (one, one_date, other, other_date) = (one.to_owned(), one_date.to_owned(), report.source.clone(), date.clone());
            return Err(HierarchyError::Editions { registry: registry.clone(), one, one_date, other, other_date });
        }
    }
    Ok(reports)
}

/// Reads one file, as what it is said to be or as what it looks like.
fn read(
    builder: &mut Builder,
    path: &Path,
    said: Option<Format>,
    routed_use: RoutedUse,
    bar: &ProgressBar,
) -> Result<ReadReport, HierarchyError> {
    let name = path.display().to_string();
    bar.set_message(name.clone());
    let watched = bar.clone();
    let file = text::open(path, move |file| watched.wrap_read(file))?;
    let format = said.or_else(|| Format::of(file.head())).ok_or_else(|| ReadError::Format(name.clone()))?;
    Ok(builder.read(&name, file.reader(), format, routed_use)?)
}

/// The output of `build --json`.
#[derive(serde::Serialize)]
struct Built {
    reports: Vec<ReadReport>,
    change: Option<Change>,
    stats: Stats,
    out: String,
}

impl Display for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for report in &self.reports {
            if let Some(format) = report.format {
                write!(f, "{format:<21}")?;
            }
            writeln!(f, "{report}")?;
        }
        if let Some(change) = &self.change {
            writeln!(f, "change         {change}")?;
        }
        writeln!(f, "{}", self.stats)?;
        write!(f, "written to     {}", self.out)
    }
}
