//! The lists of voters so far.
//!
//! Each is proven by the one before; the first is believed when none is known.

use nearcrawl_model::{
    access_point::AccessPoint,
    claim::{Claim, SignedClaim},
    vote::{SignedList, VoterList, VoterListError},
};
use std::collections::{BTreeMap, BTreeSet};

/// Lists that are kept: those in force while claims were accepted, which prove these claims. At ten changes a day they last for years.
pub(crate) const MAX_LISTS: usize = 50_000;

/// The lists so far.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lists: BTreeMap<u64, SignedList>,
}

impl Lists {
    /// With lists that were adopted before.
    pub(crate) fn restored(lists: impl IntoIterator<Item = SignedList>) -> Lists {
        Lists { lists: lists.into_iter().map(|signed| (signed.list.number, signed)).collect() }
    }

    /// The list in force, as far as it is known here.
    pub(crate) fn current(&self) -> Option<&VoterList> {
        self.lists.last_key_value().map(|(_, signed)| &signed.list)
    }

    /// The same with its signatures.
    pub(crate) fn signed(&self) -> Option<&SignedList> {
        self.lists.last_key_value().map(|(_, signed)| signed)
    }

    /// The list with this number, if it is known here.
    pub(crate) fn get(&self, number: u64) -> Option<&VoterList> {
        self.lists.get(&number).map(|signed| &signed.list)
    }

    /// Its number; 0 if none is known.
    pub(crate) fn number(&self) -> u64 {
        self.lists.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// Adopts a list if it follows the last one, of whose voters those in `lost` do not count. Whether it is new.
    pub(crate) fn adopt(&mut self, signed: &SignedList, lost: &BTreeSet<AccessPoint>) -> Result<bool, VoterListError> {
        if signed.list.number <= self.number() && self.number() > 0 {
            return Ok(false);
        }
        if self.lists.len() >= MAX_LISTS {
            return Err(VoterListError::NotNext);
        }
        signed.check(self.current(), lost)?;
        self.lists.insert(signed.list.number, signed.clone());
        Ok(true)
    }

    /// The lists after this number, at most so many.
    pub(crate) fn after(&self, number: u64, most: usize) -> Vec<SignedList> {
        self.lists.range(number.saturating_add(1)..).take(most).map(|(_, signed)| signed.clone()).collect()
    }

    /// How many there were.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether enough voters accepted this claim, or the claim that this one releases; none if their list is not known here.
    pub(crate) fn proves(&self, claim: &Claim, proof: &SignedClaim) -> Option<bool> {
        let Some(votes) = &proof.votes else { return Some(false) };
        let list = &self.lists.get(&votes.list)?.list;
        Some(votes.prove(list, claim.subnet, claim.epoch, claim.owner))
    }
}
