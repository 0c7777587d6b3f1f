//! Tests of the lock file: it must hold nothing that is abandoned, older than a known hole, or not free to use.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

const LOCK: &str = include_str!("../../Cargo.lock");
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Crates that must not come in, and what to take instead.
const BANNED: [(&str, &str); 9] = [
    ("trust-dns-*", "unmaintained (RUSTSEC-2025-0017): hickory"),
    ("serde_cbor", "unmaintained (RUSTSEC-2021-0127): postcard"),
    ("bincode", "unmaintained (RUSTSEC-2025-0141): postcard"),
    ("openssl-sys", "needs OpenSSL on every machine: rustls"),
    ("native-tls", "needs OpenSSL on every machine: rustls"),
    ("async-std", "unmaintained (RUSTSEC-2025-0052): tokio"),
    ("webpki", "unmaintained: rustls-webpki"),
    ("atty", "unsound (RUSTSEC-2021-0145): std::io::IsTerminal"),
    ("robotstxt", "a rule of 400 bytes takes minutes: our own"),
];

/// Versions below these have known holes; several of the advisories are in no database that a build can ask.
const LEAST: [(&str, [u64; 3], &str); 12] = [
    ("libp2p-gossipsub", [0, 50, 1], "remote crashes by gossip control messages"),
    ("yamux", [0, 13, 10], "remote crashes by window frames"),
    ("hickory-proto", [0, 26, 0], "remote exhaustion by crafted answers"),
    ("idna", [1, 0, 0], "RUSTSEC-2024-0421: names that decode to others"),
    ("rustls", [0, 23, 18], "RUSTSEC-2024-0399"),
    ("rustls-webpki", [0, 103, 10], "name constraints and revocation"),
    ("ring", [0, 17, 12], "RUSTSEC-2025-0009"),
    ("h2", [0, 4, 4], "RUSTSEC-2024-0332: endless continuation frames"),
    ("bytes", [1, 11, 1], "overflow in reserve"),
    ("crossbeam-channel", [0, 5, 15], "RUSTSEC-2025-0024: double free"),
    ("curve25519-dalek", [4, 1, 3], "RUSTSEC-2024-0344: timing"),
    ("tokio", [1, 44, 2], "RUSTSEC-2025-0023: unsound broadcast"),
];

/// Licences that a volunteer may run and a distribution may ship, each with nothing to ask and nothing to pay. MPL-2.0 binds
/// only changes to its own files (foca).
const ALLOWED: [&str; 17] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "BSL-1.0",
    "Unlicense",
    "CC0-1.0",
    "Unicode-3.0",
    "OpenSSL",
    "MPL-2.0",
    "CDLA-Permissive-2.0",
];

/// The crates that only compute.
const PURE: [&str; 4] = ["nearcrawl-model", "nearcrawl-hierarchy", "nearcrawl-page", "nearcrawl-core"];

/// What these must not reach, however far down: runtimes, sockets and databases.
const IMPURE: [&str; 14] = [
    "tokio",
    "mio",
    "async-*",
    "smol",
    "socket2",
    "hyper",
    "hyper-*",
    "reqwest",
    "axum",
    "hickory-*",
    "libp2p",
    "libp2p-*",
    "rocksdb",
    "librocksdb-*",
];

struct Package {
    name: String,
    version: String,
    source: Option<String>,
}

fn packages() -> Vec<Package> {
    let lock: toml::Table = LOCK.parse().unwrap();
    let text = |package: &toml::Value, key: &str| package.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    let packages = lock["package"].as_array().unwrap();
    packages
        .iter()
        .map(|p| Package { name: text(p, "name").unwrap(), version: text(p, "version").unwrap(), source: text(p, "source") })
        .collect()
}

/// Major, minor, patch; what follows does not matter here.
fn version(text: &str) -> [u64; 3] {
    let plain = text.split(['-', '+']).next().unwrap_or(text);
    let mut parts = plain.split('.').map(|part| part.parse().unwrap());
    [parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap()]
}

fn is_banned(name: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(name == pattern, |start| name.starts_with(start))
}

#[test]
fn no_banned_crate_came_in() {
    assert!(is_banned("trust-dns-proto", "trust-dns-*") && !is_banned("webpki-roots", "webpki"));
    for package in packages() {
        let banned = BANNED.iter().find(|(pattern, _)| is_banned(&package.name, pattern));
        assert!(banned.is_none(), "{} {} is banned: {}", package.name, package.version, banned.unwrap().1);
    }
}

#[test]
fn no_crate_is_older_than_a_known_hole() {
    assert!(version("0.9.10") < version("0.10.0+x") && version("1.2.3-rc.1") == [1, 2, 3]);
    let packages = packages();
    for (name, least, why) in LEAST {
        let mut found = packages.iter().filter(|package| package.name == name).peekable();
        assert!(found.peek().is_some(), "{name} is not in the lock file any more: drop its line here");
        for package in found {
            assert!(version(&package.version) >= least, "{name} {} is older than {least:?}: {why}", package.version);
        }
    }
}

#[test]
fn everything_comes_from_the_registry() {
    for package in packages() {
        match package.source.as_deref() {
            Some(source) => assert_eq!(source, CRATES_IO, "{} comes from elsewhere", package.name),
            None => assert!(
                package.name.split('-').next() == Some(env!("CARGO_PKG_NAME")),
                "{} has no source and is not one of our own",
                package.name
            ),
        }
    }
}

#[test]
fn the_lock_file_fits_the_manifest_and_every_licence_is_free() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "only {} packages", packages.len());
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_free(licence), "{} {} has the licence {licence:?}", package["name"], package["version"]);
    }
}

/// What `cargo metadata` says of this tree and all that it is built of, for this platform.
fn metadata() -> serde_json::Value {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let answer = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", &this_platform()])
        .arg("--manifest-path")
        .arg(&manifest)
        .output()
        .unwrap();
    assert!(answer.status.success(), "cargo metadata --locked: {}", String::from_utf8_lossy(&answer.stderr));
    serde_json::from_slice(&answer.stdout).unwrap()
}

/// The crates that are linked into `from`, by name: normal dependencies, and theirs.
fn linked_into(metadata: &serde_json::Value, from: &str) -> BTreeSet<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let names: BTreeMap<String, String> =
        metadata["packages"].as_array().unwrap().iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let is_normal = |dependency: &&serde_json::Value| dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let normal: BTreeMap<String, Vec<String>> = nodes
        .iter()
        .map(|node| {
            let dependencies = node["deps"].as_array().unwrap().iter().filter(is_normal);
            (text(&node["id"]), dependencies.map(|dependency| text(&dependency["pkg"])).collect())
        })
        .collect();
    let mut waiting: Vec<&String> = names.iter().filter(|(_, name)| *name == from).map(|(id, _)| id).collect();
    assert_eq!(waiting.len(), 1, "{from} is not one of our crates any more");
    let mut reached = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if reached.insert(id) {
            waiting.extend(&normal[id]);
        }
    }
    reached.into_iter().map(|id| names[id].clone()).collect()
}

fn impure(metadata: &serde_json::Value, from: &str) -> Vec<String> {
    linked_into(metadata, from).into_iter().filter(|name| IMPURE.iter().any(|pattern| is_banned(name, pattern))).collect()
}

#[test]
fn what_only_computes_is_linked_with_no_runtime_no_network_and_no_database() {
    let metadata = metadata();
    for pure in PURE {
        let found = impure(&metadata, pure);
        assert!(found.is_empty(), "{pure} depends on {found:?}; see cargo tree -p {pure} -i {}", found[0]);
    }
    let daemons = impure(&metadata, env!("CARGO_PKG_NAME"));
    for wanted in ["tokio", "mio", "socket2", "hyper", "reqwest", "hickory-proto", "libp2p", "libp2p-core", "rocksdb", "librocksdb-sys"] {
        assert!(daemons.iter().any(|name| name == wanted), "the daemon is linked with {wanted}, but this was not found: {daemons:?}");
    }
}

/// The platform that this is built for, as rustc names it: the crates of others need not be on this machine.
fn this_platform() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = Command::new(rustc).arg("-vV").output().unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// Whether we may choose allowed licences only. `/` is the old way to write OR; AND binds closer than OR, brackets closest.
fn is_free(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let free = any_is_free(&mut rest);
    free && rest.is_empty()
}

fn any_is_free(words: &mut &[&str]) -> bool {
    let mut free = all_are_free(words);
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        free |= all_are_free(words);
    }
    free
}

fn all_are_free(words: &mut &[&str]) -> bool {
    let mut free = one_is_free(words);
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        free &= one_is_free(words);
    }
    free
}

fn one_is_free(words: &mut &[&str]) -> bool {
    match **words {
        ["(", ref rest @ ..] => {
            *words = rest;
            let free = any_is_free(words);
            let closed = words.first() == Some(&")");
            *words = words.get(1..).unwrap_or_default();
            free && closed
        }
        [licence, "WITH", exception, ref rest @ ..] => {
            *words = rest;
            ALLOWED.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, ref rest @ ..] => {
            *words = rest;
            ALLOWED.contains(&licence)
        }
        [] => false,
    }
}

#[test]
fn licence_expressions_are_understood() {
    for free in
        ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR MIT", "(GPL-3.0 OR ISC) AND MIT", "Apache-2.0 WITH LLVM-exception", "MIT AND (GPL-2.0 OR ISC)"]
    {
        assert!(is_free(free), "{free}");
    }
    for bound in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT",
        "GPL-3.0 OR",
        "MIT)",
        "GPL-2.0 WITH Classpath-exception",
        "MIT AND (GPL-2.0 OR AGPL-3.0)",
    ] {
        assert!(!is_free(bound), "{bound}");
    }
}

#[test]
fn the_checks_read_the_lock_file_in_use() {
    let in_tree = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    assert_eq!(in_tree, LOCK);
}
