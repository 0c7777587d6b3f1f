//! Tests that registry files are read as their formats say, and bad ones refused.

use super::*;
use std::io::{self, BufReader, Read};

fn read(text: &[u8]) -> Result<ReadReport, ReadError> {
    Builder::new().read_delegated("file", text)
}

#[test]
fn real_excerpts_are_read_whole() {
    let report = read(AFRINIC.as_bytes()).unwrap();
    assert_eq!((report.registry.as_deref(), report.date.as_deref()), (Some("afrinic"), Some("20260505")));
    assert_eq!(report.bad_lines(), 0);
    assert!(report.used > 300 && report.unheld > 0 && report.records["asn"] > 0, "{report}");
    let report = read(RIPE.as_bytes()).unwrap();
    assert!(report.prefixes > report.used, "some ranges are not aligned: {report}");
}

#[test]
fn a_range_that_is_not_aligned_keeps_its_holder_in_all_pieces() {
    let hierarchy = of("ripencc|SE|ipv4|10.0.0.0|1536|20000101|allocated|holder\nripencc|SE|ipv4|10.0.9.0|512|20000101|allocated|holder\n");
    let found: Vec<String> = positions(&hierarchy).map(|p| hierarchy.subnet(p).to_string()).collect();
    assert_eq!(found, ["10.0.0.0/22", "10.0.4.0/23", "10.0.9.0/24", "10.0.10.0/24"]);
    assert_eq!(hierarchy.organisations(), 1);
    assert_eq!(hierarchy.organisation_members(OrganisationId(0)).len(), 4);
}

#[test]
fn the_last_addresses_belong_to_somebody_too() {
    let hierarchy = of(
        "lab|KE|ipv4|255.255.255.0|256|20000101|allocated|a\nlab|KE|ipv6|ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00|120|20000101|assigned|b\n",
    );
    assert_eq!(hierarchy.subnet_of(ip("255.255.255.255")), subnet("255.255.255.0/24"));
    assert_eq!(hierarchy.subnet_of(ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")).length(), 120);
    assert_eq!(hierarchy.locate(ip("255.255.254.255")), None);
}

#[test]
fn windows_line_ends_byte_order_marks_comments_and_missing_last_line_ends_are_fine() {
    let text = "\u{feff}# a comment\r\n2|lab|1|1|20000101|20200101|0\r\nlab|*|ipv4|*|1|summary\r\n\r\nlab|ke|ipv4|127.1.0.0|65536|20000101|allocated|a";
    let mut builder = Builder::new();
    let report = builder.read_delegated("file", text.as_bytes()).unwrap();
    assert_eq!((report.lines, report.used, report.bad_lines()), (5, 1, 0));
    let hierarchy = builder.finish().unwrap();
    assert_eq!(hierarchy.country(Position(0)), "KE");
    assert_eq!(hierarchy.sources(), [Source { name: "lab".into(), date: "20200101".into() }]);
}

#[test]
fn records_without_a_holder_are_holders_of_their_own() {
    let hierarchy = of("lab|KE|ipv4|127.1.0.0|256|20000101|allocated\nlab||ipv4|127.2.0.0|256|20000101|allocated|\n");
    assert_eq!(hierarchy.organisations(), 2);
    assert_eq!(hierarchy.country(hierarchy.locate(ip("127.2.0.1")).unwrap()), "ZZ");
}

/// One good record with one bad one: what is wrong, as it must be told.
const BAD_LINES: &[(&str, LineError)] = &[
    ("lab|KE|ipv4", LineError::MissingFields),
    ("<html><body>404 Not Found</body></html>", LineError::MissingFields),
    ("lab|KE|ipv4|10.0.0.0|-256|20000101|allocated|a", LineError::Count),
    ("lab|KE|ipv4|10.0.0.0|0|20000101|allocated|a", LineError::Count),
    ("lab|KE|ipv4|10.0.0.0||20000101|allocated|a", LineError::Count),
    ("lab|KE|ipv4|10.0.0.0|99999999999999999999|20000101|allocated|a", LineError::Count),
    ("lab|KE|ipv4|10.0.0.0|4294967296|20000101|allocated|a", LineError::Overflow),
    ("lab|KE|ipv4|255.255.255.0|512|20000101|allocated|a", LineError::Overflow),
    ("lab|KE|ipv4|10.0.0.0|18446744073709551615|20000101|allocated|a", LineError::Overflow),
    ("lab|KE|ipv4|0.0.0.0|4294967296|20000101|allocated|a", LineError::TooLarge),
    ("lab|KE|ipv4|10.0.0.256|256|20000101|allocated|a", LineError::Start),
    ("lab|KE|ipv4|2001:db8::|256|20000101|allocated|a", LineError::Start),
    ("lab|KE|ipv6|2001:db8::|129|20000101|allocated|a", LineError::PrefixTooLong),
    ("lab|KE|ipv6|2001:db8::|0|20000101|allocated|a", LineError::TooLarge),
    ("lab|KE|ipv6|2001:db8::1|32|20000101|allocated|a", LineError::HostBits),
    ("lab|KE|ipv6|10.0.0.0|32|20000101|allocated|a", LineError::Start),
    ("lab|KE|ipx|10.0.0.0|256|20000101|allocated|a", LineError::Type),
    ("lab|KE|ipv4|10.0.0.0|256|20000101|stolen|a", LineError::Status),
    ("lab|KEN|ipv4|10.0.0.0|256|20000101|allocated|a", LineError::Country),
    ("lab|K1|ipv4|10.0.0.0|256|20000101|allocated|a", LineError::Country),
    ("LAB 1|KE|ipv4|10.0.0.0|256|20000101|allocated|a", LineError::Registry),
    ("|KE|ipv4|10.0.0.0|256|20000101|allocated|a", LineError::Registry),
    ("lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\u{7}b", LineError::Holder),
    ("lab|KE|asn|4294967295|2|20000101|allocated|a", LineError::Overflow),
    ("lab|KE|asn|AS12|1|20000101|allocated|a", LineError::Start),
    ("lab|*|ipv4|*|many|summary", LineError::Summary),
    ("lab|*|ipv5|*|1|summary", LineError::Summary),
    ("2|lab", LineError::MissingFields),
    ("2|lab|1|many|20000101|20200101|0", LineError::Count),
];

#[test]
fn every_bad_line_is_named_and_refuses_a_small_file() {
    for (line, wrong) in BAD_LINES {
        let text = format!("lab|KE|ipv4|127.1.0.0|256|20000101|allocated|a\n{line}\n");
        let refusal = read(text.as_bytes()).unwrap_err();
        let ReadError::LineErrors(report) = refusal else { panic!("{line}: {refusal}") };
        assert_eq!(report.bad.get(wrong).map(|bad| (bad.count, bad.first_line())), Some((1, 2)), "{line}: {report}");
        let taken = Builder::new().overrule(true).read_delegated("file", text.as_bytes());
        assert_eq!(taken.unwrap().used, 1, "overruled, the good line is taken: {line}");
    }
}

#[test]
fn long_lines_and_other_encodings_are_bad_lines() {
    let huge = format!("lab|KE|ipv4|10.0.0.0|256|20000101|allocated|{}\n", "x".repeat(64 << 10));
    let utf16: Vec<u8> = "lab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin = b"lab|KE|ipv4|10.0.0.0|256|20000101|allocated|caf\xe9\n".to_vec();
    let long_id = format!("lab|KE|ipv4|10.0.0.0|256|20000101|allocated|{}\n", "x".repeat(65));
    let cases = [
        (huge.into_bytes(), LineError::TooLong),
        (utf16, LineError::NotText),
        (latin, LineError::NotText),
        (long_id.into_bytes(), LineError::Holder),
    ];
    for (text, wrong) in cases {
        let refusal = read(&text).unwrap_err();
        assert!(refusal.report().unwrap().bad.contains_key(&wrong), "{refusal}");
    }
}

/// Thousand good records, then `rest`.
fn thousand_and(rest: &str) -> String {
    let record = |n: u32| format!("lab|KE|ipv4|10.{}.{}.0|256|20000101|allocated|a\n", n / 256, n % 256);
    (0..1000).map(record).collect::<String>() + rest
}

#[test]
fn one_bad_line_in_a_thousand_is_forgiven_and_two_are_not() {
    let bad = "lab|KE|ipv4|nonsense|256|20000101|allocated|a\n";
    let report = read(thousand_and(bad).as_bytes()).unwrap();
    let told = &report.bad[&LineError::Start];
    assert_eq!((told.count, told.first_line(), &*told.examples[0].text), (1, 1001, "lab|KE|ipv4|nonsense|256|20000101|allocated|a"));
    let refusal = read(thousand_and(&bad.repeat(2)).as_bytes()).unwrap_err();
    assert!(matches!(refusal, ReadError::LineErrors(_)));
    assert!(refusal.to_string().contains("line 1001"), "{refusal}");
}

#[test]
fn a_file_that_was_cut_off_is_refused_by_its_own_counts() {
    let half = &AFRINIC[..AFRINIC.len() / 2];
    let whole_lines = &half[..=half.rfind('\n').unwrap()];
    let ReadError::Summary(report) = read(whole_lines.as_bytes()).unwrap_err() else { panic!("taken") };
    assert!(report.mismatches.iter().any(|m| m.what == "records" && m.found < m.said), "{report}");
    assert!(Builder::new().overrule(true).read_delegated("half", whole_lines.as_bytes()).is_ok());
}

#[test]
fn a_summary_that_promises_another_number_is_refused() {
    let text = "lab|*|ipv4|*|2|summary\nlab|KE|ipv4|127.1.0.0|256|20000101|allocated|a\n";
    let ReadError::Summary(report) = read(text.as_bytes()).unwrap_err() else { panic!("taken") };
    assert_eq!(report.mismatches, [SummaryMismatch { what: "ipv4".into(), said: 2, found: 1 }]);
}

#[test]
fn files_with_nothing_usable_are_refused_unless_overruled_and_add_nothing_then() {
    let unheld = "2|lab|1|1|20000101|20200101|0\nlab|*|ipv4|*|1|summary\nlab||ipv4|10.0.0.0|256||available|\n";
    for text in ["", "\n\n", "# only a comment\n", "2|lab|1|0|20000101|20200101|0\n", unheld] {
        let refusal = read(text.as_bytes()).unwrap_err();
        assert!(matches!(refusal, ReadError::Nothing(_)), "{text:?}: {refusal}");
        let mut builder = Builder::new().overrule(true);
        builder.read_delegated("file", text.as_bytes()).unwrap();
        assert!(builder.finish().unwrap().is_empty());
    }
}

#[test]
fn a_second_header_is_a_bad_line_and_another_version_is_refused() {
    let header = "2|lab|1|1|20000101|20200101|0\n";
    let record = "lab|KE|ipv4|127.1.0.0|256|20000101|allocated|a\n";
    let refusal = read(format!("{header}{header}{record}").as_bytes()).unwrap_err();
    assert!(refusal.report().unwrap().bad.contains_key(&LineError::SecondHeader));
    let newer = read(format!("3|lab|1|1|20000101|20200101|0\n{record}").as_bytes()).unwrap_err();
    assert!(matches!(newer, ReadError::Version { ref version, .. } if version == "3"), "{newer}");
}

#[test]
fn a_file_that_breaks_off_is_refused_and_leaves_nothing_behind() {
    struct Breaks;
    impl Read for Breaks {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let good = "lab|KE|ipv4|127.1.0.0|256|20000101|allocated|a\n";
    let mut builder = Builder::new();
    let refusal = builder.read_delegated("file", BufReader::new(good.as_bytes().chain(Breaks))).unwrap_err();
    assert!(matches!(refusal, ReadError::Io { .. }), "{refusal}");
    assert!(builder.finish().unwrap().is_empty());
}

#[test]
fn refused_files_leave_nothing_behind() {
    let mut builder = Builder::new();
    builder.read_delegated("bad", "lab|KE|ipv4|127.1.0.0|256|20000101|allocated|a\nnonsense\n".as_bytes()).unwrap_err();
    assert!(builder.finish().unwrap().is_empty());
}

#[test]
fn a_flood_of_long_ranges_is_stopped_at_the_limit() {
    // Each of these is cut into 54 prefixes.
    let flood = "lab|KE|ipv4|0.0.0.1|536870908|20000101|allocated|a\n".repeat(crate::limits::MAX_SUBNETS / 40);
    assert!(matches!(read(flood.as_bytes()).unwrap_err(), ReadError::TooMany(_)));
}

#[test]
fn tables_of_routes_with_bad_lines_are_refused() {
    let good = "10.0.0.0,10.0.0.255,64512,\"A, B\"\n";
    for bad in ["10.0.0.0", "10.0.0.9,10.0.0.1,1,x", "10.0.0.0,::1,1,x", "0.0.0.0,255.255.255.255,1,x", "10.0.0.0,10.0.0.1,many,x"] {
        let refusal = Builder::new().read_asn_csv("routes", format!("{good}{bad}\n").as_bytes(), RoutedUse::Names).unwrap_err();
        assert!(matches!(refusal, ReadError::LineErrors(_)), "{bad}: {refusal}");
    }
}
