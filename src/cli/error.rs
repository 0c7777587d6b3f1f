//! An error of a command: a sentence, a hint, and an exit code of sysexits(3).

use std::{fmt, process::ExitCode};

/// The exit codes; scripts and systemd go by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// What was tried did not hold.
    Broken = 1,
    /// The command line is wrong.
    Usage = 64,
    /// What was given cannot be understood, or was refused.
    Data = 65,
    /// A file that was named is not there.
    NoInput = 66,
    /// The daemon, or a member, is not there.
    Unavailable = 69,
    /// A bug of the program.
    Internal = 70,
    /// The state directory or an address is in use by another daemon, or an output cannot be written.
    InUse = 73,
    /// A disk failed, or what it holds is damaged; an output could not be written, maybe because the disk is full.
    Storage = 74,
    /// The disk of the state directory is full; it may work later.
    TryLater = 75,
    /// This user may not do it.
    NoPermission = 77,
    /// The configuration is wrong.
    Config = 78,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// The code with this number; [`Exit::Internal`] if there is none.
    pub fn of(status: u8) -> Exit {
        let all = [
            Exit::Broken,
            Exit::Usage,
            Exit::Data,
            Exit::NoInput,
            Exit::Unavailable,
            Exit::InUse,
            Exit::Storage,
            Exit::TryLater,
            Exit::NoPermission,
            Exit::Config,
        ];
        all.into_iter().find(|exit| *exit as u8 == status).unwrap_or(Exit::Internal)
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The exit code of the process.
    pub exit: Exit,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl CommandError {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> CommandError {
        CommandError { exit, message: message.into(), hint: None }
    }

    /// The same with a hint.
    pub fn hint(self, hint: impl Into<String>) -> CommandError {
        CommandError { hint: Some(hint.into()), ..self }
    }

    /// A file could not be read or written.
    pub fn of_file(path: &std::path::Path, why: &std::io::Error) -> CommandError {
        let exit = match why.kind() {
            std::io::ErrorKind::NotFound => Exit::NoInput,
            std::io::ErrorKind::PermissionDenied => Exit::NoPermission,
            _ => Exit::Storage,
        };
        CommandError::new(exit, format!("{}: {why}", path.display()))
    }

    /// A file or directory could not be created or written.
    pub fn creating(path: &std::path::Path, why: &std::io::Error) -> CommandError {
        let (exit, hint) = match why.kind() {
            std::io::ErrorKind::PermissionDenied => (Exit::NoPermission, "choose a place that this user may write to"),
            std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => {
                (Exit::InUse, "a file with this name, or with that of a directory above it, is in the way: choose another place")
            }
            std::io::ErrorKind::NotFound => (Exit::InUse, "create its directory first"),
            std::io::ErrorKind::IsADirectory => (Exit::InUse, "this is a directory: name a file"),
            _ => (Exit::Storage, "is the disk full?"),
        };
        CommandError::new(exit, format!("{} cannot be written: {why}", path.display())).hint(hint)
    }

    /// What a program that asked for JSON is told, in one line.
    pub fn as_json(&self) -> serde_json::Value {
        serde_json::json!({ "error": self.message, "hint": self.hint, "exit_code": self.exit as u8 })
    }

    /// The exit code of the process.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl std::error::Error for CommandError {}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nearcrawl: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        io::store::{OpenError, StoreError},
        node::NodeError,
    };
    use std::{io, path::Path};

    #[test]
    fn codes_are_those_of_sysexits() {
        let codes = [
            (Exit::Usage, 64),
            (Exit::Data, 65),
            (Exit::NoInput, 66),
            (Exit::Unavailable, 69),
            (Exit::Internal, 70),
            (Exit::InUse, 73),
            (Exit::Storage, 74),
            (Exit::TryLater, 75),
            (Exit::NoPermission, 77),
            (Exit::Config, 78),
        ];
        for (exit, code) in codes {
            assert_eq!(exit as u8, code);
            assert_eq!(Exit::of(code), exit);
        }
        let gone = CommandError::of_file(Path::new("seeds.txt"), &io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(gone.exit, Exit::NoInput);
        assert!(gone.to_string().starts_with("nearcrawl: seeds.txt: "), "{gone}");
    }

    #[test]
    fn a_daemon_that_finds_its_disk_full_says_so_by_its_exit_code() {
        let opening = OpenError::NoSpace { path: "state".into(), reason: "No space left on device".to_owned() };
        for why in [NodeError::Store(opening), NodeError::Storing(StoreError::NoSpace("No space left on device".to_owned()))] {
            assert_eq!(Exit::of(why.exit_status()), Exit::TryLater, "{why}");
        }
    }

    #[test]
    fn the_hint_stands_under_the_message() {
        let failure = CommandError::new(Exit::Unavailable, "no daemon").hint("start it");
        assert_eq!(failure.to_string(), "nearcrawl: no daemon\n  hint: start it");
    }
}
