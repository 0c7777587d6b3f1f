//! What a voter of the next list takes in of what the voters before are said to have decided.
//!
//! None of it is proven but the sets of replicas, which their owners signed: a voter that lies may have invented a claim or the end of a term,
//! and so may the one that brings it. That nothing is left out is not for one voter to say: see [`super::installing`]. As to the rest,
//!
//! * who voted by the list before takes in nothing else, if a quorum of the next list is no smaller. A quorum of the next list all of
//!   which did so is one of the list before: one of it decided itself whatever a quorum of before decided. Of any other quorum one was told;
//! * what more voters tell than may lie is believed; of the rest each voter has its share of what could be handed on;
//! * who must believe it believes nothing that could not be mended: epochs and terms so far ahead that no later one could follow are left
//!   out, and one owner takes no more room than it may by votes. What it believes wrongly costs an owner one term of its lease, or keeps a
//!   subnet from others until its claim counts as withdrawn.

use crate::{
    ownership::register::Register,
    voting::{
        handed_over::{MAX_DECIDED_BYTES, size_of},
        lease::MAX_TERMS_SKIPPED,
        records::{self, StoredRow, VotingRecord},
        rows::{MAX_OF_SUBNET, Row},
        voter::{FORGOTTEN, MAX_ENDED, MAX_ENDED_TOLD, MAX_FORGOTTEN_TERM, MAX_FORGOTTEN_TERM_TOLD, MAX_SKIPPED, Voter, is_published},
    },
};
use nearcrawl_model::{
    access_point::AccessPoint,
    claim::MAX_EPOCH,
    time::Moment,
    vote::{AcceptedRow, HandedOver, SignedReplicas},
};

/// How far ahead of the last epoch that is known here a claim may be that others accepted: a few that they had not heard of either.
const MAX_TOLD_AHEAD: u64 = 4 * MAX_SKIPPED;

impl Voter {
    /// What voters of the list before had decided, as one of them says. Returns how much of it was not believed.
    pub(crate) fn take_in(&mut self, now: Moment, before: &HandedOver, register: &Register, records: &mut Vec<VotingRecord>) -> usize {
        self.take_in_replicas(&before.replicas, records);
        let mut refused = 0;
        for row in &before.rows {
            refused += usize::from(!self.take_in_row(now, row, register, records));
        }
        // Those of whoever owns something come first: the others may be invented.
        let (owners, others): (Vec<_>, Vec<_>) = before.ended.iter().copied().partition(|(who, _)| register.count(who) > 0);
        let most = owners.into_iter().zip(std::iter::repeat(MAX_ENDED));
        for ((who, term), most) in most.chain(others.into_iter().zip(std::iter::repeat(MAX_ENDED_TOLD))) {
            let room = self.ended.len() < most || self.ended.contains_key(&who);
            if room && term <= self.last_likely_term(&who, register) {
                self.end(who, term, records);
            } else {
                refused += 1;
            }
        }
        refused
    }

    /// The same of what is signed by those whom it concerns.
    pub(crate) fn take_in_replicas(&mut self, sets: &[SignedReplicas], records: &mut Vec<VotingRecord>) {
        for set in sets {
            self.note(set, records);
        }
    }

    /// Whether this claim is published, or known here to be accepted.
    pub(super) fn knows(&self, row: &AcceptedRow, register: &Register) -> bool {
        is_published(register, row) || self.rows.of(&row.subnet).iter().any(|known| known.stored.row == *row)
    }

    /// Whether all of this could still be handed on with what was decided here.
    pub(super) fn has_room_for(&self, before: &HandedOver, register: &Register) -> bool {
        let new: usize = before.rows.iter().filter(|row| !self.knows(row, register)).map(size_of).sum();
        let ended: usize = before.ended.iter().filter(|(who, _)| !self.ended.contains_key(who)).map(size_of).sum();
        self.decided_bytes().saturating_add(new).saturating_add(ended) <= MAX_DECIDED_BYTES
    }

    /// Whether this claim may have been accepted. It stands beside what was accepted here and what else is told, also at other epochs: one
    /// that is invented does not make another one forgotten.
    fn take_in_row(&mut self, now: Moment, row: &AcceptedRow, register: &Register, records: &mut Vec<VotingRecord>) -> bool {
        if self.knows(row, register) {
            return true;
        }
        let known = self.rows.of(&row.subnet);
        let published = register.latest(&row.subnet).map_or(0, |held| held.claim.epoch);
        let last = known.iter().filter(|known| known.stored.process != 0).map(|known| known.stored.row.epoch).max().unwrap_or(0);
        let likely = 1..=published.max(last).saturating_add(MAX_TOLD_AHEAD).min(MAX_EPOCH);
        let few = known.len() < MAX_OF_SUBNET;
        let is_last = known.iter().all(|known| known.stored.row.epoch <= row.epoch);
        let fits = few && likely.contains(&row.epoch) && row.term <= self.last_likely_term(&row.owner, register);
        if !fits || !self.rows.has_room(now, row, |row| is_published(register, row)) {
            return false;
        }
        let stored = StoredRow { row: *row, process: 0, withdrawn: false, before: Vec::new() };
        // A subnet has one record: that of the last epoch that was accepted here, or may have been elsewhere.
        if is_last {
            records.push(records::row(&stored));
        }
        self.rows.add_rival(Row { stored, at: now });
        true
    }

    /// The last term of an owner's lease that others may be right to speak of: one that is so far ahead of what is known here that the
    /// owner could not begin the one after it would lock it out. Of an owner that nothing else tells of only such as are forgotten in time.
    fn last_likely_term(&self, who: &AccessPoint, register: &Register) -> u64 {
        if *who == FORGOTTEN {
            return MAX_FORGOTTEN_TERM_TOLD;
        }
        let heard = self.heard_of(who).map_or(0, |heard| heard.term);
        let signed = self.replicas_of(who).map_or(0, |set| set.number().term);
        let claimed = register.held_by(who).next().and_then(|subnet| register.latest(&subnet)).map_or(0, |held| held.term());
        match heard.max(signed).max(claimed) {
            0 => MAX_FORGOTTEN_TERM,
            known => known.saturating_add(MAX_TERMS_SKIPPED),
        }
    }
}
