//! How do prefixes become a tree? Sorted, freed of doubles, nested, numbered depth first; the same for any order of the input.
//!
//! Rules where the material disagrees:
//!
//! * One prefix said twice: configuration beats registries' statistics, these beat WHOIS, then come tables of networks, of routes and of countries;
//!   then the later date; then the smaller registry, organisation and country, so that the order of the files never matters.
//! * One prefix inside another: it hangs beneath the other, whoever holds it, and keeps its own organisation and country.
//! * A holder with blocks in several countries stands beneath each of them, and is one organisation.

use super::{
    codec,
    lookup::{NOBODY, V4Table, V6Table},
    prefix::Prefix,
    tree::{Hierarchy, Organisations, Place, Source, V6_LENGTH},
};
use crate::model::subnet::Subnet;
use std::{cmp::Reverse, collections::BTreeSet};

/// How many subnets a hierarchy may have.
pub const MOST_SUBNETS: usize = 5_000_000;

/// How many organisations a hierarchy may have.
pub const MOST_ORGANISATIONS: usize = 2_000_000;

/// How many subnets may lie inside one another; the whole tree is then at most 4 levels higher (IPMicra expects 8 in all).
pub const DEEPEST_NESTING: usize = 12;

/// What says that a prefix is a subnet; the later ones are believed before the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// A table of countries.
    Placed,
    /// A table of routes.
    Routed,
    /// A table of nested networks.
    Compiled,
    /// WHOIS.
    Registered,
    /// Delegated statistics.
    Delegated,
    Configured,
}

/// Who is believed when one prefix is said twice: the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub origin: Origin,
    /// YYYYMMDD, 0 unknown.
    pub date: u32,
}

/// A prefix and who holds it; numbers are those of the [`Material`] around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub prefix: Prefix,
    pub place: Place,
    pub organisation: u32,
    pub rank: Rank,
}

/// An organisation as it was read.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub registry: u16,
    pub id: String,
    pub name: String,
    pub asn: u32,
}

/// All that a hierarchy is made of, in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Material {
    pub registries: Vec<String>,
    pub organisations: Vec<Holder>,
    pub entries: Vec<Entry>,
    pub sources: Vec<Source>,
}

/// Why no tree was made of the material.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyRefusal {
    /// More than [`MOST_SUBNETS`].
    #[error("{0} subnets are more than the {MOST_SUBNETS} a hierarchy may have: leave out the finest networks")]
    Subnets(usize),
    /// More than [`MOST_ORGANISATIONS`].
    #[error("{0} organisations are more than the {MOST_ORGANISATIONS} a hierarchy may have: check the registry files")]
    Organisations(usize),
    /// More pairs of registry and country than there can be.
    #[error("{0} pairs of registry and country: the files invent registries or countries")]
    Places(usize),
    /// Nested deeper than [`DEEPEST_NESTING`].
    #[error("{0} lies inside more than {DEEPEST_NESTING} other subnets: leave out some of the levels")]
    Nesting(Subnet),
}

/// Numbers in ascending order of what they name: `order[new] = old`, and back.
fn ranks(order: &[u32], len: usize) -> Vec<u32> {
    let mut new_of = vec![NOBODY; len];
    for (new, old) in (0u32..).zip(order) {
        new_of[*old as usize] = new;
    }
    new_of
}

/// Renumbers registries and organisations by their names, leaving out what nobody refers to.
fn canonical_names(material: &mut Material) -> Result<(), AssemblyRefusal> {
    let Material { registries, organisations, entries, .. } = material;
    let mut used = vec![false; organisations.len()];
    let mut registry_used = vec![false; registries.len()];
    for entry in &*entries {
        used[entry.organisation as usize] = true;
        registry_used[usize::from(entry.place.registry)] = true;
        registry_used[usize::from(organisations[entry.organisation as usize].registry)] = true;
    }
    let mut order: Vec<u32> = (0..registries.len() as u32).filter(|r| registry_used[*r as usize]).collect();
    order.sort_unstable_by_key(|r| &registries[*r as usize]);
    let registry_of = ranks(&order, registries.len());
    *registries = order.iter().map(|r| registries[*r as usize].clone()).collect();

    for holder in organisations.iter_mut() {
        holder.registry = registry_of[usize::from(holder.registry)] as u16;
    }
    let mut order: Vec<u32> = (0..organisations.len() as u32).filter(|o| used[*o as usize]).collect();
    if order.len() > MOST_ORGANISATIONS {
        return Err(AssemblyRefusal::Organisations(order.len()));
    }
    order.sort_unstable_by_key(|o| (organisations[*o as usize].registry, &organisations[*o as usize].id));
    let organisation_of = ranks(&order, organisations.len());
    *organisations = order
        .iter()
        .map(|o| {
            let Holder { registry, id, name, asn } = &mut organisations[*o as usize];
            Holder { registry: *registry, id: std::mem::take(id), name: std::mem::take(name), asn: *asn }
        })
        .collect();
    for entry in entries {
        entry.organisation = organisation_of[entry.organisation as usize];
        entry.place.registry = registry_of[usize::from(entry.place.registry)] as u16;
    }
    Ok(())
}

/// Sorts the entries by address and keeps one of each prefix.
fn without_doubles(entries: &mut Vec<Entry>) {
    // Registries and organisations are numbered by name here, so numbers break ties as names would.
    entries.sort_unstable_by_key(|e| (e.prefix, Reverse(e.rank), e.place.registry, e.organisation, e.place.country));
    entries.dedup_by_key(|e| e.prefix);
}

/// By entry in address order: the entry around it, and the outermost entry around it.
fn nest(entries: &[Entry]) -> Result<(Vec<u32>, Vec<u32>), AssemblyRefusal> {
    let (mut parents, mut tops) = (Vec::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
    let mut around: Vec<u32> = Vec::new();
    for (i, entry) in (0u32..).zip(entries) {
        while around.last().is_some_and(|a| !entries[*a as usize].prefix.covers(&entry.prefix)) {
            around.pop();
        }
        if around.len() > DEEPEST_NESTING {
            return Err(AssemblyRefusal::Nesting(entry.prefix.subnet()));
        }
        parents.push(around.last().copied().unwrap_or(NOBODY));
        tops.push(around.first().copied().unwrap_or(i));
        around.push(i);
    }
    Ok((parents, tops))
}

/// Makes the tree.
pub(super) fn assemble(mut material: Material) -> Result<Hierarchy, AssemblyRefusal> {
    canonical_names(&mut material)?;
    without_doubles(&mut material.entries);
    // Doubles that lost may have been the only ones to name their organisation.
    canonical_names(&mut material)?;
    let Material { registries, organisations: holders, entries, mut sources } = material;
    if entries.len() > MOST_SUBNETS {
        return Err(AssemblyRefusal::Subnets(entries.len()));
    }
    let places: Vec<Place> = entries.iter().map(|e| e.place).collect::<BTreeSet<_>>().into_iter().collect();
    if places.len() > usize::from(u16::MAX) {
        return Err(AssemblyRefusal::Places(places.len()));
    }
    let place_index = |place: &Place| places.partition_point(|p| p < place) as u16;

    let (parents, tops) = nest(&entries)?;
    let top_key = |i: u32| {
        let top = &entries[tops[i as usize] as usize];
        (top.place, top.organisation)
    };
    // Entries are in address order and the sort is stable: within an organisation the walk stays one through the addresses.
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_by_key(|i| top_key(*i));
    let position_of = ranks(&order, entries.len());

    let starts = |same: &dyn Fn(u32, u32) -> bool| -> Box<[u32]> {
        (0..order.len() as u32).filter(|p| *p == 0 || !same(order[*p as usize - 1], order[*p as usize])).collect()
    };
    let organisation_starts = starts(&|a, b| top_key(a) == top_key(b));
    let country_starts = starts(&|a, b| top_key(a).0 == top_key(b).0);
    let registry_starts = starts(&|a, b| top_key(a).0.registry == top_key(b).0.registry);

    let mut long = Vec::new();
    let (mut heads, mut lengths) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
    for i in &order {
        let prefix = entries[*i as usize].prefix;
        if prefix.v6 {
            heads.push(long.len() as u32);
            long.push(prefix.first);
            lengths.push(prefix.length + V6_LENGTH);
        } else {
            heads.push(prefix.first as u32);
            lengths.push(prefix.length);
        }
    }
    let by_position = |f: &dyn Fn(&Entry) -> u32| -> Box<[u32]> { order.iter().map(|i| f(&entries[*i as usize])).collect() };
    let holders_of = by_position(&|e| e.organisation);
    let mut members: Vec<u32> = (0..order.len() as u32).collect();
    members.sort_by_key(|p| holders_of[*p as usize]);
    let member_starts = (0..=holders.len() as u32).map(|o| members.partition_point(|p| holders_of[*p as usize] < o) as u32).collect();

    let family = |v6: bool| (0u32..).zip(&entries).filter(move |(_, e)| e.prefix.v6 == v6);
    let mut organisations = Organisations::default();
    for holder in holders {
        organisations.registries.push(holder.registry);
        organisations.asns.push(holder.asn);
        organisations.texts.push_str(&holder.id);
        let id_end = organisations.texts.len() as u32;
        organisations.texts.push_str(&holder.name);
        organisations.ends.push([id_end, organisations.texts.len() as u32]);
    }
    organisations.texts.shrink_to_fit();
    sources.sort();
    sources.dedup();
    let mut hierarchy = Hierarchy {
        hash: [0; 32],
        sources,
        parents: order.iter().map(|i| position_of.get(parents[*i as usize] as usize).copied().unwrap_or(NOBODY)).collect(),
        place_of: order.iter().map(|i| place_index(&entries[*i as usize].place)).collect(),
        v4: V4Table::new(family(false).map(|(i, e)| (e.prefix, position_of[i as usize]))),
        v6: V6Table::new(family(true).map(|(i, e)| (e.prefix, position_of[i as usize]))),
        heads: heads.into(),
        long: long.into(),
        lengths: lengths.into(),
        holders: holders_of,
        registries,
        places,
        organisations,
        members: members.into(),
        member_starts,
        organisation_starts,
        country_starts,
        registry_starts,
    };
    hierarchy.hash = codec::content_hash(&codec::encode(&hierarchy));
    Ok(hierarchy)
}
