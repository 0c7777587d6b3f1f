//! Decides which of the processes with our key votes: two that vote would be two voters with one name.
//!
//! A process that votes has been answered of late by so many other voters that none of another process with its key could be: those to
//! which it is the only such process, as many as a quorum can do without (so each quorum has one of them), or else a quorum of others. Each
//! voter gives the lease of a key to one process, and to another one only when that has been silent for longer than a lease, and only if it
//! says that it may not be the only one; then that voter is contested, until a quorum has answered at once.

use crate::voting::{Times, records::StoredProcesses};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::Moment,
    vote::{Renewed, VoterList},
};
use std::collections::{BTreeMap, BTreeSet};

/// Renewals whose answers may still come.
const MAX_UNDER_WAY: usize = 16;

/// A renewal on its way.
#[derive(Debug)]
struct Sent {
    at: Moment,
    list: u64,
    /// Whether it said that no other process can have the key, but to those that were contested.
    sole: bool,
    contested: BTreeSet<AccessPoint>,
    /// Other voters that have noted that this process holds the lease, or asks for it.
    noted_by: BTreeSet<AccessPoint>,
}

/// What an answer of a voter leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// This voter is contested.
    Contested,
    Votes(Votes),
}

/// It votes for longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Votes {
    /// Whether it did not until now.
    pub(super) begins: bool,
    /// Whether another process may have voted before, so that what this voter decided by the present list is not known here.
    pub(super) forgets: bool,
    /// Voters that are contested no more.
    pub(super) settled: Vec<AccessPoint>,
}

/// The voters that are asked.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) list: &'a VoterList,
    pub(super) me: AccessPoint,
    /// Those that an operator declared lost.
    pub(super) lost: &'a BTreeSet<AccessPoint>,
}

impl Asked<'_> {
    fn is_other(&self, voter: &AccessPoint) -> bool {
        self.list.contains(voter) && *voter != self.me && !self.lost.contains(voter)
    }

    /// How many other voters there are.
    fn others(&self) -> usize {
        self.list.voters.iter().filter(|voter| self.is_other(voter)).count()
    }
}

/// How this process stands to others with the same key.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) incarnation: u64,
    /// Its own number.
    pub(super) number: u64,
    /// Those before it that surely have ended; 0 for none.
    pub(super) ended: [u64; 2],
    /// Whether no other process with this key can run, as far as its directory tells, or what voters said since.
    sole: bool,
    /// What is on disk about it, or on its way there.
    noted: Option<StoredProcesses>,
    pub(super) started: Moment,
    /// Voters that knew of another process with this key, and may give its vote to either.
    contested: BTreeSet<AccessPoint>,
    under_way: BTreeMap<u64, Sent>,
    /// Until when it votes, by the list with this number.
    votes: Option<(u64, Moment)>,
}

impl Process {
    pub(super) fn new(incarnation: u64, number: u64, ended: [u64; 2], sole: bool, started: Moment) -> Process {
        let (noted, contested, under_way, votes) = Default::default();
        Process { incarnation, number, ended, sole, noted, started, contested, under_way, votes }
    }

    /// With the voters that were contested when the process before ended.
    pub(super) fn with_contested(mut self, contested: BTreeSet<AccessPoint>) -> Process {
        self.contested = contested;
        self
    }

    /// Whether no other process with this key can run, as far as is known here.
    pub(super) fn is_sole(&self) -> bool {
        self.sole
    }

    /// Whether it says so to this voter, which would not give it the lease else as long as it knows of another.
    pub(super) fn is_sole_to(&self, voter: &AccessPoint) -> bool {
        self.sole && !self.contested.contains(voter)
    }

    /// Whether it votes by the list with this number.
    pub(super) fn votes(&self, now: Moment, list: u64) -> bool {
        self.votes.is_some_and(|(by, until)| by == list && now < until)
    }

    /// What is to be stored about it, if that is new.
    pub(super) fn note(&mut self) -> Option<StoredProcesses> {
        let stored = StoredProcesses { last: [self.number, self.ended[0]], sure: self.sole };
        (self.noted != Some(stored)).then(|| *self.noted.insert(stored))
    }

    /// A renewal is sent.
    pub(super) fn asks(&mut self, now: Moment, number: u64, list: u64) {
        let sent = Sent { at: now, list, sole: self.sole, contested: self.contested.clone(), noted_by: BTreeSet::new() };
        self.under_way.insert(number, sent);
        while self.under_way.len() > MAX_UNDER_WAY {
            self.under_way.pop_first();
        }
    }

    /// It is stored that this voter is contested.
    pub(super) fn is_contested_by(&mut self, voter: AccessPoint) {
        self.contested.insert(voter);
    }

    /// The boot clock may have stood still: what was asked before does not count.
    pub(super) fn clock_stood_still(&mut self, now: Moment) {
        self.under_way.clear();
        self.votes = self.votes.map(|(list, until)| (list, until.min(now)));
    }

    /// A voter answered a renewal; or, if none did, one was sent.
    pub(super) fn answered(
        &mut self,
        now: Moment,
        times: &Times,
        number: u64,
        asked: Asked<'_>,
        answer: Option<(AccessPoint, &Renewed)>,
    ) -> Step {
        let Some(sent) = self.under_way.get_mut(&number).filter(|sent| sent.list == asked.list.number) else { return Step::Nothing };
        match answer.filter(|(from, _)| asked.is_other(from)) {
            // Who goes by another list, or changes to one, has noted who asked.
            Some((from, Renewed::Granted(_) | Renewed::Changing | Renewed::OtherList(_))) => drop(sent.noted_by.insert(from)),
            Some((from, Renewed::Held | Renewed::Superseded(_))) => {
                return if self.contested.contains(&from) { Step::Nothing } else { Step::Contested };
            }
            Some((_, Renewed::Ended(_))) | None => {}
        }
        let (there, quorum) = (asked.others(), asked.list.quorum());
        let until = sent.at.after(times.lease);
        let sole_to = sent.noted_by.iter().filter(|voter| sent.sole && !sent.contested.contains(voter)).count();
        let alone = sent.sole && sole_to >= (asked.list.voters.len() - quorum).min(there);
        // Where there is no quorum of others, all of them must know of nobody else for long enough.
        let patient = now.since(self.started) >= 2 * times.patience();
        let by_others = sent.noted_by.len() >= quorum || patient && sent.noted_by.len() >= there;
        if now >= until || !alone && !by_others {
            return Step::Nothing;
        }
        let settled = self.contested.intersection(&sent.noted_by).filter(|_| by_others).copied().collect();
        let before = self.votes.replace((asked.list.number, until));
        let voted = before.is_some_and(|(_, until)| now < until);
        self.votes = before.filter(|(list, _)| *list == asked.list.number).max(self.votes);
        self.contested.retain(|voter| !(by_others && self.under_way[&number].noted_by.contains(voter)));
        self.sole |= by_others;
        Step::Votes(Votes {
            begins: before.is_none_or(|(list, until)| list != asked.list.number || until <= now),
            forgets: !alone && !voted && there > 0,
            settled,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::RosterConfig;

    const ME: AccessPoint = AccessPoint([1; 32]);

    fn ap(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    /// A process of the first of so many voters, and what they answer.
    struct Played {
        times: Times,
        list: VoterList,
        lost: BTreeSet<AccessPoint>,
        process: Process,
        number: u64,
        now: Moment,
    }

    impl Played {
        fn new(voters: u8, sole: bool) -> Played {
            let list = VoterList { number: 1, voters: (1..=voters).map(ap).collect(), age: 0 };
            let (times, process) = (Times::of(&RosterConfig::default()), Process::new(1, 7, [0, 0], sole, Moment(0)));
            Played { times, list, lost: BTreeSet::new(), process, number: 0, now: Moment(0) }
        }

        fn answers(&mut self, from: u8, answer: &Renewed) -> Step {
            let asked = Asked { list: &self.list, me: ME, lost: &self.lost };
            let step = self.process.answered(self.now, &self.times, self.number, asked, (from > 0).then_some((ap(from), answer)));
            if step == Step::Contested {
                self.process.is_contested_by(ap(from));
            }
            step
        }

        /// It asks now, and these answer. Whether it votes then, and whether it does not know what was decided.
        fn asks(&mut self, now: u64, noted_by: &[u8], held_by: &[u8]) -> (bool, bool) {
            self.now = Moment(now);
            self.number += 1;
            self.process.asks(self.now, self.number, self.list.number);
            let sent = self.answers(0, &Renewed::Changing);
            let held: Vec<_> = held_by.iter().map(|from| self.answers(*from, &Renewed::Held)).collect();
            let noted = noted_by.iter().map(|from| self.answers(*from, &Renewed::Changing)).collect::<Vec<_>>();
            let forgets = [vec![sent], held, noted].concat().iter().any(|step| matches!(step, Step::Votes(votes) if votes.forgets));
            (self.process.votes(self.now, 1), forgets)
        }
    }

    #[test]
    fn as_many_others_as_a_quorum_can_do_without_are_enough_for_the_only_process_and_only_for_the_time_of_a_lease() {
        for (voters, needed) in [(1, 0), (3, 1), (5, 2), (7, 2)] {
            let mut played = Played::new(voters, true);
            let others: Vec<u8> = (2..=voters).collect();
            if needed > 0 {
                assert_eq!(played.asks(0, &others[..needed - 1], &[]), (false, false), "{voters}");
            }
            assert_eq!(played.asks(1_000, &others[..needed], &[]), (true, false), "{voters}");
            let lease = played.times.lease;
            assert!(played.process.votes(Moment(1_000 + lease - 1), 1) && !played.process.votes(Moment(1_000 + lease), 1));
            assert!(!played.process.votes(Moment(1_001), 2), "by another list it is asked for anew");
        }
    }

    #[test]
    fn a_voter_that_knew_of_another_process_counts_only_with_a_quorum_of_others_and_then_nothing_decided_is_known() {
        let mut played = Played::new(5, true);
        assert_eq!(played.asks(0, &[2, 3], &[]), (true, false));
        assert_eq!(played.asks(100_000, &[], &[2, 3, 4]), (false, false), "the other process holds the lease");
        assert!(!played.process.is_sole_to(&ap(2)) && played.process.is_sole_to(&ap(5)));
        assert_eq!(played.asks(200_000, &[2, 5], &[]), (false, false), "one of the two may give the vote to either");
        assert_eq!(played.asks(201_000, &[2, 3, 5], &[]), (true, true));
        assert!(played.process.is_sole_to(&ap(2)) && !played.process.is_sole_to(&ap(4)), "4 has not answered since");
        assert_eq!(played.asks(300_000, &[2, 3], &[]), (true, false));
    }

    #[test]
    fn a_voter_that_lies_about_another_process_takes_nobodys_vote() {
        let mut played = Played::new(7, true);
        for second in 0..100 {
            assert_eq!(played.asks(second * 1_000, &[3, 4, 5, 6], &[2]), (true, false));
        }
        assert_eq!(played.process.contested, BTreeSet::from([ap(2)]));
    }

    #[test]
    fn a_process_with_a_copied_directory_needs_a_quorum_of_others_and_where_there_is_none_all_of_them_for_long() {
        let mut played = Played::new(5, false);
        assert_eq!(played.asks(0, &[2, 3], &[]), (false, false));
        assert_eq!(played.asks(1_000, &[2, 3, 4], &[]), (true, true));
        assert_eq!(played.asks(60_000, &[2, 3], &[]), (true, false), "it is the only one from then on");
        let mut played = Played::new(3, false);
        played.lost.insert(ap(3));
        assert_eq!(played.asks(0, &[2], &[]), (false, false));
        let patience = played.times.patience();
        assert_eq!(played.asks(2 * patience, &[2], &[]), (true, true));
        let mut played = Played::new(1, false);
        assert_eq!(played.asks(0, &[], &[]), (false, false));
        assert_eq!(played.asks(2 * patience, &[], &[]), (true, false), "it has decided all itself");
    }

    #[test]
    fn two_processes_with_one_key_never_both_vote() {
        // Each of them reaches any of the others; these give the lease as voters do.
        for voters in [3_u8, 5, 7] {
            for cut in 0_u32..1 << (2 * (voters - 1)) {
                let mut played = [Played::new(voters, true), Played::new(voters, false)];
                let reaches = |process: usize, voter: u8| cut >> (2 * u32::from(voter - 2) + process as u32) & 1 == 1;
                let everybody: Vec<u8> = (2..=voters).collect();
                played[0].asks(0, &everybody, &[]);
                played[1].asks(0, &[], &everybody);
                // Both stood still. The one that comes first at a voter has it; the original must know that it may not be the only one.
                let all_of = |process: usize| everybody.iter().copied().filter(move |voter| reaches(process, *voter));
                let second: Vec<_> = all_of(1).collect();
                let (first, held): (Vec<_>, Vec<_>) = all_of(0).partition(|voter| !second.contains(voter));
                let votes = [played[0].asks(100_000, &first, &held).0, played[1].asks(100_000, &second, &[]).0];
                assert_ne!(votes, [true, true], "{voters}, {cut:b}");
            }
        }
    }
}
