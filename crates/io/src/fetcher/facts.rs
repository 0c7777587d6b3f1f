//! Facts about a server from the head of an answer, for the record, at no further request.

use super::{certificate, guard};
use hyper::{HeaderMap, Version, header::HeaderName};
use nearcrawl_model::facts::{Fact, HttpVersion, MAX_OFFERS, MAX_TITLE, MAX_WORD, TlsVersion, cleaned};
use tokio_rustls::rustls::{ClientConnection, ProtocolVersion};

/// What a TLS session says of its server.
pub fn of_session(session: &ClientConnection) -> Vec<Fact> {
    let version = session.protocol_version().and_then(|version| match version {
        ProtocolVersion::TLSv1_2 => Some(TlsVersion::Tls12),
        ProtocolVersion::TLSv1_3 => Some(TlsVersion::Tls13),
        _ => None,
    });
    // Of a resumed session it is the certificate that was proven then.
    let certificate = session.peer_certificates().and_then(|chain| certificate::read(chain.first()?));
    version.map(Fact::Tls).into_iter().chain(certificate.map(Fact::Certificate)).collect()
}

/// What the head of an answer says. `secure`: it came over https.
pub fn of_head(version: Version, headers: &HeaderMap, secure: bool) -> Vec<Fact> {
    let version = match version {
        Version::HTTP_10 => Some(HttpVersion::Http10),
        Version::HTTP_11 => Some(HttpVersion::Http11),
        Version::HTTP_2 => Some(HttpVersion::Http2),
        Version::HTTP_3 => Some(HttpVersion::Http3),
        _ => None,
    };
    let offers = text(headers, "alt-svc").map(|value| offers(&value)).filter(|offers| !offers.is_empty());
    // It means nothing over http (RFC 6797 §8.1).
    let hsts = text(headers, "strict-transport-security").filter(|_| secure).and_then(|value| max_age(&value));
    let usage = text(headers, "content-usage").and_then(|value| cleaned(&value, MAX_TITLE));
    let reserved = text(headers, "tdm-reservation").and_then(|value| reservation(&value));
    let facts = [
        version.map(Fact::Http),
        offers.map(Fact::AltSvc),
        hsts.map(Fact::Hsts),
        guard::vendor(headers).map(Fact::Guard),
        usage.map(Fact::ContentUsage),
        reserved.map(Fact::TdmReservation),
    ];
    facts.into_iter().flatten().collect()
}

fn text(headers: &HeaderMap, name: &'static str) -> Option<String> {
    headers.get(HeaderName::from_static(name)).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The protocols that `Alt-Svc` names (RFC 7838), each once: `h3=":443"; ma=86400, h2=":443"`.
fn offers(value: &str) -> Vec<String> {
    let mut offers = Vec::new();
    // A comma inside quotes parts nothing: there is an authority, which has none.
    for protocol in value.split(',').filter_map(|offer| offer.split_once('=')).map(|(protocol, _)| protocol.trim()) {
        let is_token =
            (1..=MAX_WORD).contains(&protocol.len()) && protocol.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if is_token && offers.len() < MAX_OFFERS && !offers.iter().any(|known| known == protocol) {
            offers.push(protocol.to_owned());
        }
    }
    offers
}

/// `max-age=31536000; includeSubDomains`; one of 0 takes it back.
fn max_age(value: &str) -> Option<u64> {
    let (_, seconds) =
        value.split(';').filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("max-age"))?;
    seconds.trim().trim_matches('"').parse().ok().filter(|seconds| *seconds > 0)
}

/// 1 or 0 (TDM Reservation Protocol).
fn reservation(value: &str) -> Option<bool> {
    match value.trim() {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::facts::Guard;

    fn head(secure: bool, lines: &[(&'static str, &'static str)]) -> Vec<Fact> {
        let headers = lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        of_head(Version::HTTP_11, &headers, secure)
    }

    #[test]
    fn heads_say_what_they_offer_and_wish() {
        let told = head(
            true,
            &[
                ("alt-svc", "h3=\":443\"; ma=86400, h3=\":8443\", h3-29=\":443\", bad name=\":1\", clear"),
                ("strict-transport-security", "includeSubDomains; Max-Age=\"300\""),
                ("content-usage", "train-ai=n,\tsearch=y"),
                ("tdm-reservation", "1"),
                ("cf-ray", "8f-NBO"),
            ],
        );
        assert_eq!(
            told,
            [
                Fact::Http(HttpVersion::Http11),
                Fact::AltSvc(vec!["h3".to_owned(), "h3-29".to_owned()]),
                Fact::Hsts(300),
                Fact::Guard(Guard::Cloudflare),
                Fact::ContentUsage("train-ai=n, search=y".to_owned()),
                Fact::TdmReservation(true),
            ]
        );
        assert!(told.iter().all(Fact::is_plausible));
    }

    #[test]
    fn what_is_unclear_is_not_told() {
        let plain = [Fact::Http(HttpVersion::Http11)];
        for (secure, name, value) in [
            (false, "strict-transport-security", "max-age=300"),
            (true, "strict-transport-security", "max-age=0"),
            (true, "strict-transport-security", "max-age=soon"),
            (true, "alt-svc", "clear"),
            (true, "content-usage", " "),
            (true, "tdm-reservation", "yes"),
        ] {
            assert_eq!(head(secure, &[(name, value)]), plain, "{name}: {value}");
        }
    }
}
