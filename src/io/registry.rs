//! How are the registries' files downloaded? Over HTTPS, resumed and retried; a new copy replaces the old one only after it is checked.
//!
//! A file arrives in `NAME.part`, with notes beside it (`NAME.part.notes`) of which version it is. When the line breaks, the rest is
//! asked for with `Range` and `If-Range`, so that halves of two versions never make one file. When all is there, it is checked against
//! the MD5 sum that the registries publish beside their files, then by the caller; only then it takes the name of the old copy.
//! `NAME.notes` let the next visit ask only for what changed.

mod checksum;
mod notes;
#[cfg(test)]
mod tests;
mod transfer;

use reqwest::{Client, StatusCode, Url, redirect};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use transfer::Transfer;

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

/// The longest pause between two attempts, also if the server asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

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
enum Trouble {
    /// It may, after at least this pause.
    Again(DownloadError, Duration),
    /// It will not.
    Final(DownloadError),
}

/// Fetches one file into `directory`. `check` looks at the file before it takes the name of the old copy and says what is wrong with it.
pub async fn fetch(
    download: &Download,
    directory: &Path,
    limits: &DownloadLimits,
    watch: &mut (dyn FnMut(DownloadStep) + Send),
    check: &(dyn Fn(&Path) -> Result<(), String> + Sync),
) -> Result<Arrival, DownloadError> {
    let client = client(download, limits)?;
    let mut transfer = Transfer::new(&client, download, directory, limits);
    let mut attempts = async || {
        let mut pause = limits.pause;
        for attempt in 1.. {
            match transfer.attempt(watch, check).await {
                Ok(arrival) => return Ok(arrival),
                Err(Trouble::Final(failure)) => return Err(failure),
                Err(Trouble::Again(failure, _)) if attempt >= limits.attempts => return Err(failure),
                Err(Trouble::Again(failure, asked)) => {
                    let rest = pause.max(asked).min(MAX_PAUSE);
                    watch(DownloadStep::Again(failure.to_string(), rest));
                    tokio::time::sleep(rest).await;
                    pause = pause.saturating_mul(2);
                }
            }
        }
        Err(DownloadError::OutOfTime(download.url.clone()))
    };
    match tokio::time::timeout(limits.total, attempts()).await {
        Ok(outcome) => outcome,
        Err(_) => Err(DownloadError::OutOfTime(download.url.clone())),
    }
}

/// A client with the web's roots. From HTTPS no redirect leads to anything less.
fn client(download: &Download, limits: &DownloadLimits) -> Result<Client, DownloadError> {
    let failed = |why: String| DownloadError::Client(why);
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let mut tls = tls.map_err(|why| failed(why.to_string()))?.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let redirects = redirect::Policy::custom(|attempt| {
        let downgrades = attempt.previous().iter().any(|url| url.scheme() == "https") && attempt.url().scheme() != "https";
        if downgrades {
            attempt.error("it leads from https to http")
        } else if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else {
            attempt.follow()
        }
    });
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(limits.connect)
        .redirect(redirects)
        .user_agent(concat!("nearcrawl/", env!("CARGO_PKG_VERSION"), " (hierarchy fetch)"));
    // What is on this machine is not reached through a proxy.
    let here = download.url.host_str().map(|host| host.trim_matches(['[', ']'])).and_then(|host| host.parse::<std::net::IpAddr>().ok());
    if here.is_some_and(|address| address.is_loopback()) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|why| failed(why.to_string()))
}
