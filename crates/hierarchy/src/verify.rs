//! Verifies an image in one pass: the tree is nested, sorted and disjoint, and every table says what the content says.
//!
//! Nothing is sorted again. That siblings are disjoint, wherever they stand in the tree, and that the look-up tables are right
//! follows from counting: each segment must lie within its owner, segments follow one another, and each owner must have as many
//! addresses as it has itself less those of its children. A leaf then has all of its addresses, so nobody else can have any of
//! them; and so on, upwards.

use super::{
    layout::Section,
    limits::{MAX_NESTING, MAX_ORGANISATIONS, MAX_SUBNETS, MAX_TEXT},
    lookup::{NOBODY, upper, v4_slot_bits, v6_slot, v6_slot_bits},
    prefix::{Prefix, SHORTEST, V6_LENGTH, family_bits},
    source::Place,
    view::{ImageError, View},
};

type Checked = Result<(), ImageError>;

fn must(holds: bool, otherwise: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(ImageError::Damaged(otherwise)) }
}

/// Whether `items` are in strictly ascending order.
fn ascending<T: PartialOrd>(items: impl Iterator<Item = T>) -> bool {
    items.is_sorted_by(|a, b| a < b)
}

/// Checks everything but the hash of the content.
pub(super) fn structure(view: &View) -> Checked {
    let counts = &view.counts;
    must(counts.subnets as usize <= MAX_SUBNETS, "it has more subnets than a hierarchy may have")?;
    must(counts.organisations as usize <= MAX_ORGANISATIONS, "it has more organisations than a hierarchy may have")?;
    must(counts.long <= counts.subnets, "it has more IPv6 subnets than subnets")?;
    let mut registry_used = vec![false; view.registries.len()];
    places(view, &mut registry_used)?;
    organisations(view, &mut registry_used)?;
    must(registry_used.iter().all(|used| *used), "a registry has nothing")?;
    tree(view)?;
    members(view)?;
    let mut remaining = Remaining::of(view)?;
    remaining.v4(view)?;
    remaining.v6(view)
}

fn places(view: &View, registry_used: &mut [bool]) -> Checked {
    must(ascending(view.registries.iter()), "its registries are not in order")?;
    must(view.registries.len() < usize::from(u16::MAX), "it has too many registries")?;
    let places: Vec<Place> = (0..view.counts.places as usize).map(|i| view.place(i)).collect();
    must(places.len() <= usize::from(u16::MAX), "it has too many countries")?;
    must(ascending(places.iter()), "its countries are not in order")?;
    let mut used = vec![false; places.len()];
    for index in view.section::<u16>(Section::PlaceOf) {
        *used.get_mut(usize::from(*index)).ok_or(ImageError::Damaged("a subnet is in no country"))? = true;
    }
    must(used.iter().all(|used| *used), "a country has no subnet")?;
    for place in &places {
        must(place.country.iter().all(u8::is_ascii_uppercase), "a country is not two letters")?;
        *registry_used.get_mut(usize::from(place.registry)).ok_or(ImageError::Damaged("a country has no registry"))? = true;
    }
    Ok(())
}

fn organisations(view: &View, registry_used: &mut [bool]) -> Checked {
    let texts = std::str::from_utf8(view.section(Section::Texts)).map_err(|_| ImageError::Damaged("a text is not UTF-8"))?;
    let registries: &[u16] = view.section(Section::HolderRegistries);
    let mut start = 0;
    let mut before: Option<(u16, &str)> = None;
    for (registry, [id_end, end]) in registries.iter().zip(view.section::<[u32; 2]>(Section::TextEnds)) {
        *registry_used.get_mut(usize::from(*registry)).ok_or(ImageError::Damaged("an organisation has no registry"))? = true;
        let (id_end, end) = (*id_end as usize, *end as usize);
        let (Some(id), Some(name)) = (texts.get(start..id_end), texts.get(id_end..end)) else {
            return must(false, "a text has no place");
        };
        must(id.len() <= MAX_TEXT && name.len() <= MAX_TEXT, "a text is too long")?;
        must(before.is_none_or(|b| b < (*registry, id)), "its organisations are not in order")?;
        before = Some((*registry, id));
        start = end;
    }
    must(start == texts.len(), "a text belongs to no subnet or organisation")
}

/// What a prefix must be by itself.
pub(super) fn well_formed(prefix: &Prefix) -> bool {
    let bits = family_bits(prefix.v6);
    (SHORTEST..=bits).contains(&prefix.length) && prefix.first.trailing_zeros() >= u32::from(bits - prefix.length)
}

/// The walk through the positions: prefixes, parents, order and groups.
fn tree(view: &View) -> Checked {
    let [parents, holders, heads]: [&[u32]; 3] = [Section::Parents, Section::Holders, Section::Heads].map(|s| view.section(s));
    let place_of: &[u16] = view.section(Section::PlaceOf);
    let lengths: &[u8] = view.section(Section::Lengths);
    let kinds = [Section::OrganisationStarts, Section::CountryStarts, Section::RegistryStarts];
    let mut starts = kinds.map(|kind| view.section::<u32>(kind).iter());
    let mut around: Vec<(u32, Prefix)> = Vec::with_capacity(MAX_NESTING + 1);
    let mut group: Option<(u16, u32)> = None;
    let mut before: Option<Prefix> = None;
    let mut next_long = 0;
    for position in 0..view.counts.subnets {
        let p = position as usize;
        if lengths[p] >= V6_LENGTH {
            must(heads[p] == next_long && next_long < view.counts.long, "an IPv6 subnet has no address")?;
            next_long += 1;
        }
        let prefix = view.prefix(position);
        must(well_formed(&prefix), "a subnet is no prefix")?;
        must(holders[p] < view.counts.organisations, "a subnet has no organisation")?;
        while around.pop_if(|(_, a)| !a.covers(&prefix)).is_some() {}
        must(parents[p] == around.last().map_or(NOBODY, |a| a.0), "a subnet hangs beneath another than its parent")?;
        must(around.len() <= MAX_NESTING, "its subnets are nested too deep")?;
        let here = (place_of[p], holders[p]);
        if around.is_empty() && group != Some(here) {
            must(group.is_none_or(|g| g < here), "its subnets are not in order")?;
            let registry = |place: u16| view.place(usize::from(place)).registry;
            let new = [true, group.is_none_or(|g| g.0 != here.0), group.is_none_or(|g| registry(g.0) != registry(here.0))];
            for (starts, _) in starts.iter_mut().zip(new).filter(|(_, new)| *new) {
                must(starts.next() == Some(&position), "a group begins elsewhere")?;
            }
            group = Some(here);
        } else {
            must(before.is_none_or(|b| b < prefix), "its subnets are not in order")?;
        }
        before = Some(prefix);
        around.push((position, prefix));
    }
    must(next_long == view.counts.long, "an IPv6 address has no subnet")?;
    must(starts.iter_mut().all(|s| s.next().is_none()), "a group has no subnets")
}

fn members(view: &View) -> Checked {
    let [starts, members, holders]: [&[u32]; 3] = [Section::MemberStarts, Section::Members, Section::Holders].map(|s| view.section(s));
    must(starts.first() == Some(&0) && starts.last() == Some(&view.counts.subnets), "an organisation's subnets are elsewhere")?;
    must(ascending(starts.iter()), "an organisation has no subnets")?;
    for (organisation, range) in (0u32..).zip(starts.windows(2)) {
        let own = &members[range[0] as usize..range[1] as usize];
        must(ascending(own.iter()), "an organisation's subnets are not in order")?;
        must(own.iter().all(|p| holders.get(*p as usize) == Some(&organisation)), "an organisation has a subnet of another")?;
    }
    Ok(())
}

/// How many addresses each subnet must still be found to have.
struct Remaining {
    v4: Vec<u32>,
    /// By index of the IPv6 address.
    v6: Vec<u128>,
}

const OVERLAP: ImageError = ImageError::Damaged("a subnet has more or fewer addresses than it holds");

/// How many addresses a prefix has; at least 3 bits are fixed, so it fits.
fn size(prefix: &Prefix) -> u128 {
    prefix.last() - prefix.first + 1
}

impl Remaining {
    /// All addresses of each, less those of its children.
    fn of(view: &View) -> Result<Remaining, ImageError> {
        let parents: &[u32] = view.section(Section::Parents);
        let mut remaining = Remaining { v4: vec![0; parents.len()], v6: vec![0; view.counts.long as usize] };
        // Children come after their parents.
        for (position, parent) in (0u32..).zip(parents) {
            let addresses = size(&view.prefix(position));
            remaining.add(view, position, addresses);
            if *parent != NOBODY {
                remaining.take(view, *parent, addresses).ok_or(OVERLAP)?;
            }
        }
        Ok(remaining)
    }

    fn add(&mut self, view: &View, position: u32, addresses: u128) {
        match view.long_index(position) {
            None => self.v4[position as usize] = addresses as u32,
            Some(index) => self.v6[index] = addresses,
        }
    }

    fn take(&mut self, view: &View, position: u32, addresses: u128) -> Option<()> {
        match view.long_index(position) {
            None => {
                let left = &mut self.v4[position as usize];
                *left = left.checked_sub(u32::try_from(addresses).ok()?)?;
            }
            Some(index) => self.v6[index] = self.v6[index].checked_sub(addresses)?,
        }
        Some(())
    }

    /// Takes a segment from its owner.
    fn segment(&mut self, view: &View, v6: bool, first: u128, last: u128, owner: u32) -> Checked {
        if owner == NOBODY {
            return Ok(());
        }
        must(owner < view.counts.subnets, "addresses belong to a subnet that is not there")?;
        let prefix = view.prefix(owner);
        must(prefix.v6 == v6 && prefix.first <= first && last <= prefix.last(), "addresses belong to a subnet that they are not in")?;
        self.take(view, owner, last - first + 1).ok_or(OVERLAP)
    }

    fn v4(&mut self, view: &View) -> Checked {
        let table = view.v4();
        counts_up(table.index, table.lows.len(), "the IPv4 index is wrong")?;
        let below = 32 - v4_slot_bits(table.lows.len());
        // The segment that begins last, until the next one begins.
        let mut open: Option<(u32, u32)> = None;
        for (slot, range) in (0u32..).zip(table.index.windows(2)) {
            for i in range[0] as usize..range[1] as usize {
                let low = u32::from(table.lows[i]);
                must(low >> below == 0, "the IPv4 table is not in order")?;
                let start = slot << below | low;
                must(open.map_or(NOBODY, |o| o.1) != table.owners[i], "the IPv4 table says something twice")?;
                if let Some((first, owner)) = open {
                    must(first < start, "the IPv4 table is not in order")?;
                    self.segment(view, false, first.into(), u128::from(start) - 1, owner)?;
                }
                open = Some((start, table.owners[i]));
            }
        }
        if let Some((first, owner)) = open {
            self.segment(view, false, first.into(), u32::MAX.into(), owner)?;
        }
        must(self.v4.iter().all(|left| *left == 0), "an IPv4 subnet is not found by its addresses")
    }

    fn v6(&mut self, view: &View) -> Checked {
        let table = view.v6();
        must(ascending(table.starts.iter()), "the IPv6 table is not in order")?;
        must(ascending(table.uppers.iter()), "the IPv6 table is not in order")?;
        counts_up(table.begins, table.starts.len(), "the IPv6 index is wrong")?;
        for (wanted, range) in table.uppers.iter().zip(table.begins.windows(2)) {
            let starts = &table.starts[range[0] as usize..range[1] as usize];
            must(!starts.is_empty() && starts.iter().all(|start| upper(*start) == *wanted), "the IPv6 index is wrong")?;
        }
        counts_up(table.index, table.uppers.len(), "the IPv6 index is wrong")?;
        let bits = v6_slot_bits(table.uppers.len());
        for (slot, range) in table.index.windows(2).enumerate() {
            let uppers = &table.uppers[range[0] as usize..range[1] as usize];
            must(uppers.iter().all(|upper| v6_slot(*upper, bits) == slot), "the IPv6 index is wrong")?;
        }
        let mut before = NOBODY;
        for (i, owner) in table.owners.iter().enumerate() {
            must(*owner != before, "the IPv6 table says something twice")?;
            before = *owner;
            let last = table.starts.get(i + 1).map_or(u128::MAX, |next| next - 1);
            self.segment(view, true, table.starts[i], last, *owner)?;
        }
        must(self.v6.iter().all(|left| *left == 0), "an IPv6 subnet is not found by its addresses")
    }
}

/// Whether these are sums of counts, from nothing to all.
fn counts_up(sums: &[u32], all: usize, otherwise: &'static str) -> Checked {
    must(sums.first() == Some(&0) && sums.last().is_some_and(|last| *last as usize == all) && sums.is_sorted(), otherwise)
}
