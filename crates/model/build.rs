//! Refuses to build if a crate that only computes can reach a runtime, the network or a database.
//!
//! Who adds such a dependency to one of them, however far down, learns of it at once. Every pure crate depends on this one, so it is
//! checked whenever one is built.

#![expect(clippy::disallowed_methods, reason = "this runs at build time")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

const LOCK: &str = "../../Cargo.lock";
const PURE: [&str; 4] = ["nearcrawl-model", "nearcrawl-hierarchy", "nearcrawl-page", "nearcrawl-core"];
const REFUSED: [&str; 10] =
    ["tokio", "mio", "async-io", "socket2", "hyper", "reqwest", "hickory-proto", "libp2p", "libp2p-core", "librocksdb-sys"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={LOCK}");
    // A lone crate, outside this tree, has no lock file of ours.
    let Ok(lock) = fs::read_to_string(LOCK) else { return };
    let dependencies = dependencies(&lock);
    for pure in PURE {
        let reached = reached(&dependencies, pure);
        if let Some(refused) = REFUSED.iter().find(|refused| reached.contains(**refused)) {
            println!("cargo::error={pure} only computes, so it must not depend on {refused}: `cargo tree -p {pure} -i {refused}`");
        }
    }
}

/// What each package of a lock file names, whatever the version.
fn dependencies(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut dependencies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut package = "";
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            package = name.trim_matches('"');
        } else if let Some(dependency) = line.strip_prefix(" \"") {
            let name = dependency.split(['"', ' ']).next().unwrap_or_default();
            dependencies.entry(package).or_default().insert(name);
        }
    }
    dependencies
}

fn reached<'l>(dependencies: &BTreeMap<&'l str, BTreeSet<&'l str>>, from: &'l str) -> BTreeSet<&'l str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(package) = waiting.pop() {
        if reached.insert(package) {
            waiting.extend(dependencies.get(package).into_iter().flatten());
        }
    }
    reached
}
