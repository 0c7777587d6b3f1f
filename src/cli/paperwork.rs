//! What goes with an installation? Manual pages and completions, made from the same words as the help.

use super::{Cli, failure::Failure};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::{fs, path::PathBuf};

/// Shown under `man --help`.
pub const MAN_EXAMPLES: &str = "Examples:\n  \
    nearcrawl man | man -l -                  read the page of nearcrawl itself\n  \
    nearcrawl man /usr/local/share/man/man1   write all pages there";

/// Shown under `completions --help`.
pub const COMPLETIONS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl completions bash > /etc/bash_completion.d/nearcrawl\n  \
    nearcrawl completions zsh > ~/.zfunc/_nearcrawl\n  \
    nearcrawl completions fish > ~/.config/fish/completions/nearcrawl.fish";

/// For `man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// Where to write one page for each command; without it, the main page is printed
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// For `completions`.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// For which shell
    shell: Shell,
}

/// Writes or prints manual pages.
pub fn man(args: &ManArgs) -> Result<String, Failure> {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(|why| Failure::of_file("nearcrawl.1".as_ref(), &why))?;
        return Ok(String::from_utf8_lossy(&page).into_owned());
    };
    let failed = |why: std::io::Error| Failure::of_file(directory, &why);
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    Ok(String::new())
}

/// Prints completions.
pub fn completions(args: &CompletionsArgs) -> Result<String, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nearcrawl", &mut script);
    Ok(String::from_utf8_lossy(&script).into_owned())
}
