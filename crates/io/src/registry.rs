//! Downloads the registries' files over HTTPS, resumed and retried; a new copy replaces the old one only after it is checked.
//!
//! A file arrives in `NAME.part`, with notes beside it (`NAME.part.notes`) of which version it is. When the line breaks, the rest is
//! asked for with `Range` and `If-Range`, so that halves of two versions never make one file. When all is there, it is checked against
//! the MD5 sum that the registries publish beside their files, then by the caller; only then it takes the name of the old copy.
//! `NAME.notes` let the next visit ask only for what changed.

mod checksum;
mod download;
mod notes;
#[cfg(test)]
mod tests;
mod transfer;

pub use download::{Arrival, Download, DownloadError, DownloadLimits, DownloadStep};

use download::Trouble;
use reqwest::{Client, redirect};
use std::{path::Path, sync::Arc, time::Duration};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use transfer::Transfer;

/// The longest pause between two attempts, also if the server asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

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
