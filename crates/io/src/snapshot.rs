//! Snapshot files: read up to a size limit, and written so that no half file is ever visible.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// The largest snapshot file that is read, in bytes.
pub const MAX_SNAPSHOT: u64 = 128 << 20;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened or read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file's path.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file's path.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// More bytes than a snapshot has.
    #[error("{0} is larger than a snapshot can be ({MAX_SNAPSHOT} bytes): it is none")]
    TooLarge(PathBuf),
}

impl FileError {
    /// What the system said, if it was the system.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            FileError::Read { error, .. } | FileError::Write { error, .. } => Some(error.kind()),
            FileError::TooLarge(_) => None,
        }
    }
}

/// Reads a snapshot file, as it is.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |error| FileError::Read { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_SNAPSHOT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SNAPSHOT { Err(FileError::TooLarge(path.to_owned())) } else { Ok(bytes) }
}

/// Writes a snapshot file: into a file beside it first, which then takes its name. Readers see the old file or the new one.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_parts(path, &[bytes])
}

/// Like [`write`], for content in several pieces.
pub fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<(), FileError> {
    let failed = |error| FileError::Write { path: path.to_owned(), error };
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(beside);
    let attempt = || {
        let mut file = File::create(&beside)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    attempt().map_err(|error| {
        // The first error is returned; a temporary file that is left is no reason for a second one.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing.txt");
        let failures = [read(&missing).unwrap_err(), write(&dir.path().join("no/such/directory"), b"x").unwrap_err()];
        for failure in failures {
            assert!(failure.to_string().contains(dir.path().to_str().unwrap()), "{failure}");
            assert!(failure.kind().is_some());
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("world");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"new").is_err(), "a directory has that name");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
