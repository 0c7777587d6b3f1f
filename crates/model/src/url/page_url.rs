//! URL of a page, as one text and three offsets into it: millions of these wait in frontiers, and a hundred stand on every page.

use super::{
    MAX_REFERENCE, MAX_URL, UrlError,
    host::{Host, canonical_name},
    medium::names_media,
    trap::is_trap,
};
use serde::{Deserialize, Serialize, Serializer};
use std::{fmt, hash};

/// The URL of a page, canonical: scheme and host in lower case, no user information, no fragment, no default port, path
/// never empty. At most [`MAX_URL`] bytes.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct PageUrl {
    text: Box<str>,
    parts: Parts,
}

/// A [`PageUrl`] whose text lies in a longer one.
#[derive(Clone, Copy)]
pub struct UrlRef<'a> {
    text: &'a str,
    parts: Parts,
}

/// Where the parts of a URL lie in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Where the host ends: a port or the path follows.
    host_end: u16,
    /// Where the path begins.
    path_start: u16,
    /// Where the path ends: the `?`, or the end of the text.
    path_end: u16,
}

impl Parts {
    /// The parts of a canonical text whose host is known to be good, if it is short enough and no trap.
    pub(super) fn checked(text: &str, host_end: usize, path_start: usize, path_end: usize) -> Result<Parts, UrlError> {
        if text.len() > MAX_URL {
            return Err(UrlError::TooLong);
        }
        if is_trap(&text[path_start..path_end]) {
            return Err(UrlError::TrapPath);
        }
        // All of them fit: the text is at most MAX_URL bytes long.
        let offset = |at: usize| u16::try_from(at).map_err(|_| UrlError::TooLong);
        Ok(Parts { host_end: offset(host_end)?, path_start: offset(path_start)?, path_end: offset(path_end)? })
    }
}

impl<'a> UrlRef<'a> {
    /// A text and where its parts lie.
    pub(crate) fn new(text: &'a str, parts: Parts) -> UrlRef<'a> {
        UrlRef { text, parts }
    }

    /// The whole text.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Whether the scheme is https.
    pub fn is_secure(self) -> bool {
        self.text.starts_with("https:")
    }

    /// The host as text, IPv6 without brackets.
    pub fn host_str(self) -> &'a str {
        let start = if self.is_secure() { "https://".len() } else { "http://".len() };
        let host = &self.text[start..usize::from(self.parts.host_end)];
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The host as a value of its own (a copy).
    pub fn host(self) -> Host {
        Host::from_canonical(self.host_str())
    }

    /// The path, beginning with `/`.
    pub fn path(self) -> &'a str {
        &self.text[usize::from(self.parts.path_start)..usize::from(self.parts.path_end)]
    }

    /// The query without its `?`, if there is one.
    pub fn query(self) -> Option<&'a str> {
        self.text[usize::from(self.parts.path_end)..].strip_prefix('?')
    }

    /// Whether the file name says that it is no HTML page: a picture, an archive, a style sheet. False for URLs with a query.
    pub fn names_media(self) -> bool {
        self.query().is_none() && names_media(self.path())
    }

    /// The same with a text of its own.
    pub fn to_url(self) -> PageUrl {
        PageUrl { text: self.text.into(), parts: self.parts }
    }
}

impl PageUrl {
    /// Reads an absolute URL.
    pub fn parse(text: &str) -> Result<PageUrl, UrlError> {
        if text.len() > MAX_REFERENCE {
            return Err(UrlError::TooLong);
        }
        Self::canonical(url::Url::parse(text).map_err(|_| UrlError::Malformed)?)
    }

    /// A text that is canonical, and where its parts are.
    pub(super) fn of_parts(text: String, parts: Parts) -> PageUrl {
        PageUrl { text: text.into(), parts }
    }

    /// Makes a URL of the url crate canonical.
    pub(super) fn canonical(mut url: url::Url) -> Result<PageUrl, UrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme);
        }
        if let url::Host::Domain(name) = url.host().ok_or(UrlError::Host)? {
            let canonical = canonical_name(name)?;
            if canonical.len() != name.len() {
                let canonical = canonical.to_owned();
                url.set_host(Some(&canonical)).map_err(|_| UrlError::Host)?;
            }
        }
        url.set_fragment(None);
        // These fail only for URLs without a host.
        url.set_username("").map_err(|()| UrlError::Host)?;
        url.set_password(None).map_err(|()| UrlError::Host)?;
        let (host_end, path_start) = (url[..url::Position::AfterHost].len(), url[..url::Position::BeforePath].len());
        let path_end = url[..url::Position::AfterPath].len();
        let text = String::from(url);
        let parts = Parts::checked(&text, host_end, path_start, path_end)?;
        Ok(PageUrl { text: text.into(), parts })
    }

    /// The same in a text that stays where it is.
    pub fn by_ref(&self) -> UrlRef<'_> {
        UrlRef { text: &self.text, parts: self.parts }
    }

    pub(crate) fn parts(&self) -> Parts {
        self.parts
    }

    /// As the url crate has it: for resolving what the quick way leaves open.
    pub(super) fn to_url(&self) -> Result<url::Url, UrlError> {
        url::Url::parse(&self.text).map_err(|_| UrlError::Malformed)
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the scheme is https.
    pub fn is_secure(&self) -> bool {
        self.by_ref().is_secure()
    }

    /// The host as text, IPv6 without brackets.
    pub fn host_str(&self) -> &str {
        self.by_ref().host_str()
    }

    /// The host as a value of its own (a copy).
    pub fn host(&self) -> Host {
        Host::from_canonical(self.host_str())
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> Origin {
        Origin { secure: self.is_secure(), host: self.host(), port: self.port() }
    }

    /// Scheme, host and port as text, without a slash at the end.
    pub fn origin_str(&self) -> &str {
        &self.text[..self.path_start()]
    }

    /// What stands in the Host header: host and port, brackets around IPv6, no default port.
    pub fn authority(&self) -> &str {
        &self.text[if self.is_secure() { "https://".len() } else { "http://".len() }..self.path_start()]
    }

    /// The port, with the scheme's default filled in.
    pub fn port(&self) -> u16 {
        let default = if self.is_secure() { 443 } else { 80 };
        self.text[self.host_end()..self.path_start()].strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(default)
    }

    /// The path, beginning with `/`.
    pub fn path(&self) -> &str {
        self.by_ref().path()
    }

    /// The query without its `?`, if there is one.
    pub fn query(&self) -> Option<&str> {
        self.by_ref().query()
    }

    /// Path and query: what stands in the request line, and what robots.txt speaks of.
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path_start()..]
    }

    /// The script that a query URL asks (LL-7): the URL without its query. None for a URL without one.
    pub fn script(&self) -> Option<&str> {
        self.query().map(|_| &self.text[..self.path_end()])
    }

    /// Whether the file name says that it is no HTML page: a picture, an archive, a style sheet. False for URLs with a query.
    pub fn names_media(&self) -> bool {
        self.by_ref().names_media()
    }

    /// The root page of the same origin.
    pub fn root(&self) -> PageUrl {
        let text = format!("{}/", self.origin_str());
        PageUrl { text: text.into(), parts: Parts { path_end: self.parts.path_start + 1, ..self.parts } }
    }

    pub(super) fn host_end(&self) -> usize {
        usize::from(self.parts.host_end)
    }

    pub(super) fn path_start(&self) -> usize {
        usize::from(self.parts.path_start)
    }

    fn path_end(&self) -> usize {
        usize::from(self.parts.path_end)
    }
}

// The offsets follow from the text, so the text alone says what is equal and what comes first.
impl PartialEq for PageUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PageUrl {}

impl PartialOrd for PageUrl {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PageUrl {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl hash::Hash for PageUrl {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl TryFrom<String> for PageUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        PageUrl::parse(&text)
    }
}

impl Serialize for PageUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl From<PageUrl> for String {
    fn from(url: PageUrl) -> Self {
        url.text.into()
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageUrl({})", self.text)
    }
}

/// What robots.txt and a connection belong to: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Whether it is https.
    pub secure: bool,
    /// The host, in canonical form.
    pub host: Host,
    /// The TCP port; the scheme's own if the URL named none.
    pub port: u16,
}

impl Origin {
    /// A page of this origin; `path` begins with `/`.
    pub fn page(&self, path: &str) -> Result<PageUrl, UrlError> {
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
