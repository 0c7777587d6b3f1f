//! Size of a hierarchy: counts by level and registry, height and memory.

use super::{
    source::Source,
    tree::{Hierarchy, OrganisationId, Position},
};
use nearcrawl_model::view::counted;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Counts of one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// The hash, in hexadecimal.
    pub hash: String,
    /// Subnets in all.
    pub subnets: u64,
    /// Subnets of IPv4.
    pub ipv4: u64,
    /// Subnets of IPv6.
    pub ipv6: u64,
    /// Subnets that lie in no other.
    pub blocks: u64,
    /// Subnets that lie in another.
    pub nested: u64,
    /// IPv4 addresses that are in some subnet.
    pub ipv4_addresses: u64,
    /// Number of organisations.
    pub organisations: u64,
    /// Organisations with a name.
    pub named_organisations: u64,
    /// Countries, `ZZ` included.
    pub countries: u64,
    /// Levels from the root to the deepest subnet (IPMicra expects at most 8).
    pub height: u32,
    /// Bytes of its image, which it takes in memory unless it is mapped from a file.
    pub memory_bytes: u64,
    /// Counts by registry.
    pub registries: BTreeMap<String, RegistryStats>,
    /// Subnets by country.
    pub subnets_by_country: BTreeMap<String, u64>,
    /// What it was built from.
    pub sources: Vec<Source>,
}

/// Counts of one registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegistryStats {
    /// Number of subnets.
    pub subnets: u64,
    /// Number of organisations.
    pub organisations: u64,
    /// Number of countries, `ZZ` included.
    pub countries: u64,
}

impl Stats {
    /// Counts everything; walks through all subnets.
    pub fn of(hierarchy: &Hierarchy) -> Stats {
        let mut registries: BTreeMap<String, RegistryStats> = BTreeMap::new();
        let mut subnets_by_country: BTreeMap<String, u64> = BTreeMap::new();
        let mut countries: BTreeSet<(&str, &str)> = BTreeSet::new();
        let (mut blocks, mut ipv4_addresses, mut deepest) = (0, 0, 0);
        for position in (0..hierarchy.len()).map(Position) {
            let (registry, country) = (hierarchy.registry(position), hierarchy.country(position));
            registries.entry(registry.to_owned()).or_default().subnets += 1;
            *subnets_by_country.entry(country.to_owned()).or_default() += 1;
            countries.insert((registry, country));
            let depth = std::iter::successors(Some(position), |p| hierarchy.parent(*p)).count();
            deepest = deepest.max(depth);
            if depth == 1 {
                blocks += 1;
                let prefix = hierarchy.prefix(position.0);
                if !prefix.v6 {
                    ipv4_addresses += 1u64 << (32 - prefix.length);
                }
            }
        }
        for (registry, _) in countries {
            registries.entry(registry.to_owned()).or_default().countries += 1;
        }
        let mut named = 0;
        for organisation in (0..hierarchy.organisations()).map(OrganisationId) {
            let record = hierarchy.organisation_record(organisation);
            registries.entry(record.registry.to_owned()).or_default().organisations += 1;
            named += u64::from(record.name.is_some());
        }
        let subnets = u64::from(hierarchy.len());
        Stats {
            hash: hierarchy.hash().iter().map(|b| format!("{b:02x}")).collect(),
            subnets,
            ipv4: subnets - u64::from(hierarchy.view().counts.long),
            ipv6: u64::from(hierarchy.view().counts.long),
            blocks,
            nested: subnets - blocks,
            ipv4_addresses,
            organisations: hierarchy.organisations().into(),
            named_organisations: named,
            countries: subnets_by_country.len() as u64,
            // Root, registry, country and organisation stand above the outermost subnets.
            height: if deepest == 0 { 0 } else { 3 + deepest as u32 },
            memory_bytes: hierarchy.image().len() as u64,
            registries,
            subnets_by_country,
            sources: hierarchy.sources().to_vec(),
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "hash           {}", self.hash)?;
        writeln!(
            f,
            "subnets        {} ({} IPv4, {} IPv6; {}, {} nested)",
            self.subnets,
            self.ipv4,
            self.ipv6,
            counted(self.blocks, "block"),
            self.nested
        )?;
        writeln!(f, "organisations  {} ({} with a name)", self.organisations, self.named_organisations)?;
        writeln!(f, "countries      {}", self.countries)?;
        writeln!(f, "height         {}", self.height)?;
        writeln!(f, "memory         {:.1} MB", self.memory_bytes as f64 / 1e6)?;
        for (name, r) in &self.registries {
            let (subnets, organisations) = (counted(r.subnets, "subnet"), counted(r.organisations, "organisation"));
            writeln!(f, "{name:<14} {subnets}, {organisations}, {}", counted(r.countries, "country"))?;
        }
        let sources: Vec<String> = self.sources.iter().map(|s| format!("{} {}", s.name, s.date)).collect();
        write!(f, "sources        {}", if sources.is_empty() { "none named".to_owned() } else { sources.join(", ") })
    }
}
