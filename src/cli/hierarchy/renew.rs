//! `hierarchy renew`: replaces a daemon's hierarchy by today's, unattended.
//!
//! The registries' files are fetched, a tree is built of them, and it is compared with the one in use, with the checks of `fetch` and
//! `build`. Only what passed all of them takes the place of the snapshot that the daemon reads; whatever fails leaves it as it was.

use super::{
    HierarchyError,
    build::{self, Made},
    fetch::{self, All, Fetched},
    look,
    print::print,
};
use crate::{
    cli::run::ConfigArgs,
    io::snapshot::{self, FileError},
    node::config::Config,
};
use clap::Args;
use nearcrawl_hierarchy::{Change, Hierarchy, ReadReport, RoutedUse, Stats, pack, unpack};
use std::{
    fmt::{self, Display},
    fs,
    io::Write,
    path::{Path, PathBuf},
};

pub(super) const EXAMPLES: &str = "Examples:
  nearcrawl hierarchy renew
  nearcrawl hierarchy renew --config node.toml
  nearcrawl hierarchy renew --overrule
  systemctl enable --now nearcrawl-hierarchy.timer

It fetches all `sources` under [hierarchy], builds a snapshot of them, and compares it with the one in use: that of `hierarchy.snapshot`, \
or `hierarchy.snapshot` in the state directory, or the built-in one. If every file came and all checks of `hierarchy build` hold, \
the new snapshot takes that place; else nothing is changed. Without a contact in the configuration nothing is fetched.

A running daemon looks at the place when it gets SIGHUP and when it starts, and votes for what is there: a swarm uses the edition \
that most of its members vote for. The timer does both every three months.

If a renewal is refused because more has changed than the age of the registries' files explains, look at it with `hierarchy fetch`, \
`build` and `diff`, and accept it once with --overrule.

Exit codes: 65 a file has the wrong content, or too much has changed, 69 a server cannot be reached, 73 cannot be written, 78 wrong \
configuration, or no contact.";

/// Arguments of `renew`.
#[derive(Debug, Args)]
pub struct RenewArgs {
    /// Where the registries' files are kept [default: `registries` in the state directory]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Accept doubtful files and changes
    #[arg(long)]
    overrule: bool,
    #[command(flatten)]
    config: ConfigArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The output of `renew --json`.
#[derive(serde::Serialize)]
struct Renewed {
    files: Vec<Fetched>,
    reports: Vec<ReadReport>,
    change: Option<Change>,
    stats: Stats,
    out: String,
    /// Whether the snapshot is another one than before.
    renewed: bool,
}

impl Display for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(change) = &self.change {
            writeln!(f, "change         {change}")?;
        }
        writeln!(f, "{}", self.stats)?;
        match self.renewed {
            true => write!(f, "renewed        {}", self.out),
            false => write!(f, "unchanged      {}: the registries tell nothing new", self.out),
        }
    }
}

pub(super) async fn renew(args: &RenewArgs, out: &mut (dyn Write + Send)) -> Result<(), HierarchyError> {
    let config = Config::load(args.config.path())?;
    config.ready_to_run()?;
    if !config.hierarchy.delegated.is_empty() {
        let why =
            "hierarchy.delegated names files that the daemon reads at every start, so a snapshot would not be used: leave that key out";
        return Err(HierarchyError::Elsewhere(why.to_owned()));
    }
    let place = config.snapshot_place();
    let directory = args.dir.clone().unwrap_or_else(|| fetch::directory_of(&config));
    let (files, failures) = fetch::fetch_all(&config.hierarchy.sources, &directory, args.overrule).await?;
    if !failures.is_empty() {
        print(out, args.json, &All { files })?;
        return Err(HierarchyError::NotRenewed { place, why: Box::new(HierarchyError::Downloads(failures)) });
    }
    let kept = |why| HierarchyError::NotRenewed { place: place.clone(), why: Box::new(why) };
    let built = put_in_place(&files, &place, args.overrule).map_err(kept)?;
    let (Made { reports, change, hierarchy }, renewed) = built;
    let told = Renewed { files, reports, change, stats: Stats::of(&hierarchy), out: place.display().to_string(), renewed };
    print(out, args.json, &told)
}

/// Builds a snapshot of the files and puts it in place; false if the same is there.
fn put_in_place(files: &[Fetched], place: &Path, overrule: bool) -> Result<(Made, bool), HierarchyError> {
    let there = place.is_file();
    let before = look::load(there.then_some(place))?;
    let name = if there { place.display().to_string() } else { "the built-in hierarchy".to_owned() };
    let inputs: Vec<_> = files.iter().map(|file| (file.path.clone(), None)).collect();
    let made = build::make(&inputs, Some((name, &before)), RoutedUse::default(), overrule)?;
    let is_same = |before: &Hierarchy| before.hash() == made.hierarchy.hash() && before.sources() == made.hierarchy.sources();
    if there && is_same(&before) {
        return Ok((made, false));
    }
    let packed = pack(&made.hierarchy);
    // What the daemon will read is read once before it takes its place.
    let failed = |why| HierarchyError::Snapshot("the new snapshot".to_owned(), why);
    let read = unpack(&packed).map_err(failed)?;
    if read.hash() != made.hierarchy.hash() {
        return Err(HierarchyError::Unreadable);
    }
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory).map_err(|error| FileError::Write { path: directory.to_owned(), error })?;
    }
    snapshot::write(place, &packed)?;
    Ok((made, true))
}
