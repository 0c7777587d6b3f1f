//! The links of a page: all URLs in one allocation, because most of them are known already and are dropped soon.

use super::{
    fingerprint::Fingerprint,
    url::{LinkBase, PageUrl, Parts, QueryEncoding, UrlError, UrlRef},
};
use std::fmt;

/// A link of a page: its resolved URL, and the URL's fingerprint under the swarm's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The resolved URL.
    pub url: PageUrl,
    /// The keyed fingerprint of the URL's text.
    pub fingerprint: Fingerprint,
}

/// Links in the order in which they were named, each a URL and its fingerprint.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The texts of all URLs, one behind the other.
    texts: String,
    links: Vec<Place>,
}

/// One link: its text ends at `end` in `texts`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    end: usize,
    parts: Parts,
    fingerprint: Fingerprint,
}

impl Links {
    /// An empty list with capacity for this many URLs of usual length.
    pub fn with_capacity(links: usize) -> Links {
        const USUAL_LENGTH: usize = 64;
        Links { texts: String::with_capacity(links * USUAL_LENGTH), links: Vec::with_capacity(links) }
    }

    /// Resolves a reference and appends the URL, if `judge` returns a fingerprint for it; none leaves it out.
    ///
    /// # Errors
    /// The reference leads to no URL that is crawled.
    pub fn add(
        &mut self,
        base: &mut LinkBase,
        reference: &str,
        encoding: Option<QueryEncoding<'_>>,
        judge: impl FnOnce(UrlRef<'_>) -> Option<Fingerprint>,
    ) -> Result<(), UrlError> {
        let start = self.texts.len();
        let parts = base.join_into(reference, encoding, &mut self.texts)?;
        match judge(UrlRef::new(&self.texts[start..], parts)) {
            Some(fingerprint) => self.links.push(Place { end: self.texts.len(), parts, fingerprint }),
            None => self.texts.truncate(start),
        }
        Ok(())
    }

    /// Each URL with its fingerprint, in the order in which they were named.
    pub fn iter(&self) -> impl Iterator<Item = (UrlRef<'_>, Fingerprint)> {
        self.links.iter().scan(0, |start, place| {
            let text = &self.texts[std::mem::replace(start, place.end)..place.end];
            Some((UrlRef::new(text, place.parts), place.fingerprint))
        })
    }

    /// Number of links.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is no link.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

impl FromIterator<Link> for Links {
    fn from_iter<I: IntoIterator<Item = Link>>(links: I) -> Links {
        let mut all = Links::default();
        for Link { url, fingerprint } in links {
            all.texts.push_str(url.as_str());
            all.links.push(Place { end: all.texts.len(), parts: url.parts(), fingerprint });
        }
        all
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(url, _)| url.as_str())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_what_was_added_and_what_is_refused_or_left_out_leaves_no_trace() {
        let mut base = LinkBase::new(PageUrl::parse("http://a.ke/dir/page?q").unwrap());
        let mut links = Links::default();
        let mut add = |reference: &str, print: Option<u64>| links.add(&mut base, reference, None, |_| print.map(Fingerprint));
        assert_eq!(add("x.html#top", Some(1)), Ok(()));
        assert_eq!(add("mailto:a@b.ke", Some(2)), Err(UrlError::Scheme));
        assert_eq!(add("/a/a/a/a", Some(3)), Err(UrlError::TrapPath));
        assert_eq!(add("left-out", None), Ok(()));
        assert_eq!(add("https://b.ke:444/ü?i=1", Some(4)), Ok(()));
        let all: Vec<_> = links.iter().map(|(url, print)| (url.as_str().to_owned(), url.host_str().to_owned(), print.0)).collect();
        let text = |text: &str| text.to_owned();
        assert_eq!(
            all,
            [(text("http://a.ke/dir/x.html"), text("a.ke"), 1), (text("https://b.ke:444/%C3%BC?i=1"), text("b.ke"), 4)],
            "{links:?}"
        );
        let again: Links = links.iter().map(|(url, fingerprint)| Link { url: url.to_url(), fingerprint }).collect();
        assert_eq!((again.len(), &again), (2, &links));
    }
}
