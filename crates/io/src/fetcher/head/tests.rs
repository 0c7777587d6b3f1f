//! Tests that heads are read as servers mean them.

use super::*;
use hyper::header::HeaderValue;

fn headers(lines: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[test]
fn retry_after_is_seconds_or_a_date_within_bounds() {
    let date: &[u8] = b"Fri, 20 Nov 2026 10:00:00 GMT";
    for (value, want) in [
        (&b"120"[..], Some(120_000)),
        (b"0", Some(1_000)),
        (b"-5", Some(1_000)),
        (b"99999999999999999999999999", Some(MAX_RETRY_AFTER)),
        (b"86401", Some(MAX_RETRY_AFTER)),
        (b"Fri, 20 Nov 2026 10:01:30 GMT", Some(90_000)),
        (b"Friday, 20-Nov-26 10:01:30 GMT", Some(90_000)),
        (b"Fri, 20 Nov 2026 09:00:00 GMT", Some(1_000)),
        (b"Sat, 20 Nov 2027 10:00:00 GMT", Some(MAX_RETRY_AFTER)),
        (b"soon", None),
        (b"1.5", None),
        (b"", None),
        (b"\xff", None),
    ] {
        let found = retry_after(&headers(&[("date", date), ("retry-after", value)]));
        assert_eq!(found, want, "{}", String::from_utf8_lossy(value));
    }
    // Without a date of the server's own, ours counts: this one is long past.
    assert_eq!(retry_after(&headers(&[("retry-after", b"Fri, 20 Nov 2015 10:00:00 GMT")])), Some(1_000));
    assert_eq!(retry_after(&headers(&[])), None);
}

#[test]
fn software_is_short_and_clean() {
    assert_eq!(software(&headers(&[("server", b"Apache/2.4 (Debian)")])).as_deref(), Some("Apache/2.4 (Debian)"));
    assert_eq!(software(&headers(&[("server", "x".repeat(300).as_bytes())])).map(|name| name.len()), Some(64));
    assert_eq!(software(&headers(&[("server", "\u{9b}31mred\u{85}".as_bytes())])).as_deref(), Some("31mred"));
    assert_eq!(software(&headers(&[("server", b" \t ")])), None);
    assert_eq!(software(&headers(&[])), None);
}

#[test]
fn a_server_says_whether_it_keeps_the_connection() {
    for (version, value, want) in [
        (Version::HTTP_11, None, true),
        (Version::HTTP_11, Some(&b"keep-alive"[..]), true),
        (Version::HTTP_11, Some(b"x, Close"), false),
        (Version::HTTP_10, None, false),
        (Version::HTTP_10, Some(b"Keep-Alive"), true),
    ] {
        let lines: Vec<_> = value.map(|value| ("connection", value)).into_iter().collect();
        assert_eq!(keeps_open(version, &headers(&lines)), want);
    }
}

#[test]
fn content_types_are_compared_without_case_and_parameters() {
    assert!(is_html(&content_type(&headers(&[("content-type", b" TEXT/html ; charset=x")]))));
    assert!(is_html(&content_type(&headers(&[("content-type", b"application/xhtml+xml")]))));
    assert!(!is_html(&content_type(&headers(&[("content-type", b"text/plain; text/html")]))));
    assert!(!is_html(&content_type(&headers(&[]))));
}

#[test]
fn a_redirect_says_why_it_leads_nowhere() {
    let asked = PageUrl::parse("http://a.test/x/y").unwrap();
    assert_eq!(location(&headers(&[]), &asked), Err(LocationError::Missing));
    assert_eq!(location(&headers(&[("location", b"/a"), ("location", b"/b")]), &asked), Err(LocationError::Ambiguous));
    assert_eq!(location(&headers(&[("location", b"mailto:x@y.z")]), &asked), Err(LocationError::Refused(UrlError::Scheme)));
    assert_eq!(location(&headers(&[("location", b"/a"), ("location", b"/a")]), &asked).unwrap().as_str(), "http://a.test/a");
}

#[test]
fn robots_tags_are_read_for_everybody_and_for_us() {
    let table: [(&[&str], bool, bool); 12] = [
        (&["noindex"], true, false),
        (&["NoFollow , noarchive"], false, true),
        (&["none"], true, true),
        (&["*: none"], true, true),
        (&["otherbot: noindex, nofollow"], false, false),
        (&["otherbot: noindex", "nofollow"], false, true),
        (&["NearCrawl: noindex"], true, false),
        (&["nearcrawl: nofollow"], false, true),
        (&["nearcrawl: none"], true, true),
        (&["otherbot: noindex, nearcrawl: nofollow"], false, true),
        (&["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], true, false),
        (&["", ",,", "index, follow", "nearcrawler: none"], false, false),
    ];
    for (values, no_index, no_follow) in table {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("x-robots-tag", value.parse().unwrap());
        }
        assert_eq!(robots_tag(&headers, "nearcrawl"), RobotsTag { no_index, no_follow }, "{values:?}");
    }
}

#[test]
fn versions_are_kept_as_they_were_said_if_they_can_be_said_again() {
    let date: &[u8] = b"Fri, 20 Nov 2026 10:00:00 GMT";
    fn said(lines: &[(&'static str, &[u8])]) -> Validators {
        validators(&headers(lines))
    }
    assert_eq!(said(&[("etag", b"W/\"a b\"")]).etag.as_deref(), Some("W/\"a b\""));
    assert_eq!(said(&[("last-modified", date)]).last_modified.as_deref().map(str::as_bytes), Some(date));
    let long = [b'x'; MAX_VALIDATOR + 1];
    for (name, value) in [("etag", &long[..]), ("etag", b""), ("etag", b"\"\xe9\""), ("last-modified", b"yesterday")] {
        assert!(said(&[(name, value)]).is_empty(), "{name}: {}", String::from_utf8_lossy(value));
    }
}
