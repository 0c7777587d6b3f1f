//! The choice of the next list of voters, by numbered ballots.
//!
//! The voters of the present list choose it (single-decree Paxos), then what these had decided is stored by the next.
//!
//! Who accepts a list votes no more by the present one. So a list that was begun must be brought to its end: any voter that accepted it
//! goes on with it when its proposer does not.

use crate::voting::{handed_over, lists::Lists, plan::LastPlan, records::BallotState};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
    vote::{Ballot, BallotAnswer, BallotRequest, Endorsed, HandedOver, SignedList, VoterList, is_accepted, is_installed},
};
use std::collections::{BTreeMap, BTreeSet};

/// For how long a proposer goes on with a ballot.
const BALLOT_TIMEOUT: Millis = 10_000;

/// For how long another list must be better before it is proposed.
const SETTLED: Millis = 2_000;

/// When those who have not answered are asked again.
const ASK_AGAIN: Millis = 2_000;

/// How far ahead of the last one a ballot may be.
const MAX_SKIPPED: u64 = 1_000_000;

/// For how long the voters that were not needed are still sent what the voters before had decided.
const LAGGARDS: Millis = 60_000;

/// A proposer waits no longer than after so many ballots that came to nothing.
const MAX_FAILED: u64 = 2;

/// Lists that are remembered with those who proposed them.
const MAX_DISPUTED: usize = 64;

/// How far a ballot of ours is.
#[derive(Debug)]
enum Phase {
    Preparing { promised: BTreeMap<AccessPoint, Option<(Ballot, VoterList)>>, wanted: VoterList },
    Accepting { list: VoterList, accepted: BTreeMap<AccessPoint, (Endorsed, HandedOver)> },
    Installing { signed: SignedList, before: HandedOver, installed: BTreeMap<AccessPoint, Endorsed>, adopted: bool },
}

/// A ballot of ours.
#[derive(Debug)]
struct Mine {
    ballot: Ballot,
    number: u64,
    since: Moment,
    asked: Option<Moment>,
    phase: Phase,
}

/// How a ballot of ours goes on. `enough` is whether these voters of the present list may choose a list.
impl Mine {
    fn promised(
        &mut self,
        from: AccessPoint,
        before: Option<(Ballot, VoterList)>,
        enough: impl Fn(&mut dyn Iterator<Item = &AccessPoint>, &VoterList) -> bool,
    ) {
        let Phase::Preparing { promised, wanted } = &mut self.phase else { return };
        promised.insert(from, before);
        if enough(&mut promised.keys(), wanted) {
            let last = promised.values().flatten().max_by_key(|(ballot, _)| *ballot).map(|(_, list)| list.clone());
            let list = last.unwrap_or_else(|| wanted.clone());
            self.phase = Phase::Accepting { list, accepted: BTreeMap::new() };
            self.asked = None;
        }
    }

    fn accepted(
        &mut self,
        now: Moment,
        from: AccessPoint,
        by: Endorsed,
        told: HandedOver,
        enough: impl Fn(&mut dyn Iterator<Item = &AccessPoint>, &VoterList) -> bool,
    ) -> Outcome {
        let Phase::Accepting { list, accepted } = &mut self.phase else { return Outcome::Nothing };
        if by.voter != from || !is_accepted(&by, list, self.ballot) {
            return Outcome::Nothing;
        }
        accepted.insert(from, (by, told));
        if enough(&mut accepted.keys(), list) {
            let Some(before) = handed_over::all_of(accepted.values().map(|(_, told)| told)) else {
                // It could be brought to nobody. Who told most is left out until it tells less: one that lies, or one that need not tell
                // all.
                let most = accepted.iter().max_by_key(|(_, (_, told))| handed_over::size_of_decided(told)).map(|(who, _)| *who);
                most.and_then(|most| accepted.remove(&most));
                return Outcome::TooMuch;
            };
            let accepted = std::mem::take(accepted).into_values().map(|(by, _)| by).collect();
            let signed = SignedList { list: list.clone(), ballot: self.ballot, accepted, installed: Vec::new() };
            self.phase = Phase::Installing { signed, before, installed: BTreeMap::new(), adopted: false };
            (self.asked, self.since) = (None, now);
        } else if from != self.ballot.proposer {
            self.asked = None;
        }
        Outcome::Nothing
    }

    fn installed(&mut self, now: Moment, from: AccessPoint, by: Endorsed) -> Outcome {
        let Phase::Installing { signed, installed, adopted, .. } = &mut self.phase else { return Outcome::Nothing };
        if by.voter != from || !signed.list.contains(&from) || !is_installed(&by, &signed.list) {
            return Outcome::Nothing;
        }
        installed.insert(from, by);
        if *adopted || installed.len() < signed.list.quorum() {
            return Outcome::Nothing;
        }
        *adopted = true;
        self.since = now;
        Outcome::Adopted(SignedList { installed: installed.values().cloned().collect(), ..signed.clone() })
    }
}

/// Ballots, as an acceptor and as a proposer.
#[derive(Debug, Default)]
pub(crate) struct Ballots {
    state: BallotState,
    mine: Option<Mine>,
    /// The latest ballot that was heard of.
    latest: u64,
    /// Since when something should be proposed and is not.
    wanted_since: Option<Moment>,
    /// Since when a list has been accepted and is not in force.
    accepted_since: Option<Moment>,
    /// How often a ballot of ours about the present list came to nothing.
    failed: u64,
    /// Next lists that this voter does not agree with, and who proposed them.
    disputed: BTreeMap<Vec<AccessPoint>, BTreeSet<AccessPoint>>,
    plan: LastPlan,
}

/// What an answer leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Nothing,
    /// The list is chosen and installed: it is in force.
    Adopted(SignedList),
    /// Somebody goes by this list.
    OtherList(u64),
    /// What a voter that accepted the list hands over does not fit into a message with what others do.
    TooMuch,
}

impl Ballots {
    pub(crate) fn restored(now: Moment, state: BallotState) -> Ballots {
        let accepted_since = state.accepted.as_ref().map(|_| now);
        Ballots { state, accepted_since, ..Ballots::default() }
    }

    /// The last plan of a better list.
    pub(crate) fn plan(&mut self) -> &mut LastPlan {
        &mut self.plan
    }

    /// Whether nothing is decided by the present list any more.
    pub(crate) fn is_sealed(&self, number: u64) -> bool {
        self.state.number == number && self.state.accepted.is_some()
    }

    /// As an acceptor: the list after the one with this number that was accepted here.
    pub(crate) fn accepted_after(&self, number: u64) -> Option<&VoterList> {
        self.state.accepted.as_ref().filter(|_| self.state.number == number).map(|(_, list)| list)
    }

    /// Whether this ballot's round is not so far ahead that no later one could be found.
    pub(crate) fn is_near(&self, ballot: &Ballot) -> bool {
        let promised = self.state.promised.map_or(0, |promised| promised.round);
        ballot.round <= self.latest.max(promised).saturating_add(MAX_SKIPPED)
    }

    pub(crate) fn state(&self) -> &BallotState {
        &self.state
    }

    /// Another list is in force. A ballot of ours goes on only to bring it to its other voters.
    pub(crate) fn list_changed(&mut self, number: u64) {
        if self.state.number != number {
            self.state = BallotState { number, ..BallotState::default() };
        }
        let brings = |mine: &Mine| matches!(&mine.phase, Phase::Installing { signed, .. } if signed.list.number == number);
        self.mine = self.mine.take().filter(brings);
        (self.latest, self.wanted_since, self.accepted_since) = (0, None, None);
        self.disputed.clear();
        self.failed = 0;
    }

    fn of(&mut self, number: u64) -> &mut BallotState {
        if self.state.number != number {
            self.state = BallotState { number, ..BallotState::default() };
        }
        &mut self.state
    }

    /// As an acceptor: promises, if no later ballot was promised. What is answered holds once the state is stored.
    /// Whoever wants to propose waits for its turn from then on: else each would outvote the one before it for ever.
    pub(crate) fn prepare(&mut self, now: Moment, number: u64, ballot: Ballot) -> BallotAnswer {
        self.latest = self.latest.max(ballot.round);
        let state = self.of(number);
        if let Some(promised) = state.promised.filter(|promised| *promised > ballot) {
            return BallotAnswer::Outvoted(promised);
        }
        state.promised = Some(ballot);
        let answer = BallotAnswer::Promised(state.accepted.clone());
        self.waits_from(now);
        answer
    }

    fn waits_from(&mut self, now: Moment) {
        self.accepted_since = self.accepted_since.map(|_| now);
        self.wanted_since = self.wanted_since.map(|_| now);
    }

    /// As an acceptor: whether this list was accepted here before.
    pub(crate) fn has_accepted(&self, list: &VoterList) -> bool {
        self.state.number + 1 == list.number && self.state.accepted.as_ref().is_some_and(|(_, accepted)| accepted == list)
    }

    /// As an acceptor: this voter would not have proposed that list. Whether it accepts it all the same, because more voters proposed it than
    /// may lie: who is honest proposes only what it agrees with, or agreed with when it accepted it.
    pub(crate) fn yields(&mut self, proposer: AccessPoint, next: &VoterList, list: &VoterList) -> bool {
        if self.disputed.len() >= MAX_DISPUTED && !self.disputed.contains_key(&next.voters) {
            self.disputed.clear();
        }
        let by = self.disputed.entry(next.voters.clone()).or_default();
        by.insert(proposer);
        by.len() > ((list.voters.len().max(1) - 1) / 3).max(1)
    }

    /// As an acceptor: accepts, if no later ballot was promised; none if one was, which is returned.
    pub(crate) fn accept(&mut self, now: Moment, ballot: Ballot, list: &VoterList) -> Option<Ballot> {
        self.latest = self.latest.max(ballot.round);
        let state = self.of(list.number - 1);
        if let Some(promised) = state.promised.filter(|promised| *promised > ballot) {
            return Some(promised);
        }
        state.promised = Some(ballot);
        state.accepted = Some((ballot, list.clone()));
        self.accepted_since.get_or_insert(now);
        None
    }

    /// Begins a ballot if one is due: for a better list, or for one that was accepted and is not in force. `rank` is our place among the
    /// living voters: each waits for those before it.
    pub(crate) fn tick(&mut self, now: Moment, list: &VoterList, me: AccessPoint, rank: u64, better: impl FnOnce() -> Option<VoterList>) {
        if let Some(mine) = &self.mine {
            let limit = if matches!(mine.phase, Phase::Installing { adopted: true, .. }) { LAGGARDS } else { BALLOT_TIMEOUT };
            if now.since(mine.since) < limit {
                return;
            }
            self.failed = (self.failed + 1).min(MAX_FAILED);
            self.mine = None;
            self.waits_from(now);
        }
        // Whoever has not brought it to its end lets the others try first.
        let turn = (rank + 1 + self.failed * list.voters.len() as u64) * BALLOT_TIMEOUT;
        let stuck = self.accepted_since.is_some_and(|since| now.since(since) >= turn);
        let accepted = self.state.accepted.as_ref().filter(|_| self.state.number == list.number).map(|(_, list)| list.clone());
        let wanted = if let Some(accepted) = accepted { stuck.then_some(accepted) } else { better() };
        let Some(wanted) = wanted else {
            self.wanted_since = None;
            return;
        };
        if !stuck && now.since(*self.wanted_since.get_or_insert(now)) < turn - BALLOT_TIMEOUT + SETTLED {
            return;
        }
        self.wanted_since = None;
        let promised = self.state.promised.filter(|_| self.state.number == list.number).map_or(0, |promised| promised.round);
        let ballot = Ballot { round: self.latest.max(promised).saturating_add(1), proposer: me };
        let phase = Phase::Preparing { promised: BTreeMap::new(), wanted };
        self.mine = Some(Mine { ballot, number: list.number, since: now, asked: None, phase });
    }

    /// Whom to ask what now, for a ballot of ours.
    /// Voters in `lost` do not count. We accept it last: who accepts votes no more, and others may not agree.
    pub(crate) fn due(&mut self, now: Moment, list: &VoterList, lost: &BTreeSet<AccessPoint>) -> Vec<(AccessPoint, BallotRequest)> {
        let Some(mine) = &mut self.mine else { return Vec::new() };
        if mine.asked.is_some_and(|asked| now.since(asked) < ASK_AGAIN) {
            return Vec::new();
        }
        mine.asked = Some(now);
        let ballot = mine.ballot;
        match &mine.phase {
            Phase::Preparing { promised, wanted } => {
                let open = list.voters.iter().filter(|voter| !promised.contains_key(voter));
                open.map(|voter| (*voter, BallotRequest::Prepare { number: mine.number, ballot, wanted: wanted.clone() })).collect()
            }
            Phase::Accepting { list: next, accepted, .. } => {
                let last = list.may_choose(&mut accepted.keys().chain([&ballot.proposer]), next, lost);
                let open = list.voters.iter().filter(|voter| !accepted.contains_key(voter) && (last || **voter != ballot.proposer));
                open.map(|voter| (*voter, BallotRequest::Accept { ballot, list: next.clone() })).collect()
            }
            Phase::Installing { signed, before, installed, .. } => {
                let open = signed.list.voters.iter().filter(|voter| !installed.contains_key(voter));
                open.map(|voter| (*voter, BallotRequest::Install { list: signed.clone(), before: before.clone() })).collect()
            }
        }
    }

    /// A voter answered. Voters in `lost` do not count.
    pub(crate) fn answered(
        &mut self,
        now: Moment,
        lists: &Lists,
        lost: &BTreeSet<AccessPoint>,
        from: AccessPoint,
        answer: BallotAnswer,
    ) -> Outcome {
        let Some(list) = lists.current() else { return Outcome::Nothing };
        if let BallotAnswer::OtherList(number) = answer {
            return if number > list.number { Outcome::OtherList(number) } else { Outcome::Nothing };
        }
        if let BallotAnswer::Outvoted(later) = answer {
            self.latest = self.latest.max(later.round);
            if self.mine.as_ref().is_some_and(|mine| mine.ballot < later && !matches!(mine.phase, Phase::Installing { .. })) {
                self.mine = None;
                self.waits_from(now);
            }
            return Outcome::Nothing;
        }
        let Some(mine) = &mut self.mine else { return Outcome::Nothing };
        let enough = |voters: &mut dyn Iterator<Item = &AccessPoint>, next: &VoterList| list.may_choose(voters, next, lost);
        match answer {
            BallotAnswer::Promised(accepted) if list.contains(&from) => mine.promised(from, accepted, enough),
            BallotAnswer::Accepted(by, told) if list.contains(&from) => return mine.accepted(now, from, by, told, enough),
            BallotAnswer::Installed(by) => return mine.installed(now, from, by),
            _ => {}
        }
        Outcome::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use nearcrawl_model::vote::{AcceptedRow, sign_accepted};
    use std::net::Ipv4Addr;

    fn key(number: u8) -> SigningKey {
        SigningKey::from_bytes(&[number; 32])
    }

    fn point(number: u8) -> AccessPoint {
        AccessPoint(key(number).verifying_key().to_bytes())
    }

    /// So many rows of this owner.
    fn told(owner: u8, rows: u32) -> HandedOver {
        let subnet = |number: u32| format!("{}/32", Ipv4Addr::from((u32::from(owner) << 24) + number)).parse().unwrap();
        let row = |number| AcceptedRow { subnet: subnet(number), epoch: 1, owner: point(owner), term: 1 };
        HandedOver { rows: (0..rows).map(row).collect(), ..HandedOver::default() }
    }

    #[test]
    fn two_voters_of_seven_that_invent_more_than_fits_into_a_message_do_not_keep_the_others_from_the_next_list() {
        let list = VoterList { number: 2, voters: vec![point(1)], age: 0 };
        let ballot = Ballot { round: 1, proposer: point(1) };
        let phase = Phase::Accepting { list: list.clone(), accepted: BTreeMap::new() };
        let mut mine = Mine { ballot, number: 1, since: Moment(0), asked: None, phase };
        let enough = |voters: &mut dyn Iterator<Item = &AccessPoint>, _: &VoterList| voters.count() >= 5;
        let mut outcomes = Vec::new();
        // Those that lie answer first, and again when they are asked again.
        for number in [6, 7, 1, 2, 3, 6, 4, 7, 5] {
            let before = if number > 5 { told(number, 20_000) } else { told(10, 8_000) };
            outcomes.push(mine.accepted(Moment(1), point(number), sign_accepted(&list, ballot, &key(number)), before, enough));
        }
        assert!(outcomes.contains(&Outcome::TooMuch));
        let Phase::Installing { signed, before, .. } = &mine.phase else { panic!("the list is not chosen: {outcomes:?}") };
        assert!(signed.accepted.len() == 5 && handed_over::size_of(before) <= handed_over::MAX_HANDED_BYTES);
        assert!(told(10, 8_000).rows.iter().all(|row| before.rows.contains(row)), "what was accepted is handed over");
    }
}
