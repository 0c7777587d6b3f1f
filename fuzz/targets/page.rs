//! Fuzz targets for pages and their headers.
//!
//! Input is anything a web server sends: the scanner of links, character sets, and the accessibility rules.

use nearcrawl_model::{evaluation::Gate, facts::Fact, fingerprint::FingerprintKey, url::PageUrl};
use nearcrawl_page::{
    evaluation::{self, Limits},
    scanner::{self, ScanLimits},
};
use std::{collections::BTreeSet, time::Duration};

crate::targets!("page":
    scan,
    charset,
    front,
    evaluate,
);

const KEY: FingerprintKey = FingerprintKey([1; 16]);

/// A page, with the header `text/html` or, in a first line that begins with `~`, another one.
fn header_and_body(bytes: &[u8]) -> (Option<String>, &[u8]) {
    let Some(rest) = bytes.strip_prefix(b"~") else { return (None, bytes) };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    (Some(String::from_utf8_lossy(&rest[..end]).into_owned()), &rest[(end + 1).min(rest.len())..])
}

/// Each link is a canonical URL, once, with its fingerprint; limits hold; and what a limit cuts off is the end.
fn scan(bytes: &[u8]) {
    let (header, body) = header_and_body(bytes);
    let base = PageUrl::parse("http://a.ke/dir/page?q").expect("a URL");
    let facts = scanner::scan(body, header.as_deref(), &base, &KEY, ScanLimits::default());
    assert!(facts.links.len() <= ScanLimits::default().links && (facts.links.is_empty() || !facts.no_follow));
    let mut met = BTreeSet::new();
    for (url, fingerprint) in facts.links.iter() {
        assert!(met.insert(url.as_str()), "{} twice", url.as_str());
        assert_eq!(fingerprint, KEY.of(url.as_str()));
        assert_eq!(PageUrl::parse(url.as_str()).as_ref().map(PageUrl::as_str), Ok(url.as_str()));
    }
    let few = scanner::scan(body, header.as_deref(), &base, &KEY, ScanLimits { links: 3, references: 40_000 });
    let first: Vec<_> = facts.links.iter().take(3).map(|(url, _)| url.as_str()).collect();
    assert_eq!(few.links.iter().map(|(url, _)| url.as_str()).collect::<Vec<_>>(), first);
}

/// What is UTF-8 stays as it is; everything becomes some text.
fn charset(bytes: &[u8]) {
    let (header, body) = header_and_body(bytes);
    let text = scanner::text(body, header.as_deref());
    assert!(text.len() <= 3 * body.len() + 3);
    if let Ok(plain) = std::str::from_utf8(body)
        && !body.starts_with(b"\xef\xbb\xbf")
    {
        assert_eq!(scanner::text(body, Some("text/html; charset=utf-8")), plain);
    }
}

/// What a page says of itself is one that a journal may have, and the same each time.
fn front(bytes: &[u8]) {
    let (header, body) = header_and_body(bytes);
    let front = scanner::front_page(body, header.as_deref(), header.as_deref());
    assert!(Fact::FrontPage(front.clone()).is_plausible(), "{front:?}");
    assert_eq!(front, scanner::front_page(body, header.as_deref(), header.as_deref()));
}

/// The same page has the same failures, and limits hold.
fn evaluate(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let limits = Limits { bytes: 64 << 10, elements: 2_000, ..Limits::default() };
    let look = || evaluation::evaluate(&text, &limits, &|| Duration::ZERO);
    let found = look();
    assert_eq!(found, look());
    assert!(found.elements as usize <= limits.elements);
    assert_eq!(text.len() > limits.bytes, found.gate == Some(Gate::TooLong));
    assert!(found.gate.is_none() || found.failures.is_empty());
    let timed = evaluation::evaluate(&text, &limits, &|| Duration::from_secs(1));
    assert!(timed.gate.is_some() || timed == found);
}
