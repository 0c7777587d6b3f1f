//! `man` and `completions`: manual pages of the commands and of the configuration file, shell completions; from the help's own words.

mod configuration;

use super::error::{CommandError, Exit};
use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Shown under `man --help`.
pub const MAN_EXAMPLES: &str = "Examples:\n  \
    nearcrawl man | man -l -                         read nearcrawl(1)\n  \
    nearcrawl man --section 5 | man -l -             read nearcrawl.toml(5)\n  \
    nearcrawl man /usr/local/share/man/man1          write all pages of commands\n  \
    nearcrawl man --section 5 /usr/local/share/man/man5";

/// Shown under `completions --help`.
pub const COMPLETIONS_EXAMPLES: &str = "Examples:\n  \
    nearcrawl completions bash > /etc/bash_completion.d/nearcrawl\n  \
    nearcrawl completions zsh > ~/.zfunc/_nearcrawl\n  \
    nearcrawl completions fish > ~/.config/fish/completions/nearcrawl.fish";

/// The arguments of `man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// Where to write the pages; without it, the section's main page is printed
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The section: 1 for the commands, 5 for the configuration file
    #[arg(long, value_name = "SECTION", default_value_t = 1, value_parser = section)]
    section: u8,
}

/// The arguments of `completions`.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Writes or prints manual pages of the program.
pub fn man(args: &ManArgs, program: Command) -> Result<String, CommandError> {
    let mut command = program.disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else {
        let mut text = Vec::new();
        let rendered = if args.section == 5 { configuration::page(&mut text) } else { page(&command, &mut text) };
        rendered.map_err(|why| CommandError::new(Exit::Internal, format!("the page cannot be rendered: {why}")))?;
        return Ok(String::from_utf8_lossy(&text).into_owned());
    };
    fs::create_dir_all(directory).map_err(|why| CommandError::creating(directory, &why))?;
    if args.section == 5 {
        let path = directory.join("nearcrawl.toml.5");
        write(&path, &configuration::page)?;
    } else {
        write_all(&command, directory)?;
    }
    Ok(String::new())
}

fn write_all(command: &Command, directory: &Path) -> Result<(), CommandError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    write(&directory.join(format!("{name}.1")), &|out| page(command, out))?;
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    inner.into_iter().try_for_each(|inner| write_all(inner, directory))
}

fn write(path: &Path, page: &dyn Fn(&mut Vec<u8>) -> io::Result<()>) -> Result<(), CommandError> {
    let mut text = Vec::new();
    page(&mut text).and_then(|()| fs::write(path, &text)).map_err(|why| CommandError::creating(path, &why))
}

/// The page of one command: as clap_mangen writes it, but with the options' values in the synopsis.
fn page(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(out)?;
    man.render_name_section(out)?;
    writeln!(out, ".SH SYNOPSIS")?;
    writeln!(out, "{}", synopsis(command))?;
    man.render_description_section(out)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(out)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    if command.get_after_help().is_some() || command.get_after_long_help().is_some() {
        examples(command, out)?;
    }
    // Only the main command has a version; clap_mangen expects one.
    if command.get_version().is_some() { man.render_version_section(out) } else { Ok(()) }
}

/// What stands behind the options in the help, line by line as it is written there: mostly examples.
fn examples(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) else { return Ok(()) };
    writeln!(out, ".SH EXAMPLES\n.nf")?;
    for line in text.to_string().lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins with one of these would be a command of roff.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        writeln!(out, "{guard}{line}")?;
    }
    writeln!(out, ".fi")
}

/// `nearcrawl crawl [--depth <LEVELS>] … <URL>...`, in roff.
fn synopsis(command: &Command) -> String {
    let bold = |text: &str| format!("\\fB{}\\fR", text.replace('-', "\\-"));
    let italic = |text: &str| format!("\\fI{}\\fR", text.replace('-', "\\-"));
    let mut parts = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    let (places, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).partition(|arg| arg.is_positional());
    for arg in options {
        let name =
            arg.get_long().map_or_else(|| arg.get_short().map_or(String::new(), |short| format!("-{short}")), |long| format!("--{long}"));
        let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let values = arg.get_value_names().unwrap_or_default().iter().map(|value| format!(" {}", italic(&format!("<{value}>"))));
        let text = bold(&name) + &values.filter(|_| takes).collect::<String>();
        let more = if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" };
        parts.push(if arg.is_required_set() { format!("{text}{more}") } else { format!("[{text}]{more}") });
    }
    for arg in places {
        let name = arg.get_value_names().and_then(|names| names.first()).map_or_else(|| arg.get_id().to_string(), ToString::to_string);
        let more = if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" };
        let text = italic(&format!("<{name}>"));
        parts.push(if arg.is_required_set() { format!("{text}{more}") } else { format!("[{text}]{more}") });
    }
    if command.has_subcommands() {
        parts.push(italic("<COMMAND>"));
    }
    parts.join(" ")
}

fn section(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "5" => Ok(5),
        _ => Err("write 1 (commands) or 5 (the configuration file)".to_owned()),
    }
}

/// Prints the completion script of a shell.
pub fn completions(args: &CompletionsArgs, mut program: Command) -> Result<String, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "nearcrawl", &mut script);
    Ok(String::from_utf8_lossy(&script).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_synopsis_names_the_values_of_options() {
        let mut command = Cli::command();
        command.build();
        let crawl = command.find_subcommand("crawl").unwrap();
        let plain = synopsis(crawl).replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace("\\-", "-");
        assert!(plain.starts_with("nearcrawl crawl "), "{plain}");
        assert!(plain.contains("[--min-delay <DURATION>]") && plain.contains("[--json]") && plain.contains("[<URL>]..."), "{plain}");
    }
}
