//! Is the house in order? The rules of its floors, and a few of its walls, read off the source itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// No file may grow beyond this: then it answers more than one question.
const MOST_LINES: usize = 500;

/// What decisions and nouns must not know: no runtime, no network, no disk, no clock, no chance that is not seeded.
const WORLD: [&str; 20] = [
    "tokio",
    "libp2p",
    "rocksdb",
    "hyper",
    "reqwest",
    "hickory_resolver",
    "axum",
    "Instant",
    "SystemTime",
    "std::fs",
    "std::process",
    "std::thread",
    "std::env",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "thread_rng",
    "OsRng",
    "rand::rng",
    "async fn",
];

struct Source {
    /// Relative to the top of the tree, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// Lines of code with their numbers: without comments, and up to the tests that share a file with what they test.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.text.lines().enumerate().map(|(number, line)| (number + 1, line));
        numbered.take_while(|(_, line)| *line != "mod tests {").filter_map(|(number, line)| {
            let code = line.split("//").next().unwrap_or_default();
            (!code.trim().is_empty()).then_some((number, code))
        })
    }

    fn is_below(&self, directories: &[&str]) -> bool {
        directories.iter().any(|directory| self.path.starts_with(&format!("src/{directory}/")))
    }

    /// Whether the file holds nothing but tests.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }
}

fn sources(directory: &str) -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut waiting = vec![top.join(directory)];
    let mut found = Vec::new();
    while let Some(directory) = waiting.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source { path: path.strip_prefix(top).unwrap().display().to_string(), text });
            }
        }
    }
    assert!(!found.is_empty(), "there is no source below {directory}");
    found
}

fn house() -> Vec<Source> {
    let mut all = sources("src");
    all.extend(sources("tests"));
    all
}

/// Fails with all that was found, not with the first.
fn assert_none(found: Vec<String>, rule: &str) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

/// Where code outside tests says one of `words`, as whole words.
fn mentions(sources: &[Source], floors: &[&str], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_below(floors) && !source.is_test()) {
        for (number, code) in source.code() {
            found.extend(words.iter().filter(|word| says(code, word)).map(|word| format!("{}:{number}: {word}", source.path)));
        }
    }
    found
}

/// Whether `word` stands in `code` with no letter, digit or underscore on either side.
fn says(code: &str, word: &str) -> bool {
    let part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(part_of_a_word);
        let after = code[at + word.len()..].chars().next().is_some_and(part_of_a_word);
        !before && !after
    })
}

/// Where a file uses a floor: `crate::io`, also in `use crate::{io::…, model::…}`, and `super::` chains do not reach that far.
fn uses(sources: &[Source], floors: &[&str], forbidden: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_below(floors)) {
        let code: String = source.text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
        for floor in forbidden {
            let grouped = code.match_indices("use crate::{").any(|(at, open)| {
                let inside = &code[at + open.len()..];
                first_names(inside).iter().any(|name| name == floor)
            });
            if grouped || says(&code, &format!("crate::{floor}")) {
                found.push(format!("{} uses crate::{floor}", source.path));
            }
        }
    }
    found
}

/// The first names of the paths in a `use` group whose opening bracket was just read.
fn first_names(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(String::new()),
            _ if depth == 0 => names.last_mut().unwrap().push(c),
            _ => {}
        }
    }
    names.iter().filter_map(|path| path.split("::").next()).map(|name| name.trim().to_owned()).collect()
}

#[test]
fn every_file_says_first_what_it_answers() {
    let silent = house().into_iter().filter(|source| !source.text.starts_with("//! ")).map(|source| source.path).collect();
    assert_none(silent, "a file opens with a `//!` line that asks and answers its question");
}

#[test]
fn no_file_answers_two_questions() {
    let long = house().into_iter().map(|source| (source.text.lines().count(), source.path)).filter(|(lines, _)| *lines > MOST_LINES);
    assert_none(long.map(|(lines, path)| format!("{path}: {lines} lines")).collect(), &format!("a file has at most {MOST_LINES} lines"));
}

#[test]
fn decisions_do_not_touch_the_world() {
    assert_none(mentions(&house(), &["model", "logic"], &WORLD), "model and logic are pure: no clock, no network, no disk, no runtime");
}

#[test]
fn floors_use_only_floors_below() {
    let house = house();
    let mut found = uses(&house, &["model"], &["logic", "io", "node", "lab", "demo", "cli"]);
    found.extend(uses(&house, &["logic"], &["io", "node", "lab", "demo", "cli"]));
    found.extend(uses(&house, &["io"], &["logic", "node", "lab", "demo", "cli"]));
    found.extend(uses(&house, &["node"], &["lab", "demo", "cli"]));
    found.extend(uses(&house, &["lab"], &["io", "node", "demo", "cli"]));
    assert_none(found, "node uses io and logic, these use model; io and logic do not know each other; lab is model and logic");
}

#[test]
fn decisions_do_not_depend_on_the_order_of_a_hash_map() {
    let mut found = Vec::new();
    for source in house().iter().filter(|source| source.is_below(&["logic"]) && !source.is_test()) {
        for (number, code) in source.code().filter(|(_, code)| says(code, "HashMap") || says(code, "HashSet")) {
            let line = source.text.lines().nth(number - 1).unwrap();
            let reason = line.split_once("// unordered:").map(|(_, reason)| reason.trim());
            if reason.is_none_or(str::is_empty) {
                found.push(format!("{}:{number}: {}", source.path, code.trim()));
            }
        }
    }
    assert_none(found, "logic uses BTreeMap and BTreeSet, or says on the line why order does not matter: `// unordered: reason`");
}

#[test]
fn no_test_is_switched_off() {
    let off = format!("#[{}", "ignore");
    let mut found = Vec::new();
    for source in house() {
        for (number, line) in source.text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with(&off)) {
            found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
        }
    }
    assert_none(found, "a test runs or does not exist");
}

#[test]
fn lints_are_expected_with_a_reason_not_allowed() {
    let (allow, expect) = (format!("#[{}(", "allow"), format!("#[{}(", "expect"));
    let mut found = Vec::new();
    for source in house() {
        for (number, line) in source.text.lines().enumerate() {
            let unexplained = line.contains(&expect) && line.contains(']') && !line.contains("reason");
            if line.trim_start().starts_with(&allow) || unexplained {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert_none(found, "write #[expect(…, reason = \"…\")]");
}

#[test]
fn the_architecture_fits_on_a_few_pages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md");
    if let Ok(text) = fs::read_to_string(path) {
        let lines = text.lines().count();
        assert!(lines <= 150, "docs/ARCHITECTURE.md has {lines} lines; nobody reads more than 150");
    }
}

#[test]
fn the_rules_find_what_they_forbid() {
    let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let bad = [
        file("src/logic/a.rs", "//! a\nuse crate::{model::url::{Host, io}, io::fetcher};\nlet now = Instant::now();"),
        file("src/io/b.rs", "use crate::logic::front;"),
        file(
            "src/logic/c.rs",
            "//! tokio\n// Instant\nlet instants = InstantLike; // SystemTime\nuse crate::model::io;\nmod tests {\nuse tokio::net;",
        ),
    ];
    assert_eq!(mentions(&bad, &["logic"], &WORLD), ["src/logic/a.rs:3: Instant"]);
    assert_eq!(uses(&bad, &["logic"], &["io"]), ["src/logic/a.rs uses crate::io"]);
    assert_eq!(uses(&bad, &["io"], &["logic"]), ["src/io/b.rs uses crate::logic"]);
}
