//! Certificates for made-up hosts: two throw-away authorities that daemons are told to trust, and a third that they are not.

use super::world::{
    World,
    host::{Host, Nature, Tls},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, date_time_ymd};
use std::{collections::BTreeMap, sync::Arc};
use tokio_rustls::rustls::{
    self, ServerConfig,
    crypto::ring,
    pki_types::PrivateKeyDer,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// They could not be made.
    #[error("made-up certificates cannot be signed: {0}")]
    Sign(#[from] rcgen::Error),
    /// They cannot be served.
    #[error("made-up certificates cannot be served: {0}")]
    Serve(#[from] rustls::Error),
}

/// The authorities: the organisation and the common name, and whether daemons trust them. A record names the organisation, or else the name.
const AUTHORITIES: [(Option<&str>, &str, bool); 3] =
    [(Some("Made-up Trust Services"), "Made-up Root 1", true), (None, "Loopback Signing", true), (Some("Nobody"), "Nobody's Root", false)];

/// What is on record of a certificate: issuer, and the dates as JSON has them.
pub(crate) type Proven = (&'static str, &'static str, &'static str);

/// The authority that signs for a host, by its number here.
fn authority(host: &Host) -> usize {
    match host.nature {
        Nature::Stranger => 2,
        _ => usize::from(host.name.len().is_multiple_of(3)),
    }
}

/// What a record says of a host's certificate.
pub(crate) fn proven(host: &Host) -> Proven {
    let (organisation, name, _) = AUTHORITIES[authority(host)];
    (organisation.unwrap_or(name), "2020-01-05T00:00:00.000Z", "2046-07-01T00:00:00.000Z")
}

/// All of them: what daemons are told to trust (PEM), and how each host's TLS is served.
pub(crate) struct Certificates {
    pub(crate) trusted: String,
    resolver: Arc<ByName>,
}

/// Certificates by the name that is asked for.
#[derive(Debug)]
struct ByName(BTreeMap<String, Arc<CertifiedKey>>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.get(hello.server_name()?).cloned()
    }
}

impl Certificates {
    /// Signs one for each host with TLS.
    pub(crate) fn of(world: &World) -> Result<Certificates, CertificateError> {
        let mut authorities = Vec::new();
        let mut trusted = String::new();
        for (organisation, name, is_trusted) in AUTHORITIES {
            let mut params = CertificateParams::new(Vec::new())?;
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            organisation.iter().for_each(|organisation| params.distinguished_name.push(DnType::OrganizationName, *organisation));
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate()?;
            let certificate = params.self_signed(&key)?;
            trusted += &if is_trusted { certificate.pem() } else { String::new() };
            authorities.push((certificate, key));
        }
        let key = KeyPair::generate()?;
        let mut by_name = BTreeMap::new();
        for host in world.hosts.iter().filter(|host| host.door.tls().is_some()) {
            let named = if host.nature == Nature::ForOther { "somebody-else.test".to_owned() } else { host.name.clone() };
            let mut params = CertificateParams::new(vec![named])?;
            params.not_before = date_time_ymd(2020, 1, 5);
            params.not_after = if host.nature == Nature::Expired { date_time_ymd(2021, 2, 1) } else { date_time_ymd(2046, 7, 1) };
            let (issuer, signing) = &authorities[authority(host)];
            let certificate = params.signed_by(&key, issuer, signing)?;
            let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(|why| rustls::Error::General(why.to_owned()))?;
            let signer = ring::sign::any_supported_type(&private)?;
            by_name.insert(host.name.clone(), Arc::new(CertifiedKey::new(vec![certificate.der().clone()], signer)));
        }
        Ok(Certificates { trusted, resolver: Arc::new(ByName(by_name)) })
    }

    /// How TLS of one version is served.
    pub(crate) fn server(&self, tls: Tls) -> Result<Arc<ServerConfig>, CertificateError> {
        let versions: &[&rustls::SupportedProtocolVersion] = match tls {
            Tls::V12 => &[&rustls::version::TLS12],
            Tls::V13 => &[&rustls::version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider())).with_protocol_versions(versions)?;
        Ok(Arc::new(builder.with_no_client_auth().with_cert_resolver(self.resolver.clone())))
    }
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Certificates({})", self.resolver.0.len())
    }
}
