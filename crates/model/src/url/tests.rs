//! Tests of URLs: tables of odd ones that try to mislead, and properties over random ones.

use super::*;
use proptest::prelude::*;

fn parsed(text: &str) -> String {
    match PageUrl::parse(text) {
        Ok(url) => url.as_str().to_owned(),
        Err(refusal) => format!("{refusal:?}"),
    }
}

/// Every spelling of an address comes out as the address, so that the address table can refuse it.
#[test]
fn odd_spellings_of_addresses_are_addresses() {
    let table = [
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://0/", "0.0.0.0"),
        ("http://0.0.0.0/", "0.0.0.0"),
        ("http://127.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f000001/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://%31%32%37.0.0.1/", "127.0.0.1"),
        ("http://127。0。0。1/", "127.0.0.1"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://①②⑦.0.0.1/", "127.0.0.1"),
        ("http://169.254.169.254/", "169.254.169.254"),
        ("http://good.example@169.254.169.254/", "169.254.169.254"),
        ("http://good.example\\@169.254.169.254/", "good.example"),
        ("http://[::1]/", "::1"),
        ("http://[::]/", "::"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"),
        ("http://[::FFFF:7f00:1]/", "::ffff:7f00:1"),
        ("http://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1"),
        ("http://[2002:7f00:1::]/", "2002:7f00:1::"),
        ("http://[fd00:ec2::254]/", "fd00:ec2::254"),
    ];
    for (text, expected) in table {
        let url = PageUrl::parse(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        assert_eq!(url.host_str(), expected, "{text}");
        assert_eq!(url.host().as_str(), expected, "{text}");
        if expected != "good.example" {
            assert_eq!(url.host().address(), Some(expected.parse().unwrap()), "{text}");
        }
        assert_eq!(url.host(), expected.parse::<Host>().unwrap(), "{text}: the host read alone is another one");
        assert_eq!(url.origin().page(url.path_and_query()).unwrap(), url, "{text}");
    }
}

#[test]
fn urls_come_out_in_one_spelling() {
    let table = [
        ("HTTP://WWW.Example.KE", "http://www.example.ke/"),
        ("http://example.ke:80/", "http://example.ke/"),
        ("https://example.ke:443/", "https://example.ke/"),
        ("https://example.ke:80/", "https://example.ke:80/"),
        ("http://example.ke:8080/a", "http://example.ke:8080/a"),
        ("http://example.ke:0/", "http://example.ke:0/"),
        ("http://example.ke:/", "http://example.ke/"),
        ("http://example.ke./a", "http://example.ke/a"),
        ("http://localhost./", "http://localhost/"),
        ("http://example.ke.:8080/a", "http://example.ke:8080/a"),
        ("http://good@evil.example/", "http://evil.example/"),
        ("http://user:secret@example.ke:81/x", "http://example.ke:81/x"),
        ("http://example.ke/a#b", "http://example.ke/a"),
        ("http://example.ke/a?b#c?d", "http://example.ke/a?b"),
        ("http://example.ke?", "http://example.ke/?"),
        ("http:\\\\example.ke\\a\\b", "http://example.ke/a/b"),
        ("  http://example.ke/a \n", "http://example.ke/a"),
        ("ht\ntp://exa\tmple.ke/a\r\nb", "http://example.ke/ab"),
        ("http:///example.ke/", "http://example.ke/"),
        ("http:example.ke/", "http://example.ke/"),
        ("http://example.ke/a/../b/./c", "http://example.ke/b/c"),
        ("http://example.ke/%2e%2E/%2e/c", "http://example.ke/c"),
        ("http://example.ke/ü?ü", "http://example.ke/%C3%BC?%C3%BC"),
        ("http://example.ke/\u{202e}g\0pj", "http://example.ke/%E2%80%AEg%00pj"),
        ("http://exam\u{ad}ple.ke/", "http://example.ke/"),
        ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://example。ke/", "http://example.ke/"),
        ("http://example.ke/", "http://example.ke/"),
        ("http://a_b.example.ke/", "http://a_b.example.ke/"),
    ];
    for (text, expected) in table {
        assert_eq!(parsed(text), expected, "{text:?}");
    }
}

#[test]
fn what_cannot_be_crawled_is_refused_by_name() {
    let label = "a".repeat(64);
    let name = format!("{}.ke", vec!["a".repeat(49); 6].join("."));
    let table = [
        ("", "Malformed"),
        ("example.ke", "Malformed"),
        ("/a", "Malformed"),
        ("http://", "Malformed"),
        ("http://exa mple.ke/", "Malformed"),
        ("http://example.ke:65536/", "Malformed"),
        ("http://[fe80::1%25eth0]/", "Malformed"),
        ("http://256.256.256.256/", "Malformed"),
        ("http://1.2.3.4.5/", "Malformed"),
        ("http://0xfffffffff/", "Malformed"),
        ("http://xn--a.example/", "Malformed"),
        ("http://xn--abc-.example/", "Malformed"),
        ("mailto:a@example.ke", "Scheme"),
        ("javascript:alert(1)", "Scheme"),
        ("ftp://example.ke/", "Scheme"),
        ("file:///etc/passwd", "Scheme"),
        ("data:text/html,x", "Scheme"),
        ("http://a..ke/", "Host"),
        ("http://.ke/", "Host"),
        ("http://example.ke../", "Host"),
        ("http://127.0.0.1../", "Host"),
        ("http://./", "Host"),
        ("http://*.ke/", "Host"),
        ("http://a'b.ke/", "Host"),
        ("http://a;b.ke/", "Host"),
        (&format!("http://{label}.ke/"), "Host"),
        (&format!("http://{name}/"), "Host"),
        (&format!("http://example.ke/{}", "a".repeat(MAX_URL)), "TooLong"),
        (&format!("http://example.ke/{}", "ü".repeat(MAX_URL / 3)), "TooLong"),
        (&format!("http://example.ke/#{}", "a".repeat(10 * MAX_REFERENCE)), "TooLong"),
        ("http://example.ke/a/a/a/", "TrapPath"),
        (&format!("http://example.ke{}", (0..21).map(|i| format!("/{i}")).collect::<String>()), "TrapPath"),
    ];
    for (text, expected) in table {
        assert_eq!(parsed(text), expected, "{text:.60}");
    }
    assert_eq!(parsed(&format!("http://example.ke/#{}", "a".repeat(MAX_URL))), "http://example.ke/");
}

#[test]
fn the_parts_of_a_url() {
    let url = PageUrl::parse("https://[2001:db8::1]:8443/a/b.php?x=1").unwrap();
    assert_eq!((url.host_str(), url.port(), url.path(), url.query()), ("2001:db8::1", 8443, "/a/b.php", Some("x=1")));
    assert_eq!(url.path_and_query(), "/a/b.php?x=1");
    assert_eq!(url.script(), Some("https://[2001:db8::1]:8443/a/b.php"));
    assert_eq!(url.root().as_str(), "https://[2001:db8::1]:8443/");
    assert_eq!(url.root(), PageUrl::parse("https://[2001:db8::1]:8443").unwrap());
    assert_eq!(url.origin().to_string(), "https://[2001:db8::1]:8443");
    let plain = PageUrl::parse("http://example.ke").unwrap();
    assert_eq!((plain.port(), plain.path(), plain.query(), plain.script()), (80, "/", None, None));
    assert_eq!(PageUrl::parse("http://example.ke/?").unwrap().query(), Some(""));
    assert!(size_of::<PageUrl>() <= 24);
}

#[test]
fn internal_is_the_start_host_and_below() {
    let table = [
        ("example.ke", "example.ke", true),
        ("a.example.ke", "example.ke", true),
        ("a.b.example.ke", "example.ke", true),
        ("example.ke", "a.example.ke", false),
        ("b.example.ke", "a.example.ke", false),
        ("notexample.ke", "example.ke", false),
        ("example.co.ke", "co.ke", false),
        ("co.ke", "co.ke", true),
        ("someone.blogspot.com", "blogspot.com", false),
        ("x.someone.blogspot.com", "someone.blogspot.com", true),
        ("a.docs.test", "docs.test", true),
        ("docs.test", "test", false),
        ("a.docs.test", "test", false),
        ("1.127.0.0.1.ke", "127.0.0.1.ke", true),
        ("10.0.0.1", "0.0.1", false),
        ("a.localhost", "localhost", false),
    ];
    for (host, ancestor, expected) in table {
        let (host, ancestor): (Host, Host) = (host.parse().unwrap(), ancestor.parse().unwrap());
        assert_eq!(host.is_within(&ancestor), expected, "{host} within {ancestor}");
    }
}

#[test]
fn families_of_hosts() {
    let host = |text: &str| text.parse::<Host>().unwrap();
    assert_eq!(host("a.b.ke").parent(), Some(host("b.ke")));
    assert_eq!(host("b.co.ke").parent(), None);
    assert_eq!(host("docs.test").parent(), None);
    assert_eq!(host("a.docs.test").parent(), Some(host("docs.test")));
    assert_eq!(host("10.0.0.1").parent(), None);
    assert_eq!(host("::1").parent(), None);
    assert_eq!(host("a.b.co.ke").registrable(), Some("b.co.ke"));
    assert_eq!(host("co.ke").registrable(), None);
    assert_eq!(host("a.docs.test").registrable(), Some("docs.test"));
    assert_eq!(host("10.0.0.1").registrable(), None);
    assert_eq!(host("example.ke").tld(), Some("ke"));
    assert_eq!(host("10.0.0.1").tld(), None);
    assert_eq!(host("[::1]"), host("::1"));
    assert!("a b".parse::<Host>().is_err());
    assert!("a/b".parse::<Host>().is_err());
    assert!("".parse::<Host>().is_err());
    assert!("a".repeat(1_000_000).parse::<Host>().is_err());
}

#[test]
fn a_tree_is_named_without_www_but_never_by_a_public_suffix() {
    let host = |text: &str| text.parse::<Host>().unwrap();
    let table = [
        ("www.example.ke", "example.ke"),
        ("example.ke", "example.ke"),
        ("www.www.example.co.ke", "example.co.ke"),
        ("www.shop.example.ke", "shop.example.ke"),
        ("www.co.ke", "www.co.ke"),
        ("www.www.co.ke", "www.co.ke"),
        ("www.ke", "www.ke"),
        ("www.blogspot.com", "www.blogspot.com"),
        ("www.test", "www.test"),
        ("www", "www"),
        ("www2.example.ke", "www2.example.ke"),
        ("awww.example.ke", "awww.example.ke"),
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
    ];
    for (name, tree) in table {
        let (start, tree) = (host(name), host(tree));
        assert_eq!(start.without_www(), tree, "{name}");
        assert_eq!(tree.without_www(), tree, "{name}: a tree's name is its own");
        assert!(start.is_within(&tree) && start.may_start(&tree) && start.may_start(&start), "{name}");
    }
    assert!(!host("shop.example.ke").may_start(&host("example.ke")) && !host("example.ke").may_start(&host("www.example.ke")));
}

/// Joins through every way there is, and checks that they agree with the url crate.
fn join_every_way(base: &str, reference: &str) -> Result<PageUrl, UrlError> {
    let base = PageUrl::parse(base).unwrap();
    let exact = join::exactly(&url::Url::parse(base.as_str()).unwrap(), reference, None);
    assert_eq!(base.join(reference), exact, "{base} + {reference:?}");
    assert_eq!(join_behind_another(&mut LinkBase::new(base.clone()), reference, None), exact, "{base} + {reference:?}");
    exact
}

/// Joins as links are: each text behind the one before.
fn join_behind_another(base: &mut LinkBase, reference: &str, encoding: Option<QueryEncoding<'_>>) -> Result<PageUrl, UrlError> {
    let mut texts = "http://another.test/".to_owned();
    let before = texts.len();
    let parts = base.join_into(reference, encoding, &mut texts);
    assert_eq!(parts.is_err(), texts.len() == before, "{reference:?}: what leads nowhere leaves no trace");
    parts.map(|parts| UrlRef::new(&texts[before..], parts).to_url())
}

#[test]
fn references_lead_where_the_standard_says() {
    let base = "http://docs.test/manual/en/mod/core.html?x=1";
    let table = [
        ("", "http://docs.test/manual/en/mod/core.html?x=1"),
        ("#top", "http://docs.test/manual/en/mod/core.html?x=1"),
        ("?y", "http://docs.test/manual/en/mod/core.html?y"),
        ("/", "http://docs.test/"),
        ("/a/b.html#c", "http://docs.test/a/b.html"),
        ("b.html", "http://docs.test/manual/en/mod/b.html"),
        ("./b.html", "http://docs.test/manual/en/mod/b.html"),
        ("../", "http://docs.test/manual/en/"),
        ("../b.html?q=a/../b", "http://docs.test/manual/en/b.html?q=a/../b"),
        ("../../../../../b", "http://docs.test/b"),
        ("a/../../b", "http://docs.test/manual/en/b"),
        ("a/%2e%2e/b", "http://docs.test/manual/en/mod/b"),
        (".../b", "http://docs.test/manual/en/mod/.../b"),
        ("..", "http://docs.test/manual/en/"),
        ("//other.test/x", "http://other.test/x"),
        ("http:b.html", "http://docs.test/manual/en/mod/b.html"),
        ("https:b.html", "https://b.html/"),
        ("https://docs.test/x", "https://docs.test/x"),
        ("http://docs.test/manual/x", "http://docs.test/manual/x"),
        ("http://docs.testing/x", "http://docs.testing/x"),
        ("http://OTHER.test/x", "http://other.test/x"),
        ("http://0x7f.1/x", "http://127.0.0.1/x"),
        ("http://1.0x7f/x", "http://1.0.0.127/x"),
        (" \t/a b", "http://docs.test/a%20b"),
        ("/a'b?a'b", "http://docs.test/a'b?a%27b"),
        ("\\x", "http://docs.test/x"),
        ("/\\other.test/x", "http://other.test/x"),
        ("a:b", "Scheme"),
        ("mailto:x@y", "Scheme"),
        ("JavaScript:void(0)", "Scheme"),
        ("http://", "Malformed"),
        ("/x/x/x/x", "TrapPath"),
    ];
    for (reference, expected) in table {
        let found = join_every_way(base, reference).map_or_else(|refusal| format!("{refusal:?}"), String::from);
        assert_eq!(found, expected, "{reference:?}");
    }
    let endless = "a".repeat(2 << 20);
    assert_eq!(join_every_way(base, &endless), Err(UrlError::TooLong));
}

#[test]
fn a_query_is_encoded_as_the_page_is() {
    fn latin(text: &str) -> std::borrow::Cow<'_, [u8]> {
        text.chars().map(|c| c as u8).collect::<Vec<u8>>().into()
    }
    let mut base = LinkBase::new(PageUrl::parse("http://docs.test/").unwrap());
    assert_eq!(join_behind_another(&mut base, "/ü?ü", Some(&latin)).unwrap().as_str(), "http://docs.test/%C3%BC?%FC");
}

/// Texts near the edges of the URL grammar.
fn reference() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z]{1,3}",
        4 => Just("/".to_owned()),
        2 => Just("../".to_owned()),
        1 => Just("./".to_owned()),
        3 => prop::sample::select(vec![
            ".", "..", "?", "#", "%2e", "%2E%2e", "%41", "%", ":", "@", "\\", "//", "http:", "https:", "http://", "https://", "x.test", "0x7f", "1",
            "xn--", "XN--", " ", "\t", "\n", "ü", "\0", "'", "\"", "<", "|", "^", "`", "{", "[", "]", "~", "*", "docs.test", "docs.test:8080", "&", ";", "é", "\u{ad}",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]

    #[test]
    fn reading_back_changes_nothing(reference in reference()) {
        for text in [format!("http://{reference}"), format!("https://docs.test/{reference}")] {
            if let Ok(url) = PageUrl::parse(&text) {
                prop_assert_eq!(&PageUrl::parse(url.as_str()), &Ok(url.clone()));
                prop_assert_eq!(url.origin().page(url.path_and_query()), Ok(url.clone()));
                prop_assert_eq!(url.host_str().parse::<Host>(), Ok(url.host()));
                prop_assert!(url.as_str().is_ascii());
                let whole = url::Url::parse(url.as_str()).unwrap();
                prop_assert_eq!(url.port(), whole.port_or_known_default().unwrap());
                prop_assert_eq!(url.path(), whole.path());
                prop_assert_eq!(url.query(), whole.query());
            }
        }
    }

    /// Whatever numbers, bases, escapes and scripts an IPv4 address is written in, it comes out as the address.
    #[test]
    fn every_spelling_of_an_address_is_the_address(bits in any::<u32>(), parts in 1usize..=4, bases in any::<[u8; 4]>(), dress in any::<u64>()) {
        // The last part stands for all the bytes that are left.
        let numbers = (0..parts).map(|part| if part + 1 == parts { bits << (8 * part) >> (8 * part) } else { bits >> (24 - 8 * part) & 0xff });
        let plain: Vec<String> = numbers.zip(bases).map(|(number, base)| match base % 4 {
            0 => format!("0x{number:x}"),
            1 => format!("0X{number:08X}"),
            2 => format!("0{number:o}"),
            _ => number.to_string(),
        }).collect();
        let dressed: String = plain.join(".").chars().enumerate().map(|(at, letter)| match (dress >> (2 * at % 64) & 3, letter) {
            (0, letter) => format!("%{:02x}", letter as u32),
            (1, '.') => "\u{3002}".to_owned(),
            (1, letter) => char::from_u32(letter as u32 + 0xfee0).unwrap().to_string(),
            _ => letter.to_string(),
        }).collect();
        let expected = std::net::Ipv4Addr::from_bits(bits);
        for text in [format!("http://{dressed}/"), format!("http://good.example@{dressed}.:80/x"), format!("http://[::ffff:{expected}]/")] {
            let host = PageUrl::parse(&text).unwrap_or_else(|refusal| panic!("{text}: {refusal}")).host();
            prop_assert_eq!(host.address().map(|address| address.to_canonical()), Some(expected.into()), "{}", text);
        }
    }

    #[test]
    fn joining_is_exact(reference in reference(), base in 0usize..5) {
        let bases = ["http://docs.test/", "http://docs.test/a/b/c.html?q", "https://docs.test:8080/a//b/", "http://[::1]/x/", "http://10.0.0.1/a/b"];
        let _ = join_every_way(bases[base], &reference);
    }
}
