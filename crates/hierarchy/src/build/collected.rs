//! What the files said, before it is merged: prefixes, AS numbers, names and countries as read, with what is left open marked as such.

use super::super::{assemble::Material, limits::MAX_TEXT, tree::Hierarchy};
use std::collections::{BTreeMap, HashMap}; // unordered: the map below

/// The registry of a prefix that has to be taken from the subnet around it.
pub(super) const UNTOLD: u16 = u16::MAX;

/// The organisation of a prefix that has to be taken from the subnet around it.
pub(super) const INHERITED: u32 = u32::MAX;

/// No country is told.
pub(super) const NOWHERE: [u8; 2] = *b"ZZ";

/// Numbers of autonomous systems that a registry assigned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Systems {
    pub first: u32,
    pub count: u32,
    pub organisation: u32,
    pub country: [u8; 2],
}

/// A candidate for the name of an organisation, with its rank: the smallest rank wins. Its own object has the name, or its widest
/// network.
pub(super) type Title = (u8, String);

/// The first part of the [`Title`] of an organisation's own object.
pub(super) const OWN_TITLE: u8 = 0;

/// What files say besides prefixes: who holds which AS number, names and countries.
#[derive(Default)]
pub(super) struct Learnt {
    /// Names of autonomous systems, by AS number.
    pub names: BTreeMap<u32, String>,
    /// Names of organisations, by organisation.
    pub titles: BTreeMap<u32, Title>,
    /// Countries of organisations, by organisation.
    pub countries: BTreeMap<u32, [u8; 2]>,
    /// Registry and day of the latest change, of WHOIS objects.
    pub changes: BTreeMap<String, u32>,
}

impl Learnt {
    /// Of several names for one number the alphabetically first, whatever the order they come in.
    pub(crate) fn name(&mut self, asn: u32, name: String) {
        if asn != 0 && !name.is_empty() && name.len() <= MAX_TEXT {
            keep_least(&mut self.names, asn, name);
        }
    }

    pub(crate) fn title(&mut self, organisation: u32, kind: u8, name: &str) {
        if !name.is_empty() && name.len() <= MAX_TEXT && self.titles.get(&organisation).is_none_or(|t| (t.0, t.1.as_str()) > (kind, name)) {
            self.titles.insert(organisation, (kind, name.to_owned()));
        }
    }

    pub(crate) fn country(&mut self, organisation: u32, country: [u8; 2]) {
        if country != NOWHERE {
            keep_least(&mut self.countries, organisation, country);
        }
    }

    pub(crate) fn absorb(&mut self, other: Learnt) {
        other.names.into_iter().for_each(|(asn, name)| keep_least(&mut self.names, asn, name));
        other.titles.into_iter().for_each(|(organisation, title)| keep_least(&mut self.titles, organisation, title));
        other.countries.into_iter().for_each(|(organisation, country)| keep_least(&mut self.countries, organisation, country));
    }
}

/// Keeps the least of all values for one key, whatever the order they come in.
pub(super) fn keep_least<V: Ord>(map: &mut BTreeMap<u32, V>, key: u32, value: V) {
    if map.get(&key).is_none_or(|kept| value < *kept) {
        map.insert(key, value);
    }
}

/// What all files said so far.
#[derive(Default)]
pub(super) struct Collected {
    pub material: Material,
    registry_index: HashMap<String, u16>, // unordered: only looked up in, never walked in an order that matters
    pub systems: Vec<Systems>,
    pub learnt: Learnt,
}

impl Collected {
    /// What a finished hierarchy says.
    pub(crate) fn of(hierarchy: &Hierarchy) -> Collected {
        let material = Material::of(hierarchy);
        let registry_index = material.registries.iter().cloned().zip(0u16..).collect();
        Collected { material, registry_index, ..Collected::default() }
    }

    /// The number of a registry, or none when there are more than can be numbered.
    pub(crate) fn registry(&mut self, name: &str) -> Option<u16> {
        if let Some(index) = self.registry_index.get(name) {
            return Some(*index);
        }
        let index = u16::try_from(self.material.registries.len()).ok().filter(|i| *i < UNTOLD)?;
        self.material.registries.push(name.to_owned());
        self.registry_index.insert(name.to_owned(), index);
        Some(index)
    }

    pub(crate) fn organisation(&mut self, registry: u16, id: &str) -> u32 {
        self.material.organisations.number(registry, id)
    }

    /// Forgets the registries from a number on.
    pub(crate) fn truncate_registries(&mut self, count: usize) {
        self.material.registries.truncate(count);
        self.registry_index.retain(|_, index| usize::from(*index) < count);
    }
}
