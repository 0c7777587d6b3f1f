//! Tests with broken and hostile files: each is refused or counted as a reject, and none causes a panic.

use super::*;
use crate::report::MAX_EXAMPLES;
use std::io::{self, BufRead, Read};

/// What must become of a file.
enum Fate {
    /// Refused for lines like this.
    Bad(LineError),
    /// Refused because its counts do not agree.
    Summary,
    /// Refused because nothing in it is of use.
    Nothing,
    /// Refused because of its version.
    Version,
    /// Taken: so many records are used.
    Taken(u64),
    /// Taken, but no tree can be made of it.
    NoTree,
}
use Fate::*;

const GOOD: &str = "lab|KE|ipv4|127.1.0.0|256|20000101|allocated|a\n";

fn delegated(line: &str) -> Vec<u8> {
    format!("{GOOD}{line}\n").into_bytes()
}

fn whois(object: &str) -> Vec<u8> {
    format!("inetnum: 10.200.0.0 - 10.200.0.255\nnetname: GOOD\nsource: LAB\n\n{object}\n").into_bytes()
}

fn with(good: &str, line: &str) -> Vec<u8> {
    format!("{good}\n{line}\n").into_bytes()
}

fn utf16(text: &str) -> Vec<u8> {
    [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

/// The corpus: what it is, how it is read, what must become of it.
fn corpus() -> Vec<(&'static str, Format, Vec<u8>, Fate)> {
    let long = "x".repeat(64 << 10);
    let nested: String = (8..=28).map(|l| format!("lab|KE|ipv4|10.0.0.0|{}|20000101|allocated|a\n", 1u64 << (32 - l))).collect();
    let owner_of_all: String = (0..200).map(|n| format!("lab|KE|ipv4|10.{n}.0.0|65536|20000101|allocated|everything\n")).collect();
    let mut cases = Vec::new();
    let mut add = |what, format, bytes: Vec<u8>, fate| cases.push((what, format, bytes, fate));
    let d = Format::Delegated;
    add("empty", d, vec![], Nothing);
    add("only a comment", d, b"# nothing\n".to_vec(), Nothing);
    add("only a header", d, b"2|lab|1|0|19700101|20200101|0\n".to_vec(), Nothing);
    add("only unheld space", d, b"lab||ipv4|10.0.0.0|256||available|\n".to_vec(), Nothing);
    add("an error page", d, b"<html>\n<body>502 Bad Gateway</body>\n</html>\n".to_vec(), Bad(LineError::MissingFields));
    add("cut off after a line", d, [b"2|lab|1|9|19700101|20200101|0\n", GOOD.as_bytes()].concat(), Summary);
    add("cut off within a line", d, delegated("lab|KE|ipv4|10.0.0.0|25"), Bad(LineError::MissingFields));
    add("a summary that promises more", d, delegated("lab|*|ipv4|*|3|summary"), Summary);
    add("a summary that promises less", d, delegated("lab|*|ipv4|*|0|summary"), Summary);
    add("a summary without a number", d, delegated("lab|*|ipv4|*|many|summary"), Bad(LineError::Summary));
    add("a negative count", d, delegated("lab|KE|ipv4|10.0.0.0|-256|20000101|allocated|a"), Bad(LineError::Count));
    add("a count of nothing", d, delegated("lab|KE|ipv4|10.0.0.0|0|20000101|allocated|a"), Bad(LineError::Count));
    add("a count beyond 64 bits", d, delegated("lab|KE|ipv4|10.0.0.0|99999999999999999999|20000101|allocated|a"), Bad(LineError::Count));
    add("a count of 2^32", d, delegated("lab|KE|ipv4|10.0.0.0|4294967296|20000101|allocated|a"), Bad(LineError::Overflow));
    add("past the last address", d, delegated("lab|KE|ipv4|255.255.255.0|512|20000101|allocated|a"), Bad(LineError::Overflow));
    add("half of all addresses", d, delegated("lab|KE|ipv4|0.0.0.0|2147483648|20000101|allocated|a"), Bad(LineError::TooLarge));
    add("a prefix of 129 bits", d, delegated("lab|KE|ipv6|2001:db8::|129|20000101|allocated|a"), Bad(LineError::PrefixTooLong));
    add("all of IPv6", d, delegated("lab|KE|ipv6|::|0|20000101|allocated|a"), Bad(LineError::TooLarge));
    add("bits beyond the prefix", d, delegated("lab|KE|ipv6|2001:db8::1|32|20000101|allocated|a"), Bad(LineError::HostBits));
    add("an unknown status", d, delegated("lab|KE|ipv4|10.0.0.0|256|20000101|stolen|a"), Bad(LineError::Status));
    add("an unknown country", d, delegated("lab|K1|ipv4|10.0.0.0|256|20000101|allocated|a"), Bad(LineError::Country));
    add("an unknown type", d, delegated("lab|KE|ipx|10.0.0.0|256|20000101|allocated|a"), Bad(LineError::Type));
    add("a registry that shouts", d, delegated("LAB|KE|ipv4|10.0.0.0|256|20000101|allocated|a"), Bad(LineError::Registry));
    add("AS numbers beyond 32 bits", d, delegated("lab|KE|asn|4294967295|2|20000101|allocated|a"), Bad(LineError::Overflow));
    add("a holder of 64 KiB", d, delegated(&format!("lab|KE|ipv4|10.0.0.0|256|20000101|allocated|{long}")), Bad(LineError::TooLong));
    add("a holder that commands terminals", d, delegated("lab|KE|ipv4|10.0.0.0|256|20000101|allocated|\u{1b}[2J"), Bad(LineError::Holder));
    add("UTF-16", d, utf16(GOOD), Bad(LineError::NotText));
    add("Latin-1", d, b"lab|KE|ipv4|10.0.0.0|256|20000101|allocated|caf\xe9\n".to_vec(), Bad(LineError::NotText));
    add("NUL bytes", d, delegated("lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\0b"), Bad(LineError::NotText));
    add("the next version", d, [b"3|lab|1|1|19700101|20200101|0\n", GOOD.as_bytes()].concat(), Version);
    add("two headers", d, b"2|lab|1||19700101|20200101|0\n2|lab|1||19700101|20200101|0\n".to_vec(), Bad(LineError::SecondHeader));
    add("deeper than any", d, nested.into_bytes(), NoTree);
    add("line ends of Windows", d, GOOD.replace('\n', "\r\n").into_bytes(), Taken(1));
    add("no last line end", d, GOOD.trim_end().as_bytes().to_vec(), Taken(1));
    add("a byte order mark", d, format!("\u{feff}{GOOD}").into_bytes(), Taken(1));
    add("no date", d, delegated("lab|KE|ipv4|10.0.0.0|256|00000000|allocated|a"), Taken(2));
    add("an absurd date", d, delegated("lab|KE|ipv4|10.0.0.0|256|99999999|allocated|a"), Taken(2));
    add("the same twice", d, delegated(GOOD.trim_end()), Taken(2));
    add("two holders of one range", d, delegated("lab|KE|ipv4|127.1.0.0|256|20000101|allocated|b"), Taken(2));
    add("ranges that overlap askew", d, delegated("lab|KE|ipv4|127.0.255.128|256|20000101|allocated|b"), Taken(2));
    add("reserved space, allocated", d, delegated("lab|KE|ipv4|240.0.0.0|268435456|20000101|allocated|b"), Taken(2));
    add("one holder of nearly all", d, owner_of_all.into_bytes(), Taken(200));
    add("one id at two registries", d, delegated("bal|KE|ipv4|10.0.0.0|256|20000101|allocated|a"), Taken(2));
    let w = Format::Whois;
    add("only persons", w, b"person: Nobody\nnic-hdl: N1\n\nrole: Nothing\n".to_vec(), Nothing);
    add("a range that ends before it begins", w, whois("inetnum: 10.0.0.9 - 10.0.0.1"), Bad(LineError::End));
    add("a range without an end", w, whois("inetnum: 10.0.0.0 -"), Bad(LineError::End));
    add("no address", w, whois("inetnum: somewhere"), Bad(LineError::Start));
    add("nothing at all", w, whois("inetnum:"), Bad(LineError::Start));
    add("IPv4 in an inet6num", w, whois("inet6num: 10.0.0.0/8"), Bad(LineError::Start));
    add("both families in one range", w, whois("inetnum: 10.0.0.0 - 2001:db8::"), Bad(LineError::End));
    add("a prefix of 33 bits", w, whois("inetnum: 10.0.0.0/33"), Bad(LineError::PrefixTooLong));
    add("bits beyond the prefix in WHOIS", w, whois("inet6num: 2001:db8::1/32"), Bad(LineError::HostBits));
    add("too many parts of an address", w, whois("inetnum: 10.0.0.0.0/8"), Bad(LineError::Start));
    add("a country in words", w, whois("inetnum: 10.0.0.0 - 10.0.0.255\ncountry: Kenya"), Bad(LineError::Country));
    add("somebody has everything", w, whois("inetnum: 0.0.0.0 - 255.255.255.255\nstatus: ASSIGNED PA"), Bad(LineError::TooLarge));
    add("nobody has everything", w, b"inetnum: 0.0.0.0 - 255.255.255.255\nstatus: ALLOCATED UNSPECIFIED\n".to_vec(), Nothing);
    add("a line that says nothing", w, whois("inetnum: 10.0.0.0 - 10.0.0.255\nnonsense"), Bad(LineError::MissingFields));
    add("a continuation of nothing", w, whois("\n   of what?"), Bad(LineError::MissingFields));
    add("a netname of 64 KiB", w, whois(&format!("inetnum: 10.0.0.0 - 10.0.0.255\nnetname: {long}")), Bad(LineError::TooLong));
    add("NUL bytes in a name", w, whois("inetnum: 10.0.0.0 - 10.0.0.255\nnetname: A\0B"), Bad(LineError::NotText));
    add("a remark of 64 KiB", w, whois(&format!("inetnum: 10.0.0.0 - 10.0.0.255\nremarks: {long}")), Taken(2));
    add("ten thousand maintainers", w, whois(&format!("inetnum: 10.0.0.0 - 10.0.0.255\n{}", "mnt-by: M\n".repeat(10_000))), Taken(2));
    add(
        "ten thousand continuations",
        w,
        whois(&format!("inetnum: 10.0.0.0 - 10.0.0.255\norg: O\n{}", "+ more\n".repeat(10_000))),
        Taken(2),
    );
    add("an organisation of 900 letters", w, whois(&format!("inetnum: 10.0.0.0 - 10.0.0.255\norg: {}", &long[..900])), Taken(2));
    add("no line between two objects", w, whois("inetnum: 10.0.0.0 - 10.0.0.255\ninetnum: 10.0.1.0 - 10.0.1.255"), Taken(3));
    add("no range at ARIN", w, whois("NetHandle: NET-1\nOrgID: X"), Bad(LineError::MissingFields));
    add("half a range at ARIN", w, whois("NetHandle: NET-1\nNetRange: 10.0.0.0"), Bad(LineError::End));
    add("IPv6 in a NetHandle", w, whois("NetHandle: NET-1\nNetRange: 2001:db8:: - 2001:db8::ff"), Bad(LineError::Start));
    add("UTF-16 as WHOIS", w, utf16("inetnum: 10.0.0.0 - 10.0.0.255\n"), Bad(LineError::NotText));
    let n = Format::Networks;
    let good = "10.0.0.0/24\tKE\t7\tSeven";
    add("a network with bits beyond", n, with(good, "10.0.0.1/24\tKE\t\t"), Bad(LineError::HostBits));
    add("a network without a length", n, with(good, "10.0.0.0\tKE\t\t"), Bad(LineError::Start));
    add("a network of everything", n, with(good, "0.0.0.0/0\tKE\t\t"), Bad(LineError::TooLarge));
    add("a network of 129 bits", n, with(good, "::/129\tKE\t\t"), Bad(LineError::PrefixTooLong));
    add("a network in no country", n, with(good, "10.0.0.0/25\tKenya\t\t"), Bad(LineError::Country));
    add("a network of no system", n, with(good, "10.0.0.0/25\tKE\tseven\t"), Bad(LineError::System));
    add("a system beyond 32 bits", n, with(good, "10.0.0.0/25\tKE\t4294967296\t"), Bad(LineError::System));
    add("the names of the columns", n, with("prefix,country,asn,name", "10.0.0.0/25,KE,7,\"Seven, \"\"Ltd\"\"\""), Taken(1));
    let r = Format::Routes;
    let good = "10.0.0.0,10.0.0.255,7,Seven";
    add("a route that ends before it begins", r, with(good, "10.0.0.9,10.0.0.1,7,x"), Bad(LineError::End));
    add("a route to another family", r, with(good, "10.0.0.0,::1,7,x"), Bad(LineError::End));
    add("a route of everything", r, with(good, "0.0.0.0,255.255.255.255,7,x"), Bad(LineError::TooLarge));
    add("a route of nobody", r, with(good, "10.0.0.0,10.0.0.255"), Bad(LineError::MissingFields));
    add("a route of no number", r, with(good, "10.0.0.0,10.0.0.255,many,x"), Bad(LineError::System));
    let c = Format::Countries;
    let good = "10.0.0.0,10.0.0.255,KE";
    add("a range without a country", c, with(good, "10.0.1.0,10.0.1.255,"), Bad(LineError::Country));
    add("a range without an address", c, with(good, "x,10.0.1.255,KE"), Bad(LineError::Start));
    cases
}

#[test]
fn every_broken_file_meets_its_fate() {
    let corpus = corpus();
    assert!(corpus.len() >= 40);
    for (what, format, bytes, fate) in corpus {
        let mut builder = Builder::new();
        let outcome = builder.read(what, &*bytes, format, RoutedUse::default());
        match (&fate, &outcome) {
            (Bad(line), Err(ReadError::LineErrors(report))) => {
                let bad = report.bad.get(line).unwrap_or_else(|| panic!("{what}: {report}"));
                assert!(bad.first_line() > 0 && bad.examples.len() <= MAX_EXAMPLES, "{what}: {report}");
                assert!(
                    bad.examples.iter().all(|e| e.text.chars().count() <= 80 && !e.text.contains(char::is_control)),
                    "{what}: {report}"
                );
            }
            (Summary, Err(ReadError::Summary(_))) | (Nothing, Err(ReadError::Nothing(_))) | (Version, Err(ReadError::Version { .. })) => {}
            (Taken(used), Ok(report)) => assert_eq!((report.used, report.bad_lines()), (*used, 0), "{what}: {report}"),
            (NoTree, Ok(_)) => {}
            (_, outcome) => panic!("{what}: {outcome:?}"),
        }
        let tree = builder.finish();
        match fate {
            NoTree => assert!(matches!(tree, Err(AssemblyError::Nesting(_))), "{what}"),
            Taken(_) => assert!(!tree.unwrap().is_empty(), "{what}"),
            _ => assert!(tree.unwrap().is_empty(), "{what}: refused files leave nothing behind"),
        }
        // Whoever overrules gets the good lines and no others.
        let mut builder = Builder::new().overrule(true);
        let taken = builder.read(what, &*bytes, format, RoutedUse::default());
        assert_eq!(taken.is_ok(), !matches!(fate, Version), "{what}: {taken:?}");
        assert!(builder.finish().is_ok() || matches!(fate, NoTree), "{what}");
    }
}

#[test]
fn a_bad_line_in_a_thousand_is_counted_with_its_examples() {
    let mut text: String = (0..5000).map(|n| format!("10.{}.{}.0/24,KE,7,x\n", n / 256, n % 256)).collect();
    text += &"nonsense\u{7}\n".repeat(5);
    let report = Builder::new().read_networks("networks", text.as_bytes()).unwrap();
    let bad = &report.bad[&LineError::Start];
    assert_eq!((bad.count, bad.examples.len(), bad.first_line(), &*bad.examples[2].text), (5, MAX_EXAMPLES, 5001, "nonsense·"));
    assert!(report.to_string().contains("5001: nonsense·"), "{report}");
}

#[test]
fn an_endless_line_ends_at_the_limit_of_a_file() {
    /// The same letter for ever, a mebibyte at once.
    struct Endless(Vec<u8>);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    impl BufRead for Endless {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            Ok(&self.0)
        }
        fn consume(&mut self, _: usize) {}
    }
    for format in [Format::Delegated, Format::Whois] {
        let refusal = Builder::new().read("endless", Endless(vec![b'x'; 1 << 20]), format, RoutedUse::default()).unwrap_err();
        assert!(matches!(refusal, ReadError::TooLarge(_)), "{refusal}");
    }
}

/// Changes a text as accidents and enemies do: bytes, lines, and pieces of other places.
fn mutate(bytes: &mut Vec<u8>, draw: &mut impl FnMut(usize) -> usize) {
    const TREATS: [&[u8]; 14] =
        [b"\n", b"|", b",", b"\t", b":", b"/", b"-", b"\0", b"\xff", b"4294967296", b"::", b"inetnum:", b"\n\n", b" - 255.255.255.255"];
    for _ in 0..=draw(6) {
        let at = draw(bytes.len() + 1);
        match draw(5) {
            0 if at < bytes.len() => bytes[at] = draw(256) as u8,
            1 => drop(bytes.splice(at..at, TREATS[draw(TREATS.len())].iter().copied())),
            2 => drop(bytes.drain(at..(at + draw(20)).min(bytes.len()))),
            3 => bytes.truncate(at.max(1)),
            _ => {
                let from = draw(bytes.len() + 1);
                let piece = bytes[from..(from + draw(60)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, piece));
            }
        }
    }
}

#[test]
fn mutated_files_never_panic_and_what_they_leave_is_sound() {
    let mut state = 20_261_121u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let whois = "# terms\n\ninetnum: 10.1.0.0 - 10.1.5.255\nnetname: A\ncountry: KE\norg: ORG-A\nmnt-by: B, C\n  D\nlast-modified: 2020-01-01T00:00:00Z\nsource: RIPE\n\n\
        inet6num: 2001:db8::/32\nmnt-by: M\nsource: LAB\n\nNetHandle: NET-1\nOrgID: X\nNetRange: 10.3.0.0 - 10.3.2.255\nSource: ARIN\n\nOrgID: X\nOrgName: Ex\nCountry: US\n";
    let delegated =
        format!("2|lab|1||19700101|20200101|0\n{GOOD}lab|UG|ipv6|2001:db8::|32|20000101|assigned|b\nlab|UG|asn|7|3|20000101|allocated|b\n");
    let tables = [
        (Format::Networks, "10.0.0.0/8\tAU\t\t\n10.1.0.0/16\tKE\t7\tSeven\n2001:db8:1::/48\t\t8\t\n"),
        (Format::Routes, "10.1.0.0,10.1.9.255,7,\"Se\"\"ven\"\n2001:db8::,2001:db8::ffff,8,Eight\n"),
        (Format::Countries, "10.1.0.0,10.1.1.255,UG\n10.1.3.0,10.1.3.255,KE\n"),
    ];
    let bases: Vec<(Format, &str)> = [(Format::Whois, whois), (Format::Delegated, &*delegated)].into_iter().chain(tables).collect();
    let (mut taken, mut refused) = (0, 0);
    for round in 0..300 {
        let mut builder = Builder::new().overrule(round % 2 == 0);
        for (format, text) in &bases {
            let mut bytes = text.as_bytes().to_vec();
            mutate(&mut bytes, &mut draw);
            let _ = Format::of(&bytes);
            match builder.read("mutant", &*bytes, *format, RoutedUse::default()) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
        }
        let Ok(hierarchy) = builder.finish() else { continue };
        // Sampled: opening checks everything, and takes its time.
        if round % 10 == 0 {
            assert_eq!(unpack(&pack(&hierarchy)).unwrap().hash(), hierarchy.hash());
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused: the mutations are too tame or too wild");
}
