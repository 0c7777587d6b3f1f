//! Layout of an image: sections one after another; where each begins follows from the counts in the header.

use super::lookup::{v4_slot_bits, v6_slot_bits};
use std::ops::Range;

/// Bytes of the header, before the first section.
pub(super) const HEADER: usize = 144;

/// Each section begins at a multiple of this many bytes, which is what 128-bit numbers need.
pub(super) const ALIGNMENT: usize = 16;

/// What lies in an image, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// `u128`: IPv6 first addresses.
    Long,
    /// The IPv6 look-up table: `u128`, otherwise `u32`.
    V6Starts,
    V6Owners,
    V6Uppers,
    V6Begins,
    V6Index,
    /// By position, `u32`: an IPv4 address, or an index into `Long`.
    Heads,
    /// By position, `u32`: index of the organisation.
    Holders,
    /// By position, `u32`: the covering subnet, or nobody.
    Parents,
    /// `u32`: positions by organisation.
    Members,
    /// `u32`: where the members of each organisation begin, and where the last ones end.
    MemberStarts,
    /// `u32`: first positions of the groups of each level.
    OrganisationStarts,
    CountryStarts,
    RegistryStarts,
    /// By organisation, `u32`: smallest AS number, 0 for none.
    Asns,
    /// By organisation, two `u32`: where id and name end in `Texts`.
    TextEnds,
    /// The IPv4 look-up table: `u32`, `u32`, `u16`.
    V4Index,
    V4Owners,
    V4Lows,
    /// By position, `u16`: index of the place.
    PlaceOf,
    /// By organisation, `u16`: index of the registry.
    HolderRegistries,
    /// Four bytes each: registry `u16`, country.
    Places,
    /// By position, `u8`: prefix length, IPv6 with 64 added.
    Lengths,
    /// Ids and names of organisations.
    Texts,
    /// Names of registries, as postcard.
    Registries,
    /// Sources, as postcard.
    Sources,
}

use Section::*;

const SECTIONS: [Section; 26] = [
    Long,
    V6Starts,
    V6Owners,
    V6Uppers,
    V6Begins,
    V6Index,
    Heads,
    Holders,
    Parents,
    Members,
    MemberStarts,
    OrganisationStarts,
    CountryStarts,
    RegistryStarts,
    Asns,
    TextEnds,
    V4Index,
    V4Owners,
    V4Lows,
    PlaceOf,
    HolderRegistries,
    Places,
    Lengths,
    Texts,
    Registries,
    Sources,
];

/// How much there is of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub subnets: u32,
    pub long: u32,
    pub organisations: u32,
    pub places: u32,
    pub organisation_groups: u32,
    pub country_groups: u32,
    pub registry_groups: u32,
    pub v4_segments: u32,
    pub v6_segments: u32,
    /// /32s in which IPv6 segments begin.
    pub v6_uppers: u32,
    /// Bytes of the texts.
    pub texts: u32,
    /// Bytes of the registries' names.
    pub registries: u32,
    /// Bytes of the sources.
    pub sources: u32,
}

/// Where each section lies.
pub(super) type Layout = [Range<usize>; SECTIONS.len()];

impl Counts {
    /// All of them, in the order of the header.
    pub(crate) fn numbers(&mut self) -> [&mut u32; 13] {
        [
            &mut self.subnets,
            &mut self.long,
            &mut self.organisations,
            &mut self.places,
            &mut self.organisation_groups,
            &mut self.country_groups,
            &mut self.registry_groups,
            &mut self.v4_segments,
            &mut self.v6_segments,
            &mut self.v6_uppers,
            &mut self.texts,
            &mut self.registries,
            &mut self.sources,
        ]
    }

    /// Bytes of a section.
    fn size(&self, section: Section) -> u64 {
        let (count, bytes) = match section {
            Long => (self.long, 16),
            V6Starts => (self.v6_segments, 16),
            V6Owners => (self.v6_segments, 4),
            V6Uppers => (self.v6_uppers, 4),
            V6Begins => (self.v6_uppers.saturating_add(1), 4),
            V6Index => ((1 << v6_slot_bits(self.v6_uppers as usize)) + 1, 4),
            Heads | Holders | Parents | Members => (self.subnets, 4),
            MemberStarts => (self.organisations.saturating_add(1), 4),
            OrganisationStarts => (self.organisation_groups, 4),
            CountryStarts => (self.country_groups, 4),
            RegistryStarts => (self.registry_groups, 4),
            Asns => (self.organisations, 4),
            TextEnds => (self.organisations, 8),
            V4Index => ((1 << v4_slot_bits(self.v4_segments as usize)) + 1, 4),
            V4Owners => (self.v4_segments, 4),
            V4Lows => (self.v4_segments, 2),
            PlaceOf => (self.subnets, 2),
            HolderRegistries => (self.organisations, 2),
            Places => (self.places, 4),
            Lengths => (self.subnets, 1),
            Texts => (self.texts, 1),
            Registries => (self.registries, 1),
            Sources => (self.sources, 1),
        };
        u64::from(count) * bytes
    }

    /// Where each section lies, and the length of the image; none if this machine cannot address it.
    pub(crate) fn layout(&self) -> Option<(Layout, usize)> {
        let mut end = HEADER as u64;
        let mut layout: Layout = std::array::from_fn(|_| 0..0);
        for (range, section) in layout.iter_mut().zip(SECTIONS) {
            let start = end.next_multiple_of(ALIGNMENT as u64);
            end = start + self.size(section);
            *range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        }
        Some((layout, usize::try_from(end).ok()?))
    }
}
