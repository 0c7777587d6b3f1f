//! Tests that what a server says arrives as it was meant.

use super::{FetchLimits, KEY, fetcher, order, order_as};
use nearcrawl_model::{
    evaluation::Rule,
    facts::{Fact, Guard, HttpVersion},
    fetch::{FetchError, FetchOutcome, FetchPurpose, FetchReport, PageType, Served},
    revisit::{Validators, content_of},
    url::PageUrl,
};
use nearcrawl_test_servers::web::{Asked, Site, Step, answer, html, send};
use std::time::Duration;

async fn ask(steps: Vec<Step>, purpose: FetchPurpose) -> FetchReport {
    let site = Site::always(steps).await;
    let port = site.address.port();
    let fetcher = fetcher(FetchLimits::default(), [port]);
    fetcher.fetch(order_as(&format!("http://good.test:{port}/dir/page?q=1"), site.address.ip(), purpose)).await
}

#[tokio::test]
async fn a_page_comes_with_its_measures() {
    let head = "Content-Type: Text/HTML; charset=utf-8\r\nServer: Jiko\t1.0\x01 \r\nRetry-After: 7\r\n";
    // A control character other than a tab may not stand in a header at all: here it is cut by the parser's rules.
    let head = head.replace('\x01', "");
    let report = ask(vec![answer("200 OK", &head, b"<p>hello</p>")], FetchPurpose::Page).await;
    let FetchOutcome::Page { status: 200, page } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((page.decoded_bytes, page.no_index, page.no_follow), (12, false, false));
    assert_eq!(report.wire_bytes, 12);
    assert_eq!(report.software.as_deref(), Some("Jiko1.0"));
    assert_eq!(report.retry_after, Some(7000));
    assert!(report.took >= 1);
    assert!(report.first_byte_us.is_some_and(|first| u64::from(first) <= report.took * 1000), "{report:?}");
}

#[tokio::test]
async fn a_page_is_evaluated_if_that_is_wanted_and_the_time_is_part_of_the_access() {
    let page = "<html lang=ru><title>\u{41c}</title><img src=x><p aria-label=\u{41c}>x</p>";
    let (page, _, _) = encoding_rs::WINDOWS_1251.encode(page);
    let site = Site::always(vec![answer("200 OK", "Content-Type: text/html; charset=windows-1251\r\n", &page)]).await;
    let evaluating = super::FetcherConfig { evaluate: true, ..super::config(FetchLimits::default()) };
    let evaluating = super::Fetcher::new(evaluating, super::policy([site.address.port()])).unwrap();
    let report = evaluating.fetch(order(site.address, "/")).await;
    let FetchOutcome::Page { page, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    let evaluated = page.evaluation.as_ref().unwrap();
    let failures: Vec<_> = evaluated.evaluation.failures.iter().map(|(rule, count)| (*rule, *count)).collect();
    assert_eq!((failures, evaluated.evaluation.elements), (vec![(Rule::ImageName, 1), (Rule::AriaPermitted, 1)], 6));
    assert_eq!(report.access(), report.took + u64::from(evaluated.took_us.div_ceil(1000)));
    assert!(report.access() > report.took, "no evaluation takes no time");

    let report = fetcher(FetchLimits::default(), [site.address.port()]).fetch(order(site.address, "/")).await;
    let FetchOutcome::Page { page, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((&page.evaluation, report.access()), (&None, report.took));
}

#[tokio::test]
async fn a_version_that_is_known_is_named_and_is_not_sent_again() {
    let head = "Content-Type: text/html\r\nETag: W/\"7\"\r\nLast-Modified: Fri, 20 Nov 2026 10:00:00 GMT\r\n";
    let site = Site::start(move |asked: Asked| match asked.head.to_ascii_lowercase().contains("if-none-match: w/\"7\"") {
        true => vec![send("HTTP/1.1 304 Not Modified\r\nETag: W/\"7\"\r\nX-Robots-Tag: noindex\r\n\r\n")],
        false => vec![answer("200 OK", head, b"<a href=/x>x</a>")],
    })
    .await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    let mut order = order(site.address, "/");
    let FetchOutcome::Page { page, .. } = fetcher.fetch(order.clone()).await.outcome else { panic!("no page") };
    let (etag, last_modified) = (Some("W/\"7\"".to_owned()), Some("Fri, 20 Nov 2026 10:00:00 GMT".to_owned()));
    assert_eq!(page.validators, Validators { etag: etag.clone(), last_modified: last_modified.clone() });
    assert_eq!(page.content, content_of(b"<a href=/x>x</a>"));
    order.validators = page.validators;
    let report = fetcher.fetch(order.clone()).await;
    let validators = Validators { etag, last_modified: None };
    assert_eq!(report.outcome, FetchOutcome::NotModified { validators, no_index: true, no_follow: false });
    assert_eq!(report.wire_bytes, 0);
    let asked = site.log.lock().unwrap().heads.clone();
    assert!(asked[1].to_ascii_lowercase().contains("if-modified-since: fri, 20 nov 2026 10:00:00 gmt"), "{asked:?}");
    assert!(!asked[0].to_ascii_lowercase().contains("if-"), "{asked:?}");
    assert_eq!(site.log.lock().unwrap().peers.len(), 1, "over the same connection");
}

#[tokio::test]
async fn a_304_that_was_not_asked_for_is_a_status_like_others() {
    let report = ask(vec![send("HTTP/1.1 304 Not Modified\r\n\r\n")], FetchPurpose::Page).await;
    assert_eq!(report.outcome, FetchOutcome::Status(304));
}

#[tokio::test]
async fn time_is_counted_from_the_request_not_from_connecting() {
    let slowly = vec![
        Step::Drip("HTTP/1.1 200 OK\r\n".into(), Duration::from_millis(10)),
        send("Content-Type: text/html\r\nContent-Length: 2\r\n\r\nok"),
    ];
    let report = ask(slowly, FetchPurpose::Page).await;
    assert!(report.took >= 170, "{report:?}");
    assert!(u64::from(report.first_byte_us.unwrap()) < report.took * 1000 - 100_000, "{report:?}");
}

#[tokio::test]
async fn what_is_not_html_is_named_and_not_read() {
    for (head, body, want) in [
        ("Content-Type: image/png\r\n", &[0u8; 100][..], "image/png"),
        ("Content-Type: APPLICATION/PDF; x=y\r\n", b"x", "application/pdf"),
        ("", b"no type", ""),
        ("Content-Type: text/html5\r\n", b"x", "text/html5"),
    ] {
        let report = ask(vec![answer("200 OK", head, body)], FetchPurpose::Page).await;
        assert_eq!(report.outcome, FetchOutcome::NotHtml { status: 200, content_type: want.into() });
    }
    let giant = send("HTTP/1.1 200 OK\r\nContent-Type: application/x-iso9660-image\r\nContent-Length: 4294967296\r\n\r\n");
    let report = ask(vec![giant, Step::Endless(vec![0; 65536].into())], FetchPurpose::Page).await;
    assert_eq!(report.outcome, FetchOutcome::NotHtml { status: 200, content_type: "application/x-iso9660-image".into() });
    assert_eq!(report.wire_bytes, 0, "not a byte of it is waited for");
}

#[tokio::test]
async fn xhtml_is_read_too_and_what_a_page_is_called_is_told_apart_from_what_it_is() {
    use PageType::{Html, Xhtml};
    let xhtml = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body/></html>";
    for (called, body, said, detected) in [
        ("application/xhtml+xml", "<html/>", Xhtml, Some(Html)),
        ("application/xhtml+xml", xhtml, Xhtml, Some(Xhtml)),
        ("Text/HTML; charset=utf-8", xhtml, Html, Some(Xhtml)),
        ("text/html", "<!doctype html><p>x", Html, Some(Html)),
        ("text/html", "{\"no\": \"page\"}", Html, None),
        ("text/html", "<?xml version='1.0'?><rss/>", Html, None),
    ] {
        let report = ask(vec![answer("200 OK", &format!("Content-Type: {called}\r\n"), body.as_bytes())], FetchPurpose::Page).await;
        let FetchOutcome::Page { status: 200, page } = report.outcome else { panic!("{called} {body}: {:?}", report.outcome) };
        assert_eq!(page.served, Some(Served { said, detected }), "{called} {body}");
    }
}

#[tokio::test]
async fn other_statuses_are_told() {
    for (status, line) in [
        (404, "404 Not Found"),
        (401, "401 Unauthorized"),
        (500, "500 Oops"),
        (503, "503 Busy"),
        (304, "304 Not Modified"),
        (999, "999 Odd"),
    ] {
        let report = ask(vec![answer(line, "Content-Type: text/html\r\nSet-Cookie: a=b\r\n", b"")], FetchPurpose::Page).await;
        assert_eq!(report.outcome, FetchOutcome::Status(status));
    }
}

#[tokio::test]
async fn redirects_are_told_resolved_and_not_followed() {
    for (location, want) in [
        ("/there", "http://good.test:PORT/there"),
        ("there?x=1#part", "http://good.test:PORT/dir/there?x=1"),
        ("//other.test/x", "http://other.test/x"),
        ("HTTPS://Other.Test:443", "https://other.test/"),
        ("http://10.0.0.1/", "http://10.0.0.1/"),
        (" /spaced ", "http://good.test:PORT/spaced"),
        ("/\u{fc}", "http://good.test:PORT/%C3%BC"),
    ] {
        let site = Site::always(vec![answer("302 Found", &format!("Location: {location}\r\n"), b"moved")]).await;
        let port = site.address.port();
        let fetcher = fetcher(FetchLimits::default(), [port]);
        let report = fetcher.fetch(order(site.address, "/dir/page")).await;
        let FetchOutcome::Redirect { status: 302, to } = report.outcome else { panic!("{location}: {:?}", report.outcome) };
        let want = PageUrl::parse(&want.replace("PORT", &port.to_string())).unwrap();
        assert_eq!(to.fingerprint, KEY.of(want.as_str()));
        assert_eq!((to.url, site.heads().len(), fetcher.open_connections()), (want, 1, 1));
    }
}

#[tokio::test]
async fn a_location_in_an_old_encoding_means_its_bytes() {
    let head = [b"HTTP/1.1 301 Moved\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n".as_slice()].concat();
    let report = ask(vec![send(head)], FetchPurpose::Page).await;
    let FetchOutcome::Redirect { to, .. } = report.outcome else { panic!("{:?}", report.outcome) };
    assert!(to.url.as_str().ends_with("/caf%E9"), "{}", to.url);
}

#[tokio::test]
async fn robots_txt_comes_as_it_is() {
    let report = ask(vec![answer("200 OK", "Content-Type: text/plain\r\n", b"User-agent: *\nDisallow: /x\n")], FetchPurpose::Robots).await;
    assert_eq!(report.outcome, FetchOutcome::Robots { status: 200, body: "User-agent: *\nDisallow: /x\n".into() });
    for (status, line) in [(404, "404 Not Found"), (503, "503 Busy")] {
        let report = ask(vec![answer(line, "", b"<html>an error</html>")], FetchPurpose::Robots).await;
        assert_eq!(report.outcome, FetchOutcome::Robots { status, body: "".into() });
    }
    let report = ask(vec![answer("301 Moved", "Location: /other.txt\r\n", b"")], FetchPurpose::Robots).await;
    assert!(matches!(report.outcome, FetchOutcome::Redirect { status: 301, .. }));
}

#[tokio::test]
async fn robots_txt_is_cut_at_500_kib() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n".to_owned(), format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 100 << 20)] {
        let report = ask(vec![send(head), Step::Endless("Disallow: /again\n".repeat(1000).into())], FetchPurpose::Robots).await;
        let FetchOutcome::Robots { status: 200, body } = report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!(body.len(), 500 << 10);
    }
}

#[tokio::test]
async fn x_robots_tag_is_obeyed_for_everybody_and_for_us() {
    for (headers, no_index, no_follow) in [
        ("X-Robots-Tag: noindex\r\n", true, false),
        ("X-Robots-Tag: noindex, NOFOLLOW\r\n", true, true),
        ("X-Robots-Tag: none\r\n", true, true),
        ("X-Robots-Tag: noarchive\r\nX-Robots-Tag: nofollow\r\n", false, true),
        ("X-Robots-Tag: otherbot: noindex, nofollow\r\n", false, false),
        ("X-Robots-Tag: nearcrawl: noindex, nofollow\r\n", true, true),
        ("X-Robots-Tag: NearCrawl: nofollow\r\n", false, true),
        ("X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow\r\n", false, true),
    ] {
        let site = answer("200 OK", &format!("Content-Type: text/html\r\n{headers}"), b"<a href=/x>x</a>");
        let report = ask(vec![site], FetchPurpose::Page).await;
        let FetchOutcome::Page { page, .. } = report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!((page.no_index, page.no_follow), (no_index, no_follow), "{headers}");
        assert!(!no_follow || page.links.is_empty(), "{headers}");
    }
}

#[tokio::test]
async fn the_request_says_who_we_are_and_carries_no_secrets() {
    let site = Site::always(vec![answer("200 OK", "Content-Type: text/html\r\nSet-Cookie: id=1\r\n", b"x")]).await;
    let port = site.address.port();
    let fetcher = fetcher(FetchLimits::default(), [port]);
    for path in ["/a?b=c&d", "/a?b=c&d"] {
        fetcher.fetch(order(site.address, path)).await;
    }
    for head in site.heads() {
        let lower = head.to_ascii_lowercase();
        assert!(head.starts_with("GET /a?b=c&d HTTP/1.1\r\n"), "{head}");
        for line in [
            format!("host: good.test:{port}"),
            "user-agent: nearcrawl/0 (test)".into(),
            "from: web@example.org".into(),
            "accept: text/html, application/xhtml+xml".into(),
            "accept-encoding: gzip, deflate, br, zstd".into(),
        ] {
            assert!(lower.contains(&format!("\r\n{line}\r\n")), "{line} is missing in {head}");
        }
        for secret in ["cookie", "authorization", "referer", "proxy"] {
            assert!(!lower.contains(secret), "{head}");
        }
    }
}

#[tokio::test]
async fn odd_characters_in_a_url_reach_the_server() {
    let site = Site::always(vec![html("x")]).await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    for path in ["/a|b", "/^`{}\"<>", "/?a=^`{}|\\[]", "/%zz%", "/\u{e9}"] {
        let report = fetcher.fetch(order(site.address, path)).await;
        assert!(matches!(report.outcome, FetchOutcome::Page { .. }), "{path}: {:?}", report.outcome);
    }
    assert_eq!(site.heads().len(), 5);
}

#[tokio::test]
async fn what_a_page_says_of_itself_comes_where_it_is_wanted_and_whose_challenge_it_is() {
    let body = "<html lang=sw><title>Makumbusho</title><meta name=generator content='Jiko 2'><p>Karibu kwenye makumbusho yetu";
    let head = "Content-Type: text/html; charset=utf-8\r\nTDM-Reservation: 1\r\nContent-Usage: train-ai=n\r\nServer: cloudflare\r\n";
    let site = Site::always(vec![answer("200 OK", head, body.as_bytes())]).await;
    let fetcher = fetcher(FetchLimits::default(), [site.address.port()]);
    let mut order = order(site.address, "/");
    let report = fetcher.fetch(order.clone()).await;
    let FetchOutcome::Page { page, .. } = report.outcome else { panic!("no page") };
    let front = page.front.unwrap();
    assert_eq!((front.language.as_deref(), front.title.as_deref()), (Some("sw"), Some("Makumbusho")));
    assert_eq!(
        (front.script.as_deref(), front.charset.as_deref(), front.generator.as_deref()),
        (Some("Latn"), Some("UTF-8"), Some("Jiko 2"))
    );
    let told = [
        Fact::Http(HttpVersion::Http11),
        Fact::Guard(Guard::Cloudflare),
        Fact::ContentUsage("train-ai=n".to_owned()),
        Fact::TdmReservation(true),
    ];
    assert_eq!(report.facts, told);
    order.front = false;
    let FetchOutcome::Page { page, .. } = fetcher.fetch(order).await.outcome else { panic!("no page") };
    assert_eq!(page.front, None);

    let report = ask(vec![answer("200 OK", "Content-Type: text/html\r\n", b"<div id=\"anubis_challenge\">")], FetchPurpose::Page).await;
    assert_eq!(report.outcome, FetchOutcome::Failed(FetchError::Challenged));
    assert!(report.facts.contains(&Fact::Guard(Guard::Anubis)), "{:?}", report.facts);
}
