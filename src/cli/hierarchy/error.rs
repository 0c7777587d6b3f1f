//! Errors of the commands about hierarchies, with their exit codes.

use crate::{
    io::{registry::DownloadError, snapshot::FileError},
    node::config::{ConfigError, NotReady},
};
use nearcrawl_hierarchy::{AssemblyError, Change, ReadError, SnapshotError};
use std::{io, path::PathBuf};

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum HierarchyError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file was refused.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Everything together was refused.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// Two editions of one registry would be mixed.
    #[error("two editions of {registry}: {one} ({one_date}) and {other} ({other_date}); leave one out, or mix them with --overrule")]
    Editions {
        /// The registry.
        registry: String,
        /// A file of it.
        one: String,
        /// Its date.
        one_date: String,
        /// Another file of it.
        other: String,
        /// Its date.
        other_date: String,
    },
    /// What is to be an address is none.
    #[error("{0}")]
    Address(String),
    /// It differs too much from the one before.
    #[error("not written, it differs too much from {0}: {1}; check the files, or accept it with --overrule")]
    Change(String, Change),
    /// A snapshot was refused.
    #[error("{0}: {1}")]
    Snapshot(String, SnapshotError),
    /// Some files could not be fetched; the others were.
    #[error("{}", .0.iter().map(|failure| failure.to_string()).collect::<Vec<_>>().join("\n"))]
    Downloads(Vec<DownloadError>),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration is not enough.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The daemon takes its hierarchy from elsewhere.
    #[error("{0}")]
    Elsewhere(String),
    /// What was renewed cannot be used, and what was there stays.
    #[error("not renewed, {place} stays as it was: {why}")]
    NotRenewed {
        /// The snapshot that would have been replaced.
        place: PathBuf,
        /// What is wrong.
        #[source]
        why: Box<HierarchyError>,
    },
    /// The new snapshot cannot be read back.
    #[error("the new snapshot is not what was built: a fault of nearcrawl, please report it")]
    Unreadable,
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// The answer could not be printed.
    #[error("cannot print the answer: {0}")]
    Print(#[source] io::Error),
}

impl HierarchyError {
    /// The exit code, as sysexits.h has them: 64 wrong command line, 65 bad data, 66 no such file, 69 server not there, 70 a bug of the program,
    /// 73 cannot be written, 74 reading or printing broke off, 77 no permission, 78 wrong configuration.
    pub fn exit_code(&self) -> u8 {
        match self {
            HierarchyError::File(failure) if failure.kind() == Some(io::ErrorKind::PermissionDenied) => 77,
            HierarchyError::File(failure) if failure.kind() == Some(io::ErrorKind::InvalidData) => 65,
            HierarchyError::File(FileError::Read { .. }) => 66,
            HierarchyError::File(FileError::Write { .. }) => 73,
            HierarchyError::Read(ReadError::Io { .. }) | HierarchyError::Print(_) => 74,
            HierarchyError::Downloads(failures) => failures.first().map_or(70, download_code),
            HierarchyError::Config(_) | HierarchyError::NotReady(_) | HierarchyError::Elsewhere(_) => 78,
            HierarchyError::NotRenewed { why, .. } => why.exit_code(),
            HierarchyError::Unreadable => 70,
            HierarchyError::Usage(_) => 64,
            _ => 65,
        }
    }
}

fn download_code(failure: &DownloadError) -> u8 {
    match failure {
        DownloadError::Broken { .. } | DownloadError::Status { .. } | DownloadError::OutOfTime(_) => 69,
        DownloadError::TooLarge(..) | DownloadError::Checksum { .. } | DownloadError::Refused { .. } => 65,
        DownloadError::Disk { kind: io::ErrorKind::PermissionDenied, .. } => 77,
        DownloadError::Disk { .. } => 73,
        DownloadError::Client(_) => 70,
    }
}
