//! Issuer and dates of a server's certificate, for the record; read of one that the TLS handshake has proven.

use nearcrawl_model::{
    facts::{Certificate, MAX_WORD, cleaned},
    time::WallTime,
};
use x509_parser::{certificate::X509Certificate, prelude::FromDer, time::ASN1Time, x509::X509Name};

/// What the record has of a certificate (DER); none of one that cannot be read, or names no issuer.
pub fn read(der: &[u8]) -> Option<Certificate> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some(Certificate {
        issuer: name(certificate.issuer())?,
        not_before_at: wall_time(validity.not_before),
        not_after_at: wall_time(validity.not_after),
    })
}

/// The organisation, or else the common name.
fn name(issuer: &X509Name<'_>) -> Option<String> {
    let texts = issuer.iter_organization().chain(issuer.iter_common_name()).filter_map(|part| part.as_str().ok());
    texts.filter_map(|text| cleaned(text, MAX_WORD)).next()
}

fn wall_time(time: ASN1Time) -> WallTime {
    WallTime(u64::try_from(time.timestamp()).unwrap_or(0).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_and_the_dates_are_read_and_nothing_of_what_is_no_certificate() {
        let read_here = read(include_bytes!("tests/leaf.der")).unwrap();
        assert_eq!(read_here.issuer, "Test root");
        assert_eq!(read_here.not_before_at.to_string(), "2026-11-21T10:46:17.000Z");
        assert_eq!(read_here.not_after_at.to_string(), "2126-10-28T10:46:17.000Z");
        assert_eq!((read(b""), read(b"\x30\x84\xff\xff\xff\xff"), read(include_bytes!("tests/leaf-key.der"))), (None, None, None));
    }
}
