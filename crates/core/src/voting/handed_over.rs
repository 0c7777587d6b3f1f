//! What the voters of one list hand to those of the next, and whether it fits into a message.

use nearcrawl_model::{
    access_point::AccessPoint,
    message::MAX_MESSAGE,
    subnet::Subnet,
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

/// Adds as many of these rows as there is room for: whoever is told takes no more as decided than [`MAX_DECIDED_BYTES`].
pub(super) fn add_rows(before: &mut HandedOver, rows: impl Iterator<Item = AcceptedRow>) {
    let room = MAX_HANDED_BYTES.saturating_sub(size_of(before)).min(MAX_DECIDED_BYTES.saturating_sub(size_of_decided(before)));
    let mut room = room.saturating_sub(size_of(&u32::MAX));
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
    let (mut places, mut ended, mut sets) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for HandedOver { rows, ended: over, replicas } in told {
        for (row, place) in placed(rows) {
            let first = places.entry(row).or_insert(place);
            *first = place.min(*first);
        }
        ended.extend(over.iter().copied());
        replicas.iter().for_each(|set| take_in(&mut sets, set));
    }
    let rows: BTreeSet<_> = places.into_iter().map(|(row, place)| (place, row)).collect();
    let rows = rows.into_iter().map(|(_, row)| row_of(row)).collect();
    let mut before = HandedOver { rows, ended: ended.into_iter().collect(), replicas: Vec::new() };
    if size_of_decided(&before) > MAX_HANDED_BYTES {
        return None;
    }
    add_replicas(&mut before, sets.into_values());
    Some(before)
}

/// Adds what a voter says later to what it said before, unless it is more then than may be.
pub(super) fn merge(known: &mut HandedOver, later: HandedOver) {
    let HandedOver { rows, ended, replicas } = &*known;
    let (of_rows, of_ended): (BTreeSet<_>, BTreeSet<_>) = (rows.iter().map(key_of).collect(), ended.iter().copied().collect());
    let of_sets: BTreeSet<_> = replicas.iter().map(|set| (set.replicas.owner, set.number())).collect();
    let mut merged = known.clone();
    merged.rows.extend(later.rows.into_iter().filter(|row| !of_rows.contains(&key_of(row))));
    merged.ended.extend(later.ended.into_iter().filter(|over| !of_ended.contains(over)));
    merged.replicas.extend(later.replicas.into_iter().filter(|set| !of_sets.contains(&(set.replicas.owner, set.number()))));
    merged.replicas.truncate(MAX_HANDED_REPLICAS);
    if size_of_decided(&merged) <= MAX_DECIDED_BYTES {
        *known = merged;
    }
}

/// Of these words the terms that ended: first what more voters than `may_lie` tell, then in turns one that each voter tells.
pub(super) fn ended_of(words: &[&HandedOver], may_lie: usize) -> Vec<(AccessPoint, u64)> {
    let ended: Vec<Vec<_>> = words.iter().map(|word| word.ended.clone()).collect();
    let mut places: Vec<_> = turns(&ended, may_lie).into_iter().map(|(over, turn)| (turn, over)).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, over)| over).collect()
}

/// Of these words the claims that are taken in, and how many are left out: all that more voters than `may_lie` tell, for one of these does
/// not lie; and of the others as many as there is `room` for in bytes, in turns one that each voter tells, so that one that lies takes no
/// more of it than its share. What is `known` takes none. They are in order as those of [`all_of`].
pub(super) fn rows_of(
    words: &[&HandedOver],
    may_lie: usize,
    mut room: usize,
    known: impl Fn(&AcceptedRow) -> bool,
) -> (Vec<AcceptedRow>, usize) {
    let mut places = BTreeMap::new();
    let mut in_order = Vec::new();
    for word in words {
        let placed = placed(&word.rows);
        for (row, place) in &placed {
            let first = places.entry(*row).or_insert(*place);
            *first = (*first).min(*place);
        }
        let mut rows: Vec<_> = placed.into_iter().map(|(row, place)| (place, row)).collect();
        rows.sort_unstable();
        in_order.push(rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
    }
    let mut rows: Vec<_> = turns(&in_order, may_lie).into_iter().map(|(row, turn)| (turn, row)).collect();
    rows.sort_unstable();
    let (mut chosen, mut left_out) = (Vec::new(), 0);
    for (turn, row) in rows {
        let size = if known(&row_of(row)) { 0 } else { size_of(&row_of(row)) };
        if turn.is_told_by_few && size > room {
            left_out += 1;
            continue;
        }
        room = room.saturating_sub(size);
        chosen.push((turn.is_told_by_few, places.get(&row).copied(), row));
    }
    chosen.sort_unstable();
    (chosen.into_iter().map(|(_, _, row)| row_of(row)).collect(), left_out)
}

/// When something that voters tell comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_told_by_few: bool,
    /// Its place among what a voter tells that as many tell.
    place: usize,
}

/// When what these voters tell, each in its own order, comes: first what more of them tell than `may_lie`.
fn turns<T: Ord + Copy>(words: &[Vec<T>], may_lie: usize) -> BTreeMap<T, Turn> {
    let mut told_by = BTreeMap::new();
    for word in words {
        for what in word.iter().copied().collect::<BTreeSet<_>>() {
            *told_by.entry(what).or_insert(0) += 1;
        }
    }
    let mut turns = BTreeMap::new();
    for word in words {
        let mut places = BTreeMap::new();
        for what in word {
            let is_told_by_few = told_by.get(what).is_none_or(|by| *by <= may_lie);
            let turn = Turn { is_told_by_few, place: next_of(&mut places, is_told_by_few) };
            let first = turns.entry(*what).or_insert(turn);
            *first = turn.min(*first);
        }
    }
    turns
}

/// What tells a row apart, in order of subnets.
type RowKey = (Subnet, u64, AccessPoint, u64);

fn key_of(row: &AcceptedRow) -> RowKey {
    (row.subnet, row.epoch, row.owner, row.term)
}

fn row_of((subnet, epoch, owner, term): RowKey) -> AcceptedRow {
    AcceptedRow { subnet, epoch, owner, term }
}

/// Each of a voter's rows with its place among those of its subnet, and among those of its owner.
fn placed(rows: &[AcceptedRow]) -> BTreeMap<RowKey, (usize, usize)> {
    let (mut of_subnets, mut of_owners, mut places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let place = (next_of(&mut of_subnets, row.subnet), next_of(&mut of_owners, row.owner));
        places.entry(key_of(row)).or_insert(place);
    }
    places
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
