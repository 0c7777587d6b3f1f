//! TLS to web servers, which checks that the server is the host we mean: the web's roots, HTTP/1.1 only, sessions resumed.

use super::{config::FetcherConfigError, pace::Waits};
use crate::files::read_regular;
use nearcrawl_model::{fetch::FetchError, url::Host};
use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, ClientConfig, RootCertStore,
        client::Resumption,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

/// Sessions remembered for resumption: a resumed handshake costs a third of a full one, for both sides.
const MAX_SESSIONS: usize = 1024;

/// The longest file of certificates that is read, in bytes; all that browsers trust are a quarter of a mebibyte.
const MAX_AUTHORITIES: u64 = 16 << 20;

/// The client side of TLS, shared by all connections.
#[derive(Clone)]
pub struct WebTls {
    connector: TlsConnector,
}

impl Default for WebTls {
    /// Trusts the roots that browsers trust.
    fn default() -> Self {
        WebTls::with_roots(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
    }
}

impl WebTls {
    /// Trusts the roots that browsers trust, and those in these files of certificates (PEM).
    ///
    /// # Errors
    /// A file that cannot be read, or holds no certificate that can be trusted.
    pub fn with_authorities(files: &[PathBuf]) -> Result<WebTls, FetcherConfigError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for path in files {
            let bad = |why: String| FetcherConfigError::Authority { path: path.clone(), why };
            let text = read_regular(path, MAX_AUTHORITIES).map_err(|error| bad(format!("cannot be read: {error}")))?;
            let known = roots.len();
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|error| bad(format!("a certificate in it is damaged: {error}")))?;
                roots.add(certificate).map_err(|error| bad(format!("a certificate in it cannot be an authority's: {error}")))?;
            }
            if roots.len() == known {
                return Err(bad("it holds no certificate".to_owned()));
            }
        }
        Ok(WebTls::with_roots(roots))
    }

    /// Trusts these roots.
    pub fn with_roots(roots: RootCertStore) -> WebTls {
        // The provider is named here, so that no other crate's choice of a default one can matter.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        #[expect(clippy::expect_used, reason = "ring speaks TLS 1.2 and 1.3; this depends on nothing that is read at run time")]
        let versions = versions.expect("ring supports the default protocol versions");
        let mut config = versions.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
        WebTls { connector: TlsConnector::from(Arc::new(config)) }
    }

    /// Makes a connection secret and sure of its host. While the stream waits by our own limits, the patience does not run out.
    pub async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &Host,
        patience: Duration,
        waits: &Waits,
    ) -> Result<TlsStream<S>, FetchError> {
        let name = ServerName::try_from(host.as_str().to_owned()).map_err(|_| FetchError::TlsFailed)?;
        let shaking = self.connector.connect(name, stream);
        let shaken = waits.timeout_at(Instant::now() + patience, shaking).await.ok_or(FetchError::TlsTimeout)?;
        shaken.map_err(|error| tls_failure(&error))
    }
}

/// What went wrong, as a survey of servers wants to know it.
fn tls_failure(error: &io::Error) -> FetchError {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};
    let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else { return FetchError::TlsFailed };
    match inner {
        Error::InvalidCertificate(bad) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet | Bad::NotValidYetContext { .. } => FetchError::CertificateExpired,
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => FetchError::CertificateForOther,
            Bad::UnknownIssuer => FetchError::UnknownIssuer,
            Bad::Other(other) if is_own_authority(other) => FetchError::UnknownIssuer,
            _ => FetchError::BadCertificate,
        },
        Error::NoCertificatesPresented => FetchError::BadCertificate,
        Error::InvalidMessage(_)
        | Error::PeerIncompatible(_)
        | Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerSentOversizedRecord
        | Error::NoApplicationProtocol
        | Error::AlertReceived(
            Alert::ProtocolVersion | Alert::HandshakeFailure | Alert::InsufficientSecurity | Alert::NoApplicationProtocol,
        ) => FetchError::TlsProtocol,
        _ => FetchError::TlsFailed,
    }
}

/// The certificate is an authority's and serves as its own: what tools make who are asked for a self-signed one. The type that says so
/// is another crate's; its name is all that can be seen of it here.
fn is_own_authority(other: &rustls::OtherError) -> bool {
    format!("{other:?}").contains("CaUsedAsEndEntity")
}
