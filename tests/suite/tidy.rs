//! Tests of the source itself: which layers may use which, and rules of style.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The crates that only compute.
const PURE: [&str; 4] = ["crates/model/src", "crates/hierarchy/src", "crates/page/src", "crates/core/src"];

/// Of these, the ones whose results must not depend on the order of a hash map. What is read off a page is sets and counts.
const ORDERED: [&str; 3] = ["crates/model/src", "crates/hierarchy/src", "crates/core/src"];

/// What these must not name: no runtime, no network, no disk, no clock, no chance that is not seeded. That they cannot depend on such
/// crates is checked by `lockfile.rs`, the same of the standard library by clippy (`crates/clippy.toml`).
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

/// The most lines of a function, tests aside.
const MAX_FUNCTION: usize = 60;

/// Functions that are longer because they are one table, or one arm for each of many cases; their documentation says so.
const LONG_FUNCTIONS: [&str; 8] = [
    "crates/core/src/crawler.rs: handle",
    "crates/core/src/requests.rs: asked",
    "crates/lab/src/swarm/executor.rs: stored",
    "crates/page/src/evaluation/semantics.rs: implicit",
    "src/node/api/fake.rs: status",
    "src/node/metrics.rs: register",
    "src/node/run.rs: live",
    "src/node/state/store_queue.rs: try_to",
];

pub(super) struct Source {
    /// Relative to the top of the tree, with `/`.
    pub(super) path: String,
    text: String,
}

impl Source {
    /// Lines of code with their numbers: without comments, and up to the tests that share a file with what they test.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.text.lines().enumerate().map(|(number, line)| (number + 1, line));
        numbered.take_while(|(_, line)| *line != "mod tests {").filter_map(|(number, line)| {
            let code = line.split("//").next().unwrap_or_default();
            (!code.trim().is_empty()).then_some((number, code))
        })
    }

    fn is_below(&self, directories: &[&str]) -> bool {
        directories.iter().any(|directory| self.path.starts_with(&format!("{directory}/")))
    }

    /// Whether the file holds nothing but tests.
    pub(super) fn is_test(&self) -> bool {
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

pub(super) fn house() -> Vec<Source> {
    ["src", "crates", "tests"].into_iter().flat_map(sources).collect()
}

/// Fails with all that was found, not with the first.
pub(super) fn assert_none(found: Vec<String>, rule: &str) {
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
fn every_file_says_first_what_it_does() {
    let without = house().into_iter().filter(|source| !says_what_it_does(&source.text)).map(|source| source.path).collect();
    assert_none(without, "a file opens with a `//!` line that says what it does: a statement with a full stop, not a question");
}

/// Whether a file's first line is a heading that states something.
fn says_what_it_does(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("//! ") && first.ends_with('.') && !first.contains('?')
}

#[test]
fn decisions_do_not_touch_the_world() {
    assert_none(mentions(&house(), &PURE, &WORLD), "the pure crates know no clock, no network, no disk, no runtime");
}

#[test]
fn floors_use_only_floors_below() {
    let house = house();
    let mut found = uses(&house, &["src/node"], &["cli"]);
    found.extend(mentions(&house, &["crates/io/src"], &["nearcrawl_core", "nearcrawl_lab"]));
    found.extend(mentions(&house, &["src/node"], &["nearcrawl_lab"]));
    assert_none(found, "cli uses node, node uses io; io and nearcrawl-core do not know each other; only cli knows the laboratory");
}

#[test]
fn decisions_do_not_depend_on_the_order_of_a_hash_map() {
    let mut found = Vec::new();
    for source in house().iter().filter(|source| source.is_below(&ORDERED) && !source.is_test()) {
        for (number, code) in source.code().filter(|(_, code)| says(code, "HashMap") || says(code, "HashSet")) {
            let line = source.text.lines().nth(number - 1).unwrap();
            let reason = line.split_once("// unordered:").map(|(_, reason)| reason.trim());
            if reason.is_none_or(str::is_empty) {
                found.push(format!("{}:{number}: {}", source.path, code.trim()));
            }
        }
    }
    assert_none(found, "pure crates use BTreeMap and BTreeSet, or says on the line why order does not matter: `// unordered: reason`");
}

/// proptest looks for the failures of `SRC/a/b.rs` in `proptest-regressions/a/b.txt` beside `SRC`, and says nothing if a file has no source.
#[test]
fn every_file_of_failures_that_were_found_has_its_source() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(top.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut waiting: Vec<PathBuf> = crates.chain([top.to_owned()]).map(|manifest| manifest.join("proptest-regressions")).collect();
    let (mut found, mut lost) = (0, Vec::new());
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found += 1;
            let source = path.with_extension("rs").display().to_string().replace("/proptest-regressions/", "/src/");
            lost.extend((!Path::new(&source).exists()).then_some(source));
        }
    }
    assert!(found >= 2, "{found} files of failures");
    assert_none(lost, "a file of failures stands where proptest looks for those of its source");
}

/// What a text names between backticks that looks like a file or a folder of this tree; `{a,b}` names several.
fn named_paths(text: &str) -> Vec<String> {
    let pieces = text.split('`').skip(1).step_by(2).filter(|piece| piece.contains('/') && !piece.contains([' ', '~']));
    let ours = pieces.filter(|piece| ["src/", "crates/", "tests/", "scripts/", "docs/", ".c"].iter().any(|start| piece.starts_with(start)));
    let several = |piece: &str| match piece.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (names, after))) => names.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![piece.to_owned()],
    };
    // Capitals stand where something is to be filled in.
    ours.flat_map(several).filter(|path| !path.contains("SECTION")).collect()
}

#[test]
fn the_files_that_readers_are_sent_to_exist() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for (document, at_least) in
        [("CONTRIBUTING.md", 30), ("docs/ARCHITECTURE.md", 50), ("docs/DECISIONS.md", 5), ("docs/ALGORITHMS.md", 30), ("README.md", 15)]
    {
        let paths = named_paths(&fs::read_to_string(top.join(document)).unwrap());
        assert!(paths.len() > at_least, "{document} names only {paths:?}");
        missing.extend(paths.into_iter().filter(|path| !top.join(path).exists()).map(|path| format!("{document}: {path}")));
    }
    assert_none(missing, "documents name files that are there");
}

/// The functions of a source that rustfmt has laid out, each as file and name, with its number of lines.
fn functions(source: &Source) -> Vec<(String, usize)> {
    let lines: Vec<(usize, &str)> = source.code().collect();
    let mut found = Vec::new();
    for (at, (begin, line)) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some((before, name)) = code.split_once("fn ") else { continue };
        if !before.split_whitespace().all(|word| word.starts_with("pub") || ["async", "const", "unsafe"].contains(&word)) {
            continue;
        }
        // It ends where a bracket is closed as far to the left as it begins, or in the same line.
        let indent = &line[..line.len() - code.len()];
        let closes = |line: &str| line.strip_prefix(indent).is_some_and(|rest| rest == "}" || rest.starts_with(')') && rest.ends_with(';'));
        let end =
            if code.ends_with([';', '}']) { Some(*begin) } else { lines[at..].iter().find(|(_, line)| closes(line)).map(|(end, _)| *end) };
        let name = name.split(['(', '<']).next().unwrap_or_default();
        found.extend(end.map(|end| (format!("{}: {name}", source.path), end + 1 - begin)));
    }
    found
}

#[test]
fn functions_are_short_or_say_why_not() {
    let house = house();
    let functions: Vec<_> = house.iter().filter(|source| !source.is_test()).flat_map(functions).collect();
    assert!(functions.len() > 3000, "{} functions were found", functions.len());
    let long: Vec<String> = functions.into_iter().filter(|(_, lines)| *lines > MAX_FUNCTION).map(|(name, _)| name).collect();
    let unexplained = long.iter().filter(|name| !LONG_FUNCTIONS.contains(&name.as_str())).cloned().collect();
    assert_none(unexplained, "a function has at most 60 lines; parts of it that have a name are functions of their own");
    let gone = LONG_FUNCTIONS.iter().filter(|name| !long.iter().any(|long| long == *name)).map(|name| (*name).to_owned()).collect();
    assert_none(gone, "these are not long any more");
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
fn the_rules_find_what_they_forbid() {
    let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let bad = [
        file("src/node/a.rs", "//! a\nuse crate::{io::fetcher::{Host, cli}, cli::table};\nlet now = Instant::now();"),
        file("crates/io/src/b.rs", "use nearcrawl_core::crawl::scheduler;"),
        file(
            "src/node/c.rs",
            "//! tokio\n// Instant\nlet instants = InstantLike; // SystemTime\nuse crate::io::cli;\nmod tests {\nuse tokio::net;",
        ),
    ];
    assert_eq!(mentions(&bad, &["src/node"], &WORLD), ["src/node/a.rs:3: Instant"]);
    assert_eq!(mentions(&bad, &["crates/io/src"], &["nearcrawl_core"]), ["crates/io/src/b.rs:1: nearcrawl_core"]);
    assert_eq!(uses(&bad, &["src/node"], &["cli"]), ["src/node/a.rs uses crate::cli"]);
}
