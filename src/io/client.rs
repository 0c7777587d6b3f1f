//! What asks our own API and the registries? A `reqwest` client whose TLS is the same as the crawl's: rustls with ring.

use tokio_rustls::rustls::crypto::ring;

/// The beginning of a client. To be used instead of `reqwest::Client::builder()`, which panics in `build` without a provider of
/// cryptography, even if only plain HTTP will be spoken.
pub fn client() -> reqwest::ClientBuilder {
    // An error means that a provider is installed already, which is enough.
    let _ = ring::default_provider().install_default();
    reqwest::Client::builder()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_client_can_be_built_more_than_once() {
        for _ in 0..2 {
            super::client().no_proxy().build().unwrap();
        }
    }
}
