//! References of a page: all that a crawler may follow, each spelling once, and the directives to robots.

use super::{
    attributes::without_fragment,
    charset::Charset,
    directives::{Directives, PRODUCT_TOKEN},
    entities,
    tag::StartTag,
    tokens::StartTags,
};
use nearcrawl_model::fingerprint::{AsTheyAre, FingerprintKey};
use siphasher::sip::SipHasher13;
use std::{collections::HashSet, hash::Hasher};

/// A reference, unresolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    /// The value of an attribute, as it stands in the page.
    Raw(&'a [u8]),
    /// Taken from a longer value, already decoded.
    Decoded(String),
}

/// What the walk over a page brought.
#[derive(Debug, Default)]
pub(super) struct Named<'a> {
    /// In document order.
    pub references: Vec<Reference<'a>>,
    /// The first `<base href>`.
    pub base: Option<&'a [u8]>,
    /// What the page asks of robots.
    pub directives: Directives,
    /// References beyond the limit.
    pub cut: u32,
}

/// Room for as many references as most pages have.
const USUAL: usize = 112;

/// A set of values that are hashes already.
pub(super) type HashedSet = HashSet<u64, AsTheyAre>;

/// Walks over a page. Of its references, `limit` different ones are kept.
pub(super) fn collect<'a>(bytes: &'a [u8], charset: Charset, key: &FingerprintKey, limit: usize) -> Named<'a> {
    let mut named = Named { references: Vec::with_capacity(USUAL), ..Named::default() };
    let mut known = HashedSet::with_capacity_and_hasher(USUAL, AsTheyAre::default());
    // Keyed, so that no page can make many of its references fall into one place of the table.
    let mut add = |named: &mut Named<'a>, reference: Reference<'a>| {
        let text = match &reference {
            Reference::Raw(value) => value,
            Reference::Decoded(value) => value.as_bytes(),
        };
        if text.is_empty() {
            return;
        }
        let mut hasher = SipHasher13::new_with_key(&key.0);
        hasher.write(text);
        if known.contains(&hasher.finish()) {
            return;
        }
        if named.references.len() >= limit {
            named.cut = named.cut.saturating_add(1);
            return;
        }
        known.insert(hasher.finish());
        named.references.push(reference);
    };
    for tag in StartTags::new(bytes) {
        let value = match &tag.initials() {
            b"ar" if tag.is(b"area") => tag.attributes().get(b"href"),
            b"fr" if tag.is(b"frame") => tag.attributes().get(b"src"),
            b"if" if tag.is(b"iframe") => tag.attributes().get(b"src"),
            b"li" if tag.is(b"link") && is_followed_link(&tag) => tag.attributes().get(b"href"),
            b"ba" if tag.is(b"base") => {
                named.base = named.base.or_else(|| tag.attributes().get(b"href"));
                None
            }
            b"me" if tag.is(b"meta") => {
                if let Some(target) = read_meta(&tag, charset, &mut named.directives) {
                    add(&mut named, Reference::Decoded(target));
                }
                None
            }
            [b'a', _] if tag.is(b"a") => tag.attributes().get(b"href"),
            _ => None,
        };
        if let Some(value) = value {
            add(&mut named, Reference::Raw(without_fragment(value.trim_ascii())));
        }
    }
    named
}

/// `rel=canonical`, or an alternate in another language.
fn is_followed_link(tag: &StartTag<'_>) -> bool {
    let attributes = tag.attributes();
    let Some(rel) = attributes.clone().get(b"rel") else { return false };
    let is = |wanted: &[u8]| rel.split(u8::is_ascii_whitespace).any(|word| word.eq_ignore_ascii_case(wanted));
    // The attributes are read once more for each kind, not for each word.
    is(b"canonical") || (is(b"alternate") && attributes.get(b"hreflang").is_some())
}

/// Reads a meta element: what it asks of robots, and where a refresh leads.
fn read_meta(tag: &StartTag<'_>, charset: Charset, directives: &mut Directives) -> Option<String> {
    let attributes = tag.attributes();
    let content = || attributes.clone().get(b"content").map(|value| entities::decode(charset.decode(value)));
    if let Some(name) = attributes.clone().get(b"name")
        && (name.trim_ascii().eq_ignore_ascii_case(b"robots") || name.trim_ascii().eq_ignore_ascii_case(PRODUCT_TOKEN.as_bytes()))
    {
        directives.add_list(&content()?);
    }
    if attributes.clone().get(b"http-equiv")?.eq_ignore_ascii_case(b"refresh") {
        refresh_target(&content()?).map(str::to_owned)
    } else {
        None
    }
}

/// Where `5; url='next.html'` leads, as the HTML standard reads it.
fn refresh_target(content: &str) -> Option<&str> {
    let blank = |c: char| c.is_ascii_whitespace();
    let content = content.trim_start_matches(blank);
    let rest = content.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == content.len() && !rest.starts_with('.') {
        return None;
    }
    let behind_time = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !behind_time.starts_with([';', ',']) && !behind_time.starts_with(blank) {
        return None;
    }
    let rest = behind_time.trim_start_matches(blank);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(blank);
    let behind_name = match rest.get(..3) {
        Some(name) if name.eq_ignore_ascii_case("url") => rest[3..].trim_start_matches(blank).strip_prefix('='),
        _ => None,
    };
    let target = behind_name.map_or(rest, |rest| rest.trim_start_matches(blank));
    let target = match target.chars().next()? {
        quote @ ('"' | '\'') => target[1..].split(quote).next()?,
        _ => target,
    };
    let target = target.split('#').next()?.trim_matches(blank);
    if target.is_empty() { None } else { Some(target) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes_lead_somewhere() {
        let table = [
            ("5; url=next.html", Some("next.html")),
            ("0;URL='next.html' x", Some("next.html")),
            ("0,url = \"a'b", Some("a'b")),
            (" 1.5.2 next.html", Some("next.html")),
            (".5;next.html#x", Some("next.html")),
            ("0; urls.html", Some("urls.html")),
            ("0; url", Some("url")),
            ("5", None),
            ("5;", None),
            ("x; url=next.html", None),
            ("5x; url=next.html", None),
            ("0; url=#top", None),
            ("", None),
        ];
        for (content, expected) in table {
            assert_eq!(refresh_target(content), expected, "{content:?}");
        }
    }
}
