//! The claims that a voter has accepted, by subnet and by owner.

use crate::voting::records::StoredRow;
use nearcrawl_model::{
    access_point::AccessPoint,
    subnet::Subnet,
    time::{Millis, Moment},
    vote::AcceptedRow,
};
use std::collections::{BTreeMap, BTreeSet};

/// Accepted claims that are kept until they have been published for long enough: beyond it nothing is accepted for a while.
pub(crate) const MAX_ROWS: usize = 200_000;

/// Those of one owner that are not known to be published, withdrawn ones included, as their epochs stay used up. An honest owner has 8,192
/// voted on at a time ([`crate::voting::proposals::MAX_OPEN`]); half as many again may have been accepted without being heard of here.
pub(crate) const MAX_UNPUBLISHED_OF_ONE: usize = 12_288;

/// Of one subnet that are kept, as different voters of the list before accepted them, or say so.
pub(super) const MAX_OF_SUBNET: usize = 64;

/// How often it is looked, for an owner that has so many, which of them have been published.
const LOOK_EVERY: Millis = 1_000;

/// A claim that was accepted here.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) stored: StoredRow,
    pub(super) at: Moment,
}

/// Rows of one owner.
#[derive(Debug, Default)]
struct OfOwner {
    /// Where they are, but for those that were found to be published.
    subnets: BTreeSet<Subnet>,
    /// When it was looked last which of them are.
    looked_at: Option<Moment>,
}

/// The rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// One for each subnet, but for those that different voters of the list before had accepted.
    by_subnet: BTreeMap<Subnet, Vec<Row>>,
    /// The same by owner: what concerns one owner costs no look at the rows of the others.
    by_owner: BTreeMap<AccessPoint, OfOwner>,
}

impl Rows {
    /// As they were stored before.
    pub(super) fn restored(now: Moment, stored: BTreeMap<Subnet, StoredRow>) -> Rows {
        let mut rows = Rows::default();
        stored.into_iter().for_each(|(subnet, stored)| rows.replace(subnet, Row { stored, at: now }));
        rows
    }

    /// Of how many subnets there are some.
    pub(super) fn len(&self) -> usize {
        self.by_subnet.len()
    }

    /// Those of a subnet.
    pub(super) fn of(&self, subnet: &Subnet) -> &[Row] {
        self.by_subnet.get(subnet).map_or(&[], Vec::as_slice)
    }

    /// The same, to be marked: owner and subnet stay.
    pub(super) fn of_mut(&mut self, subnet: &Subnet) -> &mut [Row] {
        self.by_subnet.get_mut(subnet).map_or(&mut [], Vec::as_mut_slice)
    }

    /// All of them, in the order of their subnets.
    pub(super) fn all(&self) -> impl Iterator<Item = &Row> {
        self.by_subnet.values().flatten()
    }

    /// The same, to be marked.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.by_subnet.values_mut().flatten()
    }

    /// Those of an owner that were not found to be published, in the order of their subnets.
    pub(super) fn of_owner(&self, owner: AccessPoint) -> impl Iterator<Item = &Row> {
        let subnets = self.by_owner.get(&owner).into_iter().flat_map(|of_owner| &of_owner.subnets);
        subnets.flat_map(|subnet| self.of(subnet)).filter(move |row| row.stored.row.owner == owner)
    }

    /// The most that one owner has.
    pub(super) fn most_of_one(&self) -> usize {
        self.by_owner.values().map(|of_owner| of_owner.subnets.len()).max().unwrap_or(0)
    }

    /// Whether one more of this owner may be kept. One owner alone must not take the room of all.
    pub(super) fn has_room(&mut self, now: Moment, row: &AcceptedRow, published: impl Fn(&AcceptedRow) -> bool) -> bool {
        if self.by_subnet.len() >= MAX_ROWS && !self.by_subnet.contains_key(&row.subnet) {
            return false;
        }
        let Some(of_owner) = self.by_owner.get_mut(&row.owner) else { return true };
        let full = |of_owner: &OfOwner| of_owner.subnets.len() >= MAX_UNPUBLISHED_OF_ONE && !of_owner.subnets.contains(&row.subnet);
        if full(of_owner) && of_owner.looked_at.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
            of_owner.looked_at = Some(now);
            forget_published(of_owner, row.owner, &self.by_subnet, &published);
        }
        !full(of_owner)
    }

    /// Those that are published count for their owners no more.
    pub(super) fn note_published(&mut self, published: impl Fn(&AcceptedRow) -> bool) {
        for (owner, of_owner) in &mut self.by_owner {
            forget_published(of_owner, *owner, &self.by_subnet, &published);
        }
        self.by_owner.retain(|_, of_owner| !of_owner.subnets.is_empty());
    }

    /// This one takes the place of all of its subnet.
    pub(super) fn replace(&mut self, subnet: Subnet, row: Row) {
        self.remove(&subnet);
        self.add(subnet, row);
    }

    /// This one is beside those of its subnet.
    pub(super) fn add_rival(&mut self, row: Row) {
        self.add(row.stored.row.subnet, row);
    }

    /// Forgets all of the subnets that are not to be kept.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Subnet, &[Row]) -> bool) {
        let forgotten: Vec<_> = self.by_subnet.iter().filter(|(subnet, rows)| !keep(subnet, rows)).map(|(subnet, _)| *subnet).collect();
        forgotten.iter().for_each(|subnet| drop(self.remove(subnet)));
    }

    fn add(&mut self, subnet: Subnet, row: Row) {
        self.by_owner.entry(row.stored.row.owner).or_default().subnets.insert(subnet);
        self.by_subnet.entry(subnet).or_default().push(row);
    }

    fn remove(&mut self, subnet: &Subnet) -> Vec<Row> {
        let rows = self.by_subnet.remove(subnet).unwrap_or_default();
        for row in &rows {
            let owner = row.stored.row.owner;
            if let Some(of_owner) = self.by_owner.get_mut(&owner) {
                of_owner.subnets.remove(subnet);
                if of_owner.subnets.is_empty() {
                    self.by_owner.remove(&owner);
                }
            }
        }
        rows
    }
}

fn forget_published(
    of_owner: &mut OfOwner,
    owner: AccessPoint,
    by_subnet: &BTreeMap<Subnet, Vec<Row>>,
    published: impl Fn(&AcceptedRow) -> bool,
) {
    let rows = |subnet: &Subnet| by_subnet.get(subnet).into_iter().flatten().filter(|row| row.stored.row.owner == owner);
    of_owner.subnets.retain(|subnet| rows(subnet).any(|row| !published(&row.stored.row)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNERS: u64 = 3;

    fn row(subnet: u64, epoch: u64, owner: u64) -> Row {
        let subnet = format!("20.0.{subnet}.0/24").parse().unwrap();
        let row = AcceptedRow { subnet, epoch, owner: AccessPoint([owner as u8; 32]), term: 1 };
        Row { stored: StoredRow { row, process: 1, withdrawn: false, before: Vec::new() }, at: Moment(0) }
    }

    /// What is found of each owner, by the index and by a look at all.
    fn compare(rows: &Rows, is_published: impl Fn(&AcceptedRow) -> bool) {
        for owner in (0..OWNERS).map(|owner| AccessPoint([owner as u8; 32])) {
            let open = |row: &&Row| row.stored.row.owner == owner && !is_published(&row.stored.row);
            let indexed: Vec<_> = rows.of_owner(owner).filter(open).map(|row| row.stored.row).collect();
            let all: Vec<_> = rows.all().filter(open).map(|row| row.stored.row).collect();
            assert_eq!(indexed, all);
        }
        let counted = rows.by_owner.values().flat_map(|of_owner| &of_owner.subnets).all(|subnet| rows.by_subnet.contains_key(subnet));
        assert!(counted && rows.by_owner.values().all(|of_owner| !of_owner.subnets.is_empty()));
    }

    #[test]
    fn of_an_owner_the_same_is_found_as_among_all_whatever_was_added_replaced_and_forgotten() {
        let (mut rows, mut state, mut published) = (Rows::default(), 1_u64, BTreeSet::new());
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let (what, subnet, epoch, owner) = (draw(8), draw(12), draw(4), draw(OWNERS));
            let new = row(subnet, epoch, owner);
            let place = new.stored.row.subnet;
            match what {
                0..=2 => rows.replace(place, new),
                3 | 4 => {
                    let fits = |known: &Row| known.stored.row != new.stored.row;
                    if rows.of(&place).len() < MAX_OF_SUBNET && rows.of(&place).iter().all(fits) {
                        rows.add_rival(new);
                    }
                }
                5 => rows.retain(|subnet, _| *subnet != place),
                6 => drop(published.insert((place, epoch))),
                _ => rows.note_published(|row| published.contains(&(row.subnet, row.epoch))),
            }
            compare(&rows, |row| published.contains(&(row.subnet, row.epoch)));
        }
    }
}
