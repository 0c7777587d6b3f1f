//! Where does a reference lead? Exactly where the URL standard says; most references are plain enough to be put together
//! without parsing, ten times faster.

use super::{LONGEST_REFERENCE, PageUrl, UrlRefusal, host::canonical_name};
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

    /// Resolves a reference. `encoding` turns what is not ASCII in a query into bytes, as the page's character encoding
    /// demands; none is UTF-8.
    pub fn join(&mut self, reference: &str, encoding: Option<QueryEncoding<'_>>) -> Result<PageUrl, UrlRefusal> {
        if let Some(result) = quickly(&self.page, reference) {
            return result;
        }
        let base = match self.parsed.take() {
            Some(base) => base,
            None => Box::new(self.page.to_url()?),
        };
        let result = exactly(&base, reference, encoding);
        self.parsed = Some(base);
        result
    }
}

/// The way of the URL standard.
pub(super) fn exactly(base: &url::Url, reference: &str, encoding: Option<QueryEncoding<'_>>) -> Result<PageUrl, UrlRefusal> {
    if reference.len() > LONGEST_REFERENCE {
        return Err(UrlRefusal::TooLong);
    }
    let options = url::Url::options().base_url(Some(base)).encoding_override(encoding);
    PageUrl::canonical(options.parse(reference).map_err(|_| UrlRefusal::Malformed)?)
}

/// What a byte of a reference means to the quick way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    /// Stays as it is, in a path and in a query.
    Plain,
    /// `/`, `.`, `?`, `%` or `:`: stays, but needs a look at its neighbours.
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
    table
};

/// Resolves a plain reference by putting texts together, or says none: then the exact way must be taken.
/// That both agree wherever this one answers is tested with random references.
pub(super) fn quickly(base: &PageUrl, reference: &str) -> Option<Result<PageUrl, UrlRefusal>> {
    // Nobody follows a fragment; where it begins is the same for both ways.
    let reference = match memchr(b'#', reference.as_bytes()) {
        Some(at) => &reference[..at],
        None => reference,
    };
    let bytes = reference.as_bytes();
    match bytes {
        [] | [b'?', ..] => None,
        [b'/', b'/', ..] => None,
        [b'/', ..] => {
            let origin = base.origin_str();
            append(origin, base.host_end(), base.path_start(), reference)
        }
        _ if bytes.len() > 7 && (reference.starts_with("http://") || reference.starts_with("https://")) => absolute(base, reference),
        _ => relative(base, reference),
    }
}

/// `https://name/path`: the host must be an ordinary name and the port not named.
fn absolute(base: &PageUrl, reference: &str) -> Option<Result<PageUrl, UrlRefusal>> {
    let origin = base.origin_str();
    // Most absolute links stay on their own site, whose host is known to be good.
    if let Some(path) = reference.strip_prefix(origin)
        && path.starts_with('/')
    {
        return append(origin, base.host_end(), base.path_start(), path);
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
    append(&reference[..host_end], host_end, host_end, &reference[host_end..])
}

/// `page.html`, `folder/page.html`, `../page.html`.
fn relative(base: &PageUrl, mut reference: &str) -> Option<Result<PageUrl, UrlRefusal>> {
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
    // A colon may end a scheme, an empty rest and dots are left to the exact way.
    let first = reference.as_bytes().first()?;
    if matches!(first, b'.' | b'/' | b'?') || memchr(b':', reference.as_bytes()).is_some() {
        return None;
    }
    append(&base.as_str()[..path_start + folder.len()], base.host_end(), path_start, reference)
}

/// Puts `rest` behind `head`, if every byte of it stays what it is. `rest` stands where a path segment begins, or begins
/// with the slash of one.
fn append(head: &str, host_end: usize, path_start: usize, rest: &str) -> Option<Result<PageUrl, UrlRefusal>> {
    if rest.len() > LONGEST_REFERENCE {
        return Some(Err(UrlRefusal::TooLong));
    }
    let bytes = rest.as_bytes();
    let mut query_at = None;
    for (at, &byte) in bytes.iter().enumerate() {
        match BYTES[usize::from(byte)] {
            Byte::Plain => {}
            Byte::Odd => return None,
            Byte::Look => match byte {
                b'?' if query_at.is_none() => query_at = Some(at),
                // A segment that begins with a dot, even an escaped one, may be a step up.
                b'.' if query_at.is_none() && (at == 0 || bytes[at - 1] == b'/') => return None,
                b'%' if query_at.is_none() && matches!(bytes.get(at + 1..at + 3), Some(b"2e" | b"2E")) => return None,
                _ => {}
            },
        }
    }
    let mut text = String::with_capacity(head.len() + rest.len());
    text.push_str(head);
    text.push_str(rest);
    let path_end = query_at.map_or(text.len(), |at| head.len() + at);
    Some(PageUrl::checked(text, host_end, path_start, path_end))
}
