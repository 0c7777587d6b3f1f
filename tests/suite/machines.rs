//! Tests that the machines of the core are as separate as docs/ARCHITECTURE.md says.
//!
//! They read off the source whom each is given to read, whom to change, which signals it gives, and where methods of the joining type
//! stand.

use super::modules::circles;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Where the machines are.
const CORE: &str = "crates/core/src";

/// The directories of the machines, and the types that are given to others as a whole.
const MACHINES: [(&str, &[&str]); 14] = [
    ("relay", &["Relay"]),
    ("survey", &["Surveys"]),
    ("opt_out", &["OptOuts"]),
    ("admission", &["Admissions"]),
    ("membership", &["Membership", "Shutdown"]),
    ("hierarchy_version", &["HierarchyVersion"]),
    ("voting", &["Voting"]),
    ("ownership", &["Ownership"]),
    ("delegation", &["Delegation"]),
    ("routing", &["Routing"]),
    ("crawl", &["Crawl"]),
    ("replication", &["Replication"]),
    ("migration", &["Migration"]),
    ("report", &["Report"]),
];

/// What a machine has to do with others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Edges {
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
    signals: BTreeSet<String>,
}

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(CORE)
}

/// Code below a directory of the core, without comments and tests.
fn code(directory: &str) -> String {
    let mut waiting = vec![core().join(directory)];
    let mut text = String::new();
    while let Some(path) = waiting.pop() {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if name == "tests" || name == "simulation" {
            continue;
        }
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        for line in source.lines().take_while(|line| *line != "mod tests {") {
            text.push_str(line.split("//").next().unwrap_or_default());
            text.push('\n');
        }
    }
    text
}

fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Words that follow this text, each with what stands before it in the piece.
fn words_after<'a>(code: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(mark).map(move |(at, _)| {
        let rest = &code[at + mark.len()..];
        &rest[..rest.find(|letter| !is_in_word(letter)).unwrap_or(rest.len())]
    })
}

/// Types behind references, and whether they may be changed through them.
fn references(code: &str) -> impl Iterator<Item = (&str, bool)> {
    code.split('&').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('\'').map_or(rest, |rest| rest.trim_start_matches(is_in_word).trim_start());
        let changed = rest.strip_prefix("mut ");
        let path = changed.unwrap_or(rest);
        let path = &path[..path.find(|letter| !is_in_word(letter) && letter != ':').unwrap_or(path.len())];
        let name = path.rsplit("::").next().unwrap_or_default();
        name.starts_with(char::is_uppercase).then_some((name, changed.is_some()))
    })
}

/// Which machine has this type: the machines themselves, and what they are made of if no other directory has a type of that name.
fn rooms_of_types() -> BTreeMap<String, &'static str> {
    let mut rooms: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for (room, types) in MACHINES {
        let code = code(room);
        // Plain values have no methods that take themselves as a whole.
        for name in words_after(&code, "struct ").filter(|name| !name.is_empty()) {
            let methods = format!("impl {name} {{");
            let at_work = code.split(&methods).skip(1);
            if at_work.map(|body| body.split("\n}").next().unwrap_or_default()).any(|body| body.contains("(&mut self")) {
                rooms.entry(name.to_owned()).or_default().insert(room);
            }
        }
        rooms.extend(types.iter().map(|name| ((*name).to_owned(), BTreeSet::from([room]))));
    }
    let only = rooms.into_iter().filter(|(_, rooms)| rooms.len() == 1);
    only.filter_map(|(name, rooms)| Some((name, rooms.into_iter().next()?))).collect()
}

fn edges_in_source() -> BTreeMap<String, Edges> {
    let rooms = rooms_of_types();
    let edges = |room: &str| {
        let code = code(room);
        let mut edges = Edges { signals: words_after(&code, "Signal::").map(str::to_owned).collect(), ..Edges::default() };
        for (name, changed) in references(&code) {
            if let Some(other) = rooms.get(name).filter(|other| **other != room) {
                let set = if changed { &mut edges.writes } else { &mut edges.reads };
                set.insert((*other).to_owned());
            }
        }
        // Whoever may write may read.
        let Edges { reads, writes, .. } = &mut edges;
        reads.retain(|other| !writes.contains(other));
        edges
    };
    MACHINES.iter().map(|(room, _)| ((*room).to_owned(), edges(room))).collect()
}

/// The table "machine, question, reads, writes, signals".
fn edges_in_document() -> BTreeMap<String, Edges> {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md")).unwrap();
    let names = |cell: &str| cell.split(',').map(|name| name.trim().to_owned()).filter(|name| name != "–").collect::<BTreeSet<_>>();
    let mut edges = BTreeMap::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let room = cells[0].trim_matches('`');
        if let (true, [_, _, reads, writes, signals]) = (MACHINES.iter().any(|(known, _)| *known == room), &cells[..]) {
            edges.insert(room.to_owned(), Edges { reads: names(reads), writes: names(writes), signals: names(signals) });
        }
    }
    edges
}

#[test]
fn machines_know_of_each_other_what_the_document_says_and_no_more() {
    let (source, document) = (edges_in_source(), edges_in_document());
    for (room, edges) in &source {
        assert_eq!(Some(edges), document.get(room), "left: what {room} does in {CORE}; right: what docs/ARCHITECTURE.md says of it");
    }
    assert_eq!(source.len(), document.len());
    assert!(source["crawl"].writes.contains("replication"), "the one exception is found, so others would be: {source:?}");
    assert_eq!(source.values().map(|edges| edges.writes.len()).sum::<usize>(), 1, "one machine changes another: {source:?}");
}

#[test]
fn machines_keep_their_state_to_themselves() {
    for (room, types) in MACHINES {
        let code = code(room);
        for name in types {
            let begun = code.split(&format!("pub(crate) struct {name} {{")).nth(1).unwrap_or_else(|| panic!("{room} has no {name}"));
            let fields: Vec<&str> = begun.split("\n}").next().unwrap().lines().map(str::trim).filter(|line| line.contains(':')).collect();
            assert!(!fields.is_empty() && fields.len() <= 12, "{name} has {} fields: {fields:?}", fields.len());
            // `pub(super)` and no word at all stay within the directory.
            let open: Vec<_> = fields.iter().filter(|field| field.starts_with("pub ") || field.starts_with("pub(crate)")).collect();
            assert!(open.is_empty(), "{name} lets others at {open:?}");
        }
    }
}

#[test]
fn the_joining_type_stands_where_the_document_says_and_routes_in_few_lines() {
    let mut waiting = vec![core()];
    let mut lines = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        if source.lines().any(|line| line.starts_with("impl Crawler")) {
            lines.insert(path.strip_prefix(core()).unwrap().to_string_lossy().into_owned(), source.lines().count());
        }
    }
    let (effects, others): (BTreeMap<_, _>, BTreeMap<_, _>) = lines.into_iter().partition(|(file, _)| file.starts_with("effects/"));
    assert_eq!(others.keys().map(String::as_str).collect::<Vec<_>>(), ["crawler.rs", "requests.rs"]);
    assert!(effects.len() > 5, "{effects:?}");
    assert!(effects.values().all(|lines| *lines <= 280), "a file has one subject: {effects:?}");
    assert!(others["crawler.rs"] <= 300, "crawler.rs has {} lines: what does it decide?", others["crawler.rs"]);
}

#[test]
fn effects_of_one_subject_lead_to_those_of_another_and_not_back() {
    let files = fs::read_dir(core().join("effects")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let codes: BTreeMap<String, String> = files.map(|file| (file.clone(), code(&format!("effects/{file}")))).collect();
    let of = |code: &str| words_after(code, "fn ").map(str::to_owned).collect::<Vec<_>>();
    let homes: BTreeMap<String, &String> =
        codes.iter().flat_map(|(file, code)| of(code).into_iter().map(move |name| (name, file))).collect();
    let called = |code: &str| words_after(code, "self.").filter_map(|name| homes.get(name)).map(|file| (*file).clone()).collect();
    let edges: BTreeMap<String, BTreeSet<String>> = codes.iter().map(|(file, code)| (file.clone(), called(code))).collect();
    assert!(edges["routing.rs"].contains("visits.rs"), "calls are found: {edges:?}");
    assert_eq!(circles(&edges), BTreeSet::new());
}

#[test]
fn every_timer_belongs_to_a_machine_and_says_what_it_does() {
    let known: BTreeSet<&str> = MACHINES.iter().map(|(room, _)| *room).chain(["shutdown", "context"]).collect();
    let mut of_machines = BTreeSet::new();
    for (machine, what, every) in nearcrawl_core::timers::table() {
        assert!(known.contains(machine) && what.len() > 20 && every > 0, "{machine}: {what}");
        of_machines.insert(machine);
    }
    assert!(of_machines.len() >= 9, "{of_machines:?}");
}
