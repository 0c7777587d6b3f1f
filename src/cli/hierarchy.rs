//! `nearcrawl hierarchy`: how is the shared hierarchy built, and what does it say of an address?

use crate::{
    io::snapshot::{self, FileFailure},
    logic::hierarchy::{AssemblyRefusal, Builder, Change, Hierarchy, ReadRefusal, ReadReport, RoutedUse, SnapshotRefusal},
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
  nearcrawl hierarchy build delegated-* --previous world.snapshot.zst --out next.snapshot.zst

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
    /// The snapshot in use until now: refuse to write one that changes more than a quarter of a year explains
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,
    /// Take doubtful files and changes nevertheless (bad lines are still left out)
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
    /// It differs too much from the one before.
    #[error("not written, it differs too much from {0}: {1}; check the files, or overrule if you know better")]
    Change(String, Change),
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
pub(super) fn load(path: Option<&Path>) -> Result<Hierarchy, HierarchyFailure> {
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
    let change = args.previous.as_deref().map(|path| Ok::<_, HierarchyFailure>(hierarchy.change_since(&load(Some(path))?))).transpose()?;
    if let (Some(path), Some(change)) = (&args.previous, &change)
        && change.is_doubtful()
        && !args.overrule
    {
        return Err(HierarchyFailure::Change(path.display().to_string(), change.clone()));
    }
    snapshot::write(&args.out, &hierarchy.to_bytes())?;
    let built = Built { reports, change, stats: hierarchy.stats(), out: args.out.display().to_string() };
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
    change: Option<Change>,
    stats: crate::logic::hierarchy::Stats,
    out: String,
}

impl Display for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reports.iter().try_for_each(|report| writeln!(f, "{report}"))?;
        if let Some(change) = &self.change {
            writeln!(f, "change         {change}")?;
        }
        writeln!(f, "{}", self.stats)?;
        write!(f, "written to     {}", self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use std::fs;

    #[derive(Debug, Parser)]
    struct Door {
        #[command(subcommand)]
        command: HierarchyCommand,
    }

    /// Runs a command line and gives what it printed.
    fn hierarchy(arguments: &[&str]) -> Result<String, HierarchyFailure> {
        let mut out = Vec::new();
        run(Door::try_parse_from([&["hierarchy"], arguments].concat()).unwrap().command, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    const RECORDS: &str = "lab|KE|ipv4|127.1.0.0|65536|20000101|allocated|a\nlab|KE|asn|7|1|20000101|allocated|a\n";

    /// A directory with a file of records, and the paths of it and of a snapshot to be.
    fn laboratory() -> (tempfile::TempDir, String, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (records, out) = (path("records.zst"), path("lab.snapshot.zst"));
        fs::write(&records, zstd::bulk::compress(RECORDS.as_bytes(), 1).unwrap()).unwrap();
        (dir, records, out)
    }

    #[test]
    fn the_command_line_is_sound_and_every_help_has_examples() {
        Door::command().debug_assert();
        for command in Door::command().get_subcommands_mut() {
            assert!(command.render_help().to_string().contains("nearcrawl hierarchy "), "{}", command.get_name());
        }
    }

    #[test]
    fn what_is_built_can_be_shown_and_counted() {
        let (dir, records, out) = laboratory();
        let routes = dir.path().join("routes.csv").display().to_string();
        fs::write(&routes, "127.1.9.0,127.1.9.255,7,Seven\n").unwrap();
        let told = hierarchy(&["build", &records, "--asn", &routes, "--out", &out]).unwrap();
        assert!(told.contains("1 used") && told.contains("subnets        2 (2 IPv4"), "{told}");
        let shown = hierarchy(&["show", "127.1.9.5", "--snapshot", &out]).unwrap();
        assert!(shown.contains("organisation Seven (AS7, a)") && shown.contains("nested network 127.1.9.0/24 ← its subnet"), "{shown}");
        let json: serde_json::Value =
            serde_json::from_str(&hierarchy(&["show", "127.1.1.1", "--snapshot", &out, "--json"]).unwrap()).unwrap();
        assert_eq!(json["subnet"], "127.1.0.0/16");
        assert_eq!(json["registered"]["organisation"]["name"], "Seven");
        let json: serde_json::Value = serde_json::from_str(&hierarchy(&["stats", "--snapshot", &out, "--json"]).unwrap()).unwrap();
        assert_eq!((&json["subnets"], &json["height"]), (&2.into(), &5.into()));
    }

    #[test]
    fn names_only_adds_no_networks() {
        let (dir, records, out) = laboratory();
        let routes = dir.path().join("routes.csv").display().to_string();
        fs::write(&routes, "127.1.9.0,127.1.9.255,7,Seven\n").unwrap();
        let told = hierarchy(&["build", &records, "--asn", &routes, "--names-only", "-o", &out]).unwrap();
        assert!(told.contains("subnets        1 ") && told.contains("(1 with a name)"), "{told}");
    }

    #[test]
    fn a_rebuild_that_changes_too_much_is_not_written_unless_overruled() {
        let (dir, records, out) = laboratory();
        hierarchy(&["build", &records, "-o", &out]).unwrap();
        let other = dir.path().join("other.txt").display().to_string();
        fs::write(&other, RECORDS.replace("127.1.", "127.2.")).unwrap();
        let next = dir.path().join("next").display().to_string();
        let arguments = ["build", &other, "--previous", &out, "-o", &next];
        let failure = hierarchy(&arguments).unwrap_err();
        assert!(failure.to_string().contains("0 subnets kept, 1 added, 1 removed"), "{failure}");
        assert_eq!((failure.exit_code(), Path::new(&next).exists()), (65, false));
        assert!(hierarchy(&[&arguments[..], &["--overrule"]].concat()).unwrap().contains("change         0 subnets kept"));
    }

    #[test]
    fn failures_have_their_exit_codes_and_say_which_file() {
        let (dir, records, out) = laboratory();
        let bad = dir.path().join("bad.txt").display().to_string();
        fs::write(&bad, format!("{RECORDS}lab|KE|ipv4|nonsense|1|20000101|allocated|a\n")).unwrap();
        let code = |arguments: &[&str], named: &str| {
            let failure = hierarchy(arguments).unwrap_err();
            assert!(failure.to_string().contains(named), "{failure}");
            failure.exit_code()
        };
        assert_eq!(code(&["build", "/no/such/file", "-o", &out], "/no/such/file"), 66);
        assert_eq!(code(&["build", &records, "-o", "/no/such/directory/x"], "/no/such/directory"), 73);
        assert_eq!(code(&["build", &bad, "-o", &out], "bad.txt"), 65);
        assert_eq!(code(&["stats", "--snapshot", &bad], "bad.txt"), 65);
        assert!(!Path::new(&out).exists(), "nothing was written");
        assert!(hierarchy(&["build", &bad, "-o", &out, "--overrule"]).unwrap().contains("1 bad (first: line 3)"));
    }

    #[test]
    fn a_reader_that_goes_away_is_a_failure_not_a_panic() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (_dir, records, out) = laboratory();
        let command = Door::try_parse_from(["hierarchy", "build", &records, "-o", &out]).unwrap().command;
        assert_eq!(run(command, &mut Gone).unwrap_err().exit_code(), 74);
    }
}
