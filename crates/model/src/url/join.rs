//! Resolves references against a base URL, exactly as the URL standard says.
//!
//! Most references are plain enough to be put together without parsing, ten times faster.

use super::{MAX_REFERENCE, PageUrl, Parts, UrlError, host::canonical_name};
use memchr::{memchr, memrchr};
use std::borrow::Cow;

/// Turns a text into the bytes that a query holds, when the page is not in UTF-8.
pub type QueryEncoding<'a> = &'a dyn Fn(&str) -> Cow<'_, [u8]>;

/// What the references of one page are resolved against; parsed at most once.
#[derive(Clone, Debug)]
pub struct LinkBase {
    page: PageUrl,
    /// Made when the first reference needs it.
    parsed: Option<Box<url::Url>>,
}

impl LinkBase {
    /// The base is this page, or what its `<base href>` says.
    pub fn new(page: PageUrl) -> LinkBase {
        LinkBase { page, parsed: None }
    }

    /// The base itself.
    pub fn page(&self) -> &PageUrl {
        &self.page
    }

    /// Resolves a reference and writes the URL behind what `into` holds; if there is none, `into` stays as it was. `encoding` turns what
    /// is not ASCII in a query into bytes, as the page's character encoding demands; none is UTF-8.
    pub(crate) fn join_into(&mut self, reference: &str, encoding: Option<QueryEncoding<'_>>, into: &mut String) -> Result<Parts, UrlError> {
        if let Some(result) = quickly(&self.page, reference, into) {
            return result;
        }
        let base = match self.parsed.take() {
            Some(base) => base,
            None => Box::new(self.page.to_url()?),
        };
        let result = exactly(&base, reference, encoding);
        self.parsed = Some(base);
        let url = result?;
        into.push_str(url.as_str());
        Ok(url.parts())
    }
}

impl PageUrl {
    /// Resolves a reference found on this page. For many references on one page, [`LinkBase`] is cheaper.
    pub fn join(&self, reference: &str) -> Result<PageUrl, UrlError> {
        let mut text = String::new();
        match quickly(self, reference, &mut text) {
            Some(parts) => parts.map(|parts| PageUrl::of_parts(text, parts)),
            None => exactly(&self.to_url()?, reference, None),
        }
    }
}

/// The way of the URL standard.
pub(super) fn exactly(base: &url::Url, reference: &str, encoding: Option<QueryEncoding<'_>>) -> Result<PageUrl, UrlError> {
    if reference.len() > MAX_REFERENCE {
        return Err(UrlError::TooLong);
    }
    let options = url::Url::options().base_url(Some(base)).encoding_override(encoding);
    PageUrl::canonical(options.parse(reference).map_err(|_| UrlError::Malformed)?)
}

/// What a byte of a reference means to the quick way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    /// Stays as it is, in a path and in a query.
    Plain,
    /// `/`, `.`, `?`, `%`, `:` or `#`: needs a look at its neighbours.
    Look,
    /// Needs the exact way.
    Odd,
}

const BYTES: [Byte; 256] = {
    let mut table = [Byte::Odd; 256];
    let plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~!$&()*+,;=@";
    let mut i = 0;
    while i < plain.len() {
        table[plain[i] as usize] = Byte::Plain;
        i += 1;
    }
    table[b'/' as usize] = Byte::Look;
    table[b'.' as usize] = Byte::Look;
    table[b'?' as usize] = Byte::Look;
    table[b'%' as usize] = Byte::Look;
    table[b':' as usize] = Byte::Look;
    table[b'#' as usize] = Byte::Look;
    table
};

/// Resolves a plain reference by putting texts together, or says none: then the exact way must be taken.
/// That both agree wherever this one answers is tested with random references.
/// The URL is written behind what `into` holds.
pub(super) fn quickly(base: &PageUrl, reference: &str, into: &mut String) -> Option<Result<Parts, UrlError>> {
    match reference.as_bytes() {
        [] | [b'?' | b'#', ..] => None,
        [b'/', b'/', ..] => None,
        [b'/', ..] => append(Head { text: base.origin_str(), host_end: base.host_end(), path_start: base.path_start() }, reference, into),
        [b'h', ..] if reference.starts_with("http://") || reference.starts_with("https://") => absolute(base, reference, into),
        _ => relative(base, reference, into),
    }
}

/// What a URL begins with that is put together.
struct Head<'a> {
    text: &'a str,
    host_end: usize,
    path_start: usize,
}

/// `https://name/path`: the host must be an ordinary name and the port not named.
fn absolute(base: &PageUrl, reference: &str, into: &mut String) -> Option<Result<Parts, UrlError>> {
    let origin = base.origin_str();
    // Most absolute links stay on their own site, whose host is known to be good.
    if let Some(path) = reference.strip_prefix(origin)
        && path.starts_with('/')
    {
        return append(Head { text: origin, host_end: base.host_end(), path_start: base.path_start() }, path, into);
    }
    let host_start = if reference.starts_with("https") { 8 } else { 7 };
    let host_end = host_start + memchr(b'/', &reference.as_bytes()[host_start..])?;
    let host = &reference[host_start..host_end];
    // Names in other scripts must be checked by IDNA, and what ends in a number is an address in disguise.
    let last_label = host.rsplit('.').next()?;
    let ordinary = last_label.as_bytes().first()?.is_ascii_lowercase() && !host.contains("xn--") && canonical_name(host) == Ok(host);
    if !ordinary {
        return None;
    }
    append(Head { text: &reference[..host_end], host_end, path_start: host_end }, &reference[host_end..], into)
}

/// `page.html`, `folder/page.html`, `../page.html`.
fn relative(base: &PageUrl, mut reference: &str, into: &mut String) -> Option<Result<Parts, UrlError>> {
    let path_start = base.path_start();
    let path = base.path();
    let mut folder = &path[..=memrchr(b'/', path.as_bytes())?];
    loop {
        if let Some(rest) = reference.strip_prefix("../") {
            reference = rest;
            folder = match memrchr(b'/', &folder.as_bytes()[..folder.len() - 1]) {
                Some(at) => &folder[..=at],
                None => "/",
            };
        } else if let Some(rest) = reference.strip_prefix("./") {
            reference = rest;
        } else {
            break;
        }
    }
    // An empty rest and dots are left to the exact way.
    if matches!(reference.as_bytes().first()?, b'.' | b'/' | b'?' | b'#') {
        return None;
    }
    append(Head { text: &base.as_str()[..path_start + folder.len()], host_end: base.host_end(), path_start }, reference, into)
}

/// Puts `rest` behind `head`, if every byte of it stays what it is; fragments are not followed. `rest` stands where a path segment begins,
/// or begins with the slash of one.
fn append(head: Head<'_>, mut rest: &str, into: &mut String) -> Option<Result<Parts, UrlError>> {
    let bytes = rest.as_bytes();
    let mut query_at = None;
    for (at, &byte) in bytes.iter().enumerate() {
        match BYTES[usize::from(byte)] {
            Byte::Plain => {}
            Byte::Odd => return None,
            Byte::Look => match byte {
                b'#' => {
                    rest = &rest[..at];
                    break;
                }
                b'?' if query_at.is_none() => query_at = Some(at),
                // It may end a scheme.
                b':' if bytes[0] != b'/' => return None,
                // A segment that begins with a dot, even an escaped one, may be a step up.
                b'.' if query_at.is_none() && (at == 0 || bytes[at - 1] == b'/') => return None,
                b'%' if query_at.is_none() && matches!(bytes.get(at + 1..at + 3), Some(b"2e" | b"2E")) => return None,
                _ => {}
            },
        }
    }
    if rest.len() > MAX_REFERENCE {
        return Some(Err(UrlError::TooLong));
    }
    let start = into.len();
    into.reserve(head.text.len() + rest.len());
    into.push_str(head.text);
    into.push_str(rest);
    let text = &into[start..];
    let path_end = query_at.map_or(text.len(), |at| head.text.len() + at);
    let parts = Parts::checked(text, head.host_end, head.path_start, path_end);
    if parts.is_err() {
        into.truncate(start);
    }
    Some(parts)
}
