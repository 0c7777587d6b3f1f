//! The host of a URL: a name as the DNS knows it, or an address.

use super::UrlError;
use serde::{Deserialize, Serialize, Serializer};
use std::{fmt, net::IpAddr, str::FromStr, sync::Arc};

/// A host as it stands in a URL: a lower-case ASCII name without a trailing dot, or an IP address (IPv6 without brackets).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Host(Arc<str>);

impl Host {
    /// Takes over a text that is known to be canonical.
    pub(super) fn from_canonical(text: &str) -> Host {
        Host(text.into())
    }

    /// The canonical text: a lower-case name in ASCII (Punycode), or an IP address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address, if the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        // Only addresses have a colon or a digit at the end: the canonical form spares most names the attempt.
        let last = self.0.bytes().next_back()?;
        if self.0.contains(':') || last.is_ascii_digit() { self.0.parse().ok() } else { None }
    }

    /// Whether this host is `ancestor` or one of its subdomains, on a label boundary (LL-4, LL-20). Addresses have no
    /// subdomains, and a public suffix (`co.ke`, `blogspot.com`) is no host's ancestor but its own.
    pub fn is_within(&self, ancestor: &Host) -> bool {
        if self == ancestor {
            return true;
        }
        let Some(head) = self.0.strip_suffix(&*ancestor.0) else { return false };
        head.ends_with('.') && self.address().is_none() && ancestor.registrable().is_some()
    }

    /// The name one label up (`a.b.ke` → `b.ke`), if there is one and it is not a public suffix.
    pub fn parent(&self) -> Option<Host> {
        if self.address().is_some() {
            return None;
        }
        let (_, rest) = self.0.split_once('.')?;
        psl::domain_str(rest).map(|_| Host(rest.into()))
    }

    /// This host without a leading `www.`: the name of the tree that starts here, so that both spellings of a site are one tree
    /// (LL-20). `www.` stays where only a public suffix would be left (`www.co.ke`), or no dot.
    pub fn without_www(&self) -> Host {
        let mut name = &*self.0;
        while let Some(rest) = name.strip_prefix("www.")
            && psl::domain_str(rest).is_some()
        {
            name = rest;
        }
        if name.len() == self.0.len() { self.clone() } else { Host(name.into()) }
    }

    /// Whether a tree of this name may start here. Trees that journals of earlier versions opened keep their `www.` for their run.
    pub fn may_start(&self, tree: &Host) -> bool {
        self == tree || self.without_www() == *tree
    }

    /// The registered part (`a.b.co.ke` → `b.co.ke`); none for an address and for a public suffix.
    /// Under an unknown zone, the last label is the public suffix.
    pub fn registrable(&self) -> Option<&str> {
        if self.address().is_some() { None } else { psl::domain_str(&self.0) }
    }

    /// The last label (`ke`), or none for an address.
    pub fn tld(&self) -> Option<&str> {
        if self.address().is_some() { None } else { self.0.rsplit('.').next() }
    }
}

/// The canonical text of a host that the url crate has parsed.
pub(super) fn canonical_text(host: &url::Host<&str>) -> Result<String, UrlError> {
    match host {
        url::Host::Domain(name) => Ok(canonical_name(name)?.to_owned()),
        url::Host::Ipv4(address) => Ok(address.to_string()),
        // As the URL standard writes it, which is not always as the standard library does.
        url::Host::Ipv6(_) => Ok(host.to_string().trim_matches(['[', ']']).to_owned()),
    }
}

/// A domain without its trailing dot, if it can be a name in the DNS. The URL standard lets many more characters pass than
/// names have; nothing that is refused here resolves anywhere.
pub(super) fn canonical_name(name: &str) -> Result<&str, UrlError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let letters = |label: &str| label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
    let fits = name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()) && letters(label));
    if fits { Ok(name) } else { Err(UrlError::Host) }
}

impl FromStr for Host {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A name of 253 bytes may be written longer (percent-encoded, in other scripts), but not without end.
        if text.len() > 2048 {
            return Err(UrlError::Host);
        }
        let bracketed = text.contains(':') && !text.starts_with('[');
        let parsed = if bracketed { url::Host::parse(&format!("[{text}]")) } else { url::Host::parse(text) };
        let parsed = parsed.map_err(|_| UrlError::Host)?;
        let borrowed = match &parsed {
            url::Host::Domain(name) => url::Host::Domain(name.as_str()),
            url::Host::Ipv4(address) => url::Host::Ipv4(*address),
            url::Host::Ipv6(address) => url::Host::Ipv6(*address),
        };
        Ok(Host(canonical_text(&borrowed)?.into()))
    }
}

impl TryFrom<String> for Host {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.0.as_ref().to_owned()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.0)
    }
}
