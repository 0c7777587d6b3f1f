//! Derives the tables of an image from the content: parents, groups, members and look-up tables, written straight into the image.

use super::{
    columns::Columns,
    image::Draft,
    layout::{Counts, Section},
    limits::MAX_SUBNETS,
    lookup::{NOBODY, upper, v4_slot, v4_slot_bits, v6_slot, v6_slot_bits},
    prefix::Prefix,
    segments::flatten,
    view::{ImageError, View},
};

/// Bits of a position within a sort key.
const POSITION_BITS: u32 = 24;

const _: () = assert!(MAX_SUBNETS <= 1 << POSITION_BITS);

/// Positions of one family in the order of a walk through the addresses: by first address, the covering before those inside.
struct Walk {
    v4: Vec<u64>,
    v6: Vec<u32>,
}

impl Walk {
    fn through(columns: &Columns) -> Walk {
        let short = columns.lengths.len() - columns.long.len();
        let mut walk = Walk { v4: Vec::with_capacity(short), v6: Vec::with_capacity(columns.long.len()) };
        for position in 0..columns.lengths.len() {
            let prefix = columns.prefix(position);
            if prefix.v6 {
                walk.v6.push(position as u32);
            } else {
                // Address, length and position side by side are sorted without looking anything up.
                walk.v4.push((prefix.first as u64) << 30 | u64::from(prefix.length) << POSITION_BITS | position as u64);
            }
        }
        walk.v4.sort_unstable();
        walk.v6.sort_unstable_by_key(|p| (columns.prefix(*p as usize), *p));
        walk
    }

    /// Gives `sink` the IPv4 segments.
    fn v4(&self, mut sink: impl FnMut(u32, u32)) {
        let known = |key: &u64| {
            let prefix = Prefix { v6: false, first: u128::from(key >> 30), length: (key >> POSITION_BITS) as u8 & 0x3f };
            (prefix, (key & ((1 << POSITION_BITS) - 1)) as u32)
        };
        flatten(self.v4.iter().map(known), |start, owner| {
            // What begins behind the last address begins nowhere.
            if let Ok(start) = u32::try_from(start) {
                sink(start, owner);
            }
        });
    }

    /// Gives `sink` the IPv6 segments.
    fn v6(&self, columns: &Columns, sink: impl FnMut(u128, u32)) {
        flatten(self.v6.iter().map(|p| (columns.prefix(*p as usize), *p)), sink);
    }
}

/// By position: the smallest subnet around it, or nobody. Within a group the walk is depth first, so it lies before.
fn parents(columns: &Columns, parents: &mut [u32]) {
    let mut around: Vec<(u32, Prefix)> = Vec::new();
    for (position, parent) in parents.iter_mut().enumerate() {
        let prefix = columns.prefix(position);
        while around.pop_if(|(_, a)| !a.covers(&prefix)).is_some() {}
        *parent = around.last().map_or(NOBODY, |(p, _)| *p);
        around.push((position as u32, prefix));
    }
}

/// First positions of the groups of each level: organisations, countries, registries. A group begins at a subnet in no other.
fn group_starts(columns: &Columns, parents: &[u32]) -> [Vec<u32>; 3] {
    let mut starts = [const { Vec::new() }; 3];
    let mut before = None;
    for (position, _) in parents.iter().enumerate().filter(|(_, parent)| **parent == NOBODY) {
        let place = columns.place_of[position];
        let registry = columns.places[usize::from(place)].registry;
        let here = (registry, place, columns.holders[position]);
        let changed = before.map_or([true; 3], |(r, p, o)| [(p, o) != (place, here.2), p != place, r != registry]);
        for (starts, _) in starts.iter_mut().zip(changed).filter(|(_, changed)| *changed) {
            starts.push(position as u32);
        }
        before = Some(here);
    }
    starts
}

/// Positions by organisation, and where those of each begin: counted, then dealt out.
fn members(columns: &Columns, draft: &mut Draft) {
    let mut next = vec![0u32; columns.organisations.registries.len() + 1];
    columns.holders.iter().for_each(|holder| next[*holder as usize + 1] += 1);
    sum_up(&mut next);
    draft.section(Section::MemberStarts).copy_from_slice(&next);
    let members: &mut [u32] = draft.section(Section::Members);
    for (position, holder) in (0u32..).zip(&columns.holders) {
        let place = &mut next[*holder as usize];
        members[*place as usize] = position;
        *place += 1;
    }
}

/// Makes sums of what was counted one place further up: how many come before.
fn sum_up(counts: &mut [u32]) {
    for i in 1..counts.len() {
        counts[i] += counts[i - 1];
    }
}

fn v4_table(walk: &Walk, segments: u32, draft: &mut Draft) {
    let bits = v4_slot_bits(segments as usize);
    let mut next = 0;
    let lows: &mut [u16] = draft.section(Section::V4Lows);
    walk.v4(|start, _| {
        lows[next] = v4_slot(start, bits).1;
        next += 1;
    });
    next = 0;
    let owners: &mut [u32] = draft.section(Section::V4Owners);
    walk.v4(|_, owner| {
        owners[next] = owner;
        next += 1;
    });
    let index: &mut [u32] = draft.section(Section::V4Index);
    walk.v4(|start, _| index[v4_slot(start, bits).0 + 1] += 1);
    sum_up(index);
}

fn v6_table(columns: &Columns, walk: &Walk, uppers: &[u32], draft: &mut Draft) {
    let mut next = 0;
    let starts: &mut [u128] = draft.section(Section::V6Starts);
    walk.v6(columns, |start, _| {
        starts[next] = start;
        next += 1;
    });
    next = 0;
    let owners: &mut [u32] = draft.section(Section::V6Owners);
    walk.v6(columns, |_, owner| {
        owners[next] = owner;
        next += 1;
    });
    next = 0;
    let begins: &mut [u32] = draft.section(Section::V6Begins);
    walk.v6(columns, |start, _| {
        next += usize::from(uppers[next] != upper(start));
        begins[next + 1] += 1;
    });
    sum_up(begins);
    let bits = v6_slot_bits(uppers.len());
    let index: &mut [u32] = draft.section(Section::V6Index);
    uppers.iter().for_each(|upper| index[v6_slot(*upper, bits) + 1] += 1);
    sum_up(index);
    draft.section(Section::V6Uppers).copy_from_slice(uppers);
}

/// Makes the image. The columns may come from strangers: their indices must be in range and their prefixes well-formed, all else is
/// found by the check of what was made.
pub(super) fn build(columns: Columns) -> Result<View, ImageError> {
    let written = |list: &dyn Fn() -> postcard::Result<Vec<u8>>| list().map_err(|_| ImageError::Damaged("a list cannot be written"));
    let registries = written(&|| postcard::to_stdvec(&columns.registries))?;
    let sources = written(&|| postcard::to_stdvec(&columns.sources))?;
    let subnets = columns.lengths.len();
    let mut around = vec![NOBODY; subnets];
    parents(&columns, &mut around);
    let [organisation_starts, country_starts, registry_starts] = group_starts(&columns, &around);
    let walk = Walk::through(&columns);
    let (mut v4_segments, mut v6_segments) = (0u32, 0u32);
    let mut uppers = Vec::new();
    walk.v4(|_, _| v4_segments += 1);
    walk.v6(&columns, |start, _| {
        v6_segments += 1;
        if uppers.last() != Some(&upper(start)) {
            uppers.push(upper(start));
        }
    });
    let counts = Counts {
        subnets: subnets as u32,
        long: columns.long.len() as u32,
        organisations: columns.organisations.registries.len() as u32,
        places: columns.places.len() as u32,
        organisation_groups: organisation_starts.len() as u32,
        country_groups: country_starts.len() as u32,
        registry_groups: registry_starts.len() as u32,
        v4_segments,
        v6_segments,
        v6_uppers: uppers.len() as u32,
        texts: columns.organisations.texts.len() as u32,
        registries: registries.len() as u32,
        sources: sources.len() as u32,
    };
    let mut draft = Draft::new(counts).ok_or(ImageError::Length)?;
    draft.section(Section::Parents).copy_from_slice(&around);
    drop(around);
    draft.section(Section::OrganisationStarts).copy_from_slice(&organisation_starts);
    draft.section(Section::CountryStarts).copy_from_slice(&country_starts);
    draft.section(Section::RegistryStarts).copy_from_slice(&registry_starts);
    v4_table(&walk, v4_segments, &mut draft);
    v6_table(&columns, &walk, &uppers, &mut draft);
    drop(walk);
    members(&columns, &mut draft);
    content(columns, &mut draft);
    draft.section(Section::Registries).copy_from_slice(&registries);
    draft.section(Section::Sources).copy_from_slice(&sources);
    draft.seal()
}

/// The columns themselves, let go of one by one.
fn content(columns: Columns, draft: &mut Draft) {
    draft.section(Section::Heads).copy_from_slice(&columns.heads);
    draft.section(Section::Long).copy_from_slice(&columns.long);
    draft.section(Section::Lengths).copy_from_slice(&columns.lengths);
    draft.section(Section::Holders).copy_from_slice(&columns.holders);
    draft.section(Section::PlaceOf).copy_from_slice(&columns.place_of);
    draft.section(Section::HolderRegistries).copy_from_slice(&columns.organisations.registries);
    draft.section(Section::Asns).copy_from_slice(&columns.organisations.asns);
    draft.section(Section::TextEnds).copy_from_slice(&columns.organisations.ends);
    draft.section(Section::Texts).copy_from_slice(columns.organisations.texts.as_bytes());
    for (bytes, place) in draft.section::<[u8; 4]>(Section::Places).iter_mut().zip(&columns.places) {
        let [low, high] = place.registry.to_le_bytes();
        *bytes = [low, high, place.country[0], place.country[1]];
    }
}
