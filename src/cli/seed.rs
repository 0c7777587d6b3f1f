//! How does somebody give the daemon starting points? `seed add`, by name or from a file.

use super::{
    client::{ApiArgs, ApiClient},
    failure::{Exit, Failure},
    json,
};
use crate::{model::view::SeedView, node::api::SeedsBody};
use clap::{Args, Subcommand};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Shown under `seed --help` and `seed add --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl seed add https://museum.or.ke/ https://www.uonbi.ac.ke/\n  \
    nearcrawl seed add -f seeds.txt           one URL a line; # begins a comment\n  \
    grep -v test urls.txt | nearcrawl seed add -f -\n\n\
    Any member will do: each URL finds its way to the access point that is\n\
    nearest to its server.";

/// URLs that one request carries: far below what the API takes.
const BATCH: usize = 500;

/// The largest file of starting points, in bytes.
const LARGEST_FILE: u64 = 256 << 20;

/// What to do with starting points.
#[derive(Subcommand, Clone, Debug)]
pub enum SeedCommand {
    /// Add starting points
    #[command(after_help = EXAMPLES)]
    Add(SeedArgs),
}

/// For `seed add`.
#[derive(Args, Clone, Debug)]
pub struct SeedArgs {
    /// Where to start
    #[arg(value_name = "URL", required_unless_present = "file")]
    urls: Vec<String>,
    /// A file with one URL a line; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    api: ApiArgs,
}

/// Adds them, a batch at a time, and says what became of them.
pub async fn seed(command: SeedCommand) -> Result<String, Failure> {
    let SeedCommand::Add(args) = command;
    let mut urls = args.urls;
    if let Some(file) = &args.file {
        urls.extend(lines(&read(file)?));
    }
    if urls.is_empty() {
        return Err(Failure::new(Exit::Data, "there is no URL in it").hint("write one URL a line, like https://example.org/"));
    }
    let client = ApiClient::new(&args.api)?;
    let mut sum = SeedView::default();
    for batch in urls.chunks(BATCH) {
        let mut view: SeedView = client.post("/api/seeds", &SeedsBody { urls: batch.to_vec() }).await?;
        sum.accepted += view.accepted;
        sum.refused.append(&mut view.refused);
    }
    let text = if args.api.json { json(&sum)? } else { said(&sum) };
    // A script must notice that nothing at all was taken in.
    if sum.accepted == 0 { Err(Failure::new(Exit::Data, text.trim_end().to_owned())) } else { Ok(text) }
}

fn said(view: &SeedView) -> String {
    let mut text = format!("{} accepted, {} refused\n", view.accepted, view.refused.len());
    for refused in &view.refused {
        text += &format!("  {}: {}\n", refused.url, refused.why);
    }
    text
}

/// URLs, one a line; `#` begins a comment line.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// A text file, or standard input for `-`.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let reading = if file == Path::new("-") {
        io::stdin().lock().take(LARGEST_FILE).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(LARGEST_FILE).read_to_string(&mut text))
    };
    match reading {
        Ok(_) => Ok(text),
        Err(why) if why.kind() == io::ErrorKind::InvalidData => {
            Err(Failure::new(Exit::Data, format!("{} is not a text file", file.display())))
        }
        Err(why) => Err(Failure::of_file(file, &why)),
    }
}
