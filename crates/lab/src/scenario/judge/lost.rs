//! Finds what was recorded and is not with its owner.

use super::owners::owns;
use crate::swarm::{Disk, Played, records::Records};
use nearcrawl_model::{
    access_point::AccessPoint,
    journal::{JournalEntry, JournalKey},
    url::{Host, PageUrl},
};
use std::collections::{BTreeMap, BTreeSet};

/// The journals of one process, by host.
type Kept = BTreeMap<Host, Vec<JournalKey>>;

/// Pages and records that were recorded and are not with their owner, and the first of them.
pub(in crate::scenario) fn lost(world: &Played) -> (u64, Option<String>) {
    let Some(records) = &world.records else { return (0, None) };
    let mut expected: BTreeMap<&Host, BTreeMap<u32, BTreeSet<&PageUrl>>> = BTreeMap::new();
    for (host, run, url, _) in records.all_recorded() {
        expected.entry(host).or_default().entry(run).or_default().insert(url);
    }
    let mut kept: BTreeMap<AccessPoint, Kept> = BTreeMap::new();
    for (_, process) in world.running_processes() {
        let journals = kept.entry(process).or_default();
        for key in world.disk_of(&process).into_iter().flat_map(|disk| disk.journals.keys()) {
            journals.entry(key.host.clone()).or_default().push(key.clone());
        }
    }
    let (mut lost, mut first) = (0, None);
    for (host, runs) in expected {
        let Some((run, pages)) = runs.last_key_value() else { continue };
        let all = pages.len() as u64 + 1;
        let of_owner = |(process, kept): (&AccessPoint, &Kept)| {
            let keys = kept.get(host)?;
            // By its present address, or by an earlier one under which a journal is filed.
            let filed = keys.iter().map(|key| key.subnet.first());
            let is_owner = world.hosts().get(host).copied().into_iter().chain(filed).any(|address| owns(world, process, address));
            is_owner.then(|| missing(world, records, process, keys, *run, pages).min(all))
        };
        let missing = kept.iter().filter_map(of_owner).min().unwrap_or(all);
        if missing > 0 {
            first.get_or_insert_with(|| {
                format!("of run {run} of {host}, {missing} of {all} recorded pages and records are not with their owner")
            });
        }
        lost += missing;
    }
    (lost, first)
}

/// How many of the pages and the record of a host's run are in none of these journals.
fn missing(world: &Played, records: &Records, process: &AccessPoint, keys: &[JournalKey], run: u32, pages: &BTreeSet<&PageUrl>) -> u64 {
    let counts_as = |key: &JournalKey| records.counts_as(&key.host, key.run);
    let newest = keys.iter().map(counts_as).max().unwrap_or(0);
    // The next run has begun when it was due, and nothing of it is recorded yet.
    if newest > run {
        return 0;
    }
    let Some(disk) = world.disk_of(process).filter(|_| newest == run) else { return u64::MAX };
    let visited: BTreeSet<PageUrl> = keys.iter().filter(|key| counts_as(key) == run).flat_map(|key| visited(disk, key)).collect();
    pages.iter().filter(|page| !visited.contains(**page)).count() as u64
}

/// The pages of a journal, up to its first gap.
fn visited(disk: &Disk, key: &JournalKey) -> BTreeSet<PageUrl> {
    let rows = disk.read(key, 0, u64::MAX, &mut usize::MAX.clone());
    let whole = (0..).zip(rows).take_while(|(expected, row)| *expected == row.sequence);
    let entries = whole.filter_map(|(_, row)| postcard::from_bytes(&row.entry).ok());
    entries.filter_map(|entry| if let JournalEntry::Visited { url, .. } = entry { Some(url) } else { None }).collect()
}
