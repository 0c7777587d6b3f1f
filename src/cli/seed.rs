//! `seed add`: gives the daemon starting URLs, from the command line or a file.

use super::{
    client::{ApiArgs, ApiClient},
    error::{CommandError, Exit},
    json,
};
use crate::node::api::SeedsBody;
use clap::{Args, Subcommand};
use nearcrawl_model::view::SeedView;
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Shown under `seed --help` and `seed add --help`.
pub const EXAMPLES: &str = "Examples:\n  \
    nearcrawl seed add https://museum.or.ke/ https://www.uonbi.ac.ke/\n  \
    nearcrawl seed add -f seeds.txt           one URL per line; # begins a comment\n  \
    grep -v test urls.txt | nearcrawl seed add -f -\n\n\
    Any member can be asked: each URL is sent to the member that owns the subnet of its server.";

/// URLs in one request, below the limit of the API.
const BATCH: usize = 500;

/// The largest file of starting points, in bytes.
const MAX_FILE: u64 = 256 << 20;

/// The commands about starting URLs.
#[derive(Subcommand, Clone, Debug)]
pub enum SeedCommand {
    /// Add starting URLs
    #[command(after_help = EXAMPLES)]
    Add(SeedArgs),
}

/// The arguments of `seed add`.
#[derive(Args, Clone, Debug)]
pub struct SeedArgs {
    /// URLs to start from
    #[arg(value_name = "URL", required_unless_present = "file")]
    urls: Vec<String>,
    /// A file with one URL per line; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    api: ApiArgs,
}

/// How many of the refused URLs are listed.
const MAX_SHOWN: usize = 20;

/// Sends the URLs to the daemon in batches and lists those that were refused.
pub async fn seed(command: SeedCommand) -> Result<String, CommandError> {
    let SeedCommand::Add(args) = command;
    let mut urls = args.urls;
    if let Some(file) = &args.file {
        urls.extend(lines(&read(file)?));
    }
    if urls.is_empty() {
        return Err(CommandError::new(Exit::Data, "the input has no URL").hint("write one URL per line, like https://example.org/"));
    }
    let client = ApiClient::new(&args.api)?;
    let mut sum = SeedView::default();
    for batch in urls.chunks(BATCH) {
        let mut view: SeedView = client.post("/api/seeds", &SeedsBody { urls: batch.to_vec() }).await?;
        sum.accepted += view.accepted;
        sum.not_durable += view.not_durable;
        sum.refused.append(&mut view.refused);
    }
    let text = if args.api.json { json(&sum)? } else { said(&sum) };
    // So that a script notices that every URL was refused.
    if sum.accepted == 0 { Err(CommandError::new(Exit::Data, text.trim_end().to_owned())) } else { Ok(text) }
}

fn said(view: &SeedView) -> String {
    let mut text = format!("{} accepted, {} refused\n", view.accepted, view.refused.len());
    if view.not_durable > 0 {
        text += &format!("  {} not on the disk yet: it does not answer in time, and a crash may lose them\n", view.not_durable);
    }
    for refused in view.refused.iter().take(MAX_SHOWN) {
        text += &format!("  {}: {}\n", refused.url, refused.reason_text);
    }
    if view.refused.len() > MAX_SHOWN {
        text += &format!("  and {} more: --json lists all\n", view.refused.len() - MAX_SHOWN);
    }
    text
}

/// URLs, one a line; `#` begins a comment line.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// A text file, or standard input for `-`.
pub(super) fn read(file: &Path) -> Result<String, CommandError> {
    let mut text = String::new();
    let reading = if file == Path::new("-") {
        io::stdin().lock().take(MAX_FILE).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text))
    };
    match reading {
        Ok(_) => Ok(text),
        Err(why) if why.kind() == io::ErrorKind::InvalidData => {
            Err(CommandError::new(Exit::Data, format!("{} is not a text file", file.display())))
        }
        Err(why) => Err(CommandError::of_file(file, &why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::view::RefusedSeed;

    #[test]
    fn a_file_of_refused_urls_does_not_flood_the_terminal() {
        let refused = |count: usize| SeedView {
            refused: (0..count).map(|n| RefusedSeed { url: format!("http://s{n}/"), reason_text: "denied".to_owned() }).collect(),
            ..SeedView::default()
        };
        let text = said(&refused(500));
        assert_eq!(text.lines().count(), 22, "{text}");
        assert!(
            text.starts_with("0 accepted, 500 refused\n  http://s0/: denied\n") && text.ends_with("  and 480 more: --json lists all\n"),
            "{text}"
        );
        assert!(!said(&refused(20)).contains("more"));
    }
}
