//! Ownership history of a subnet: its earlier owners and what they learnt, which each owner leaves to the next beside the journals.

use super::{access_point::AccessPoint, claim::ClaimReason, time::WallTime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The greatest number of holdings that are kept of one subnet: the latest ones.
pub(crate) const MAX_HOLDINGS: usize = 16;

/// The longest explanation that is kept, in characters.
pub(crate) const MAX_WHY: usize = 200;

/// One owner's time with a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holding {
    /// The owner.
    #[schema(value_type = String)]
    pub owner: AccessPoint,
    /// The epoch of its claim.
    pub epoch: u64,
    /// Why it could claim the subnet.
    #[schema(value_type = String)]
    pub reason: ClaimReason,
    /// When it claimed the subnet, by the wall clock of the member that recorded it.
    #[schema(value_type = String, format = DateTime)]
    pub claimed_at: WallTime,
    /// Why it released the subnet, in a sentence; none if it still owns it or died.
    pub released_text: Option<String>,
}

/// The ownership history of a subnet, and what its owners learnt of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnershipHistory {
    /// The owners, the first one first; at most [`MAX_HOLDINGS`].
    pub holdings: Vec<Holding>,
    /// The measurements of the migration rule, encoded by the `migration` module of the core; empty if there are none.
    pub learnt: Vec<u8>,
}

impl OwnershipHistory {
    /// Adds an owner. An epoch that is recorded already, or older than the latest one, changes nothing.
    pub fn enter(&mut self, holding: Holding) {
        if self.holdings.last().is_some_and(|last| last.epoch >= holding.epoch) {
            return;
        }
        self.holdings.push(holding);
        self.shorten();
    }

    /// Records why the present owner releases the subnet.
    pub fn leave(&mut self, why: &str) {
        if let Some(last) = self.holdings.last_mut() {
            last.released_text = Some(why.chars().take(MAX_WHY).collect());
        }
    }

    /// Merges another member's history. Of two entries of one epoch the one with the earlier time counts, because that is when the claim
    /// was made.
    pub fn merge(&mut self, other: OwnershipHistory) {
        for theirs in other.holdings {
            match self.holdings.binary_search_by_key(&theirs.epoch, |mine| mine.epoch) {
                Ok(place) => {
                    let mine = &mut self.holdings[place];
                    mine.claimed_at = mine.claimed_at.min(theirs.claimed_at);
                    mine.released_text = mine.released_text.take().or(theirs.released_text);
                }
                Err(place) => {
                    self.holdings.insert(place, theirs);
                    // At once: in a long list each would be moved for each that is put before it.
                    self.shorten();
                }
            }
        }
    }

    fn shorten(&mut self) {
        let surplus = self.holdings.len().saturating_sub(MAX_HOLDINGS);
        self.holdings.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(epoch: u64) -> Holding {
        Holding {
            owner: AccessPoint([epoch as u8; 32]),
            epoch,
            reason: ClaimReason::Moved,
            claimed_at: WallTime(epoch),
            released_text: None,
        }
    }

    #[test]
    fn the_latest_owners_are_remembered_in_order_and_each_once() {
        let mut history = OwnershipHistory::default();
        for epoch in (1..=20).chain([20, 7]) {
            history.enter(holding(epoch));
        }
        let epochs: Vec<u64> = history.holdings.iter().map(|holding| holding.epoch).collect();
        assert_eq!(epochs, (5..=20).collect::<Vec<_>>());
    }

    #[test]
    fn a_history_that_is_too_long_is_merged_in_any_order() {
        for epochs in [(1..=40_u64).collect::<Vec<_>>(), (1..=40).rev().collect(), (1..=40).map(|epoch| epoch * 27 % 41).collect()] {
            let told = OwnershipHistory { holdings: epochs.into_iter().map(holding).collect(), learnt: Vec::new() };
            let mut merged = OwnershipHistory::default();
            merged.merge(told);
            let kept: Vec<u64> = merged.holdings.iter().map(|holding| holding.epoch).collect();
            assert_eq!(kept, (25..=40).collect::<Vec<_>>());
            assert!(merged.holdings.capacity() <= 40, "room for {} owners", merged.holdings.capacity());
        }
    }

    #[test]
    fn merging_fills_gaps_and_keeps_why_an_owner_left() {
        let (mut mine, mut theirs) = (OwnershipHistory::default(), OwnershipHistory::default());
        [1, 4].into_iter().for_each(|epoch| mine.enter(holding(epoch)));
        [1, 2, 3].into_iter().for_each(|epoch| theirs.enter(holding(epoch)));
        theirs.leave("it is far");
        mine.merge(theirs.clone());
        mine.merge(theirs);
        let told: Vec<_> = mine.holdings.iter().map(|holding| (holding.epoch, holding.released_text.is_some())).collect();
        assert_eq!(told, [(1, false), (2, false), (3, true), (4, false)]);
    }
}
