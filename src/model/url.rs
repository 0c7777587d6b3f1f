//! Which page, on which host? URLs and hosts in one canonical form, so that equal pages are equal texts.

use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, str::FromStr, sync::Arc};

/// The longest URL that is followed, in bytes.
pub const LONGEST_URL: usize = 2048;

/// Why a text is not a URL that this crawler follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum UrlRefusal {
    /// Not a URL at all.
    #[error("not a URL")]
    Malformed,
    /// `mailto:`, `javascript:`, `ftp:` and the like.
    #[error("only http and https are crawled")]
    Scheme,
    /// Longer than [`LONGEST_URL`].
    #[error("longer than {LONGEST_URL} bytes")]
    TooLong,
    /// No host, or one that cannot be a name in the DNS.
    #[error("no usable host name")]
    Host,
}

/// A host as it stands in a URL: a lower-case ASCII name without a trailing dot, or an IP address (IPv6 without brackets).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Host(Arc<str>);

impl Host {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address, if the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    /// Whether this host is `ancestor` or one of its subdomains, on a label boundary. Addresses have no subdomains, and a
    /// public suffix (`co.ke`, `blogspot.com`) is nobody's ancestor but its own.
    pub fn is_within(&self, ancestor: &Host) -> bool {
        if self == ancestor {
            return true;
        }
        let Some(head) = self.0.strip_suffix(&*ancestor.0) else { return false };
        head.ends_with('.') && self.address().is_none() && psl::domain_str(&ancestor.0).is_some()
    }

    /// The name one label up (`a.b.ke` → `b.ke`), if there is one and it is not a public suffix.
    pub fn parent(&self) -> Option<Host> {
        if self.address().is_some() {
            return None;
        }
        let (_, rest) = self.0.split_once('.')?;
        psl::domain_str(rest).map(|_| Host(rest.into()))
    }

    /// The last label (`ke`), or none for an address.
    pub fn tld(&self) -> Option<&str> {
        if self.address().is_some() { None } else { self.0.rsplit('.').next() }
    }
}

impl FromStr for Host {
    type Err = UrlRefusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bracketed = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
        match url::Host::parse(&bracketed).map_err(|_| UrlRefusal::Host)? {
            url::Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                let fits = !name.is_empty() && name.len() <= 253 && name.split('.').all(|l| (1..=63).contains(&l.len()));
                if fits { Ok(Host(name.into())) } else { Err(UrlRefusal::Host) }
            }
            url::Host::Ipv4(ip) => Ok(Host(ip.to_string().into())),
            url::Host::Ipv6(ip) => Ok(Host(ip.to_string().into())),
        }
    }
}

impl TryFrom<String> for Host {
    type Error = UrlRefusal;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
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

/// The URL of a page, canonical: scheme and host in lower case, no user information, no fragment, no default port, path
/// never empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageUrl(url::Url);

impl PageUrl {
    /// Reads an absolute URL.
    pub fn parse(text: &str) -> Result<PageUrl, UrlRefusal> {
        Self::canonical(url::Url::parse(text.trim()).map_err(|_| UrlRefusal::Malformed)?)
    }

    /// Resolves a reference found on this page.
    pub fn join(&self, reference: &str) -> Result<PageUrl, UrlRefusal> {
        Self::canonical(self.0.join(reference.trim()).map_err(|_| UrlRefusal::Malformed)?)
    }

    fn canonical(mut url: url::Url) -> Result<PageUrl, UrlRefusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlRefusal::Scheme);
        }
        let host: Host = url.host_str().ok_or(UrlRefusal::Host)?.trim_matches(['[', ']']).parse()?;
        url.set_fragment(None);
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if url.domain().is_some_and(|d| d != host.as_str()) {
            url.set_host(Some(host.as_str())).map_err(|_| UrlRefusal::Host)?;
        }
        if url.as_str().len() > LONGEST_URL {
            return Err(UrlRefusal::TooLong);
        }
        Ok(PageUrl(url))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host.
    pub fn host(&self) -> Host {
        Host(self.0.host_str().unwrap_or_default().trim_matches(['[', ']']).into())
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> Origin {
        Origin { secure: self.0.scheme() == "https", host: self.host(), port: self.port() }
    }

    /// The port, with the scheme's default filled in.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(80)
    }

    /// The path, beginning with `/`.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query without its `?`, if there is one.
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// Path and query: what stands in the request line, and what robots.txt speaks of.
    pub fn path_and_query(&self) -> &str {
        &self.0[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The script that a query URL asks (LL-7): the URL without its query. None for a URL without one.
    pub fn script(&self) -> Option<&str> {
        self.0.query().map(|_| &self.0[..url::Position::AfterPath])
    }

    /// The root page of the same origin.
    pub fn root(&self) -> PageUrl {
        let mut url = self.0.clone();
        url.set_query(None);
        url.set_path("/");
        PageUrl(url)
    }
}

impl TryFrom<String> for PageUrl {
    type Error = UrlRefusal;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        PageUrl::parse(&text)
    }
}

impl From<PageUrl> for String {
    fn from(url: PageUrl) -> Self {
        url.0.into()
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageUrl({})", self.0)
    }
}

/// What robots.txt and a connection belong to: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Whether it is https.
    pub secure: bool,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// A page of this origin; `path` begins with `/`.
    pub fn page(&self, path: &str) -> Result<PageUrl, UrlRefusal> {
        PageUrl::parse(&format!("{self}{path}"))
    }

    /// What stands in the Host header and in URLs: brackets around IPv6, no default port.
    pub fn authority(&self) -> String {
        let host = self.host.as_str();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let default = if self.secure { 443 } else { 80 };
        if self.port == default { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}
