//! Which objects belong together? The Object Migration Automaton of Oommen and Ma, which TWOMA extends (TWOMA §2.1, TW-1).
//!
//! Objects come in pairs. In the same arm both are rewarded; in different arms both are penalised, and if one of them stands at the
//! boundary they move together: they swap arms where both stand there, else the one at the boundary comes to the other and sends
//! whoever stands nearest to that arm's boundary back, so that arms keep their sizes (as in the papers that the paper refers to).

use super::{Answer, Automaton};

/// Objects in equal arms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    arms: Vec<usize>,
    automata: Vec<Automaton>,
}

impl Partition {
    /// The objects, each in its arm, all at the boundary.
    pub fn new(arms: Vec<usize>, states: u8) -> Partition {
        Partition { automata: vec![Automaton::new(states); arms.len()], arms }
    }

    /// The arm of each object.
    pub fn arms(&self) -> &[usize] {
        &self.arms
    }

    /// Two objects are accessed together; returns how many moved. Objects that are not there are no pair.
    pub fn pair(&mut self, one: usize, other: usize) -> usize {
        if one == other || one.max(other) >= self.arms.len() {
            return 0;
        }
        if self.arms[one] == self.arms[other] {
            self.automata[one].answer(Answer::Reward);
            self.automata[other].answer(Answer::Reward);
            return 0;
        }
        match (self.automata[one].answer(Answer::Penalty), self.automata[other].answer(Answer::Penalty)) {
            (false, false) => 0,
            // Both at the boundary: one comes to the other, and somebody else of that arm makes room.
            (true, _) => self.join(one, other),
            (false, true) => self.join(other, one),
        }
    }

    /// Brings `guest` into the arm of `host`.
    fn join(&mut self, guest: usize, host: usize) -> usize {
        let (from, to) = (self.arms[guest], self.arms[host]);
        let in_the_way = |object: &usize| self.arms[*object] == to && *object != host;
        let leaves = (0..self.arms.len()).filter(in_the_way).min_by_key(|object| self.automata[*object].state());
        self.arms[guest] = to;
        self.automata[guest].to_boundary();
        let Some(leaves) = leaves else { return 1 };
        self.arms[leaves] = from;
        self.automata[leaves].to_boundary();
        2
    }
}
