//! What do we ask of a web server or of the DNS, and what may come of it? Every outcome is typed: being refused is not being down.

use super::{
    evaluation::Evaluated,
    fingerprint::Fingerprint,
    links::Links,
    revisit::Validators,
    time::Millis,
    url::{Host, PageUrl},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPurpose {
    /// A page: only HTML is read, links are named.
    Page,
    /// robots.txt: the body comes back as it is, cut at 500 KiB.
    Robots,
}

/// One request to one server. The address was resolved and checked before; exactly this one is dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchOrder {
    /// What is asked for.
    pub url: PageUrl,
    /// Whom to dial; the port comes from the URL.
    pub address: IpAddr,
    /// What it is for.
    pub purpose: FetchPurpose,
    /// The version that is known: if it is still the same, it need not be sent.
    pub validators: Validators,
}

/// What came of a [`FetchOrder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchReport {
    /// What was asked for.
    pub url: PageUrl,
    /// What came of it.
    pub outcome: FetchOutcome,
    /// From sending the request to the last byte read: politeness waits a multiple of this.
    pub took: Millis,
    /// How long the TCP connection took to stand, in microseconds, if it was made for this request.
    pub connect_us: Option<u32>,
    /// From sending the request to the first byte of the answer, in microseconds; none if there was no answer.
    pub first_byte_us: Option<u32>,
    /// Bytes of the body as they came over the wire.
    pub wire_bytes: u64,
    /// The `Server` header, cut at 64 characters and cleaned of control characters.
    pub software: Option<String>,
    /// `Retry-After`, in milliseconds, between 1 s and 24 h.
    pub retry_after: Option<Millis>,
}

impl FetchReport {
    /// Download and evaluation together: how long the access took (TWOMA TW-10).
    pub fn access(&self) -> Millis {
        let evaluation = match &self.outcome {
            FetchOutcome::Page { page, .. } => page.evaluation.as_ref().map_or(0, |evaluated| evaluated.took_us),
            _ => 0,
        };
        self.took.saturating_add(Millis::from(evaluation.div_ceil(1000)))
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// 2xx with HTML.
    Page {
        /// The status.
        status: u16,
        /// What the page says.
        page: PageFacts,
    },
    /// 2xx with something else; the body was not read.
    NotHtml {
        /// The status.
        status: u16,
        /// The content type without parameters, cut at 64 characters.
        content_type: String,
    },
    /// robots.txt came with this status and body.
    Robots {
        /// The status.
        status: u16,
        /// The body, at most 500 KiB.
        body: Bytes,
    },
    /// 304: the page is the version that the order named.
    NotModified {
        /// What the server says of that version now.
        validators: Validators,
        /// `noindex` by X-Robots-Tag.
        no_index: bool,
        /// `nofollow` by X-Robots-Tag.
        no_follow: bool,
    },
    /// 3xx with a usable `Location`.
    Redirect {
        /// The status.
        status: u16,
        /// Where to, resolved against the URL asked for, with its fingerprint.
        to: Link,
    },
    /// Any other status.
    Status(u16),
    /// No usable answer.
    Failed(FetchError),
}

/// A link as it was named: where to, and its fingerprint under the swarm's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub url: PageUrl,
    /// The keyed fingerprint of the URL's text.
    pub fingerprint: Fingerprint,
}

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFacts {
    /// Where it links to, in document order, each URL once.
    pub links: Links,
    /// Size after decoding, in bytes.
    pub decoded_bytes: u64,
    /// `noindex` by meta or X-Robots-Tag.
    pub no_index: bool,
    /// `nofollow` by meta or X-Robots-Tag: the links are empty then.
    pub no_follow: bool,
    /// What the server says of its version.
    pub validators: Validators,
    /// What its content is ([`super::revisit::content_of`]).
    pub content: u64,
    /// What came of looking for failures in it, if that was wanted.
    pub evaluation: Option<Evaluated>,
}

/// Why a request brought no usable answer. Journals and messages name these by their place: new ones stand at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum FetchError {
    /// The address or port is not one that this access point may contact; nothing was sent.
    #[error("the address or port is not one that may be contacted")]
    ForbiddenAddress,
    /// Connecting was refused.
    #[error("it refused the connection")]
    ConnectionRefused,
    /// No route, or the network said no.
    #[error("no route to it")]
    Unreachable,
    /// Connecting took too long.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The certificate does not hold for another reason than the ones named below.
    #[error("its certificate is not valid")]
    BadCertificate,
    /// TLS broke off otherwise: by an alert, or because the server closed.
    #[error("the TLS handshake failed")]
    TlsFailed,
    /// TLS took too long.
    #[error("the TLS handshake took too long")]
    TlsTimeout,
    /// The head of the answer took too long.
    #[error("the head of its response took too long")]
    HeadTimeout,
    /// The body stalled, or all of it took too long.
    #[error("the body of its response took too long")]
    BodyTimeout,
    /// The server closed before the answer was whole.
    #[error("it closed the connection before its response was complete")]
    Closed,
    /// What came is not HTTP.
    #[error("its response is not HTTP")]
    NotHttp,
    /// More headers than allowed.
    #[error("the head of its response was longer than allowed")]
    HeadTooLarge,
    /// The body is longer than allowed, or comes in endless crumbs.
    #[error("its response was longer than allowed")]
    BodyTooLarge,
    /// The body unpacks to more than allowed: a bomb.
    #[error("its response decompressed to more than allowed")]
    DecodedTooLarge,
    /// The content encoding is unknown, nested or broken.
    #[error("the content encoding of its response is unknown or broken")]
    BadEncoding,
    /// A redirect without a usable target.
    #[error("its redirect has no usable target")]
    BadRedirect,
    /// The daemon is stopping, or lost the right to ask.
    #[error("the request was cancelled")]
    Cancelled,
    /// The certificate's time is over, or has not come.
    #[error("its certificate has expired or is not valid yet")]
    CertificateExpired,
    /// The certificate is for other hosts.
    #[error("its certificate is for another host")]
    CertificateForOther,
    /// Nobody whom we trust has signed the certificate.
    #[error("its certificate is not signed by a trusted authority")]
    UnknownIssuer,
    /// Too old or too odd a TLS, or none at all.
    #[error("it offers no supported TLS version")]
    TlsProtocol,
    /// A guard in front of the server wants to see a human: not down, but no page either.
    #[error("a challenge in front of it demands a human visitor")]
    Challenged,
    /// The program failed while it asked or read the answer: a fault of nearcrawl, which says nothing of the server.
    #[error("nearcrawl itself failed while it asked or read the answer")]
    Crashed,
}

impl FetchError {
    /// The kind in one word, as JSON has it.
    pub fn word(self) -> String {
        kebab(&self)
    }
}

impl ResolveError {
    /// The kind in one word, as JSON has it.
    pub fn word(self) -> String {
        kebab(&self)
    }
}

/// `HeadTimeout` → `head-timeout`.
fn kebab(kind: &dyn std::fmt::Debug) -> String {
    let mut word = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// How nearness is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// The least of three TCP connects to the port in use.
    #[default]
    Tcp,
    /// The time of one `HEAD /robots.txt`, from sending it to the answer's head.
    HttpHead,
}

/// Whom to probe.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeTarget {
    /// Address and port.
    pub address: SocketAddr,
    /// The host that lives there, for the Host header.
    pub host: Host,
    /// Whether the URL was https (a `http-head` probe then asks over TLS).
    pub secure: bool,
}

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The round trip in microseconds, or why there is none.
    pub rtt_us: Result<u32, FetchError>,
    /// How long the contact lasted: politeness waits a multiple of this.
    pub took: Millis,
}

/// Why a host has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveError {
    /// NXDOMAIN.
    #[error("no such name")]
    NoSuchName,
    /// The name exists but has no A or AAAA.
    #[error("the name has no address")]
    NoAddress,
    /// SERVFAIL, REFUSED or a broken answer.
    #[error("the name server failed")]
    ServerFailed,
    /// No answer in time.
    #[error("the name server did not answer in time")]
    TimedOut,
    /// A chain of names that is too long or loops.
    #[error("the chain of aliases is too long or loops")]
    Looping,
    /// There are addresses, but none that this access point may contact.
    #[error("every address is private or special")]
    ForbiddenAddress,
    /// The program failed while it asked: a fault of nearcrawl, which says nothing of the name.
    #[error("nearcrawl itself failed while it asked for the name")]
    Crashed,
}

/// A host with the address that the swarm pinned for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocatedHost {
    /// The host.
    pub host: Host,
    /// The smallest allowed address of those it has.
    pub address: IpAddr,
    /// For how much longer the pin holds.
    pub valid_for: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_written_before_failures_were_told_apart_further_can_be_read() {
        for (place, failure) in [
            (0, FetchError::ForbiddenAddress),
            (4, FetchError::BadCertificate),
            (16, FetchError::Cancelled),
            (17, FetchError::CertificateExpired),
            (21, FetchError::Challenged),
            (22, FetchError::Crashed),
        ] {
            assert_eq!(postcard::to_allocvec(&failure).unwrap(), [place], "{failure:?}");
            assert_eq!(serde_json::to_value(failure).unwrap(), failure.word());
        }
    }
}
