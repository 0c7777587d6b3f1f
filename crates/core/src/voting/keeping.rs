//! The members that have what we recorded.
//!
//! The set of these members is named to the voters with each renewal of our lease; they tell it to a successor.
//!
//! A set is *in force* once a quorum of the list has stored it, or a later one. A successor hears of the last set that any voter of its
//! quorum knows, and any two quorums share a voter: so it hears of the one in force or of a later one. What is recorded must be durable at
//! the members of all of these. What was taken over and is not at all of ours yet is at the former owner's: a successor waits for one of
//! each set.

use nearcrawl_model::{
    access_point::AccessPoint,
    replica::NamedReplica,
    vote::{Grant, InheritedReplicas, MAX_INHERITED, ReplicaSet, SetNumber, SignedReplicas, VoterList},
};
use std::collections::BTreeMap;

/// By how much a version is greater than the last one that voters know of a process before this one: more than that proposed in vain.
const LEAP: u64 = 1 << 32;

/// For how long a successor of ours waits for those that had what we recorded in a previous process, in seconds: a day.
const SUCCESSOR_WAIT_S: u32 = 86_400;

/// Our sets of replicas.
#[derive(Debug)]
pub(crate) struct Keeping {
    /// The last set that is known, be it of a process before this one.
    last: SetNumber,
    version: u64,
    /// Who has all that we recorded, as of the last set.
    members: Vec<NamedReplica>,
    /// Former owners' sets, and for how long a successor waits for one of each, in seconds.
    inherited: BTreeMap<Vec<NamedReplica>, u32>,
    /// The sets of this term from the one in force on: voters may know any of them.
    sets: BTreeMap<SetNumber, SignedReplicas>,
    in_force: Option<SetNumber>,
    /// Which of them each voter of the present list has stored.
    stored: BTreeMap<AccessPoint, SetNumber>,
}

impl Keeping {
    /// Nobody is named yet. Versions begin with this one.
    pub(crate) fn new(version: u64) -> Keeping {
        let (last, members, inherited, sets, in_force, stored) = Default::default();
        Keeping { last, version, members, inherited, sets, in_force, stored }
    }

    /// These have all that we recorded, but for what we `released` and nobody owns yet: that is at those of before. Whether that is new: then
    /// it is to be proposed.
    pub(crate) fn name(&mut self, members: Vec<NamedReplica>, released: bool) -> bool {
        let is_new = self.members != members;
        let before = std::mem::replace(&mut self.members, members);
        if is_new && released {
            self.inherit([InheritedReplicas { members: before, patience_s: SUCCESSOR_WAIT_S }]);
        }
        is_new || self.sets.is_empty() && !(self.members.is_empty() && self.inherited.is_empty())
    }

    /// We take over from former owners whose replicas these are. Whether some of them are new.
    pub(crate) fn inherit(&mut self, sets: impl IntoIterator<Item = InheritedReplicas>) -> bool {
        let before = self.inherited.clone();
        for InheritedReplicas { members, patience_s } in sets.into_iter().filter(|set| !set.members.is_empty()) {
            let known = self.inherited.entry(members).or_default();
            *known = patience_s.max(*known);
            while self.inherited.len() > MAX_INHERITED {
                self.inherit_fewer();
            }
        }
        self.inherited != before
    }

    /// Has one set less, without forgetting one that a successor must wait for: who has heard one that is in two sets has heard one of
    /// each. Only if no two have a member in common one is left out, which is waited for most briefly.
    fn inherit_fewer(&mut self) {
        let sets: Vec<_> = self.inherited.keys().cloned().collect();
        let pairs = sets.iter().enumerate().flat_map(|(place, one)| sets.iter().skip(place + 1).map(move |other| (one, other)));
        let in_both = |(one, other): (&Vec<NamedReplica>, &Vec<NamedReplica>)| -> Vec<NamedReplica> {
            one.iter().copied().filter(|member| other.contains(member)).collect()
        };
        let closest = pairs.max_by_key(|pair| in_both(*pair).len()).filter(|pair| !in_both(*pair).is_empty());
        let Some((one, other)) = closest else {
            let briefest = self.inherited.iter().min_by_key(|(_, patience_s)| **patience_s).map(|(members, _)| members.clone());
            briefest.and_then(|members| self.inherited.remove(&members));
            return;
        };
        let patience_s = [one, other].iter().filter_map(|set| self.inherited.remove(*set)).max().unwrap_or_default();
        let known = self.inherited.entry(in_both((one, other))).or_default();
        *known = patience_s.max(*known);
    }

    /// All that was taken over is at all of our replicas. Whether there was something.
    pub(crate) fn has_copied_all(&mut self) -> bool {
        !std::mem::take(&mut self.inherited).is_empty()
    }

    /// Former owners' sets of what is not at all of our replicas yet.
    pub(crate) fn inherited(&self) -> Vec<InheritedReplicas> {
        self.inherited.iter().map(|(members, patience_s)| InheritedReplicas { members: members.clone(), patience_s: *patience_s }).collect()
    }

    /// From now on the voters are told this.
    pub(crate) fn propose(&mut self, owner: AccessPoint, term: u64, key: &ed25519_dalek::SigningKey) {
        self.version += 1;
        self.last = SetNumber { term, version: self.version };
        let (members, inherited) = (self.members.clone(), self.inherited());
        let set = ReplicaSet { owner, number: self.last, members, inherited };
        self.sets.insert(self.last, SignedReplicas::sign(set, key));
    }

    /// The last set that is known.
    pub(crate) fn last(&self) -> SetNumber {
        self.last
    }

    /// Whether the last set that is known is one that this process proposed.
    pub(crate) fn is_proposed(&self) -> bool {
        self.sets.contains_key(&self.last)
    }

    /// What a voter is to be told; none if it has stored it.
    pub(crate) fn due(&self, voter: &AccessPoint) -> Option<Box<SignedReplicas>> {
        let (number, set) = self.sets.last_key_value()?;
        (self.stored.get(voter) != Some(number)).then(|| Box::new(set.clone()))
    }

    /// A voter of the present list granted a renewal. Whether something is to be proposed anew: it knows a set of a process before this one.
    pub(crate) fn granted(&mut self, list: &VoterList, quorum: usize, from: AccessPoint, grant: &Grant, me: AccessPoint) -> bool {
        let later = |set: &&SignedReplicas| set.replicas.owner == me && set.number() > self.last && set.holds();
        let foreign = grant.replicas.as_deref().filter(later);
        if let Some(set) = foreign {
            self.last = set.number();
            self.version = self.version.max(set.number().version.saturating_add(LEAP));
            let before = InheritedReplicas { members: set.replicas.members.clone(), patience_s: SUCCESSOR_WAIT_S };
            self.inherit(set.replicas.inherited.iter().cloned().chain([before]));
            return !self.sets.is_empty();
        }
        if self.sets.contains_key(&grant.stored) {
            self.stored.insert(from, grant.stored);
            self.look_what_is_in_force(list, quorum);
        }
        false
    }

    fn look_what_is_in_force(&mut self, list: &VoterList, quorum: usize) {
        let stored = |number: &SetNumber| list.voters.iter().filter(|voter| self.stored.get(voter) >= Some(number)).count();
        let Some(last) = self.sets.keys().rev().find(|number| stored(number) >= quorum).copied() else { return };
        self.in_force = self.in_force.max(Some(last));
        self.sets.retain(|number, _| Some(*number) >= self.in_force);
    }

    /// The set in force; none if none is in this term.
    pub(crate) fn in_force(&self) -> Option<SetNumber> {
        self.in_force
    }

    /// Whether the last set is in force.
    pub(crate) fn is_settled(&self) -> bool {
        self.sets.last_key_value().is_none_or(|(last, _)| Some(*last) == self.in_force)
    }

    /// Who must have a row before it is recorded: all members of the set in force and of later ones. None as long as nobody is named.
    pub(crate) fn needed(&self) -> Option<Vec<NamedReplica>> {
        let in_force = self.sets.get(&self.in_force?)?;
        let mut needed: Vec<_> = self.sets.values().flat_map(|set| set.replicas.members.iter().copied()).collect();
        needed.sort_unstable();
        needed.dedup();
        (!in_force.replicas.members.is_empty()).then_some(needed)
    }

    /// Another list is in force: what is in force was handed over, the rest is told anew.
    pub(crate) fn list_changed(&mut self) {
        self.stored.clear();
    }

    /// Another term began: nothing is in force in it.
    pub(crate) fn term_began(&mut self) {
        self.in_force = None;
        self.sets.clear();
        self.stored.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearcrawl_model::replica::StoreId;

    fn key(number: u8) -> ed25519_dalek::SigningKey {
        ed25519_dalek::SigningKey::from_bytes(&[number; 32])
    }

    fn point(number: u8) -> AccessPoint {
        AccessPoint(key(number).verifying_key().to_bytes())
    }

    fn named(numbers: &[u8]) -> Vec<NamedReplica> {
        numbers.iter().map(|number| NamedReplica { member: point(*number), store: StoreId(u64::from(*number)) }).collect()
    }

    fn list() -> VoterList {
        let mut voters: Vec<_> = [1, 2, 3].map(point).to_vec();
        voters.sort_unstable();
        VoterList { number: 1, voters, age: 0 }
    }

    /// A voter has stored the last set that it was told.
    fn stores(keeping: &mut Keeping, voter: u8) {
        let number = keeping.due(&point(voter)).map_or(keeping.last(), |set| set.number());
        let grant = Grant { stored: number, ..Grant::default() };
        assert!(!keeping.granted(&list(), 2, point(voter), &grant, point(1)));
    }

    fn names(keeping: &mut Keeping, members: &[u8]) {
        assert!(keeping.name(named(members), false));
        keeping.propose(point(1), 1, &key(1));
    }

    fn needed(keeping: &Keeping) -> Option<Vec<NamedReplica>> {
        let mut needed = keeping.needed()?;
        needed.sort_by_key(|name| name.store);
        Some(needed)
    }

    #[test]
    fn a_member_is_needed_until_a_quorum_has_stored_a_set_without_it_and_from_when_it_was_proposed() {
        let mut keeping = Keeping::new(0);
        names(&mut keeping, &[1, 2]);
        assert_eq!(keeping.needed(), None);
        stores(&mut keeping, 1);
        assert_eq!(keeping.needed(), None, "one of three voters");
        stores(&mut keeping, 2);
        assert_eq!(needed(&keeping), Some(named(&[1, 2])));
        names(&mut keeping, &[1, 3]);
        stores(&mut keeping, 3);
        names(&mut keeping, &[1, 4]);
        assert_eq!(needed(&keeping), Some(named(&[1, 2, 3, 4])), "voter 3 may be the only one of a successor's quorum that knows more");
        stores(&mut keeping, 1);
        assert_eq!(needed(&keeping), Some(named(&[1, 3, 4])));
        stores(&mut keeping, 3);
        assert_eq!(needed(&keeping), Some(named(&[1, 4])));
        assert!(keeping.due(&point(3)).is_none() && keeping.due(&point(2)).is_some());
        keeping.term_began();
        assert_eq!(keeping.needed(), None);
    }

    #[test]
    fn what_was_released_and_has_no_owner_yet_is_at_those_that_were_named_before() {
        let mut keeping = Keeping::new(0);
        names(&mut keeping, &[1, 2]);
        assert!(keeping.name(named(&[1, 3]), true));
        let inherited: Vec<_> = keeping.inherited().into_iter().map(|set| set.members).collect();
        assert_eq!(inherited, [named(&[1, 2])]);
    }

    #[test]
    fn of_more_former_owners_than_a_set_names_a_successor_still_waits_for_one_of_each() {
        let mut keeping = Keeping::new(0);
        let all: Vec<Vec<u8>> = (0..MAX_INHERITED as u8 + 4).map(|number| vec![number / 3 + 1, number + 30, number + 60]).collect();
        for members in &all {
            keeping.inherit([InheritedReplicas { members: named(members), patience_s: 100 + u32::from(members[0]) }]);
        }
        let inherited = keeping.inherited();
        assert!(inherited.len() <= MAX_INHERITED);
        for members in &all {
            let covers = |set: &&InheritedReplicas| set.members.iter().all(|member| named(members).contains(member));
            let patience_s = inherited.iter().find(covers).map(|set| set.patience_s);
            assert_eq!(patience_s, Some(100 + u32::from(members[0])), "who hears one of these has heard one of {members:?}");
        }
        // Of those that have nobody in common those stay that are worth waiting for.
        let mut keeping = Keeping::new(0);
        for number in 0..=MAX_INHERITED as u8 {
            keeping.inherit([InheritedReplicas {
                members: named(&[number + 1]),
                patience_s: if number == 4 { 60 } else { SUCCESSOR_WAIT_S },
            }]);
        }
        assert!(keeping.inherited().iter().all(|set| set.patience_s == SUCCESSOR_WAIT_S) && keeping.inherited().len() == MAX_INHERITED);
    }

    #[test]
    fn who_starts_anew_hands_on_what_voters_know_and_names_with_a_greater_number() {
        let mut before = Keeping::new(900);
        before.inherit([InheritedReplicas { members: named(&[7]), patience_s: 60 }]);
        names(&mut before, &[1, 2]);
        let known = *before.due(&point(3)).unwrap();
        let mut keeping = Keeping::new(5);
        names(&mut keeping, &[1, 4]);
        let grant = Grant { stored: known.number(), replicas: Some(Box::new(known.clone())), ..Grant::default() };
        assert!(keeping.granted(&list(), 2, point(3), &grant, point(1)));
        keeping.propose(point(1), 1, &key(1));
        assert!(keeping.last() > known.number());
        let mut inherited: Vec<_> = keeping.inherited().into_iter().map(|set| (set.members, set.patience_s)).collect();
        inherited.sort_by_key(|(_, patience_s)| *patience_s);
        assert_eq!(inherited, [(named(&[7]), 60), (named(&[1, 2]), SUCCESSOR_WAIT_S)]);
        let forged = SignedReplicas { signature: vec![0; 64], ..known };
        let grant = Grant { stored: forged.number(), replicas: Some(Box::new(forged)), ..Grant::default() };
        assert!(!Keeping::new(5).granted(&list(), 2, point(3), &grant, point(1)));
    }
}
