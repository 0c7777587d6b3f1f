//! The content of a hierarchy without its tables, as columns: subnets in depth-first order, and their holders.

use super::{
    holders::Holder,
    prefix::{Prefix, V6_LENGTH},
    source::{Place, Source},
};

/// The content of a hierarchy; everything else follows from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// Names of registries, ascending.
    pub registries: Vec<String>,
    /// Pairs of registry and country, ascending.
    pub places: Vec<Place>,
    pub organisations: Organisations,
    /// By position: an IPv4 address, or an index into `long`.
    pub heads: Vec<u32>,
    /// IPv6 first addresses.
    pub long: Vec<u128>,
    /// By position: prefix length, IPv6 with [`V6_LENGTH`] added.
    pub lengths: Vec<u8>,
    /// By position: index of the organisation.
    pub holders: Vec<u32>,
    /// By position: index of registry and country.
    pub place_of: Vec<u16>,
    /// Names and dates of the sources, for people; not part of the content.
    pub sources: Vec<Source>,
}

impl Columns {
    /// Makes room for so many subnets, of which so many are IPv6.
    pub(crate) fn reserve(&mut self, subnets: usize, long: usize) {
        self.heads.reserve_exact(subnets);
        self.long.reserve_exact(long);
        self.lengths.reserve_exact(subnets);
        self.holders.reserve_exact(subnets);
        self.place_of.reserve_exact(subnets);
    }

    /// Adds the next subnet.
    pub(crate) fn push(&mut self, prefix: Prefix, organisation: u32, place: u16) {
        if prefix.v6 {
            self.heads.push(self.long.len() as u32);
            self.long.push(prefix.first);
            self.lengths.push(prefix.length + V6_LENGTH);
        } else {
            self.heads.push(prefix.first as u32);
            self.lengths.push(prefix.length);
        }
        self.holders.push(organisation);
        self.place_of.push(place);
    }

    /// The prefix at a position.
    pub(crate) fn prefix(&self, position: usize) -> Prefix {
        Prefix::stored(self.lengths[position], self.heads[position], |i| self.long[i as usize])
    }
}

/// The organisations, ascending by registry and id; their texts in one string.
#[derive(Clone, Debug, Default)]
pub(super) struct Organisations {
    /// Index of the registry.
    pub registries: Vec<u16>,
    /// Smallest AS number, 0 for none.
    pub asns: Vec<u32>,
    /// Ends of id and name in `texts`.
    pub ends: Vec<[u32; 2]>,
    pub texts: String,
}

impl Organisations {
    pub(crate) fn reserve(&mut self, organisations: usize) {
        self.registries.reserve_exact(organisations);
        self.asns.reserve_exact(organisations);
        self.ends.reserve_exact(organisations);
    }

    pub(crate) fn push(&mut self, holder: Holder<'_>) {
        self.registries.push(holder.registry);
        self.asns.push(holder.asn);
        self.texts.push_str(holder.id);
        let id_end = self.texts.len() as u32;
        self.texts.push_str(holder.name);
        self.ends.push([id_end, self.texts.len() as u32]);
    }
}
