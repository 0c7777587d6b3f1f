//! Makes a tree of prefixes.
//!
//! The prefixes are sorted, freed of duplicates, nested and numbered depth first; the result is the same for any order of the input.
//!
//! Rules where the material disagrees:
//!
//! * One prefix said twice: configuration beats registries' statistics, these beat WHOIS, then come tables of networks, of routes and of
//!   countries; then the later date; then the smaller registry, organisation and country, so that the order of the files never matters.
//! * One prefix inside another: it hangs beneath the other, whoever holds it, and keeps its own organisation and country.
//! * A holder with blocks in several countries stands beneath each of them, and is one organisation.

use super::{
    columns::Columns,
    entries::{Entries, Entry, Held, Origin, Rank},
    holders::Holders,
    layout::Section,
    limits::{MAX_NESTING, MAX_ORGANISATIONS, MAX_SUBNETS},
    prefix::Prefix,
    source::{Place, Source},
    tables,
    tree::{Hierarchy, OrganisationId, Position},
};
use nearcrawl_model::subnet::Subnet;
use std::collections::BTreeSet;

/// All that a hierarchy is made of, in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Material {
    pub registries: Vec<String>,
    pub organisations: Holders,
    pub entries: Entries,
    pub sources: Vec<Source>,
}

impl Material {
    /// A hierarchy taken apart, to be put together with something else.
    pub(super) fn of(hierarchy: &Hierarchy) -> Material {
        let rank = Rank { origin: Origin::Delegated, date: 0 };
        let mut material =
            Material { registries: hierarchy.view().registries.clone(), sources: hierarchy.view().sources.clone(), ..Material::default() };
        material.entries.extend((0..hierarchy.len()).map(|p| Entry {
            prefix: hierarchy.prefix(p),
            place: hierarchy.place(p),
            organisation: hierarchy.organisation(Position(p)).0,
            rank,
        }));
        let registries: &[u16] = hierarchy.view().section(Section::HolderRegistries);
        for (registry, organisation) in registries.iter().zip(0..) {
            let record = hierarchy.organisation_record(OrganisationId(organisation));
            let number = material.organisations.number(*registry, record.id);
            material.organisations.set_name(number, record.name.unwrap_or_default());
            material.organisations.set_asn(number, record.asn.unwrap_or_default());
        }
        material
    }
}

/// Why no tree was made of the material.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// More than [`MAX_SUBNETS`].
    #[error("{0} subnets are more than the {MAX_SUBNETS} a hierarchy may have: leave out the finest networks")]
    Subnets(usize),
    /// More than [`MAX_ORGANISATIONS`].
    #[error("{0} organisations are more than the {MAX_ORGANISATIONS} a hierarchy may have: check the registry files")]
    Organisations(usize),
    /// More pairs of registry and country than there can be.
    #[error("{0} pairs of registry and country: the files invent registries or countries")]
    Places(usize),
    /// Nested deeper than [`MAX_NESTING`].
    #[error("{0} lies inside more than {MAX_NESTING} other subnets: leave out some of the levels")]
    Nesting(Subnet),
    /// The finished tree fails the check that opening applies: a fault of the program. It is reported, and the tree is not passed on to
    /// members.
    #[error("the hierarchy came out wrong, which is a fault of this program: {0}")]
    Unsound(&'static str),
}

/// The other way round: where `order[new] = old`, the new number of each old one; 0 for those that are left out.
fn new_of(order: &[u32], len: usize) -> Vec<u32> {
    let mut new_of = vec![0; len];
    for (new, old) in (0u32..).zip(order) {
        new_of[*old as usize] = new;
    }
    new_of
}

/// Of numbers in order, those that are used.
fn only(order: &[u32], used: &[bool]) -> Vec<u32> {
    order.iter().zip(used).filter(|(_, used)| **used).map(|(old, _)| *old).collect()
}

/// Numbers of registries and organisations in the order of their names.
struct Names {
    /// `registries[new] = old`.
    registries: Vec<u32>,
    /// `organisations[new] = old`.
    organisations: Vec<u32>,
}

/// Numbers all registries by name and all organisations by registry and id.
fn number_by_name(material: &mut Material) -> Names {
    let Material { registries: names, organisations: holders, entries, .. } = material;
    let mut registries: Vec<u32> = (0..names.len() as u32).collect();
    registries.sort_unstable_by_key(|r| &names[*r as usize]);
    let registry_of = new_of(&registries, names.len());
    // A stand-in that is settled has no registry, and nobody refers to it.
    holders.renumber_registries(|r| registry_of.get(usize::from(r)).map_or(0, |new| *new as u16));

    let mut organisations: Vec<u32> = (0..holders.len() as u32).collect();
    let key = |o: &u32| {
        let holder = holders.get(*o);
        (holder.registry, holder.id)
    };
    organisations.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    let organisation_of = new_of(&organisations, holders.len());
    entries.renumber(|place, organisation| {
        place.registry = registry_of[usize::from(place.registry)] as u16;
        *organisation = organisation_of[*organisation as usize];
    });
    Names { registries, organisations }
}

/// Leaves out the registries and organisations that no entry refers to.
fn without_unused(material: &mut Material, mut names: Names) -> Names {
    let Material { organisations: holders, entries, .. } = material;
    let mut registry_used = vec![false; names.registries.len()];
    let mut organisation_used = vec![false; names.organisations.len()];
    for Held { place, organisation, .. } in entries.iter() {
        registry_used[usize::from(place.registry)] = true;
        organisation_used[organisation as usize] = true;
    }
    for (old, _) in names.organisations.iter().zip(&organisation_used).filter(|(_, used)| **used) {
        registry_used[usize::from(holders.get(*old).registry)] = true;
    }
    let left = |used: &[bool]| -> Vec<u32> { (0u32..).zip(used).filter(|(_, used)| **used).map(|(number, _)| number).collect() };
    let registry_of = new_of(&left(&registry_used), registry_used.len());
    let organisation_of = new_of(&left(&organisation_used), organisation_used.len());
    entries.renumber(|place, organisation| {
        place.registry = registry_of[usize::from(place.registry)] as u16;
        *organisation = organisation_of[*organisation as usize];
    });
    holders.renumber_registries(|r| registry_of[usize::from(r)] as u16);
    names.registries = only(&names.registries, &registry_used);
    names.organisations = only(&names.organisations, &organisation_used);
    names
}

/// By entry in address order: the outermost entry around it.
fn outermost(entries: &Entries) -> Result<Vec<u32>, AssemblyError> {
    let mut tops = Vec::with_capacity(entries.len());
    let mut around: Vec<(u32, Prefix)> = Vec::new();
    for (i, Held { prefix, .. }) in (0u32..).zip(entries.iter()) {
        while around.last().is_some_and(|(_, a)| !a.covers(&prefix)) {
            around.pop();
        }
        if around.len() > MAX_NESTING {
            return Err(AssemblyError::Nesting(prefix.subnet()));
        }
        around.push((i, prefix));
        tops.push(around[0].0);
    }
    Ok(tops)
}

/// Makes the tree.
pub(super) fn assemble(mut material: Material) -> Result<Hierarchy, AssemblyError> {
    let names = number_by_name(&mut material);
    material.entries.sort();
    // Doubles that lost may have been the only ones to name their organisation.
    let names = without_unused(&mut material, names);
    if material.entries.len() > MAX_SUBNETS {
        return Err(AssemblyError::Subnets(material.entries.len()));
    }
    if names.organisations.len() > MAX_ORGANISATIONS {
        return Err(AssemblyError::Organisations(names.organisations.len()));
    }
    let columns = in_tree_order(material, &names)?;
    tables::build(columns).map(Hierarchy::of).map_err(|why| AssemblyError::Unsound(why.reason()))
}

/// Puts the sorted entries in depth-first order, and lets go of them.
fn in_tree_order(material: Material, names: &Names) -> Result<Columns, AssemblyError> {
    let Material { registries, organisations: holders, entries, mut sources } = material;
    let places: BTreeSet<Place> = entries.iter().map(|e| e.place).collect();
    if places.len() > usize::from(u16::MAX) {
        return Err(AssemblyError::Places(places.len()));
    }
    sources.sort();
    sources.dedup();
    let mut columns = Columns {
        registries: names.registries.iter().map(|r| registries[*r as usize].clone()).collect(),
        places: places.into_iter().collect(),
        sources,
        ..Columns::default()
    };
    columns.organisations.reserve(names.organisations.len());
    names.organisations.iter().for_each(|o| columns.organisations.push(holders.get(*o)));
    drop(holders);

    let tops = outermost(&entries)?;
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    // Entries are in address order: within an organisation the walk stays one through the addresses.
    order.sort_unstable_by_key(|i| {
        let top = entries.get(tops[*i as usize] as usize);
        (top.place, top.organisation, *i)
    });
    drop(tops);
    columns.reserve(entries.len(), entries.long());
    for i in order {
        let Held { prefix, place, organisation } = entries.get(i as usize);
        let place = columns.places.partition_point(|p| *p < place) as u16;
        columns.push(prefix, organisation, place);
    }
    Ok(columns)
}
