//! Errors of the store, with what should be done about each.

use std::path::PathBuf;

/// What to do about a damaged state database, whenever the damage is found.
const RESTORE: &str = "restore it from a copy, or move the whole state directory aside and start again: what this access point recorded will \
                       be fetched back from its replicas";

/// Why a state directory could not be opened. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another process holds the directory.
    #[error("{} is in use by another nearcrawl; stop that one first, or give this one a state directory of its own", dir.display())]
    InUse {
        /// The state directory.
        dir: PathBuf,
    },
    /// A newer version wrote the directory. Nothing was written.
    #[error(
        "{} was written by a newer nearcrawl (format {found}, this one knows {ours}); nothing was changed: \
         install the newer version again, or use another state directory",
        dir.display()
    )]
    NewerFormat {
        /// The state directory.
        dir: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format that this version knows.
        ours: u32,
    },
    /// What must not be lost is damaged. The cache never leads here: it is moved aside and rebuilt.
    #[error("{} is damaged: {reason}; {RESTORE}", path.display())]
    Damaged {
        /// What is damaged.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The disk is full.
    #[error("no space left for {}: {reason}; free at least 256 MiB and start again", path.display())]
    NoSpace {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The system refused for another reason: rights, a missing parent, a broken disk.
    #[error("cannot use {}: {reason}; check that it exists and that this user may write there", path.display())]
    Io {
        /// What could not be used.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl OpenError {
    /// The exit status that tells the service manager whether starting again may help (sysexits.h).
    pub fn exit_status(&self) -> u8 {
        match self {
            OpenError::InUse { .. } => 73,
            OpenError::NewerFormat { .. } => 78,
            OpenError::Damaged { .. } | OpenError::Io { .. } => 74,
            OpenError::NoSpace { .. } => 75,
        }
    }
}

/// Why an action came to nothing. An action that failed may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk is full. The store goes on reading and tries again by itself; do the action again later.
    #[error("the disk is full: {0}")]
    NoSpace(String),
    /// The state database was found damaged and answers nothing more. Starting again does not help.
    #[error("{} is damaged: {reason}; {RESTORE}", path.display())]
    StateDamaged {
        /// The directory of the database.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The cache database was found damaged and answers nothing more. It is rebuilt when the store is opened again.
    #[error("{} is damaged: {reason}; restart to rebuild it from the journals", path.display())]
    CacheDamaged {
        /// The directory of the database.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The system refused for another reason.
    #[error("the disk failed: {0}")]
    Io(String),
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// A claim that was to be stored cannot be decoded.
    #[error("a claim that cannot be decoded cannot be stored")]
    MalformedClaim,
    /// A name of a value or table is empty, longer than 64 bytes or has a NUL in it.
    #[error("{0:?} cannot be a name in the store: use 1 to 64 bytes without NUL")]
    BadName(String),
}

impl StoreError {
    /// The exit status of a daemon that ends because of it (sysexits.h).
    pub fn exit_status(&self) -> u8 {
        match self {
            StoreError::StateDamaged { .. } => 74,
            StoreError::NoSpace(_) => 75,
            // To be started again: the next start repairs what can be repaired.
            StoreError::CacheDamaged { .. }
            | StoreError::Io(_)
            | StoreError::Closed
            | StoreError::MalformedClaim
            | StoreError::BadName(_) => 70,
        }
    }
}

/// What an error of RocksDB means to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    NoSpace,
    Damaged,
    Locked,
    Io,
}

/// RocksDB has no code for a full disk across its C interface, so its words have to do.
pub(super) fn trouble(error: &rocksdb::Error) -> Trouble {
    use rocksdb::ErrorKind;
    let text = error.as_ref();
    let says = |words: &[&str]| words.iter().any(|w| text.contains(w));
    if says(&["No space left on device", "File too large", "Disk quota exceeded", "Space limit reached", "Read-only file system"]) {
        return Trouble::NoSpace;
    }
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::NotSupported => Trouble::Damaged,
        ErrorKind::IOError if says(&["lock hold by current process", "While lock file"]) => Trouble::Locked,
        // A file that the manifest names is gone.
        ErrorKind::IOError if says(&["No such file or directory"]) => Trouble::Damaged,
        _ => Trouble::Io,
    }
}
