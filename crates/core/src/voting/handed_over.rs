//! What the voters of one list hand to those of the next, and whether it fits into a message.

use nearcrawl_model::{
    access_point::AccessPoint,
    message::MAX_MESSAGE,
    vote::{AcceptedRow, HandedOver, MAX_HANDED_REPLICAS, SignedReplicas},
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is handed over takes so many bytes at most; the rest of the message is for the list and its signatures.
pub(crate) const MAX_HANDED_BYTES: usize = MAX_MESSAGE - (64 << 10);

/// A voter that would have to hand over more than this accepts no list: it could not say what it accepted, and nobody would vote any more.
/// Less than what fits, as others hand over some that it has not.
pub(crate) const MAX_DECIDED_BYTES: usize = MAX_HANDED_BYTES / 4 * 3;

/// A voter that accepts a list may tell of so many more owners than are known here: what is told is not signed, and one that lies could
/// tell of so many that it could not be handed on.
pub(super) const MAX_MORE_OWNERS: usize = 4_096;

/// Sets of replicas take so many at most.
const MAX_REPLICAS_BYTES: usize = MAX_HANDED_BYTES / 2;

/// How many bytes a value takes in a message.
pub(super) fn size_of(value: &impl Serialize) -> usize {
    postcard::serialize_with_flavor(value, postcard::ser_flavors::Size::default()).unwrap_or(usize::MAX)
}

/// The bytes of what must be handed over.
pub(super) fn size_of_decided(before: &HandedOver) -> usize {
    size_of(&before.rows).saturating_add(size_of(&before.ended))
}

/// The same for these, counted no further than until it is beyond what may be.
pub(super) fn decided_bytes<'a>(rows: impl Iterator<Item = &'a AcceptedRow>, ended: &BTreeMap<AccessPoint, u64>) -> usize {
    let mut bytes = ended.len() * (size_of(&AccessPoint([0; 32])) + size_of(&u64::MAX));
    for row in rows {
        if bytes > MAX_DECIDED_BYTES {
            break;
        }
        bytes += size_of(row);
    }
    bytes
}

/// Adds as many of these sets as there is room for.
pub(super) fn add_replicas(before: &mut HandedOver, sets: impl Iterator<Item = SignedReplicas>) {
    let mut room = MAX_REPLICAS_BYTES.min(MAX_HANDED_BYTES.saturating_sub(size_of_decided(before)));
    for set in sets {
        let size = size_of(&set);
        if size <= room && before.replicas.len() < MAX_HANDED_REPLICAS {
            room -= size;
            before.replicas.push(set);
        }
    }
}

/// Adds as many of these rows as there is room for.
pub(super) fn add_rows(before: &mut HandedOver, rows: impl Iterator<Item = AcceptedRow>) {
    let mut room = MAX_HANDED_BYTES.saturating_sub(size_of(before) + size_of(&u32::MAX));
    for row in rows {
        let size = size_of(&row);
        if size > room {
            return;
        }
        room -= size;
        before.rows.push(row);
    }
}

/// Of how many owners it tells what they had accepted, or which term of theirs ended.
pub(super) fn owners(before: &HandedOver) -> usize {
    before.rows.iter().map(|row| row.owner).chain(before.ended.iter().map(|(who, _)| *who)).collect::<BTreeSet<_>>().len()
}

/// What all of these voters had decided: each row once, and of each owner the terms that ended as each of them says, each once: the last one
/// alone may be one that nobody believes, and hide the others. Who takes it in has limits for a subnet and for an owner, so that first rows
/// of a subnet come first, and of these the first ones of an owner, as each voter tells them: what one invents displaces nothing that another
/// one tells. None if it does not fit into a message.
pub(super) fn all_of<'a>(told: impl Iterator<Item = &'a HandedOver>) -> Option<HandedOver> {
    let (mut before, sets) = together(told);
    if size_of_decided(&before) > MAX_HANDED_BYTES {
        return None;
    }
    add_replicas(&mut before, sets.into_values());
    Some(before)
}

/// The same, whether it fits or not; and apart the last sets of replicas.
pub(super) fn together<'a>(told: impl Iterator<Item = &'a HandedOver>) -> (HandedOver, BTreeMap<AccessPoint, SignedReplicas>) {
    let (mut places, mut ended, mut sets) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for HandedOver { rows, ended: over, replicas } in told {
        let (mut of_subnets, mut of_owners) = (BTreeMap::new(), BTreeMap::new());
        for row in rows {
            let place = (next_of(&mut of_subnets, row.subnet), next_of(&mut of_owners, row.owner));
            let first = places.entry((row.subnet, row.epoch, row.owner, row.term)).or_insert(place);
            *first = place.min(*first);
        }
        ended.extend(over.iter().copied());
        replicas.iter().for_each(|set| take_in(&mut sets, set));
    }
    let rows: BTreeSet<_> = places.into_iter().map(|(row, place)| (place, row)).collect();
    let rows = rows.into_iter().map(|(_, (subnet, epoch, owner, term))| AcceptedRow { subnet, epoch, owner, term }).collect();
    (HandedOver { rows, ended: ended.into_iter().collect(), replicas: Vec::new() }, sets)
}

/// Which one of its kind this is, from 0.
fn next_of<K: Ord>(counted: &mut BTreeMap<K, usize>, kind: K) -> usize {
    let next = counted.entry(kind).or_insert(0);
    *next += 1;
    *next - 1
}

/// Of two sets of replicas of one owner the later one is handed over.
fn take_in(sets: &mut BTreeMap<AccessPoint, SignedReplicas>, set: &SignedReplicas) {
    let owner = set.replicas.owner;
    let is_later = match sets.get(&owner) {
        Some(known) => known.number() < set.number(),
        None => sets.len() < MAX_HANDED_REPLICAS,
    };
    if is_later && set.holds() {
        sets.insert(owner, set.clone());
    }
}
