//! Reads the head of an answer: content type, software, redirect target, `Retry-After`, and directives to robots.

use hyper::{
    HeaderMap, Version,
    header::{CONNECTION, CONTENT_TYPE, DATE, ETAG, HeaderName, LAST_MODIFIED, LOCATION, RETRY_AFTER, SERVER},
};
use nearcrawl_model::{
    fetch::PageType,
    revisit::{MAX_VALIDATOR, Validators},
    time::Millis,
    url::{PageUrl, UrlError},
};
use std::time::SystemTime;

/// `Retry-After` counts for at least this long.
const MIN_RETRY: Millis = 1_000;

/// `Retry-After` counts for at most this long.
pub const MAX_RETRY_AFTER: Millis = 24 * 60 * 60 * 1000;

/// Texts of servers are cut here, in characters.
const MAX_WORD: usize = 64;

/// A server's text without control characters, cut at 64 characters; none if nothing is left.
fn word(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let clean: String = text.trim().chars().filter(|c| !c.is_control()).take(MAX_WORD).collect();
    (!clean.is_empty()).then_some(clean)
}

/// The `Server` header, cut and cleaned of control characters.
pub fn software(headers: &HeaderMap) -> Option<String> {
    word(headers.get(SERVER)?.as_bytes())
}

/// The content type in lower case without parameters, cut at 64 characters; empty if there is none.
pub fn content_type(headers: &HeaderMap) -> String {
    let bytes = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let essence = bytes.split(|byte| *byte == b';').next().unwrap_or_default();
    word(&essence.to_ascii_lowercase()).unwrap_or_default()
}

/// Whether a content type is one that is read.
pub fn is_html(content_type: &str) -> bool {
    PageType::of(content_type).is_some()
}

/// `Retry-After` in milliseconds: seconds, or a date judged by the server's own clock if it tells.
pub fn retry_after(headers: &HeaderMap) -> Option<Millis> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let millis = if is_number(text) {
        text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000)
    } else if text.strip_prefix('-').is_some_and(is_number) {
        0
    } else {
        let until = httpdate::parse_http_date(text).ok()?;
        let date = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        let wait = until.duration_since(date.unwrap_or_else(SystemTime::now)).unwrap_or_default();
        Millis::try_from(wait.as_millis()).unwrap_or(Millis::MAX)
    };
    Some(millis.clamp(MIN_RETRY, MAX_RETRY_AFTER))
}

/// What the server says of the version of the page. What is too long or no plain text is left out.
pub fn validators(headers: &HeaderMap) -> Validators {
    let text = |name| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (1..=MAX_VALIDATOR).contains(&value.len()).then(|| value.to_owned())
    };
    // A malformed date is not stored: the server could not read it in `If-Modified-Since` either.
    let last_modified = text(LAST_MODIFIED).filter(|date| httpdate::parse_http_date(date).is_ok());
    Validators { etag: text(ETAG), last_modified }
}

/// Whether the server keeps the connection after this answer.
pub fn keeps_open(version: Version, headers: &HeaderMap) -> bool {
    let says = |word: &[u8]| {
        let values = headers.get_all(CONNECTION).iter();
        values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).any(|token| token.trim_ascii().eq_ignore_ascii_case(word))
    };
    if version == Version::HTTP_10 { says(b"keep-alive") } else { !says(b"close") }
}

/// Why a redirect has no usable target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// There is no `Location`.
    #[error("no Location")]
    Missing,
    /// There are several different ones.
    #[error("several different Locations")]
    Ambiguous,
    /// Its target is no URL that is crawled.
    #[error(transparent)]
    Refused(#[from] UrlError),
}

/// Where a redirect leads, resolved against the URL that was asked for.
pub fn location(headers: &HeaderMap, asked: &PageUrl) -> Result<PageUrl, LocationError> {
    let mut values = headers.get_all(LOCATION).iter();
    let first = values.next().ok_or(LocationError::Missing)?;
    if values.any(|other| other != first) {
        return Err(LocationError::Ambiguous);
    }
    let bytes = first.as_bytes().trim_ascii();
    if bytes.is_empty() {
        return Err(LocationError::Missing);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(asked.join(text)?),
        // Old servers send their file names as they are on disk: such bytes mean themselves.
        Err(_) => {
            let escaped: String =
                bytes.iter().map(|b| if b.is_ascii() { char::from(*b).to_string() } else { format!("%{b:02X}") }).collect();
            Ok(asked.join(&escaped)?)
        }
    }
}

/// The directives of the `X-Robots-Tag` headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RobotsTag {
    /// The page's content is not to be used.
    pub no_index: bool,
    /// The page's links are not to be followed.
    pub no_follow: bool,
}

/// Reads all `X-Robots-Tag` headers, those for all robots and those for `product`.
pub fn robots_tag(headers: &HeaderMap, product: &str) -> RobotsTag {
    const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
    let mut found = RobotsTag::default();
    for value in headers.get_all(X_ROBOTS_TAG) {
        let mut for_us = true;
        for part in String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase().split(',') {
            let mut rule = part.trim();
            if let Some((name, rest)) = rule.split_once(':') {
                let name = name.trim();
                // These carry a value of their own; any other word before a colon is a robot's name, and what follows is for it.
                if matches!(name, "unavailable_after" | "max-snippet" | "max-image-preview" | "max-video-preview") {
                    continue;
                }
                for_us = name.eq_ignore_ascii_case(product) || name == "*";
                rule = rest.trim();
            }
            if for_us {
                found.no_index |= matches!(rule, "noindex" | "none");
                found.no_follow |= matches!(rule, "nofollow" | "none");
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
