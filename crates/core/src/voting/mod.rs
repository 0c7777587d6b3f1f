//! Voting on ownership by the voters of a numbered list ([`nearcrawl_model::vote`]).
//!
//! * [`lists`]: the lists so far, each proven by the one before; [`installing`]: whom a newcomer to a list hears before it votes
//! * [`voter`]: as a voter: whose lease is renewed, which claims are accepted; [`rows`]: those that were; [`handed_over`]: what the next
//!   list is told; [`told`]: what of that a voter of the next list takes in
//! * [`lease`]: our own lease: no request leaves without it
//! * [`proposals`]: our own claims, until enough voters have accepted them
//! * [`keeping`]: who has what we recorded, as voters keep it for a successor
//! * [`ballots`]: the choice of the next list; [`plan`]: who should be on it; [`networks`]: one vote for each network
//! * [`process`]: which of several processes with our key votes; [`confirmation`]: whether the list of before a start is still in force
//! * [`records`]: what of all this is on disk
//!
//! **Why there is one owner.** An owner fetches while a quorum has renewed its lease within [`Times::lease`] of sending. A voter accepts a
//! claim to what another owns only when it has not renewed that one's lease for [`Times::lease`] + [`Times::margin`], and then never renews
//! that term again. Any two quorums of a list share a voter, and of several processes with its key only one votes ([`process`]). So when a
//! quorum has accepted the claim, the lease before it has run out. From one list to the next: a voter that accepts the next list votes no
//! more by the present one, the next begins with what a quorum of the present one had accepted, and ends no lease until every lease of
//! before has run out. A voter of both knows of leases what it knew before; if quorums of both lists are so large that any two share voters
//! of before, such voters are enough to tell which leases have run out.

mod answers;
pub(crate) mod asker;
pub(crate) mod ballots;
mod confirmation;
pub(crate) mod handed_over;
mod installing;
mod keeping;
pub(crate) mod lease;
pub(crate) mod lists;
pub(crate) mod machine;
pub(crate) mod networks;
pub(crate) mod plan;
mod process;
pub(crate) mod proposals;
mod questions;
pub mod records;
pub(crate) mod rows;
#[cfg(test)]
mod tests;
mod told;
pub(crate) mod voter;

pub(crate) use machine::Voting;
pub(crate) use networks::Networks;

use crate::membership::{LeftOut, RosterConfig};
use nearcrawl_model::time::Millis;

/// The times that leases and lists go by, in milliseconds of the boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// For how long a lease lasts from when its renewal was sent.
    pub(crate) lease: Millis,
    /// How much longer a voter waits before it lets others claim: for clocks that run at different rates.
    pub(crate) margin: Millis,
    /// How often a lease is renewed.
    pub(crate) renew_every: Millis,
    /// The same while no server is to be asked before it ends.
    pub(crate) renew_idle_every: Millis,
    /// After which silence a voter is replaced.
    pub(crate) forget_after: Millis,
    /// For how long an access point must have held leases before it may be a voter, at least.
    pub(crate) least_tenure: Millis,
    /// Which part is left out; none but in a laboratory.
    pub(crate) without: Option<LeftOut>,
}

impl Times {
    pub(crate) fn of(config: &RosterConfig) -> Times {
        Times {
            lease: config.lease,
            margin: config.dead_after.saturating_sub(config.lease),
            // A lease bears the loss of one renewal; at a third of it, it would bear the loss of no more.
            renew_every: (config.lease * 13 / 30).max(1),
            // Before it ends there is time to ask again twice.
            renew_idle_every: (config.lease * 2 / 3).max(1),
            forget_after: config.replace_voter_after,
            least_tenure: config.vote_after,
            without: config.without,
        }
    }

    /// For how long a process that starts asks whether its list is still in force: long enough to be connected.
    pub(crate) fn confirm_within(&self) -> Millis {
        self.lease / 3
    }

    /// How long a voter has not heard of an owner before it lets others claim what it owns.
    pub(crate) fn patience(&self) -> Millis {
        self.lease + self.margin
    }
}
