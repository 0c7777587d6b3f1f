//! Commands and options that had another name in earlier versions.
//!
//! The error for an old name gives the new one.

use super::error::{CommandError, Exit};
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::ffi::OsString;

/// Commands that were renamed: the name until commit 3107d04, and the name now.
const COMMANDS: &[(&str, &str)] = &[("peers", "members")];

/// Options that were renamed: the command, the name until commit 3107d04, and the name now.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("crawl", "--delay", "--min-delay"),
    ("crawl", "--price", "--yield-price"),
    ("plan", "--peer", "--member"),
    ("results", "--peer", "--member"),
];

/// What to say of a command line that clap did not take, if commit 3107d04 would have taken it.
pub(super) fn told(arguments: &[OsString], error: &Error) -> Option<CommandError> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    };
    let (old, now) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let old = named(ContextKind::InvalidSubcommand)?;
            COMMANDS.iter().find(|(name, _)| *name == old).copied()?
        }
        ErrorKind::UnknownArgument => {
            let command = arguments.get(1)?.to_str()?;
            let old = named(ContextKind::InvalidArg)?;
            OPTIONS.iter().find(|(of, name, _)| *of == command && *name == old).map(|(_, old, now)| (*old, *now))?
        }
        _ => return None,
    };
    Some(CommandError::new(Exit::Usage, format!("`{old}` is called `{now}` now")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn said(line: &str) -> Option<String> {
        let arguments: Vec<OsString> = ["nearcrawl"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        let error = Cli::try_parse_from(&arguments).expect_err(line);
        told(&arguments, &error).map(|failure| failure.message)
    }

    #[test]
    fn every_old_name_is_told_its_name_of_now() {
        assert_eq!(said("crawl http://a.test/ --delay 2s").unwrap(), "`--delay` is called `--min-delay` now");
        assert_eq!(said("results --peer=/ip4/192.0.2.1/tcp/4817").unwrap(), "`--peer` is called `--member` now");
        for (command, old, now) in OPTIONS {
            let line = format!("{command} {old} x");
            assert_eq!(said(&line).unwrap(), format!("`{old}` is called `{now}` now"));
        }
        for (old, now) in COMMANDS {
            assert_eq!(said(&format!("{old} --json")).unwrap(), format!("`{old}` is called `{now}` now"));
            assert!(Cli::try_parse_from(["nearcrawl", now]).is_ok());
        }
        for unknown in ["crawl --velocity 3", "pears", "status --peer x", "crawl http://a.test/ --depth x"] {
            assert_eq!(said(unknown), None, "{unknown}");
        }
    }
}
