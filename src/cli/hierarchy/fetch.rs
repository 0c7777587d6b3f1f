//! `hierarchy fetch`: downloads the registries' newest files.

use super::{HierarchyError, print::print};
use crate::{
    cli::run::ConfigArgs,
    io::{
        registry::{self, Arrival, Download, DownloadError, DownloadLimits, DownloadStep},
        text,
    },
    node::config::{Config, RegistrySource},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nearcrawl_hierarchy::{Builder, Format, ReadError, ReadReport, RoutedUse};
use nearcrawl_model::view::counted;
use std::{
    fmt::Display,
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Mutex,
};

pub(super) const EXAMPLES: &str = "Examples:
  nearcrawl hierarchy fetch
  nearcrawl hierarchy fetch afrinic ripencc --dir registries
  nearcrawl hierarchy fetch --dir registries --url ripe-inetnum=URL
  nearcrawl hierarchy build registries --out world.snapshot.zst

Without --url, the `sources` under [hierarchy] in the configuration are fetched: by default the delegated-extended statistics \
of the five registries. Only changed files are downloaded, and an interrupted download is resumed. A file replaces the old copy \
after its MD5 sum (if the server has one) was compared and its content could be read. A failed file does not stop the others.

Please fetch at most once a day, and observe each registry's terms of use: access to bulk WHOIS data may need an application.

Exit codes: 65 a file has the wrong content, 69 a server cannot be reached or does not have it, 73 cannot be written.";

/// Arguments of `fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// The sources to fetch by name; all if none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// A source instead of those of the configuration (repeatable)
    #[arg(long, value_name = "NAME=URL")]
    url: Vec<String>,
    /// Where to write the files [default: `registries` in the state directory]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Keep doubtful files
    #[arg(long)]
    overrule: bool,
    #[command(flatten)]
    config: ConfigArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FetchArgs {
    /// What is to be fetched.
    fn sources(&self, config: &Config) -> Result<Vec<RegistrySource>, HierarchyError> {
        let own = self.url.iter().map(|text| {
            let (name, url) =
                text.split_once('=').ok_or_else(|| format!("--url {text}: write it like --url afrinic=https://example.org/file"))?;
            RegistrySource::new(name, url).map_err(|why| format!("--url {text}: {why}"))
        });
        let own = own.collect::<Result<Vec<_>, String>>().map_err(HierarchyError::Usage)?;
        let all = if own.is_empty() { config.hierarchy.sources.clone() } else { own };
        let known = || all.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(missing) = self.names.iter().find(|name| !all.iter().any(|source| source.name == **name)) {
            return Err(HierarchyError::Usage(format!("there is no source {missing}: there are {}", known())));
        }
        Ok(all.into_iter().filter(|source| self.names.is_empty() || self.names.contains(&source.name)).collect())
    }
}

/// The result for one file.
#[derive(serde::Serialize)]
pub(super) struct Fetched {
    pub(super) name: String,
    url: String,
    /// Where the newest copy is.
    pub(super) path: PathBuf,
    /// Whether there is a new copy.
    new: bool,
    /// Bytes of the new copy.
    bytes: u64,
    /// Of these, how many were there from an earlier attempt.
    resumed: u64,
    /// Whether a published sum confirmed it.
    confirmed: bool,
    /// What the new copy says.
    report: Option<ReadReport>,
    failure: Option<String>,
}

/// The output of `fetch --json`.
#[derive(serde::Serialize)]
pub(super) struct All {
    pub(super) files: Vec<Fetched>,
}

impl Display for All {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, file) in self.files.iter().enumerate() {
            let end = if index + 1 < self.files.len() { "\n" } else { "" };
            match (&file.failure, file.new) {
                (Some(_), _) => write!(f, "{:<14} failed{end}", file.name)?,
                (None, false) => write!(f, "{:<14} unchanged{end}", file.name)?,
                (None, true) => {
                    let sum = if file.confirmed { "its sum is right" } else { "there is no sum beside it" };
                    let report = file.report.as_ref().map(ToString::to_string).unwrap_or_default();
                    write!(
                        f,
                        "{:<14} new, {} ({} from before), {sum}\n               {report}{end}",
                        file.name,
                        counted(file.bytes, "byte"),
                        file.resumed
                    )?;
                }
            }
        }
        Ok(())
    }
}

pub(super) async fn fetch(args: &FetchArgs, out: &mut (dyn Write + Send)) -> Result<(), HierarchyError> {
    let config = Config::load(args.config.path())?;
    let sources = args.sources(&config)?;
    let directory = args.dir.clone().unwrap_or_else(|| directory_of(&config));
    let (files, failures) = fetch_all(&sources, &directory, args.overrule).await?;
    print(out, args.json, &All { files })?;
    if failures.is_empty() { Ok(()) } else { Err(HierarchyError::Downloads(failures)) }
}

/// Where the files are kept, if nothing else is said.
pub(super) fn directory_of(config: &Config) -> PathBuf {
    config.state_dir.join("registries")
}

/// Fetches all of these, one after another: parallel downloads share the same line, and would only load the registries' servers.
pub(super) async fn fetch_all(
    sources: &[RegistrySource],
    directory: &Path,
    overrule: bool,
) -> Result<(Vec<Fetched>, Vec<DownloadError>), HierarchyError> {
    let failed = |why: std::io::Error| DownloadError::Disk { path: directory.to_owned(), kind: why.kind(), why: why.to_string() };
    fs::create_dir_all(directory).map_err(|why| HierarchyError::Downloads(vec![failed(why)]))?;
    let (mut files, mut failures) = (Vec::new(), Vec::new());
    for RegistrySource { name, url } in sources.iter().cloned() {
        let path = directory.join(&name);
        let mut file = Fetched {
            name: name.clone(),
            url: url.to_string(),
            path,
            new: false,
            bytes: 0,
            resumed: 0,
            confirmed: false,
            report: None,
            failure: None,
        };
        match fetch_one(&Download { name, url }, directory, overrule, &mut file.report).await {
            Ok(Arrival::Unchanged) => {}
            Ok(Arrival::New { bytes, resumed, confirmed }) => {
                (file.new, file.bytes, file.resumed, file.confirmed) = (true, bytes, resumed, confirmed)
            }
            Err(failure) => {
                file.failure = Some(failure.to_string());
                failures.push(failure);
            }
        }
        files.push(file);
    }
    Ok((files, failures))
}

async fn fetch_one(
    download: &Download,
    directory: &Path,
    overrule: bool,
    report: &mut Option<ReadReport>,
) -> Result<Arrival, DownloadError> {
    let bar = ProgressBar::new(0);
    // A template that does not parse would be a pity, not a failure.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {msg}") {
        bar.set_style(style);
    }
    bar.set_message(download.name.clone());
    let mut watch = |step| match step {
        DownloadStep::Received(received, total) => {
            bar.set_length(total.unwrap_or(received));
            bar.set_position(received);
        }
        DownloadStep::Again(why, pause) => bar.println(format!("{why}; once more in {pause:?}")),
        DownloadStep::Checking => bar.set_message(format!("{}: checking", download.name)),
    };
    let read = Mutex::new(None);
    let check = |path: &Path| {
        let told = check(path, &download.name, overrule)?;
        // No code that can panic runs while the lock is held, so it is never poisoned.
        *read.lock().map_err(|why| why.to_string())? = Some(told);
        Ok(())
    };
    let arrival = registry::fetch(download, directory, &DownloadLimits::default(), &mut watch, &check).await;
    bar.finish_and_clear();
    *report = read.into_inner().ok().flatten();
    arrival
}

/// Whether a build could use the file: it is read as one would read it.
fn check(path: &Path, name: &str, overrule: bool) -> Result<ReadReport, String> {
    let file = text::open(path, |file| file).map_err(|why| why.to_string())?;
    let format = Format::of(file.head()).ok_or_else(|| ReadError::Format(name.to_owned()).to_string())?;
    let mut builder = Builder::new().overrule(overrule);
    builder.read(name, file.reader(), format, RoutedUse::NamesAndNetworks).map_err(|why| why.to_string())
}
