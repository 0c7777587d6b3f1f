//! Requests to web servers and the DNS, and their outcomes.
//!
//! Every outcome is typed, so that a refusal is not taken for a failure of the server.

use super::{
    access_point::AccessPoint,
    evaluation::Evaluated,
    facts::{Fact, FrontPage},
    links::{Link, Links},
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
    /// The URL requested.
    pub url: PageUrl,
    /// The address to connect to; the port comes from the URL.
    pub address: IpAddr,
    /// Whether it is a page or robots.txt.
    pub purpose: FetchPurpose,
    /// The validators of the version known from the run before: if it is still current, the server answers 304 without a body.
    pub validators: Validators,
    /// Whether the page may be the server's front page: what it says of itself is wanted.
    pub front: bool,
    /// Whether it is evaluated though the configuration does not say so.
    pub evaluate: bool,
    /// Why it is sent, for the log of requests.
    pub reason: FetchReason,
}

/// By which rule a server is asked for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FetchRule {
    /// robots.txt, before anything else is asked there.
    #[default]
    Robots,
    /// It is a starting URL.
    Start,
    /// A link led to it.
    Link,
    /// A redirect led to it.
    Redirect,
    /// It was asked for a moment ago in vain, for a reason that may be of the network or the moment.
    SecondTry,
    /// The proof of an opt-out is looked for.
    OptOut,
}

impl FetchRule {
    /// The rule's name in kebab case, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            FetchRule::Robots => "robots",
            FetchRule::Start => "start",
            FetchRule::Link => "link",
            FetchRule::Redirect => "redirect",
            FetchRule::SecondTry => "second-try",
            FetchRule::OptOut => "opt-out",
        }
    }
}

/// Why a server is asked for something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchReason {
    /// By which rule.
    pub rule: FetchRule,
    /// Links from a starting URL; 0 of robots.txt.
    pub level: u8,
    /// The host that the site tree is named after; none in a request that no crawl has made.
    pub tree: Option<Host>,
    /// Which run of the site it is, from 1: the first visits are of run 1.
    pub run: u32,
    /// Living surveys that the host belongs to, a few of them.
    pub surveys: Vec<String>,
}

/// What came of a [`FetchOrder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchReport {
    /// The request.
    pub url: PageUrl,
    /// How it ended.
    pub outcome: FetchOutcome,
    /// Milliseconds from sending the request to the last byte read; the pause before the next request is a multiple of this.
    pub took: Millis,
    /// Duration of the TCP connect, in microseconds; none if an open connection was used.
    pub connect_us: Option<u32>,
    /// From sending the request to the first byte of the answer, in microseconds; none if there was no answer.
    pub first_byte_us: Option<u32>,
    /// Bytes of the body as they came over the wire.
    pub wire_bytes: u64,
    /// The `Server` header, cut at 64 characters and cleaned of control characters.
    pub software: Option<String>,
    /// The `Retry-After` header in milliseconds, cut to 1 s to 24 h; none if there was none.
    pub retry_after: Option<Millis>,
    /// What the head of the answer and the connection say of the server, but for the distance.
    pub facts: Vec<Fact>,
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
        /// The HTTP status, 200 to 299.
        status: u16,
        /// What was read from the page.
        page: PageFacts,
    },
    /// 2xx with something else; the body was not read.
    NotHtml {
        /// The HTTP status, 200 to 299.
        status: u16,
        /// The content type without parameters, cut at 64 characters.
        content_type: String,
    },
    /// robots.txt came with this status and body.
    Robots {
        /// The HTTP status of the answer, whatever its class.
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
        /// The HTTP status, 300 to 399.
        status: u16,
        /// Where to, resolved against the URL asked for, with its fingerprint.
        to: Link,
    },
    /// Any other status.
    Status(u16),
    /// No usable answer: the request failed for this reason.
    Failed(FetchError),
}

/// The media type of a page. Journals store the index of the variant, so new ones go to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageType {
    /// `text/html`.
    Html,
    /// `application/xhtml+xml`.
    Xhtml,
}

impl PageType {
    /// The type that a content type without parameters names, in lower case; none if that is no page's.
    pub fn of(content_type: &str) -> Option<PageType> {
        match content_type {
            "text/html" => Some(PageType::Html),
            "application/xhtml+xml" => Some(PageType::Xhtml),
            _ => None,
        }
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            PageType::Html => "text/html",
            PageType::Xhtml => "application/xhtml+xml",
        }
    }
}

/// As what a page came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Served {
    /// As what the server sent it.
    pub said: PageType,
    /// What it is by its beginning; none if that is neither.
    pub detected: Option<PageType>,
}

/// What was read from a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageFacts {
    /// The URLs that it links to, in document order, each once.
    pub links: Links,
    /// Size after decoding, in bytes.
    pub decoded_bytes: u64,
    /// `noindex` by meta or X-Robots-Tag.
    pub no_index: bool,
    /// `nofollow` by meta or X-Robots-Tag: the links are empty then.
    pub no_follow: bool,
    /// The validators that the server sent with it.
    pub validators: Validators,
    /// The hash of its content ([`super::revisit::content_of`]).
    pub content: u64,
    /// As what it came; none if that is not known.
    pub served: Option<Served>,
    /// Its accessibility evaluation; none if that is switched off.
    pub evaluation: Option<Evaluated>,
    /// What it says of itself, if that was wanted.
    pub front: Option<Box<FrontPage>>,
}

/// Why a request brought no usable answer. Journals and messages store the index of the variant, so new ones go to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum FetchError {
    /// The address or port is not one that this access point may contact; nothing was sent.
    #[error("the address or port is not one that may be contacted")]
    ForbiddenAddress,
    /// Connecting was refused.
    #[error("it refused the connection")]
    ConnectionRefused,
    /// There is no route to the address, or the network reported an error.
    #[error("no route to it")]
    Unreachable,
    /// Connecting took too long.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The certificate is not valid, for a reason that has no variant of its own below.
    #[error("its certificate is not valid")]
    BadCertificate,
    /// The TLS handshake failed otherwise: by an alert, or because the server closed the connection.
    #[error("the TLS handshake failed")]
    TlsFailed,
    /// TLS took too long.
    #[error("the TLS handshake took too long")]
    TlsTimeout,
    /// The head of the answer took too long.
    #[error("the head of its response took too long")]
    HeadTimeout,
    /// The body stalled, or took too long as a whole.
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
    /// The body is longer than allowed, or comes in too many tiny chunks.
    #[error("its response was longer than allowed")]
    BodyTooLarge,
    /// The body unpacks to more than allowed (a decompression bomb).
    #[error("its response decompressed to more than allowed")]
    DecodedTooLarge,
    /// The content encoding is unknown, nested or broken.
    #[error("the content encoding of its response is unknown or broken")]
    BadEncoding,
    /// A redirect without a usable target.
    #[error("its redirect has no usable target")]
    BadRedirect,
    /// The daemon is stopping, or may not ask this server any more.
    #[error("the request was cancelled")]
    Cancelled,
    /// The certificate has expired or is not valid yet.
    #[error("its certificate has expired or is not valid yet")]
    CertificateExpired,
    /// The certificate is valid for other hosts only.
    #[error("its certificate is for another host")]
    CertificateForOther,
    /// No trusted authority has signed the certificate.
    #[error("its certificate is not signed by a trusted authority")]
    UnknownIssuer,
    /// The server offers no TLS version or cipher suite that is supported, or does not speak TLS at all.
    #[error("it offers no supported TLS version")]
    TlsProtocol,
    /// A bot guard in front of the server answered with a challenge: the server is not down, but there is no page either.
    #[error("a challenge in front of it demands a human visitor")]
    Challenged,
    /// A task of nearcrawl panicked while it sent the request or read the answer: a fault of nearcrawl, which says nothing of the server.
    #[error("nearcrawl itself failed while it asked or read the answer")]
    Crashed,
    /// The name of the host leads to no address any more; nothing was sent.
    #[error("its name has no address any more")]
    NoAddress,
}

impl FetchError {
    /// The variant's name in kebab case, as in JSON.
    pub fn word(self) -> String {
        kebab(&self)
    }
}

impl FetchError {
    /// Whether it may be a fault of the network, or of the moment: asked again, the server may answer.
    pub fn is_transient(self) -> bool {
        use FetchError as E;
        matches!(
            self,
            E::ConnectionRefused | E::Unreachable | E::ConnectTimeout | E::TlsTimeout | E::HeadTimeout | E::BodyTimeout | E::Closed
        )
    }
}

impl ResolveError {
    /// Whether it says nothing of the name: asked again, the name servers may answer.
    pub fn is_transient(self) -> bool {
        match self {
            ResolveError::ServerFailed | ResolveError::TimedOut | ResolveError::Crashed => true,
            ResolveError::NoSuchName | ResolveError::NoAddress | ResolveError::Looping | ResolveError::ForbiddenAddress => false,
        }
    }

    /// The variant's name in kebab case, as in JSON.
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

/// How the distance to a server is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// The shortest of three TCP connects to the port in use.
    #[default]
    Tcp,
    /// The time of one `HEAD /robots.txt`, from sending the request to the head of the answer.
    HttpHead,
}

/// The target of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeTarget {
    /// Address and port.
    pub address: SocketAddr,
    /// A host at that address, for the Host header.
    pub host: Host,
    /// Whether the URL was https (a `http-head` probe then asks over TLS).
    pub secure: bool,
}

/// Why a server is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeReason {
    /// Its subnet has no owner, and is to get the nearest one. The steward who asked; none if that is this access point itself.
    Delegation(Option<AccessPoint>),
    /// It is a member's own web server, by which the way to that member is measured.
    Home(AccessPoint),
    /// It is in a survey's sample that every member probes once.
    Survey,
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The round-trip time in microseconds, or why it could not be measured.
    pub rtt_us: Result<u32, FetchError>,
    /// Milliseconds from the first to the last packet; the pause before the next request to the address is a multiple of this.
    pub took: Millis,
}

/// Why a host has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveError {
    /// The name server answered NXDOMAIN: the name does not exist.
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
    /// A task of nearcrawl panicked during the look-up: a fault of nearcrawl, which says nothing of the name.
    #[error("nearcrawl itself failed while it asked for the name")]
    Crashed,
}

/// A host with the address that the swarm pinned for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocatedHost {
    /// The host name, in canonical form.
    pub host: Host,
    /// The smallest allowed address of those it has.
    pub address: IpAddr,
    /// For how many more milliseconds the host stays pinned to this address.
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
            (23, FetchError::NoAddress),
        ] {
            assert_eq!(postcard::to_allocvec(&failure).unwrap(), [place], "{failure:?}");
            assert_eq!(serde_json::to_value(failure).unwrap(), failure.word());
        }
    }
}
