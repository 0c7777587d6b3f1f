//! How does a command end that could not do what it was asked? With a sentence, a hint, and an exit code of sysexits(3).

use std::{fmt, process::ExitCode};

/// What kind of failure it is, as scripts and systemd see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command line is wrong.
    Usage = 64,
    /// What was given cannot be understood.
    Data = 65,
    /// A file that was named is not there.
    NoInput = 66,
    /// The daemon, or a peer, is not there.
    Unavailable = 69,
    /// A fault of the program.
    Internal = 70,
    /// The state directory or an address is in use by another daemon, or an output cannot be written.
    InUse = 73,
    /// A disk failed, is full, or what it holds is damaged.
    Storage = 74,
    /// The disk is full; it may work later.
    TryLater = 75,
    /// This user may not do it.
    NoPermission = 77,
    /// The configuration is wrong.
    Config = 78,
}

impl Exit {
    /// The kind that an exit status of one of our rooms stands for.
    pub fn of(status: u8) -> Exit {
        let all = [Exit::Usage, Exit::Data, Exit::NoInput, Exit::Unavailable, Exit::InUse, Exit::Storage, Exit::NoPermission, Exit::Config];
        all.into_iter().find(|exit| *exit as u8 == status).unwrap_or(Exit::Internal)
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub exit: Exit,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into(), hint: None }
    }

    /// The same with a hint.
    pub fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// A file could not be read or written.
    pub fn of_file(path: &std::path::Path, why: &std::io::Error) -> Failure {
        let exit = match why.kind() {
            std::io::ErrorKind::NotFound => Exit::NoInput,
            std::io::ErrorKind::PermissionDenied => Exit::NoPermission,
            _ => Exit::Storage,
        };
        Failure::new(exit, format!("{}: {why}", path.display()))
    }

    /// For the process to end with.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
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
            (Exit::NoPermission, 77),
            (Exit::Config, 78),
        ];
        for (exit, code) in codes {
            assert_eq!(exit as u8, code);
            assert_eq!(Exit::of(code), exit);
        }
        let gone = Failure::of_file(Path::new("seeds.txt"), &io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(gone.exit, Exit::NoInput);
        assert!(gone.to_string().starts_with("nearcrawl: seeds.txt: "), "{gone}");
    }

    #[test]
    fn the_hint_stands_under_the_message() {
        let failure = Failure::new(Exit::Unavailable, "no daemon").hint("start it");
        assert_eq!(failure.to_string(), "nearcrawl: no daemon\n  hint: start it");
    }
}
