//! Errors of a configuration: all problems at once, each with its line and what its owner should do.

use nearcrawl_model::view::counted;
use std::{fmt, io, path::PathBuf};

/// How many problems are listed, enough for a file of an earlier version: of a file that is no configuration every line is one.
const MAX_SHOWN: usize = 30;

/// One thing that is wrong in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line it stands in, counted from 1; none if the problem is what is missing.
    pub line: Option<usize>,
    /// What stands there, as `section.key = value` or as far as it can be told; empty for a syntax error.
    pub what: String,
    /// What is wrong with it and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.what.is_empty() {
            write!(f, "{}: ", self.what)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a configuration cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Unreadable {
        /// The file's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file can be read, but not used.
    Wrong {
        /// The file's path.
        path: PathBuf,
        /// Everything that is wrong with it, in the order of the lines; never empty.
        problems: Vec<Problem>,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unreadable { path, source } => match source.kind() {
                io::ErrorKind::NotFound => {
                    write!(f, "there is no configuration {}: create it, or leave the option out to run on the defaults", path.display())
                }
                io::ErrorKind::PermissionDenied => {
                    write!(f, "the configuration {} may not be read by this user: change its owner or mode", path.display())
                }
                _ => write!(f, "the configuration {} cannot be read: {source}", path.display()),
            },
            ConfigError::Wrong { path, problems } => {
                write!(f, "{} has {}:", path.display(), counted(problems.len(), "problem"))?;
                for problem in problems.iter().take(MAX_SHOWN) {
                    write!(f, "\n  {problem}")?;
                }
                match problems.get(MAX_SHOWN..).and_then(<[Problem]>::first) {
                    Some(next) => {
                        let from = next.line.map_or(String::new(), |line| format!(", from line {line} on"));
                        write!(f, "\n  and {} more{from}: mend these first", problems.len() - MAX_SHOWN)
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConfigError::Unreadable { source, .. } => Some(source),
            ConfigError::Wrong { .. } => None,
        }
    }
}
