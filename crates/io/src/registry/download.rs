//! A download: its file, its limits, and its outcomes.

use reqwest::{StatusCode, Url};
use std::{path::PathBuf, time::Duration};

/// A file to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// How the copy is called.
    pub name: String,
    /// Where it is.
    pub url: Url,
}

/// The time and size limits of a download.
#[derive(Clone, Copy, Debug)]
pub struct DownloadLimits {
    /// For the TCP connection and the TLS handshake.
    pub connect: Duration,
    /// From the question to the head of the answer.
    pub head: Duration,
    /// For one file with all its attempts.
    pub total: Duration,
    /// The longest time in which fewer than `least` bytes come.
    pub window: Duration,
    /// Bytes that must come in each window.
    pub least: u64,
    /// The largest file, in bytes as they are sent.
    pub largest: u64,
    /// How often one file is tried.
    pub attempts: u32,
    /// The pause after the first failed attempt; each further one is twice as long.
    pub pause: Duration,
}

impl Default for DownloadLimits {
    /// For files of up to 1 GiB from servers that are far away.
    fn default() -> Self {
        DownloadLimits {
            connect: Duration::from_secs(20),
            head: Duration::from_secs(60),
            total: Duration::from_secs(3600),
            window: Duration::from_secs(30),
            least: 30 << 10,
            largest: 1 << 30,
            attempts: 5,
            pause: Duration::from_secs(2),
        }
    }
}

/// What happens meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownloadStep {
    /// So many bytes are there, of so many if the server said it.
    Received(u64, Option<u64>),
    /// Something went wrong; it is tried again after a pause.
    Again(String, Duration),
    /// Everything is there and is being checked.
    Checking,
}

/// How a download ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// There is a new copy.
    New {
        /// The size of the file, in bytes.
        bytes: u64,
        /// How much of it was there from an earlier attempt or visit.
        resumed: u64,
        /// Whether a published sum confirmed it.
        confirmed: bool,
    },
    /// The copy that is there is still the newest.
    Unchanged,
}

/// Why there is no new copy. The previous copy, if there was one, is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// The server does not answer, or the connection breaks at every attempt.
    #[error("{url}: {why}; try again later, what has arrived is kept")]
    Broken {
        /// The URL of the file.
        url: Box<Url>,
        /// What happened the last time.
        why: String,
    },
    /// The server answers with another status than success.
    #[error("{url}: the server says {status}; check the address")]
    Status {
        /// The URL of the file.
        url: Box<Url>,
        /// What it says.
        status: StatusCode,
    },
    /// It did not all come in time.
    #[error("{0}: not done in time; try again, what has arrived is kept")]
    OutOfTime(Url),
    /// Larger than any such file.
    #[error("{0}: larger than {1} bytes, which no registry file is; check the address")]
    TooLarge(Url, u64),
    /// The file does not have the checksum that is published beside it.
    #[error("{url}: its MD5 sum is {found}, the server's {url}.md5 says {said}; try again later")]
    Checksum {
        /// The URL of the file.
        url: Box<Url>,
        /// What was published.
        said: String,
        /// The checksum of the file that came.
        found: String,
    },
    /// The caller's check refused the file.
    #[error("{url}: {why}")]
    Refused {
        /// The URL of the file.
        url: Box<Url>,
        /// What the check says.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {why}")]
    Disk {
        /// The path of that file.
        path: PathBuf,
        /// What the system says.
        why: String,
        /// The same for programs.
        kind: std::io::ErrorKind,
    },
    /// No client could be made.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// Whether another attempt may help.
pub(super) enum Trouble {
    /// It may, after at least this pause.
    Again(DownloadError, Duration),
    /// It will not.
    Final(DownloadError),
}
