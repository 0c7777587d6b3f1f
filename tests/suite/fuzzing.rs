//! Tests that every fuzz target has a corpus and every corpus a target, and that the list of them is complete.
//!
//! This is read off the files; that each target passes its corpus is tested in its crate.

use std::{collections::BTreeSet, fs, path::Path};

/// The most bytes that all corpora take together.
const MOST: u64 = 2 << 20;

/// The names in the folder's `targets!`.
fn targets(source: &str) -> BTreeSet<String> {
    let (_, list) = source.split_once("targets!(").unwrap();
    let (_, list) = list.split_once(':').unwrap();
    let (list, _) = list.split_once(");").unwrap();
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn targets_and_corpora_belong_together_and_the_readme_names_them() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let readme = fs::read_to_string(fuzz.join("README.md")).unwrap();
    let (mut folders, mut bytes, mut count) = (0, 0, 0);
    for folder in fs::read_dir(fuzz.join("corpus")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let targets = targets(&fs::read_to_string(fuzz.join(format!("targets/{name}.rs"))).unwrap());
        let mut corpora = BTreeSet::new();
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            bytes += file.metadata().unwrap().len();
            corpora.insert(file.file_name().into_string().unwrap().trim_end_matches(".txt").to_owned());
        }
        assert_eq!(targets, corpora, "fuzz/targets/{name}.rs and fuzz/corpus/{name}");
        let untold: Vec<_> = targets.iter().filter(|target| !readme.contains(&format!("`{name}/{target}`"))).collect();
        assert!(untold.is_empty(), "fuzz/README.md does not name {untold:?} of {name}");
        count += targets.len();
        folders += 1;
    }
    assert!(folders >= 5 && count >= 40, "{count} targets in {folders} folders");
    assert!(bytes <= MOST, "the corpora have {bytes} bytes; {MOST} are allowed");
}
