//! Tests of which files use each other, and in how many places the methods of a type stand; read off the paths that the source names.

use super::tidy::{Source, assert_none, house};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// In how many places methods of one type may stand: files, or directories that have nothing but methods of it.
const MAX_PLACES_OF_A_TYPE: usize = 3;

/// Directories each file of which has methods of the same one type, by subject: each counts as one place.
const DIRECTORIES_OF_A_TYPE: [(&str, &str); 1] = [("crates/core/src/effects", "core::crawler::Crawler")];

/// Files that use each other in a circle. Why they do is written in the documentation of the module around them.
const CIRCLES: [&[&str]; 7] = [
    &["model::claim", "model::ownership_map", "model::vote"],
    &["model::estimates", "model::summary"],
    &["model::forwarded", "model::message"],
    &["core::crawl::site", "core::crawl::site::ahead", "core::crawl::site::standing"],
    &["core::crawler", "core::timers"],
    &["lab::swarm::executor", "lab::swarm::faults", "lab::swarm::network", "lab::swarm::sim_event", "lab::swarm::world"],
    &["page::evaluation::document", "page::evaluation::semantics"],
];

/// The modules of all crates by their paths, as `core::crawl::site`.
#[derive(Default)]
struct Modules {
    sources: BTreeMap<String, Source>,
    /// By module and name: the path that it is imported from.
    imports: BTreeMap<String, String>,
    /// By module: the paths that it names other than to pass them on (`pub use`).
    references: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    fn of(sources: Vec<Source>) -> Modules {
        let mut modules = Modules::default();
        for source in sources.into_iter().filter(|source| !source.is_test() && !source.path.ends_with("/main.rs")) {
            let module = module_of(&source.path);
            let (uses, code) = uses_and_code(&source);
            let mut references: BTreeSet<String> = paths(&code).map(str::to_owned).collect();
            for (passed_on, path) in uses {
                modules.imports.insert(format!("{module}::{}", last(&path)), path.clone());
                if !passed_on {
                    references.insert(path);
                }
            }
            modules.references.insert(module.clone(), references);
            modules.sources.insert(module, source);
        }
        modules
    }

    /// The module in which what `path` names within `module` is defined; none if that is in another crate.
    fn home(&self, module: &str, path: &str) -> Option<String> {
        let mut at = module.to_owned();
        let mut names = path.split("::").peekable();
        match *names.peek()? {
            "crate" => at = module.split("::").next()?.to_owned(),
            "self" | "super" => {}
            name if self.sources.contains_key(&format!("{module}::{name}")) => {}
            _ => return None,
        }
        while let Some(name) = names.next() {
            let below = format!("{at}::{name}");
            if name == "super" {
                at = parent(&at)?.to_owned();
            } else if self.sources.contains_key(&below) {
                at = below;
            } else if let Some(import) = self.imports.get(&below).filter(|import| (at.as_str(), import.as_str()) != (module, path)) {
                let rest: Vec<&str> = std::iter::once(import.as_str()).chain(names).collect();
                return self.home(&at, &rest.join("::"));
            } else if !["crate", "self"].contains(&name) {
                break;
            }
        }
        Some(at)
    }
}

fn module_of(file: &str) -> String {
    let path = file.trim_start_matches("crates/").replace("src/", "").replace(".rs", "");
    let module = path.trim_end_matches("/mod").trim_end_matches("/lib").replace('/', "::");
    if file.starts_with("src/") { format!("nearcrawl::{module}").replace("::lib", "") } else { module }
}

fn parent(module: &str) -> Option<&str> {
    module.rsplit_once("::").map(|(parent, _)| parent)
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// The paths that a file imports, with whether it passes them on, and the rest of its code.
fn uses_and_code(source: &Source) -> (Vec<(bool, String)>, String) {
    let (mut uses, mut code) = (Vec::new(), String::new());
    let mut open: Option<(bool, String)> = None;
    for (_, line) in source.code() {
        let begun = line.trim_start().split_once("use ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        match (&mut open, begun) {
            (Some((_, tree)), _) => tree.push_str(line.trim()),
            (None, Some((before, tree))) => open = Some((!before.is_empty(), tree.trim().to_owned())),
            (None, None) => code.extend([line, "\n"]),
        }
        if let Some((passed_on, tree)) = open.take_if(|(_, tree)| tree.ends_with(';')) {
            let mut paths = Vec::new();
            expand("", tree.trim_end_matches(';'), &mut paths);
            uses.extend(paths.into_iter().map(|path| (passed_on, path)));
        }
    }
    (uses, code)
}

/// Takes `a::{b, c::{d, e}}` apart: `a::b`, `a::c::d`, `a::c::e`.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let mut depth = 0;
    let parts = tree.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        match part.strip_suffix('}').and_then(|part| part.split_once('{')) {
            Some((more, inside)) => expand(&format!("{before}{more}"), inside, paths),
            None => {
                let path = format!("{before}{}", part.split(" as ").next().unwrap_or(part));
                paths.push(path.trim_end_matches("::self").to_owned());
            }
        }
    }
}

/// The paths of more than one name in a piece of code.
fn paths(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != ':');
    words.map(|word| word.trim_matches(':')).filter(|word| word.contains("::"))
}

/// By directory: which of its files use which others. The file that declares them is one of them; what is in directories below is not.
fn edges(modules: &Modules) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut rooms: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, references) in &modules.references {
        for to in references.iter().filter_map(|path| modules.home(from, path)).filter(|to| to != from) {
            let room = if parent(&to) == Some(from) { Some(from.as_str()) } else { parent(from) };
            if let Some(room) = room.filter(|room| [parent(&to), Some(to.as_str())].contains(&Some(room))) {
                rooms.entry(room.to_owned()).or_default().entry(from.clone()).or_default().insert(to);
            }
        }
    }
    rooms
}

/// Of a graph, the sets of files from each of which every other of the set is reached.
pub(super) fn circles(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &str| {
        let mut reached: BTreeSet<String> = BTreeSet::new();
        let mut waiting = vec![from.to_owned()];
        while let Some(file) = waiting.pop() {
            waiting.extend(edges.get(&file).into_iter().flatten().filter(|to| reached.insert((*to).clone())).cloned());
        }
        reached
    };
    let all: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &String| all[file].iter().filter(|to| all.get(to).is_some_and(|back| back.contains(file))).cloned().collect();
    edges.keys().map(circle).filter(|circle: &BTreeSet<String>| circle.len() > 1).collect()
}

#[test]
fn files_use_each_other_in_circles_only_for_a_reason() {
    let modules = Modules::of(house());
    let mut known = 0;
    let mut found = Vec::new();
    for (room, edges) in edges(&modules) {
        for circle in circles(&edges) {
            if CIRCLES.iter().any(|known| circle.iter().eq(known.iter())) {
                known += 1;
                continue;
            }
            let within = |file: &String| edges[file].intersection(&circle).map(|to| last(to)).collect::<Vec<_>>().join(", ");
            let lines: Vec<String> = circle.iter().map(|file| format!("    {} uses {}", last(file), within(file))).collect();
            found.push(format!("in {room}:\n{}", lines.join("\n")));
        }
    }
    assert_none(found, "files use each other in a circle; move what both use to a file of its own, or write down why not");
    assert_eq!(known, CIRCLES.len(), "a circle that is gone needs no reason any more");
}

#[test]
fn methods_of_a_type_stand_in_at_most_three_places() {
    let modules = Modules::of(house());
    let mut files: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (module, source) in &modules.sources {
        for (number, line) in source.code().filter(|(_, line)| line.starts_with("impl") && !line.contains(" for ")) {
            let Some(path) = implemented(line) else {
                unknown.push(format!("{}:{number}: {line}", source.path));
                continue;
            };
            let import = modules.imports.get(&format!("{module}::{path}")).map_or(path, String::as_str);
            let home = modules.home(module, import).unwrap_or_else(|| module.clone());
            files.entry(format!("{home}::{}", last(path))).or_default().insert(&source.path);
        }
    }
    assert_none(unknown, "methods of which type?");
    for (directory, name) in DIRECTORIES_OF_A_TYPE {
        let below = |path: &str| Path::new(path).parent() == Some(Path::new(directory));
        let all: BTreeSet<&str> = modules.sources.values().map(|source| source.path.as_str()).filter(|path| below(path)).collect();
        for (implemented, files) in files.iter_mut().filter(|(_, files)| files.iter().any(|path| below(path))) {
            assert_eq!(implemented, name, "{directory} has methods of one type");
            assert!(all.len() > 1 && files.is_superset(&all), "{directory} has nothing but methods of {name}: {all:?}");
            files.retain(|path| !below(path));
            files.insert(directory);
        }
    }
    let many = files.into_iter().filter(|(_, files)| files.len() > MAX_PLACES_OF_A_TYPE);
    assert_none(many.map(|(name, files)| format!("{name}: {files:?}")).collect(), "methods of one type stand in at most three places");
}

/// Of `impl<'a> module::Name<'a> {` the path of the type.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let mut depth = 0;
    let begin = rest.find(|letter| {
        depth += i32::from(letter == '<') - i32::from(letter == '>');
        depth == 0 && letter != '>'
    })?;
    let path = rest[begin..].trim_start();
    Some(&path[..path.find(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter))?]).filter(|path| !path.is_empty())
}
