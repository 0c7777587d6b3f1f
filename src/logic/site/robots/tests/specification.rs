//! Do we agree with Google's robots.txt specification tests (Apache-2.0, see tests/data/robots-spec/LICENSE)?

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

#[test]
fn all_specification_cases_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/robots-spec");
    let (mut checked, mut wrong) = (0, Vec::new());
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "textproto")) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        for (number, case) in read(&std::fs::read_to_string(file).unwrap()).iter().enumerate() {
            for Expectation { url, agent, allowed } in &case.expectations {
                checked += 1;
                // The rules alone: a few cases ask what they say of /robots.txt, which the RFC (§2.2.2) always allows.
                let found = Robots::parse(&case.robots, agent).decide(path_of(url), &mut 0);
                if Some(found) != *allowed {
                    let text = String::from_utf8_lossy(&case.robots);
                    wrong.push(format!("{name} case {number}: {url:?} for {agent:?}: allowed {found}, expected {allowed:?}\n{text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} expectations fail:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked >= 250, "only {checked} expectations were found: the files are not read");
}
