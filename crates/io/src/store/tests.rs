//! Tests of the store with real databases: what survives, what is refused, and how much each query costs.

mod kill;
mod opening;
mod questions;
mod room;
mod stalled;

use super::{Store, StoreConfig};
use nearcrawl_model::{
    journal::{JournalKey, JournalRow},
    subnet::Subnet,
};
use std::{fs, path::Path};

/// Small, so that many tests fit on one machine.
fn config() -> StoreConfig {
    StoreConfig { memory_bytes: 8 << 20, ..StoreConfig::default() }
}

fn open(dir: &Path) -> Store {
    Store::open(dir, &config()).unwrap().0
}

fn subnet(text: &str) -> Subnet {
    text.parse().unwrap()
}

fn journal(net: &str, host: &str, run: u32) -> JournalKey {
    JournalKey { subnet: subnet(net), host: host.parse().unwrap(), run }
}

fn row(key: &JournalKey, sequence: u64, entry: &str) -> JournalRow {
    JournalRow { key: key.clone(), sequence, entry: entry.as_bytes().to_vec() }
}

fn rows(key: &JournalKey, sequences: std::ops::Range<u64>) -> Vec<JournalRow> {
    sequences.map(|n| row(key, n, &format!("entry {n}"))).collect()
}

/// A copy of a directory as it lies on the disk: what a restart would find after kill -9.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
