//! How is a hierarchy built? Files are read one by one, each taken whole or refused whole; then the tree is made of all.
//!
//! Equal inputs in any order give equal hashes; the rules for inputs that disagree are those of the assembly: see
//! the module `assemble`, and here for names: an organisation is called as the smallest AS number that its registry assigned to
//! it is called in the tables of routes; of several names of one AS number the alphabetically first.

use super::{
    asn::{self, Route},
    assemble::{AssemblyRefusal, MOST_SUBNETS, Material, assemble},
    delegated::{self, Record, is_holder, is_registry},
    entries::{Entry, Origin, Rank},
    prefix::{Prefix, SHORTEST, cut},
    report::{ReadRefusal, ReadReport},
    tree::{Hierarchy, Place, Source},
    verify::LONGEST_TEXT,
};
use crate::model::subnet::Subnet;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap}, // unordered: the map below
    io::BufRead,
};

/// A prefix that the configuration adds: a laboratory, or a network of one's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FurtherPrefix {
    /// The prefix; at least 3 bits long.
    pub prefix: Subnet,
    /// Two letters; empty is unknown (`ZZ`).
    #[serde(default)]
    pub country: String,
    /// Who holds it, at most 64 bytes; empty: a holder of its own.
    #[serde(default)]
    pub organisation: String,
    /// Name of the registry in lower case; empty is `local`.
    #[serde(default)]
    pub registry: String,
}

/// A further prefix that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFurtherPrefix {
    /// Too much of the address space.
    #[error("the further prefix {0} is too short: write one of at least {SHORTEST} bits")]
    TooShort(Subnet),
    /// Not a country.
    #[error("{1:?} is no country of the further prefix {0}: write two letters, or leave it out")]
    Country(Subnet, String),
    /// Not an organisation.
    #[error("the organisation of the further prefix {0} has more than 64 bytes or control characters: write a shorter one")]
    Organisation(Subnet),
    /// Not a registry.
    #[error("{1:?} is no registry of the further prefix {0}: write lower-case letters, digits and hyphens, or leave it out")]
    Registry(Subnet, String),
}

/// What a table of routes is read for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutedUse {
    /// Names of organisations only.
    Names,
    /// Names, and networks nested in the delegated blocks: finer subnets, about three times as many.
    #[default]
    NamesAndNetworks,
}

/// Collects what the files say.
#[derive(Default)]
pub struct Builder {
    overrule: bool,
    material: Material,
    registry_index: HashMap<String, u16>, // unordered: only looked up in, never walked
    /// AS numbers that registries assigned: first number and organisation → how many.
    systems: BTreeMap<(u32, u32), u32>,
    names: BTreeMap<u32, String>,
    routed: Vec<(bool, u128, u128)>,
}

impl Builder {
    /// An empty one that refuses doubtful files.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Whether files with too many bad lines or broken counts are taken nevertheless (their bad lines never are).
    #[must_use]
    pub fn overrule(mut self, overrule: bool) -> Builder {
        self.overrule = overrule;
        self
    }

    /// Goes on from a finished hierarchy.
    pub(super) fn from_material(material: Material) -> Builder {
        let registry_index = material.registries.iter().cloned().zip(0u16..).collect();
        Builder { material, registry_index, ..Builder::default() }
    }

    /// Reads a registry's delegated or delegated-extended statistics. `source_name` is for messages only. A refused file leaves
    /// nothing behind.
    pub fn read_delegated(&mut self, source_name: &str, input: impl BufRead) -> Result<ReadReport, ReadRefusal> {
        // Read into a builder of its own, which is taken over when the file is believed.
        let mut read = Builder::default();
        let too_many = || ReadRefusal::TooMany(source_name.to_owned());
        let taken = self.material.entries.len() + self.systems.len();
        let report = delegated::read(source_name, input, |report, record| {
            read.take(report, &record).ok_or_else(too_many)?;
            // Asked at every record, so that a flood does not fill the memory first.
            let size = taken + read.material.entries.len() + read.systems.len();
            if size > MOST_SUBNETS { Err(too_many()) } else { Ok(()) }
        })?
        .judge(self.overrule)?;
        if let (Some(name), Some(date)) = (&report.registry, &report.date) {
            read.material.sources.push(Source { name: name.clone(), date: date.clone() });
        }
        self.absorb(read).ok_or_else(too_many)?;
        Ok(report)
    }

    /// Takes one record; none when there are more registries than can be numbered.
    fn take(&mut self, report: &mut ReadReport, record: &Record<'_>) -> Option<()> {
        let (Record::Block { held, .. } | Record::Systems { held, .. }) = record;
        let registry = self.registry(held.registry)?;
        let organisation = self.organisation(registry, held.holder);
        match *record {
            Record::Block { v6, first, last, held } => {
                let rank = Rank { origin: Origin::Delegated, date: held.date };
                let place = Place { registry, country: held.country };
                let before = self.material.entries.len();
                self.material.entries.extend(cut(v6, first, last).map(|prefix| Entry { prefix, place, organisation, rank }));
                report.used += 1;
                report.prefixes += (self.material.entries.len() - before) as u64;
            }
            Record::Systems { first, count, .. } => self.assign_systems(first, organisation, count),
        }
        Some(())
    }

    fn assign_systems(&mut self, first: u32, organisation: u32, count: u32) {
        let known = self.systems.entry((first, organisation)).or_insert(count);
        *known = count.max(*known);
    }

    /// Takes over what another builder has read of a registry's file.
    fn absorb(&mut self, other: Builder) -> Option<()> {
        let Material { registries, organisations, entries, sources } = other.material;
        let registry_of = registries.iter().map(|name| self.registry(name)).collect::<Option<Vec<u16>>>()?;
        let organisation_of: Vec<u32> =
            organisations.iter().map(|h| self.organisation(registry_of[usize::from(h.registry)], h.id)).collect();
        self.material.entries.absorb(entries, |place, organisation| {
            place.registry = registry_of[usize::from(place.registry)];
            *organisation = organisation_of[*organisation as usize];
        });
        for ((first, organisation), count) in other.systems {
            self.assign_systems(first, organisation_of[organisation as usize], count);
        }
        self.material.sources.extend(sources);
        Some(())
    }

    /// Reads a table of routes, `first,last,AS number,"organisation"`.
    pub fn read_asn_csv(&mut self, source_name: &str, input: impl BufRead, routed_use: RoutedUse) -> Result<ReadReport, ReadRefusal> {
        let mut routes: Vec<(bool, u128, u128)> = Vec::new();
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        let report = asn::read(source_name, input, |report, Route { v6, first, last, asn, name }| {
            report.used += 1;
            if routed_use == RoutedUse::NamesAndNetworks {
                report.prefixes += cut(v6, first, last).count() as u64;
                routes.push((v6, first, last));
            }
            if names.len() > MOST_SUBNETS || report.prefixes > MOST_SUBNETS as u64 {
                return Err(ReadRefusal::TooMany(source_name.to_owned()));
            }
            keep_first(&mut names, asn, name);
            Ok(())
        })?
        .judge(self.overrule)?;
        if self.routed.len() + routes.len() > MOST_SUBNETS {
            return Err(ReadRefusal::TooMany(source_name.to_owned()));
        }
        self.routed.extend(routes);
        names.into_iter().for_each(|(asn, name)| keep_first(&mut self.names, asn, name));
        Ok(report)
    }

    /// Adds a prefix of the configuration.
    pub fn add_prefix(&mut self, further: &FurtherPrefix) -> Result<(), BadFurtherPrefix> {
        let subnet = further.prefix;
        if subnet.length() < SHORTEST {
            return Err(BadFurtherPrefix::TooShort(subnet));
        }
        let country = delegated::country(&further.country).ok_or_else(|| BadFurtherPrefix::Country(subnet, cut_text(&further.country)))?;
        let registry = if further.registry.is_empty() { "local" } else { &further.registry };
        let bad_registry = || BadFurtherPrefix::Registry(subnet, cut_text(registry));
        if !is_registry(registry) {
            return Err(bad_registry());
        }
        let own = subnet.to_string();
        let holder = if further.organisation.is_empty() { &own } else { &further.organisation };
        if !is_holder(holder) {
            return Err(BadFurtherPrefix::Organisation(subnet));
        }
        let registry = self.registry(registry).ok_or_else(bad_registry)?;
        let organisation = self.organisation(registry, holder);
        self.material.entries.push(Entry {
            prefix: Prefix::from(&subnet),
            place: Place { registry, country },
            organisation,
            rank: Rank { origin: Origin::Configured, date: 0 },
        });
        Ok(())
    }

    /// Makes the tree of all that was read.
    pub fn finish(mut self) -> Result<Hierarchy, AssemblyRefusal> {
        self.name_organisations();
        let blocks = assemble(self.material)?;
        if self.routed.is_empty() {
            return Ok(blocks);
        }
        let mut material = blocks.material();
        for (v6, first, last) in self.routed {
            material.entries.extend(cut(v6, first, last).filter_map(|prefix| nested(&blocks, prefix)));
            // Doubles are found by the assembly; before that they must not fill the memory.
            if material.entries.len() > 2 * MOST_SUBNETS {
                return Err(AssemblyRefusal::Subnets(material.entries.len()));
            }
        }
        assemble(material)
    }

    /// Gives every organisation the smallest of its AS numbers and, if any of them has a name, the name of the smallest such.
    fn name_organisations(&mut self) {
        for ((first, organisation), count) in &self.systems {
            let holders = &mut self.material.organisations;
            let known = holders.get(*organisation);
            let (asn, unnamed) = (known.asn, known.name.is_empty());
            if asn == 0 {
                holders.set_asn(*organisation, *first);
            }
            let last = first.saturating_add(count - 1);
            if unnamed && let Some((_, name)) = self.names.range(first..=&last).next() {
                holders.set_name(*organisation, name);
            }
        }
    }

    /// The number of a registry, or none when there are more than can be numbered.
    fn registry(&mut self, name: &str) -> Option<u16> {
        if let Some(index) = self.registry_index.get(name) {
            return Some(*index);
        }
        let index = u16::try_from(self.material.registries.len()).ok().filter(|i| *i < u16::MAX)?;
        self.material.registries.push(name.to_owned());
        self.registry_index.insert(name.to_owned(), index);
        Some(index)
    }

    fn organisation(&mut self, registry: u16, id: &str) -> u32 {
        self.material.organisations.number(registry, id)
    }
}

/// A routed prefix as a network within the smallest subnet that strictly covers it: it has the same holder, because a table
/// of routes says who announces, not who registered.
fn nested(blocks: &Hierarchy, prefix: Prefix) -> Option<Entry> {
    let mut around = blocks.locate(prefix.subnet().first())?;
    while !blocks.prefix(around.0).covers(&prefix) {
        around = blocks.parent(around)?;
    }
    let place = blocks.place(around.0);
    let organisation = blocks.organisation(around).0;
    let rank = Rank { origin: Origin::Routed, date: 0 };
    (blocks.prefix(around.0) != prefix).then_some(Entry { prefix, place, organisation, rank })
}

/// Of several names for one number the alphabetically first, whatever the order they come in.
fn keep_first(names: &mut BTreeMap<u32, String>, asn: u32, name: String) {
    if name.is_empty() || name.len() > LONGEST_TEXT {
        return;
    }
    let kept = names.entry(asn).or_insert_with(|| name.clone());
    if name < *kept {
        *kept = name;
    }
}

/// Enough of a text for a message.
fn cut_text(text: &str) -> String {
    text.chars().take(40).collect()
}
