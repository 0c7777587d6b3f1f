//! Automaton that decides how often a subnet must be answered badly before it moves.
//!
//! It has the states of one arm, as every rule of migration uses them.

use serde::{Deserialize, Serialize};

/// How many states an arm has if nothing else is said: the N of the paper's experiments (§4).
pub(crate) const STATES: u8 = 5;

/// What an access to a subnet is answered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is well where it is: one state inward.
    Reward,
    /// It is not: one state towards the boundary, or away from there.
    Penalty,
    /// Neither can be said: it stays in its state.
    Neither,
}

/// Where a subnet stands in its arm: in one of the states 0, the boundary, to N - 1, the most internal one (TWOMA §3, TW-16, TW-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Automaton {
    state: u8,
    states: u8,
}

impl Automaton {
    /// At the boundary of an arm that has so many states; at least one.
    pub fn new(states: u8) -> Automaton {
        Automaton { state: 0, states: states.max(1) }
    }

    /// The state, 0 being the boundary.
    pub fn state(&self) -> u8 {
        self.state
    }

    /// How many states there are.
    pub fn states(&self) -> u8 {
        self.states
    }

    /// Takes an answer in, and says whether the subnet must leave the arm: it was penalised at the boundary.
    pub fn answer(&mut self, answer: Answer) -> bool {
        match answer {
            // A stored automaton may have come from elsewhere: never trust its state.
            Answer::Reward => self.state = self.state.saturating_add(1).min(self.states.saturating_sub(1)),
            Answer::Penalty if self.state == 0 => return true,
            Answer::Penalty => self.state -= 1,
            Answer::Neither => {}
        }
        false
    }

    /// Puts it to the boundary: of a new arm (TW-20), or because what was learnt holds no longer.
    pub fn to_boundary(&mut self) {
        self.state = 0;
    }
}
