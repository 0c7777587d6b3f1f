//! Google's robots.txt specification tests (Apache-2.0, see tests/data/robots-spec): one test for each of its files.

#![expect(clippy::disallowed_methods, reason = "the cases are files")]

use super::*;
use std::path::Path;

/// One file with what is expected of it.
struct Case {
    robots: Vec<u8>,
    expectations: Vec<Expectation>,
}

#[derive(Default)]
struct Expectation {
    url: String,
    agent: String,
    allowed: Option<bool>,
}

/// Reads the small part of the text format that these files use: `name: value`, strings in pieces, lists and braces.
fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut rest = text;
    while let Some((name, behind)) = next_name(rest) {
        let (value, behind) = next_value(behind);
        rest = behind;
        match name {
            "robotstxt" => cases.push(Case { robots: value, expectations: Vec::new() }),
            "testurl" => {
                let url = String::from_utf8(value).unwrap();
                cases.last_mut().unwrap().expectations.push(Expectation { url, ..Expectation::default() });
            }
            "useragent" => cases.last_mut().unwrap().expectations.last_mut().unwrap().agent = String::from_utf8(value).unwrap(),
            "expected_outcome" => cases.last_mut().unwrap().expectations.last_mut().unwrap().allowed = Some(value == b"ALLOWED"),
            "tests" | "test_expectations" | "additional_explanation" | "test_type" => {}
            other => panic!("unknown field {other}"),
        }
    }
    cases
}

/// The next `name:`, past blanks, comments and brackets.
fn next_name(mut text: &str) -> Option<(&str, &str)> {
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || "[]{},".contains(c));
        if text.starts_with('#') {
            text = &text[text.find('\n').unwrap_or(text.len())..];
        } else {
            break;
        }
    }
    let (name, behind) = text.split_once(':')?;
    Some((name.trim(), behind))
}

/// The value behind a colon: strings put together, a word, or nothing before a bracket.
fn next_value(text: &str) -> (Vec<u8>, &str) {
    let mut value = Vec::new();
    let mut rest = text.trim_start();
    if !rest.starts_with('"') {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        return (rest.as_bytes()[..end].to_vec(), &rest[end..]);
    }
    while let Some(piece) = rest.strip_prefix('"') {
        let mut bytes = piece.bytes().enumerate();
        let mut end = None;
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    end = Some(at);
                    break;
                }
                b'\\' => match bytes.next().unwrap().1 {
                    b'n' => value.push(b'\n'),
                    b'r' => value.push(b'\r'),
                    b't' => value.push(b'\t'),
                    b'x' => {
                        let digits = [bytes.next().unwrap().1, bytes.next().unwrap().1];
                        value.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                    }
                    other => value.push(other),
                },
                other => value.push(other),
            }
        }
        rest = piece[end.unwrap() + 1..].trim_start();
    }
    (value, rest)
}

/// Path and query as they stand in the URL. Nothing is encoded: these cases put that on the caller, and check it.
fn path_of(url: &str) -> &str {
    let behind_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = behind_scheme.find('/').map_or("/", |at| &behind_scheme[at..]);
    path.split('#').next().unwrap_or(path)
}

/// Where RFC 9309 and the cases differ, by file, URL and agent: the cases ask the rules whether `/robots.txt` itself may be fetched,
/// and expect DISALLOWED; by the RFC (§2.2.2) it is always allowed. The rules alone say what the cases expect here too.
const AGAINST_THE_RFC: [(&str, &str, &str); 4] = [
    ("327748", "http://m.example.com/robots.txt", "asdfbot"),
    ("369883", "http://example.com/robots.txt", "BarBot"),
    ("369883", "http://example.com/robots.txt", "AB"),
    ("860237", "http://example.com/robots.txt", "XYZ"),
];

/// One file of cases: prints each, and names those that fail.
fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/robots-spec").join(format!("{file}.textproto"));
    let (mut checked, mut wrong) = (0, Vec::new());
    let mut exempt: Vec<_> = AGAINST_THE_RFC.iter().filter(|(name, ..)| *name == file).collect();
    for (number, case) in read(&std::fs::read_to_string(path).unwrap()).iter().enumerate() {
        for Expectation { url, agent, allowed } in &case.expectations {
            checked += 1;
            let expected = allowed.unwrap_or_else(|| panic!("{file} case {number}: no outcome is expected of {url:?}"));
            let robots = Robots::parse(&case.robots, agent);
            let (by_rules, found) = (robots.decide(path_of(url), &mut 0), robots.allows(path_of(url)));
            let name = format!("{file}, robots.txt {number}, {url} for {agent:?}");
            if by_rules == expected && found == expected {
                println!("ok: {name}");
            } else if by_rules == expected
                && let Some(at) = exempt.iter().position(|(_, exempt, who)| url == exempt && agent == who)
            {
                println!("by the RFC: {name}");
                exempt.remove(at);
            } else {
                let text = String::from_utf8_lossy(&case.robots);
                wrong.push(format!("{name}: allowed {found}, expected {expected}\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} expectations fail:\n{}", wrong.len(), wrong.join("\n"));
    assert!(exempt.is_empty(), "listed as against the RFC, but as expected, or not there: {exempt:?}");
    assert!(checked > 0, "no expectations were found: the file is not read");
}

/// One test for each file, and the list of all.
macro_rules! files {
    ($($test:ident: $file:literal,)*) => {
        $(#[test] fn $test() { check($file); })*
        const FILES: &[&str] = &[$($file),*];
    };
}

files! {
    case_155227: "155227",
    case_174022: "174022",
    case_278501: "278501",
    case_308278: "308278",
    case_327748: "327748",
    case_369883: "369883",
    case_371856: "371856",
    case_434582: "434582",
    case_478151: "478151",
    case_517712: "517712",
    case_541230: "541230",
    case_584234: "584234",
    case_638845: "638845",
    case_701159: "701159",
    case_715135: "715135",
    case_768939: "768939",
    case_777406: "777406",
    case_797409: "797409",
    case_824664: "824664",
    case_860237: "860237",
    case_894248: "894248",
    case_912555: "912555",
    case_923994: "923994",
    case_943687: "943687",
    case_974982: "974982",
    bom_characters: "BOM-characters",
    accepted_mistakes: "accepted-mistakes",
    different_line_endings: "different-line-endings",
    directives_case_insensitivity: "directives-case-insensitivity",
    empty_string: "empty-string",
    global_rules: "global-rules",
    groups: "groups",
    index_page: "index-page",
    matching_path_values_1: "matching-path-values-1",
    matching_path_values_2: "matching-path-values-2",
    most_specific_match: "most-specific-match",
    non_ascii_paths: "non-ascii-paths",
    order_of_precedence: "order-of-precedence",
    special_characters: "special-characters",
    uri_case_sensitivity: "uri-case-sensitivity",
    user_agent_name: "user-agent-name",
}

#[test]
fn every_file_has_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/robots-spec");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let found: std::collections::BTreeSet<_> = names.filter_map(|name| name.strip_suffix(".textproto").map(str::to_owned)).collect();
    assert_eq!(found, FILES.iter().map(|name| (*name).to_owned()).collect());
    let cases = FILES.iter().flat_map(|file| read(&std::fs::read_to_string(folder.join(format!("{file}.textproto"))).unwrap()));
    let (files, expectations) = cases.fold((0, 0), |(n, sum), case| (n + 1, sum + case.expectations.len()));
    assert_eq!((FILES.len(), files, expectations), (41, 80, 400), "files, robots.txt in them, expectations");
}
