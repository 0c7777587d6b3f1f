//! Tests of hierarchies from files of several formats: the same in any order of the files, and equal to a slow search.

use super::*;
use proptest::prelude::*;
use std::fmt::Write;

/// Files and what they are.
type Files = Vec<(Format, String)>;

fn build(files: &[(Format, String)]) -> Hierarchy {
    let mut builder = Builder::new();
    for (format, text) in files {
        builder.read("file", text.as_bytes(), *format, RoutedUse::default()).unwrap();
    }
    builder.finish().unwrap()
}

/// Registry, country and organisation of the smallest subnet around an address.
fn home(hierarchy: &Hierarchy, address: &str) -> String {
    let position = hierarchy.locate(ip(address)).unwrap();
    let record = hierarchy.organisation_record(hierarchy.organisation(position));
    let (subnet, registry, country) = (hierarchy.subnet(position), hierarchy.registry(position), hierarchy.country(position));
    format!("{subnet} {registry} {country} {}/{} {}", record.registry, record.id, record.name.unwrap_or("-"))
}

const DELEGATED: &str = "lab|KE|ipv4|10.1.0.0|65536|20000101|allocated|opaque-1\nlab|KE|asn|64500|2|20000101|allocated|opaque-1\n\
    lab|UG|ipv4|10.2.0.0|65536|20000101|allocated|opaque-2\nlab|UG|asn|64510|1|20000101|allocated|opaque-2\n";
const WHOIS: &str = "inetnum: 10.1.0.0 - 10.1.255.255\nnetname: ONE-NET\norg: ORG-ONE\nsource: LAB\n\n\
    inetnum: 10.1.4.0 - 10.1.7.255\nnetname: ONE-SHOPS\norg: ORG-ONE\ncountry: TZ\nsource: LAB\n\n\
    inetnum: 10.1.8.0 - 10.1.8.255\nnetname: GUEST\norg: ORG-GUEST\nsource: LAB\n\n\
    inetnum: 10.0.0.0 - 10.255.255.255\nnetname: ROOF\norg: ORG-ROOF\ncountry: AU\nsource: LAB\n";
const NETWORKS: &str = "10.0.0.0/8\tAU\t\t\n10.1.4.0/24\tKE\t64510\tTwo Ltd\n10.1.5.0/24\t\t\t\n10.2.1.0/24\tRW\t64999\tNine Ltd\n10.2.2.0/24\tRW\t\t\n\
    192.0.2.0/24\tZA\t64501\tOne Ltd\n198.51.100.0/24\tZA\t64999\tNine Ltd\n";
const ROUTES: &str = "10.1.8.0,10.1.8.127,64999,Nine Ltd\n203.0.113.0,203.0.113.255,64510,Two Ltd\n";
const COUNTRIES: &str = "10.2.0.0,10.2.0.127,UG\n10.2.0.128,10.2.0.255,CD\n";

fn all() -> Files {
    let files = [
        (Format::Delegated, DELEGATED),
        (Format::Whois, WHOIS),
        (Format::Networks, NETWORKS),
        (Format::Routes, ROUTES),
        (Format::Countries, COUNTRIES),
    ];
    files.map(|(format, text)| (format, text.to_owned())).to_vec()
}

#[test]
fn each_kind_of_file_adds_what_it_knows() {
    let hierarchy = build(&all());
    let homes = [
        // The block, named as its smallest AS number is; what covers blocks is left out.
        ("10.1.200.0", "10.1.0.0/16 lab KE lab/opaque-1 One Ltd"),
        // WHOIS calls it otherwise, but says the same prefix: the same holder.
        ("10.1.6.0", "10.1.4.0/22 lab TZ lab/opaque-1 One Ltd"),
        // Networks: whoever has the AS number; the holder and country around where there is none.
        ("10.1.4.0", "10.1.4.0/24 lab KE lab/opaque-2 Two Ltd"),
        ("10.1.5.0", "10.1.5.0/24 lab TZ lab/opaque-1 One Ltd"),
        ("10.2.1.0", "10.2.1.0/24 lab RW other/AS64999 Nine Ltd"),
        ("10.2.2.0", "10.2.2.0/24 lab RW lab/opaque-2 Two Ltd"),
        // Another holder within a block, and a route within that: announced, not registered.
        ("10.1.8.200", "10.1.8.0/24 lab KE lab/ORG-GUEST GUEST"),
        ("10.1.8.1", "10.1.8.0/25 lab KE lab/ORG-GUEST GUEST"),
        // Countries only where they differ.
        ("10.2.0.1", "10.2.0.0/16 lab UG lab/opaque-2 Two Ltd"),
        ("10.2.0.129", "10.2.0.128/25 lab CD lab/opaque-2 Two Ltd"),
        // What lies in no block.
        ("192.0.2.1", "192.0.2.0/24 lab ZA lab/opaque-1 One Ltd"),
        ("198.51.100.1", "198.51.100.0/24 other ZA other/AS64999 Nine Ltd"),
        ("203.0.113.1", "203.0.113.0/24 lab UG lab/opaque-2 Two Ltd"),
    ];
    for (address, expected) in homes {
        assert_eq!(home(&hierarchy, address), expected, "{address}");
    }
    assert_eq!(hierarchy.locate(ip("10.9.0.1")), None, "a roof over everybody's blocks is nobody's");
}

#[test]
fn an_organisation_that_means_two_holders_is_neither() {
    let whois = "inetnum: 10.1.0.0 - 10.1.255.255\norg: ORG-X\nsource: LAB\n\ninetnum: 10.2.0.0 - 10.2.255.255\norg: ORG-X\nsource: LAB\n\n\
        inetnum: 10.1.9.0 - 10.1.9.255\norg: ORG-X\nsource: LAB\n";
    let hierarchy = build(&[(Format::Delegated, DELEGATED.to_owned()), (Format::Whois, whois.to_owned())]);
    assert!(home(&hierarchy, "10.1.9.1").ends_with("lab/ORG-X -"));
    assert!(home(&hierarchy, "10.1.1.1").ends_with("lab/opaque-1 -"));
}

#[test]
fn a_file_older_than_the_one_in_use_is_refused_and_leaves_nothing_behind() {
    let dated = |date: &str| format!("2|lab|1|1|20000101|{date}|0\nlab|KE|ipv4|10.0.0.0|256|20000101|allocated|a\n");
    let in_use = [Source { name: "lab".into(), date: "20250101".into() }, Source { name: "lab".into(), date: "20240101".into() }];
    let mut builder = Builder::new().in_use(&in_use);
    let refusal = builder.read_delegated("old", dated("20241231").as_bytes()).unwrap_err();
    assert!(matches!(refusal, ReadError::Older { ref in_use, .. } if in_use == "20250101"), "{refusal}");
    assert!(refusal.to_string().contains("as of 20250101"), "{refusal}");
    builder.read_delegated("same", dated("20250101").as_bytes()).unwrap();
    assert_eq!(builder.finish().unwrap().len(), 1);
    assert!(Builder::new().in_use(&in_use).overrule(true).read_delegated("old", dated("20241231").as_bytes()).is_ok());
}

#[test]
fn a_refused_file_of_any_format_leaves_nothing_behind() {
    let clean = build(&all()).hash();
    let bad = [
        (Format::Delegated, "new|KE|ipv4|10.77.0.0|256|20000101|allocated|x\nnew|KE|asn|64500|9|19990101|allocated|x\nnonsense\n"),
        (Format::Whois, "inetnum: 10.1.0.0 - 10.1.255.255\nnetname: AAA\norg: ORG-ONE\ncountry: US\nsource: NEW\n\ninetnum: nonsense\n"),
        (Format::Networks, "10.1.4.0/26\tUS\t64510\tAAA\nnonsense\n"),
        (Format::Routes, "10.1.9.0,10.1.9.127,64510,AAA\nnonsense\n"),
        (Format::Countries, "10.1.9.0,10.1.9.127,US\nnonsense\n"),
    ];
    let mut builder = Builder::new();
    for (format, text) in all() {
        for (bad_format, bad) in bad {
            builder.read("bad", bad.as_bytes(), bad_format, RoutedUse::default()).unwrap_err();
        }
        builder.read("good", text.as_bytes(), format, RoutedUse::default()).unwrap();
    }
    assert_eq!(builder.finish().unwrap().hash(), clean);
}

/// One statement in any format: where (in 10.0.0.0/16 and 2001:db8::/32, small enough for conflicts), by whom, about what.
#[derive(Clone, Debug)]
struct Statement {
    format: u8,
    v6: bool,
    at: u8,
    length: u8,
    holder: u8,
    country: u8,
    date: u8,
}

fn statement() -> impl Strategy<Value = Statement> {
    (0u8..8, any::<bool>(), any::<u8>(), 0u8..=8, 0u8..6, 0u8..4, 0u8..3).prop_map(|(format, v6, at, length, holder, country, date)| {
        Statement { format, v6, at: if length == 0 { 0 } else { at >> (8 - length) << (8 - length) }, length, holder, country, date }
    })
}

impl Statement {
    /// First and last address and the prefix.
    fn range(&self) -> (String, String, String) {
        let last = u16::from(self.at) + (1u16 << (8 - self.length)) - 1;
        if self.v6 {
            let prefix = format!("2001:db8:{:x}::/{}", u16::from(self.at) << 8, 32 + self.length);
            (
                format!("2001:db8:{:x}::", u16::from(self.at) << 8),
                format!("2001:db8:{:x}:ffff:ffff:ffff:ffff:ffff", last << 8 | 0xff),
                prefix,
            )
        } else {
            (format!("10.0.{}.0", self.at), format!("10.0.{last}.255"), format!("10.0.{}.0/{}", self.at, 16 + self.length))
        }
    }

    /// As a line or object of its format; the last two formats are AS numbers and organisations.
    fn write(&self) -> (Format, String) {
        let (first, last, prefix) = self.range();
        let (holder, date) = (self.holder, 20_200_101 + u32::from(self.date));
        let country = ["KE", "UG", "", "TZ"][usize::from(self.country)];
        let registry = ["lab", "bal"][usize::from(holder % 2)];
        match self.format {
            0 => {
                let (kind, value) = if self.v6 { ("ipv6", 32 + u32::from(self.length)) } else { ("ipv4", 1 << (16 - self.length)) };
                (Format::Delegated, format!("{registry}|{country}|{kind}|{first}|{value}|{date}|allocated|holder-{holder}\n"))
            }
            1 | 2 => {
                let class = if self.v6 { "inet6num" } else { "inetnum" };
                let key = if self.v6 { prefix } else { format!("{first} - {last}") };
                let source = if holder < 3 { format!("source: {registry}\n") } else { String::new() };
                let org = if holder < 4 { format!("org: ORG-{holder}\n") } else { String::new() };
                let text = format!("{class}: {key}\nnetname: NET{}\ncountry: {country}\n{org}last-modified: {date}\n{source}\n", self.at);
                (Format::Whois, text)
            }
            3 => (Format::Networks, format!("{prefix},{country},{},Name {}\n", u32::from(holder) * 7, self.at)),
            4 => (Format::Routes, format!("{first},{last},{},Name {}\n", u32::from(holder) * 7, self.at)),
            5 => (Format::Countries, format!("{first},{last},{}\n", if country.is_empty() { "CD" } else { country })),
            6 => (
                Format::Delegated,
                format!("{registry}|{country}|asn|{}|{}|{date}|allocated|holder-{holder}\n", holder * 7, self.length + 1),
            ),
            _ => (
                Format::Whois,
                format!("organisation: ORG-{holder}\norg-name: Org {}\ncountry: {country}\nsource: {registry}\n\n", self.at),
            ),
        }
    }
}

/// Files of some statements: those with an even number in one, the others in another file of each format.
fn files_of(statements: &[(usize, Statement)]) -> Files {
    let mut files: Vec<(Format, usize, String)> = Vec::new();
    for (number, statement) in statements {
        let (format, line) = statement.write();
        match files.iter_mut().find(|(f, half, _)| (*f, *half) == (format, number % 2)) {
            Some((_, _, text)) => text.push_str(&line),
            None => files.push((format, number % 2, line)),
        }
    }
    // A file without a network is nothing on its own: it is joined to one that has.
    files.sort_by_key(|(format, half, _)| (*format, *half));
    let mut joined: Files = Vec::new();
    for (format, _, text) in files {
        match joined
            .iter_mut()
            .find(|(f, text)| *f == format && !text.contains("inet") && !text.contains("|ipv") && text.contains(['|', ':']))
        {
            Some((_, other)) => other.push_str(&text),
            None => joined.push((format, text)),
        }
    }
    joined
}

fn build_any(files: &[(Format, String)]) -> Hierarchy {
    let mut builder = Builder::new().overrule(true);
    for (format, text) in files {
        let report = builder.read("file", text.as_bytes(), *format, RoutedUse::default()).unwrap();
        assert_eq!(report.bad_lines(), 0, "{report}\n{text}");
    }
    builder.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_files_and_lines_gives_one_hash(
        statements in proptest::collection::vec(statement(), 1..60),
        shuffled in any::<proptest::sample::Index>(),
        turn in any::<bool>(),
    ) {
        let numbered: Vec<(usize, Statement)> = statements.into_iter().enumerate().collect();
        let expected = build_any(&files_of(&numbered));
        let mut lines = numbered.clone();
        let by = shuffled.index(lines.len());
        lines.rotate_left(by);
        if turn {
            lines.reverse();
        }
        let mut files = files_of(&lines);
        let by = shuffled.index(files.len());
        files.rotate_right(by);
        prop_assert_eq!(build_any(&files).hash(), expected.hash());
        // Opening checks that children lie inside their parents, siblings apart, and everything is in its order.
        prop_assert_eq!(unpack(&pack(&expected)).unwrap().hash(), expected.hash());
    }

    #[test]
    fn every_address_is_in_the_smallest_subnet_that_a_slow_search_finds(
        statements in proptest::collection::vec(statement(), 1..60),
        addresses in proptest::collection::vec((any::<bool>(), any::<u16>()), 64),
    ) {
        let numbered: Vec<(usize, Statement)> = statements.into_iter().enumerate().collect();
        let hierarchy = build_any(&files_of(&numbered));
        for (v6, low) in addresses {
            let address = if v6 { ip(&format!("2001:db8:{low:x}::7")) } else { ip(&format!("10.0.{}.{}", low >> 8, low & 0xff)) };
            let slow = positions(&hierarchy).filter(|p| hierarchy.subnet(*p).contains(address)).max_by_key(|p| hierarchy.subnet(*p).length());
            prop_assert_eq!(hierarchy.locate(address), slow, "{}", address);
        }
    }
}

#[test]
fn many_networks_of_all_formats_answer_as_a_slow_search_does() {
    // A small generator, so that the test is the same everywhere.
    let mut state = 7u64;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % below
    };
    let mut files: Vec<(Format, String)> =
        [Format::Delegated, Format::Whois, Format::Networks, Format::Routes].map(|f| (f, String::new())).to_vec();
    for _ in 0..1200 {
        let length = 8 + draw(17);
        let first = draw(u32::MAX) >> (32 - length) << (32 - length);
        let (from, to) = (std::net::Ipv4Addr::from_bits(first), std::net::Ipv4Addr::from_bits(first | u32::MAX >> length));
        let (at, holder) = (draw(4) as usize, draw(40));
        let text = &mut files[at].1;
        match at {
            0 => writeln!(text, "lab|KE|ipv4|{from}|{}|20200101|allocated|h{holder}", 1u64 << (32 - length)),
            1 => writeln!(text, "inetnum: {from} - {to}\norg: O{holder}\nsource: LAB\n"),
            2 => writeln!(text, "{from}/{length},KE,{holder},N"),
            _ => writeln!(text, "{from},{to},{holder},N"),
        }
        .unwrap();
    }
    let hierarchy = build(&files);
    let subnets: Vec<(u32, u32, Position)> = positions(&hierarchy)
        .map(|p| {
            let subnet = hierarchy.subnet(p);
            let IpAddr::V4(first) = subnet.first() else { panic!("{subnet}") };
            (first.to_bits(), first.to_bits() | u32::MAX.checked_shr(subnet.length().into()).unwrap_or(0), p)
        })
        .collect();
    for _ in 0..5_000 {
        let address = draw(u32::MAX);
        let slow =
            subnets.iter().filter(|(first, last, _)| (*first..=*last).contains(&address)).min_by_key(|(first, last, _)| last - first);
        let found = hierarchy.locate(std::net::Ipv4Addr::from_bits(address).into());
        assert_eq!(found, slow.map(|(_, _, position)| *position), "{address:x}");
    }
}
