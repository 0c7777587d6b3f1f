//! Resolves a page's references to URLs, each once, in document order.

use super::{
    charset::Charset,
    entities,
    references::{HashedSet, Named, Reference},
};
use nearcrawl_model::{
    fingerprint::{AsTheyAre, FingerprintKey},
    links::Links,
    url::{LinkBase, PageUrl, QueryEncoding},
};
use std::borrow::Cow;

/// What was left out of a page's links, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// References that are no URL to be crawled: other schemes, malformed, too long, traps.
    pub refused: u32,
    /// References to pictures and other files of the same host, which are no pages.
    pub media: u32,
    /// References beyond the limits.
    pub cut: u32,
}

/// Resolves what the page named. At most `limit` links.
pub(super) fn resolve(
    named: &Named<'_>,
    charset: Charset,
    page: &PageUrl,
    key: &FingerprintKey,
    limit: usize,
    left_out: &mut LeftOut,
) -> Links {
    let query_encoding = charset.query_encoding();
    let encode = query_encoding.map(|encoding| for_any_text(move |text| encoding.encode(text).0));
    let encoding = encode.as_ref().map(|encode| encode as QueryEncoding<'_>);
    // A base that is no page is none: the page's own URL stands.
    let base = named.base.map(|value| entities::decode(charset.decode(value))).and_then(|text| page.join(&text).ok());
    let mut base = LinkBase::new(base.unwrap_or_else(|| page.clone()));
    let most = named.references.len().min(limit);
    let mut known = HashedSet::with_capacity_and_hasher(most, AsTheyAre::default());
    let mut links = Links::with_capacity(most);
    for reference in &named.references {
        if links.len() >= limit {
            left_out.cut = left_out.cut.saturating_add(1);
            continue;
        }
        let text = match reference {
            Reference::Raw(value) => entities::decode(charset.decode(value)),
            Reference::Decoded(text) => Cow::Borrowed(text.as_str()),
        };
        // An entity may have hidden that it is nothing but a fragment.
        if text.starts_with('#') {
            continue;
        }
        let added = links.add(&mut base, &text, encoding, |url| {
            // Elsewhere a picture still says that there is a server.
            if url.names_media() && url.host_str() == page.host_str() {
                left_out.media = left_out.media.saturating_add(1);
                return None;
            }
            let fingerprint = key.of(url.as_str());
            known.insert(fingerprint.0).then_some(fingerprint)
        });
        if added.is_err() {
            left_out.refused = left_out.refused.saturating_add(1);
        }
    }
    links
}

/// Tells the compiler that a closure's result lives as long as its argument, for any argument.
fn for_any_text<F: Fn(&str) -> Cow<'_, [u8]>>(encode: F) -> F {
    encode
}
