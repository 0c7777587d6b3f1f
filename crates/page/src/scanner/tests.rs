//! Tests that a page is read as a browser reads it.
//!
//! Hand-written hostile pages, real ones and random ones are compared with html5ever's tokenizer.

use super::*;

fn base() -> PageUrl {
    PageUrl::parse("http://docs.test/manual/en/index.html").unwrap()
}

const KEY: FingerprintKey = FingerprintKey([7; 16]);

fn facts(page: &[u8]) -> PageFacts {
    scan(page, None, &base(), &KEY, ScanLimits::default())
}

/// The links of a page, without what they have in common.
fn links(page: &[u8]) -> Vec<String> {
    facts(page).links.iter().map(|(url, _)| url.as_str().replace("http://docs.test/manual/en/", "")).collect()
}

#[test]
fn links_are_found() {
    let table = [
        ("<a href=a.html>", "a.html"),
        ("<A HREF='a.html'>", "a.html"),
        ("<a class=x\n href\n =\n \"a.html\"\n>x</a>", "a.html"),
        ("<a href=a.html#x><a href='#x'><a href=''><a href>", "a.html"),
        ("<a href=a.html><a href=a.html#y><a href=./a.html>", "a.html"),
        ("<area href=a><frame src=b><iframe src=c></iframe><a src=x><img src=x>", "a b c"),
        (
            "<link rel=canonical href=a><link rel='Alternate' hreflang=de href=b><link rel=alternate href=x><link rel=stylesheet href=y>",
            "a b",
        ),
        ("<meta http-equiv=refresh content='0; url=a&#46;html'>", "a.html"),
        ("<a href='a?b=1&amp;c=2&copy=3'>", "a?b=1&c=2&copy=3"),
        ("<a href=b><base href=/x/><base href=/y/><a href=c>", "http://docs.test/x/b http://docs.test/x/c"),
        ("<base target=x><base href='mailto:x'><a href=c>", "c"),
        ("<a href='mailto:x'><a href='javascript:x()'><a href='ftp://x/'><a href=a>", "a"),
        ("<a href=\" a\nb.html \">", "ab.html"),
        ("<a href=a\0b>", "a%EF%BF%BDb"),
        ("<a href='a b'>", "a%20b"),
        ("<a rel=nofollow href=a>", "a"),
        ("<noscript><a href=a></noscript>", "a"),
        ("<a href=&#35;x><a href=b>", "b"),
        ("<a href=/a/a/a/a><a href=b>", "b"),
        ("<a href=a.png><a href=b.PDF><a href=c.php?x=d.png><a href=http://other.test/e.pdf>", "c.php?x=d.png http://other.test/e.pdf"),
    ];
    for (page, expected) in table {
        assert_eq!(links(page.as_bytes()).join(" "), expected, "{page:?}");
    }
}

#[test]
fn robots_are_told() {
    let table = [
        ("<meta name=robots content=noindex><a href=a>", true, false),
        ("<a href=a><meta name='ROBOTS' content='NoIndex,NoFollow'>", true, true),
        ("<meta content=none name=nearcrawl><a href=a>", true, true),
        ("<meta name=otherbot content=none><a href=a>", false, false),
        ("<!-- <meta name=robots content=none> --><a href=a>", false, false),
    ];
    for (page, no_index, no_follow) in table {
        let facts = facts(page.as_bytes());
        assert_eq!((facts.no_index, facts.no_follow, facts.links.is_empty()), (no_index, no_follow, no_follow), "{page:?}");
    }
}

#[test]
fn encodings_are_known() {
    let scan = |page: &[u8], header| {
        let links = scan(page, header, &base(), &KEY, ScanLimits::default()).links;
        links.iter().next().unwrap().0.as_str().replace("http://docs.test/manual/en/", "")
    };
    assert_eq!(scan("<a href='ü?ü'>".as_bytes(), None), "%C3%BC?%C3%BC");
    assert_eq!(scan(b"<a href='\xfc?\xfc'>", None), "%C3%BC?%C3%BC");
    assert_eq!(scan(b"<a href='\xfc?\xfc'>", Some("text/html; charset=iso-8859-1")), "%C3%BC?%FC");
    assert_eq!(scan(b"<a href='\x83\x5c.html'>", Some("text/html; charset=shift_jis")), "%E3%82%BD.html");
    let wide: Vec<u8> = "\u{feff}<a href='ü.html'>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(scan(&wide, Some("text/html; charset=latin1")), "%C3%BC.html");
    assert_eq!(scan(&wide[..wide.len() - 1].iter().copied().chain(*b"\0>\0").collect::<Vec<u8>>(), None), "%C3%BC.html");
    assert_eq!(scan(b"\x1b$B<a href=x>\x1b(B<a href=y>", Some("text/html; charset=iso-2022-jp")), "y");
}

#[test]
fn limits_hold_and_are_counted() {
    let page: String = (0..50_000).map(|i| format!("<a href=p{i}>")).collect();
    let (facts, left_out) = scan_counting(page.as_bytes(), None, &base(), &KEY, ScanLimits::default());
    assert_eq!((facts.links.len(), left_out), (10_000, LeftOut { refused: 0, media: 0, cut: 40_000 }));
    assert_eq!(facts.links.iter().last().unwrap().0.path(), "/manual/en/p9999");
    assert!(facts.links.iter().all(|(url, fingerprint)| fingerprint == KEY.of(url.as_str())));
    let (_, left_out) = scan_counting(b"<a href=mailto:x><a href=/a/a/a>", None, &base(), &KEY, ScanLimits::default());
    assert_eq!(left_out, LeftOut { refused: 2, media: 0, cut: 0 });
}

mod against_html5ever;

/// Each of these would take minutes in a scanner that looks back, or end the process in one that recurses.
#[test]
fn hostile_pages_are_walked_over_once() {
    let many = |text: &str, times: usize| text.repeat(times);
    let table = [
        ("deep nesting", many("<div><b>", 100_000), 1),
        ("a million tags", many("<p>", 1_000_000), 1),
        ("a million links", many("<a href=x>", 1_000_000), 2),
        ("unclosed tags", many("<a href='x' ", 300_000), 0),
        ("opened quotes", many("<a href=\"x>", 300_001), 0),
        ("opened comments", many("<!-- -", 500_000), 0),
        ("opened scripts", many("<script><!--<script>", 200_000), 0),
        ("comments in scripts", many("<script><!--</script>", 200_000), 1),
        ("words of a relation", format!("<link rel='{}' {}>", many("alternate ", 200_000), many("x ", 1_000_000)), 1),
        ("opened titles", many("<title></titl", 300_000), 0),
        ("a long attribute", format!("<a href={}>", many("a", 2 << 20)), 1),
        ("a long name", format!("<{}>", many("a", 2 << 20)), 1),
        ("many attributes", format!("<a {}>", many("a=b ", 500_000)), 1),
        ("less and less", many("<", 2 << 20), 1),
        ("entities", format!("<a href='{}'>", many("&amp;", 400_000)), 1),
        ("self-closing", many("<svg/><title/>", 200_000), 0),
    ];
    for (name, page, last_link) in table {
        // Proof that the whole page was walked over: the link behind it is found, unless it is inside what was not closed.
        let page = format!("{page}<a href=last>");
        let found = links(page.as_bytes());
        assert_eq!(found.iter().filter(|link| *link == "last").count(), last_link.min(1), "{name}: {:?}", found.len());
    }
}
