//! Scanner of HTML pages: where a page links to, and whether robots may index it and follow its links.
//!
//! One walk over the bytes, without a tree and without recursion: linear for any input. What is markup and what is text is
//! decided as the HTML standard's tokenizer decides it; the tests compare the two.

pub(crate) mod attributes;
mod blocks;
mod charset;
mod directives;
mod entities;
mod front;
mod raw_text;
mod references;
mod resolve;
pub(crate) mod tag;
pub(crate) mod tokens;

#[cfg(test)]
mod tests;

use charset::Charset;
use directives::Directives;
pub use front::front_page;
use nearcrawl_model::{fetch::PageFacts, fingerprint::FingerprintKey, links::Links, url::PageUrl};
use resolve::LeftOut;
use std::borrow::Cow;

/// How much of a page is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// The most links of one page; those behind are counted as cut.
    pub links: usize,
    /// The most different references of one page that are looked at: many may lead to one URL, or nowhere.
    pub references: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        ScanLimits { links: 10_000, references: 40_000 }
    }
}

/// A page as text, in the encoding that it or its header declares.
pub fn text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    let (charset, bytes) = Charset::of_page(bytes, content_type);
    charset.transcode(bytes).map_or_else(|| charset.decode(bytes), |(_, text)| text)
}

/// Reads a page: where it links to, in document order, each URL once, and what it says to robots.
///
/// `content_type` is the header as it came; `base` is the URL of the page. If the page says `nofollow`, there are no links.
pub fn scan(bytes: &[u8], content_type: Option<&str>, base: &PageUrl, key: &FingerprintKey, limits: ScanLimits) -> PageFacts {
    scan_counting(bytes, content_type, base, key, limits).0
}

/// Like [`scan`], and says what was left out.
pub(crate) fn scan_counting(
    bytes: &[u8],
    content_type: Option<&str>,
    base: &PageUrl,
    key: &FingerprintKey,
    limits: ScanLimits,
) -> (PageFacts, LeftOut) {
    let (charset, bytes) = Charset::of_page(bytes, content_type);
    let decoded_bytes = bytes.len() as u64;
    let transcoded;
    let (charset, bytes) = match charset.transcode(bytes) {
        Some((charset, text)) => {
            transcoded = text;
            (charset, transcoded.as_bytes())
        }
        None => (charset, bytes),
    };
    let named = references::collect(bytes, charset, key, limits.references);
    let mut left_out = LeftOut { refused: 0, media: 0, cut: named.cut };
    let links = if named.directives.no_follow {
        Links::default()
    } else {
        resolve::resolve(&named, charset, base, key, limits.links, &mut left_out)
    };
    let Directives { no_index, no_follow } = named.directives;
    (PageFacts { links, decoded_bytes, no_index, no_follow, ..PageFacts::default() }, left_out)
}
