//! HTTP client for our own API.
//!
//! It is a `reqwest` client whose TLS is the same as the crawl's: rustls with ring, and the authorities that browsers trust.

use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

/// The beginning of a client. To be used instead of `reqwest::Client::builder()`, whose `build` panics without a provider of cryptography, and
/// fails where the system has no certificates of authorities (a small Debian without ca-certificates), even if only plain HTTP will be spoken.
pub fn client() -> reqwest::ClientBuilder {
    // An error means that a provider is installed already, which is enough.
    let _ = ring::default_provider().install_default();
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    reqwest::Client::builder().tls_backend_preconfigured(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
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
