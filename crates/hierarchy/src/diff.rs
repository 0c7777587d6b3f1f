//! Difference between two hierarchies: subnets, addresses and organisations that stay, come, go or change.

use super::{
    change::Change,
    prefix::Prefix,
    tree::{Hierarchy, OrganisationId, Position},
};
use nearcrawl_model::view::counted;
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// The difference between two hierarchies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Subnets, and whether the time between explains the change.
    #[serde(flatten)]
    pub change: Change,
    /// Whether a build would refuse it.
    pub doubtful: bool,
    /// Whether both place every address alike.
    pub same_hash: bool,
    /// Subnets that are in both, but with another holder.
    pub other_holder: u64,
    /// Subnets that are in both, but in another country.
    pub other_country: u64,
    /// IPv4 addresses whose smallest subnet is another one, or that got or lost one.
    pub moved_ipv4_addresses: u64,
    /// These as a share of all IPv4 addresses.
    pub moved_ipv4_ratio: f64,
    /// Organisations that are in both.
    pub organisations_kept: u64,
    /// Organisations that are new.
    pub organisations_added: u64,
    /// Organisations that are gone.
    pub organisations_removed: u64,
    /// Subnets by registry.
    pub registries: BTreeMap<String, RegistryDiff>,
}

/// What changed at one registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegistryDiff {
    /// Its subnets that are in both.
    pub kept: u64,
    /// Its subnets that are new.
    pub added: u64,
    /// Its subnets that are gone.
    pub removed: u64,
}

impl Diff {
    /// What is different in `now`, compared with `previous`.
    pub fn between(previous: &Hierarchy, now: &Hierarchy) -> Diff {
        let change = Change::between(previous, now);
        let mut registries: BTreeMap<&str, RegistryDiff> = BTreeMap::new();
        let (mut other_holder, mut other_country) = (0, 0);
        let holder = |hierarchy: &Hierarchy, position| {
            let record = hierarchy.organisation_record(hierarchy.organisation(position));
            (record.registry.to_owned(), record.id.to_owned())
        };
        for position in (0..now.len()).map(Position) {
            let counts = registries.entry(now.registry(position)).or_default();
            let Some(before) = previous.position(now.subnet(position)) else {
                counts.added += 1;
                continue;
            };
            counts.kept += 1;
            other_holder += u64::from(holder(now, position) != holder(previous, before));
            other_country += u64::from(now.country(position) != previous.country(before));
        }
        for position in (0..previous.len()).map(Position) {
            if now.position(previous.subnet(position)).is_none() {
                registries.entry(previous.registry(position)).or_default().removed += 1;
            }
        }
        let moved = moved_addresses(&segments(previous), &segments(now));
        let (holders_before, holders_now) = (holder_names(previous), holder_names(now));
        let kept = count_common(&holders_before, &holders_now);
        Diff {
            doubtful: change.is_doubtful(),
            change,
            same_hash: now.hash() == previous.hash(),
            other_holder,
            other_country,
            moved_ipv4_addresses: moved,
            moved_ipv4_ratio: moved as f64 / 2f64.powi(32),
            organisations_kept: kept,
            organisations_added: holders_now.len() as u64 - kept,
            organisations_removed: holders_before.len() as u64 - kept,
            registries: registries.into_iter().map(|(name, counts)| (name.to_owned(), counts)).collect(),
        }
    }
}

/// Where in the IPv4 addresses another smallest subnet begins, and which; in address order, from 0 on.
fn segments(hierarchy: &Hierarchy) -> Vec<(u64, Option<Prefix>)> {
    let mut prefixes: Vec<Prefix> = (0..hierarchy.len()).map(|p| hierarchy.prefix(p)).filter(|p| !p.v6).collect();
    prefixes.sort_unstable();
    let mut segments: Vec<(u64, Option<Prefix>)> = vec![(0, None)];
    let mut begin = |at: u64, prefix: Option<Prefix>| {
        // A segment that ends where it begins is none.
        if segments.last().is_some_and(|(last, _)| *last == at) {
            segments.pop();
        }
        segments.push((at, prefix));
    };
    let mut around: Vec<Prefix> = Vec::new();
    let leave = |around: &mut Vec<Prefix>, next: Option<&Prefix>, begin: &mut dyn FnMut(u64, Option<Prefix>)| {
        while let Some(last) = around.last().copied().filter(|last| next.is_none_or(|next| !last.covers(next))) {
            around.pop();
            begin(last.last() as u64 + 1, around.last().copied());
        }
    };
    for prefix in prefixes {
        leave(&mut around, Some(&prefix), &mut begin);
        begin(prefix.first as u64, Some(prefix));
        around.push(prefix);
    }
    leave(&mut around, None, &mut begin);
    segments
}

/// Registry and id of every organisation, in ascending order.
fn holder_names(hierarchy: &Hierarchy) -> Vec<(&str, &str)> {
    let records = (0..hierarchy.organisations()).map(|o| hierarchy.organisation_record(OrganisationId(o)));
    let mut names: Vec<(&str, &str)> = records.map(|record| (record.registry, record.id)).collect();
    names.sort_unstable();
    names
}

/// How many are in both of two ascending lists.
fn count_common<T: Ord>(a: &[T], b: &[T]) -> u64 {
    let mut b = b.iter().peekable();
    a.iter()
        .filter(|wanted| {
            while b.next_if(|found| found < wanted).is_some() {}
            b.next_if(|found| found == wanted).is_some()
        })
        .count() as u64
}

/// How many addresses have another smallest subnet.
fn moved_addresses(before: &[(u64, Option<Prefix>)], now: &[(u64, Option<Prefix>)]) -> u64 {
    let (mut i, mut j, mut at, mut moved) = (0, 0, 0, 0);
    let begins = |segments: &[(u64, Option<Prefix>)], index: usize| segments.get(index).map_or(1 << 32, |(start, _)| *start);
    while at < 1 << 32 {
        let end = begins(before, i + 1).min(begins(now, j + 1));
        if before[i].1 != now[j].1 {
            moved += end - at;
        }
        i += usize::from(begins(before, i + 1) == end && end < 1 << 32);
        j += usize::from(begins(now, j + 1) == end && end < 1 << 32);
        at = end;
    }
    moved
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diff { change, .. } = self;
        writeln!(f, "subnets        {change}")?;
        writeln!(f, "kept subnets   {} with another holder, {} with another country", self.other_holder, self.other_country)?;
        writeln!(
            f,
            "addresses      {} of IPv4 with another smallest subnet ({:.2} % of all)",
            self.moved_ipv4_addresses,
            100.0 * self.moved_ipv4_ratio
        )?;
        writeln!(
            f,
            "organisations  {} kept, {} added, {} removed",
            self.organisations_kept, self.organisations_added, self.organisations_removed
        )?;
        for (name, counts) in &self.registries {
            writeln!(f, "{name:<14} {} kept, {} added, {} removed", counted(counts.kept, "subnet"), counts.added, counts.removed)?;
        }
        f.write_str(match (self.same_hash, self.doubtful) {
            (true, _) => "verdict        the same hierarchy",
            (false, false) => "verdict        as much change as the time explains",
            (false, true) => "verdict        more change than the time explains, or a step back: a build would refuse it",
        })
    }
}
