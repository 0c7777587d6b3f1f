//! W6 to W10: redirects, traps, markup, character encodings and robots.txt.

use super::case::{Case, HTML, Step, Want::*, Written, answer, case, depends, endless, html, page_with, send};
use FetchError::*;
use nearcrawl_model::fetch::FetchError;

/// All cases of redirects. The fetcher tells where they lead; what is followed is the crawl's business.
pub fn redirects() -> Vec<Case> {
    let to = |name, location: &str, want| case("W6", name, vec![answer("302 Found", &format!("Location: {location}\r\n"), b"")], want);
    let nth = |asked: &super::case::Asked| asked.path().trim_start_matches('/').parse::<u32>().unwrap_or(0);
    vec![
        to("redirect-to-itself", "/", Redirect(302)),
        depends(
            "W6",
            "fifty-hops",
            move |asked| vec![answer("302 Found", &format!("Location: /{}\r\n", nth(asked) + 1), b"")],
            Redirect(302),
        ),
        to("redirect-to-loopback", "http://127.0.0.1/", Redirect(302)),
        to("redirect-to-metadata", "http://169.254.169.254/latest/meta-data/", Redirect(302)),
        to("redirect-to-ssh", "http://redirect-to-ssh.hostile.test:22/", Redirect(302))
            .writes(Written::status("no-pages").code(302).failure(ForbiddenAddress)),
        to("redirect-with-a-password", "http://user:secret@other.invalid/", Redirect(302)),
        to("redirect-with-tricks", "\\\\other.invalid\\..\\..\\x?#y", Redirect(302)),
        to("redirect-to-a-file", "file:///etc/passwd", Fails(BadRedirect)),
        to("redirect-to-ftp", "ftp://ftp.invalid/", Fails(BadRedirect)),
        to("redirect-to-a-script", "javascript:alert(1)", Fails(BadRedirect)),
        to("redirect-to-5000-bytes", &format!("/{}", "x".repeat(5000)), Fails(BadRedirect)),
        to("redirect-to-64-kib", &format!("/{}", "x".repeat(64 << 10)), Fails(HeadTooLarge)),
        to("redirect-to-nothing", "", Fails(BadRedirect)),
        to("redirect-to-half-an-address", "http://[::1/", Fails(BadRedirect)),
        to("redirect-to-a-trap", &"/a".repeat(30), Fails(BadRedirect)),
        case("W6", "redirect-without-location", vec![answer("301 Moved", "", b"")], Fails(BadRedirect)),
        case("W6", "two-locations", vec![answer("307 Go", "Location: /a\r\nLocation: /b\r\n", b"")], Fails(BadRedirect)),
        case("W6", "many-choices", vec![answer("300 Choices", "", b"")], Status(300)),
    ]
}

/// All cases of webs without end.
pub fn traps() -> Vec<Case> {
    let many =
        |count: usize, link: &dyn Fn(usize) -> String| (0..count).map(|n| format!("<a href=\"{}\">{n}</a>\n", link(n))).collect::<String>();
    let number = |asked: &super::case::Asked| asked.path().rsplit(['/', '=']).next().and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    let farm = many(100_000, &|n| format!("http://farm{n}.invalid/"));
    let variants = many(20_000, &|n| format!("/list?page={n}"));
    vec![
        depends("W7", "calendar", move |asked| vec![html(&format!("<a href=/day/{}>tomorrow</a>", number(asked) + 1))], Page(1))
            .writes(Written { most_pages: 9, ..Written::status("up").code(200) }),
        depends(
            "W7",
            "session-ids",
            move |asked| vec![html(&format!("<a href=/shop;jsessionid={}/>shop</a>", number(asked) + 1))],
            Page(1),
        ),
        depends(
            "W7",
            "deeper-and-deeper",
            |asked| vec![html(&format!("<a href=\"{}/a/\">on</a>", asked.path().trim_end_matches('/')))],
            Page(1),
        )
        .writes(Written { most_pages: 3, ..Written::status("up").code(200) }),
        depends(
            "W7",
            "endless-subdomains",
            |asked| vec![html(&format!("<a href=http://{}.endless-subdomains.hostile.test/>x</a>", asked.connection))],
            Page(1),
        ),
        case("W7", "link-farm", vec![html(&farm)], Page(10_000)),
        case("W7", "endless-variants", vec![html(&variants)], Page(10_000))
            .writes(Written { most_pages: 2, ..Written::status("up").code(200) }),
        case("W7", "one-page-many-names", vec![html(&many(50_000, &|n| format!("/#{n}")))], Page(1)),
    ]
}

/// All cases of malformed HTML and of character encodings.
pub fn markup() -> Vec<Case> {
    let w8 = |name, body: String, links| case("W8", name, vec![html(&body)], Page(links));
    let w9 = |name, kind: &str, body: &[u8], links| {
        case("W9", name, vec![answer("200 OK", &format!("Content-Type: text/html{kind}\r\n"), body)], Page(links))
    };
    let utf16 = |text: &str, mark: &[u8]| mark.iter().copied().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect::<Vec<u8>>();
    let link = "<a href=/x>x</a>";
    let entities = (0..9).fold("<!DOCTYPE html [<!ENTITY lol0 \"lol\">".to_owned(), |text, n| {
        text + &format!("<!ENTITY lol{} \"{}\">", n + 1, format!("&lol{n};").repeat(10))
    });
    vec![
        w8("nested-a-million-deep", "<div>".repeat(1_000_000) + link, 1),
        w8("nested-in-tables", "<table><tr><td><a href=/x>".repeat(100_000), 1),
        w8("attribute-of-2-mib", format!("<a href=\"/{}\">{link}", "x".repeat(2 << 20)), 1),
        w8("hundred-thousand-attributes", format!("<a {} href=/x>", "y=z ".repeat(100_000)), 1),
        w8("million-tags", "<b>".repeat(1_000_000) + link, 1),
        w8("nothing-but-brackets", "<".repeat(4 << 20) + link, 1),
        w8("quote-without-end", format!("{link}<a href=\"/y{}", " >".repeat(1 << 20)), 1),
        w8("comment-without-end", format!("{link}<!--{}", "-->".repeat(0) + &"<a href=/y>".repeat(100_000)), 1),
        w8("script-without-end", format!("{link}<script>{}", "<a href=/y></scrip>".repeat(100_000)), 1),
        w8("base-to-a-script", "<base href=javascript:alert(1)><a href=x>x</a>".to_owned(), 1),
        w8("base-to-loopback", "<base href=http://127.0.0.1/><a href=x>x</a>".to_owned(), 1),
        w8("bases-in-thousands", "<base href=/a/><base href=//other.invalid/>".repeat(50_000) + "<a href=x>x</a>", 1),
        w8("refresh-to-itself", "<meta http-equiv=refresh content='0; url=/'>".to_owned(), 1),
        w8("refresh-to-a-script", "<meta http-equiv=refresh content='0; url=javascript:x'>".to_owned(), 0),
        w8("entities-of-entities", entities + "]>&lol9;" + link, 1),
        w8("entities-in-millions", format!("<a href=\"/{}\">{link}", "&amp;&#99999999999;&nosuch;".repeat(100_000)), 1),
        w8("nul-everywhere", "\0<\0a href=\"/x\0y\">".repeat(1000) + "<a href=\"/x\0\">", 1),
        w9("utf-7", "; charset=utf-7", b"+ADw-a href=/x+AD4-", 0),
        w9("utf-16-of-odd-length", "", &[utf16(link, &[0xff, 0xfe]), vec![0x3c]].concat(), 1),
        w9("utf-16-that-says-latin", "; charset=iso-8859-1", &utf16(link, &[0xff, 0xfe]), 1),
        w9("two-marks", "", &[b"\xef\xbb\xbf\xff\xfe".as_slice(), link.as_bytes()].concat(), 1),
        w9("declared-utf-16-is-not", "; charset=utf-16", link.as_bytes(), 0),
        w9("broken-utf-8", "; charset=utf-8", b"<a href=\"/\xff\xfe\xc0\x80\xed\xa0\x80\">\xf8</a>", 1),
        w9("charset-without-end", &format!("; charset={}", "x".repeat(40_000)), link.as_bytes(), 1),
        w9("right-to-left-and-nul-in-links", "; charset=utf-8", "<a href=\"/\u{202e}gpj.exe%00\u{feff}\">x</a>".as_bytes(), 1),
        w9("escape-in-links", "", b"<a href=\"/\x1b[2J\x1b]0;x\x07\">x</a>", 1),
    ]
}

/// All cases of robots.txt. Behind each is a page with one link.
pub fn robots() -> Vec<Case> {
    let says = |name, steps: Vec<Step>, want| case("W10", name, vec![html("<a href=/secret/x>x</a>")], want).robots(steps);
    let text = |body: &str| vec![answer("200 OK", "Content-Type: text/plain\r\n", body.as_bytes())];
    let all = 500 << 10;
    let start = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    let rules: String = (0..60_000).map(|n| format!("Disallow: /{n}*$\n")).collect();
    let star = format!("User-agent: *\nDisallow: /secret\nDisallow: /{}b\n", "*".repeat(10_000));
    let robots = |body: &str| Robots(200, body.len());
    let kept_out = |failure| Written::status("down").failure(failure);
    vec![
        says("robots-without-end", vec![send(format!("{start}\r\n")), endless("Disallow: /again\n")], Robots(200, all)),
        says(
            "robots-of-100-mib",
            vec![send(format!("{start}Content-Length: {}\r\n\r\n", 100 << 20)), endless("Disallow: /again\n")],
            Robots(200, all),
        ),
        says("robots-in-html", vec![html("<html><b>Disallow: /</b></html>")], Robots(200, 31)),
        says("robots-of-many-rules", text(&("User-agent: *\n".to_owned() + &rules)), Robots(200, all)),
        says("robots-of-stars", text(&star), robots(&star)),
        says("robots-of-noise", vec![answer("200 OK", "", &(0..=255).cycle().take(5000).collect::<Vec<u8>>())], Robots(200, 5000)),
        says("robots-packed-wrongly", vec![answer("200 OK", "Content-Encoding: gzip\r\n", b"User-agent: *")], Fails(BadEncoding))
            .writes(kept_out(BadEncoding)),
        says("robots-that-hang", vec![Step::Hold], Fails(HeadTimeout)).writes(kept_out(HeadTimeout)),
        says("robots-that-drip", vec![send(start), Step::Drip("X".repeat(500).into(), super::case::SLOWLY)], Fails(HeadTimeout))
            .writes(kept_out(HeadTimeout)),
        says("robots-that-fail", vec![answer("500 Oops", "", b"")], Robots(500, 0)),
        says("robots-behind-a-challenge", vec![answer("503 Wait", "CF-Mitigated: challenge\r\n", b"")], Fails(Challenged)).not_crawled(),
        says("robots-forbidden", vec![answer("403 Forbidden", "", b"Disallow: /")], Robots(403, 0)),
        says("robots-busy", vec![answer("429 Too Many", "", b"")], Robots(429, 0)).not_crawled(),
        says("robots-in-circles", vec![answer("302 Found", "Location: /robots.txt\r\n", b"")], Redirect(302))
            .writes(Written::status("up").code(200)),
        says("robots-elsewhere", vec![answer("302 Found", "Location: http://elsewhere.invalid/robots.txt\r\n", b"")], Redirect(302))
            .writes(Written::status("robots-unavailable").failure(BadRedirect)),
        says("robots-at-a-file", vec![answer("302 Found", "Location: file:///robots.txt\r\n", b"")], Fails(BadRedirect))
            .writes(Written::status("robots-unavailable").failure(BadRedirect)),
        says("robots-ask-for-ages", text("User-agent: *\nCrawl-delay: 99999999999\n"), Robots(200, 39)).writes(Written::status("robots")),
        says("robots-ask-for-nonsense", text("User-agent: *\nCrawl-delay: -1e309\n"), Robots(200, 34)),
    ]
}

/// A page that nobody reads to its end: what is cut is cut whole.
pub fn large() -> Vec<Case> {
    let text = "x".repeat(9 << 20);
    vec![
        case("W2", "page-of-9-mib", vec![html(&text)], Fails(BodyTooLarge)),
        case("W2", "page-of-8-mib", page_with("", &text.as_bytes()[..8 << 20]), Page(0)),
        case("W13", "xhtml", vec![answer("200 OK", "Content-Type: application/xhtml+xml; q=1\r\n", b"<a href='/x'/>")], Page(1)),
        case("W13", "two-types", vec![answer("200 OK", &format!("{HTML}Content-Type: image/png\r\n"), b"x")], Page(0)),
    ]
}
