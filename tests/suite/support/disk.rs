//! Reads the state directory of a daemon that does not run, from a copy, with the store that daemons use.

use nearcrawl::io::store::{Store, StoreConfig};
use nearcrawl_lab::demo::verdict::key;
use nearcrawl_model::journal::JournalEntry;
use std::{collections::BTreeSet, fs, path::Path};

/// Copies a directory as it lies on the disk.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap_or_else(|why| panic!("{}: {why}", to.display()));
    for entry in fs::read_dir(from).unwrap_or_else(|why| panic!("{}: {why}", from.display())) {
        let entry = entry.expect("an entry of the directory");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap_or_else(|why| panic!("{}: {why}", to.display()));
        }
    }
}

/// The URLs, as the servers' log files them, whose visits are durable in a state directory: in the daemon's own journals, and in
/// its copies of others', where rows come only after their owners stored them. The directory is opened, so it must be a copy.
pub async fn visited(directory: &Path) -> BTreeSet<(String, String)> {
    let config = StoreConfig { memory_bytes: 8 << 20, ..StoreConfig::default() };
    let (store, _) = Store::open(directory, &config).unwrap_or_else(|why| panic!("{why}"));
    let mut visited = BTreeSet::new();
    for (journal, _) in store.journals(None).await.expect("the journals") {
        for row in store.journal_read(journal, 0, usize::MAX).await.expect("a journal's rows") {
            match postcard::from_bytes(&row.entry).expect("a journal's entry") {
                JournalEntry::Visited { url, .. } => visited.insert(key(&url)),
                _ => continue,
            };
        }
    }
    store.discard().await;
    visited
}
