//! Test of a volunteer's way from the package to a member and back: the package of this program, on a machine made of namespaces.
//!
//! `make stranger` does the same with the program that is installed, in a Debian made for it; where that tree is kept already it is used
//! here, too.

use crate::{
    package,
    support::{Ended, nearcrawl_within},
};
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// The tree that scripts/debian-tree.sh has made here, else the one of this machine.
fn tree() -> String {
    let cache = PathBuf::from(std::env::var("NEARCRAWL_CACHE").unwrap_or_default());
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let release = system.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let made = release.map(|release| cache.join(format!("debian-{release}"))).filter(|path| path.join(".whole").exists());
    made.unwrap_or_else(|| PathBuf::from("/")).display().to_string()
}

#[tokio::test]
async fn a_volunteer_gets_from_the_package_to_a_member_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let deb = package::make(directory.path()).display().to_string();
    let arguments = ["lab", "stranger", "--package", &deb, "--tree", &tree(), "--json"];
    let Ended { code, said, complained } = nearcrawl_within(&arguments, Duration::from_secs(570)).await;
    println!("{said}");
    assert_eq!(code, Some(0), "{said}{complained}");
    let outcome: Value = serde_json::from_str(&said).unwrap();
    let steps = outcome["steps"].as_array().unwrap();
    assert!(outcome["all_taken"] == true && steps.len() == 10 && steps.iter().all(|step| step["held"] == true));
}
