//! Who had this subnet before, and what was learnt of it? What an owner leaves to the next one, beside the journals.

use super::{access_point::AccessPoint, claim::ClaimReason, time::WallTime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Holdings that are remembered of a subnet, the latest ones.
pub const MOST_HOLDINGS: usize = 16;

/// The longest explanation that is kept, in characters.
pub const LONGEST_WHY: usize = 200;

/// One owner's time with a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holding {
    /// Whose it was.
    #[schema(value_type = String)]
    pub owner: AccessPoint,
    /// The epoch of its claim.
    pub epoch: u64,
    /// By what right.
    #[schema(value_type = String)]
    pub reason: ClaimReason,
    /// Since when, by the clock of whoever wrote it down.
    #[schema(value_type = u64)]
    pub since: WallTime,
    /// Why it was handed on, if it was: in a sentence.
    pub left_because: Option<String>,
}

/// What an owner leaves to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chronicle {
    /// Who had it, the first one first; at most [`MOST_HOLDINGS`].
    pub holdings: Vec<Holding>,
    /// What migration learnt of it, encoded by [`crate::logic::migration`]; empty if nothing.
    pub learnt: Vec<u8>,
}

impl Chronicle {
    /// Enters an owner. One that is known already, or older than what is known, changes nothing.
    pub fn enter(&mut self, holding: Holding) {
        if self.holdings.last().is_some_and(|last| last.epoch >= holding.epoch) {
            return;
        }
        self.holdings.push(holding);
        self.shorten();
    }

    /// Says why the present owner hands it on.
    pub fn leave(&mut self, why: &str) {
        if let Some(last) = self.holdings.last_mut() {
            last.left_because = Some(why.chars().take(LONGEST_WHY).collect());
        }
    }

    /// Takes in whom another one wrote down. Of one epoch the earlier beginning counts, for that is when the claim was made.
    pub fn merge(&mut self, other: Chronicle) {
        for theirs in other.holdings {
            match self.holdings.binary_search_by_key(&theirs.epoch, |mine| mine.epoch) {
                Ok(place) => {
                    let mine = &mut self.holdings[place];
                    mine.since = mine.since.min(theirs.since);
                    mine.left_because = mine.left_because.take().or(theirs.left_because);
                }
                Err(place) => self.holdings.insert(place, theirs),
            }
        }
        self.shorten();
    }

    fn shorten(&mut self) {
        let surplus = self.holdings.len().saturating_sub(MOST_HOLDINGS);
        self.holdings.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(epoch: u64) -> Holding {
        Holding { owner: AccessPoint([epoch as u8; 32]), epoch, reason: ClaimReason::Moved, since: WallTime(epoch), left_because: None }
    }

    #[test]
    fn the_latest_owners_are_remembered_in_order_and_each_once() {
        let mut chronicle = Chronicle::default();
        for epoch in (1..=20).chain([20, 7]) {
            chronicle.enter(holding(epoch));
        }
        let epochs: Vec<u64> = chronicle.holdings.iter().map(|holding| holding.epoch).collect();
        assert_eq!(epochs, (5..=20).collect::<Vec<_>>());
    }

    #[test]
    fn merging_fills_gaps_and_keeps_why_an_owner_left() {
        let (mut mine, mut theirs) = (Chronicle::default(), Chronicle::default());
        [1, 4].into_iter().for_each(|epoch| mine.enter(holding(epoch)));
        [1, 2, 3].into_iter().for_each(|epoch| theirs.enter(holding(epoch)));
        theirs.leave("it is far");
        mine.merge(theirs.clone());
        mine.merge(theirs);
        let told: Vec<_> = mine.holdings.iter().map(|holding| (holding.epoch, holding.left_because.is_some())).collect();
        assert_eq!(told, [(1, false), (2, false), (3, true), (4, false)]);
    }
}
