//! The Object Migration Automaton of Oommen and Ma, which finds objects that belong together; TWOMA extends it (TWOMA §2.1, TW-1).
//!
//! Objects come in pairs. In the same arm both are rewarded; in different arms both are penalised, and if one of them stands at the
//! boundary they move together: they swap arms where both stand there, else the one at the boundary comes to the other and sends
//! whoever stands nearest to that arm's boundary back, so that arms keep their sizes (as in the papers that the paper refers to).

use nearcrawl_core::migration::{Answer, Automaton};
use std::collections::BTreeSet;

/// Objects in equal arms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    arms: Vec<usize>,
    automata: Vec<Automaton>,
    /// Of each arm its objects with their states, those at the boundary first.
    members: Vec<BTreeSet<(u8, usize)>>,
}

impl Partition {
    /// The objects, each in its arm, all at the boundary.
    pub(crate) fn new(arms: Vec<usize>, states: u8) -> Partition {
        let mut members = vec![BTreeSet::new(); arms.iter().max().map_or(0, |last| last + 1)];
        for (object, arm) in arms.iter().enumerate() {
            members[*arm].insert((0, object));
        }
        Partition { automata: vec![Automaton::new(states); arms.len()], arms, members }
    }

    /// The arm of each object.
    pub(crate) fn arms(&self) -> &[usize] {
        &self.arms
    }

    /// Two objects are accessed together; returns how many moved. Objects that are not there are no pair.
    pub(crate) fn pair(&mut self, one: usize, other: usize) -> usize {
        if one == other || one.max(other) >= self.arms.len() {
            return 0;
        }
        if self.arms[one] == self.arms[other] {
            self.answer(one, Answer::Reward);
            self.answer(other, Answer::Reward);
            return 0;
        }
        match (self.answer(one, Answer::Penalty), self.answer(other, Answer::Penalty)) {
            (false, false) => 0,
            // Both at the boundary: one comes to the other, and somebody else of that arm makes room.
            (true, _) => self.join(one, other),
            (false, true) => self.join(other, one),
        }
    }

    fn answer(&mut self, object: usize, answer: Answer) -> bool {
        let (members, automaton) = (&mut self.members[self.arms[object]], &mut self.automata[object]);
        members.remove(&(automaton.state(), object));
        let leaves = automaton.answer(answer);
        members.insert((automaton.state(), object));
        leaves
    }

    /// Brings `guest` into the arm of `host`.
    fn join(&mut self, guest: usize, host: usize) -> usize {
        let (from, to) = (self.arms[guest], self.arms[host]);
        let leaves = self.members[to].iter().map(|(_, object)| *object).find(|object| *object != host);
        self.put(guest, to);
        let Some(leaves) = leaves else { return 1 };
        self.put(leaves, from);
        2
    }

    /// Puts an object to the boundary of an arm.
    fn put(&mut self, object: usize, arm: usize) {
        self.members[self.arms[object]].remove(&(self.automata[object].state(), object));
        self.automata[object].to_boundary();
        self.arms[object] = arm;
        self.members[arm].insert((0, object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    #[test]
    fn tw_1_pairs_that_are_accessed_together_end_in_one_arm() {
        // Nine objects in three arms; those with equal remainders are accessed together, nineteen times of twenty.
        let mut partition = Partition::new(vec![0, 0, 0, 1, 1, 1, 2, 2, 2], 5);
        let mut chance = StdRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let one = chance.random_range(0..9);
            let other = if chance.random::<f64>() < 0.95 { (one + 3 * chance.random_range(1..3)) % 9 } else { chance.random_range(0..9) };
            partition.pair(one, other);
        }
        let arms = partition.arms();
        assert!((0..9).all(|object| arms[object] == arms[object % 3]), "{arms:?}");
        assert!(arms[0] != arms[1] && arms[1] != arms[2], "arms keep their sizes: {arms:?}");
    }

    #[test]
    fn tw_1_a_reward_goes_inward_and_only_the_boundary_is_left() {
        let mut partition = Partition::new(vec![0, 0, 1, 1], 3);
        assert_eq!(partition.pair(0, 1), 0);
        assert_eq!(partition.pair(2, 3), 0);
        assert_eq!(partition.pair(0, 2), 0, "neither stands at the boundary: nobody moves");
        assert_eq!(partition.pair(0, 2), 2, "now they do: one comes, another makes room");
        assert_eq!(partition.arms()[0], partition.arms()[2]);
        assert_eq!(partition.pair(0, 0) + partition.pair(0, 9), 0);
    }
}
