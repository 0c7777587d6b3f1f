//! Our own lease, without which no request is sent.

use crate::voting::Times;
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment, Now},
    vote::{Renewed, VoterList},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Renewals whose answers may still come.
const MAX_UNDER_WAY: usize = 16;

/// How often a lease that has run out is asked for, as a share of the usual time: within the time of a lease, and after that. The voters may
/// be on the other side of a cut for long.
const SOONER: Millis = 5;
const SOON: Millis = 2;

/// By how much more than the boot clock the wall clock may advance between two renewals, in milliseconds. Where it is more, the boot clock
/// may have stood still (a paused virtual machine), and does not tell how old the lease is.
const MAX_APART: i128 = 5_000;

/// How many terms a voter may be ahead of an owner: one that lost its disk counts from one, and a term lasts for a minute at least.
pub(super) const MAX_TERMS_SKIPPED: u64 = 1 << 20;

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLease {
    /// No list of voters is known yet.
    NoVoters,
    /// Fewer voters have renewed it than are needed.
    FewVoters {
        /// Those who did at the last attempt.
        renewed: usize,
        /// The number needed.
        needed: usize,
    },
    /// Another process with our key holds it.
    KeyInUse,
    /// What was owned is others' by now: a new term begins.
    Ended,
    /// The list of voters that was known at the start may not be in force any more: members are asked.
    Unconfirmed,
    /// An operator said here that the others go on without this access point.
    Lost,
    /// This member goes by a list that was chosen without our voters, which its operator declared lost.
    Replaced(AccessPoint),
}

impl fmt::Display for NoLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoLease::NoVoters => f.write_str("no member has said yet who votes in this swarm"),
            NoLease::FewVoters { renewed, needed } => write!(
                f,
                "only {renewed} of the {needed} voters needed renew its lease: others may be taking over, or voters are down; check this machine's network, and in `nearcrawl status` which voters do not answer"
            ),
            NoLease::KeyInUse => {
                f.write_str("another process uses this access point's key: stop one of them, and give a copy a key of its own")
            }
            NoLease::Ended => f.write_str("it was silent for so long that others may own its subnets; it begins anew"),
            NoLease::Unconfirmed => f.write_str("it asks the members that it remembers whether its voters still decide"),
            NoLease::Lost => f.write_str("it was declared lost here, and waits for the voters that the others choose without it"),
            NoLease::Replaced(by) => write!(
                f,
                "{} goes on without the voters of this member: somebody ran `nearcrawl declare-lost` there although they run. Restart this daemon to join \
                 them (what it recorded since they went on without it is left out), or stop them and remove their state",
                by.short()
            ),
        }
    }
}

/// A renewal on its way.
#[derive(Debug)]
struct Sent {
    at: Moment,
    list: u64,
    renewed: BTreeSet<AccessPoint>,
    /// When the next one follows if all voters renew it. If only enough do, those that missed it are asked as soon as usual.
    next: Moment,
    /// By how much the wall clock was ahead of the boot clock.
    ahead: i128,
}

/// How soon renewals follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As if there were no lease: the voters are to be told something.
    Soon,
    Usual,
    /// Nothing is asked of servers before the next one.
    Idle,
}

/// The lease.
#[derive(Debug)]
pub(crate) struct Lease {
    times: Times,
    term: u64,
    until: Option<Moment>,
    /// Since when this term has been asked for.
    began: Moment,
    due: Moment,
    count: u64,
    under_way: BTreeMap<u64, Sent>,
    /// What each voter said last, if it did not renew.
    refused: BTreeMap<AccessPoint, Renewed>,
    /// Voters that said last that another process with our key holds it, and when.
    held: BTreeMap<AccessPoint, Moment>,
    /// When voters answered last.
    answered: BTreeMap<AccessPoint, Moment>,
    /// By how much the wall clock was ahead of the boot clock at the last event, and when the renewal was sent on which the lease rests.
    ahead: i128,
    ahead_at_renewal: Option<i128>,
}

/// What an answer to a renewal leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// This term was ended by so many voters that it cannot be renewed: the next one begins.
    NextTerm(u64),
    /// A voter goes by this list.
    OtherList(u64),
}

impl Lease {
    pub(crate) fn new(times: Times, now: Moment, term: u64) -> Lease {
        Lease {
            times,
            term: term.max(1),
            until: None,
            began: now,
            due: now,
            count: 0,
            under_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            held: BTreeMap::new(),
            answered: BTreeMap::new(),
            ahead: 0,
            ahead_at_renewal: None,
        }
    }

    /// Compares both clocks. If the wall clock has run away from the boot clock since the last renewal was sent, the lease is over until
    /// one that is sent from now on is granted; whether it is. A wall clock alone cannot make a lease last longer.
    pub(crate) fn compare_clocks(&mut self, now: Now) -> bool {
        self.ahead = i128::from(now.wall.0) - i128::from(now.moment.0);
        let before = self.ahead_at_renewal.or_else(|| self.under_way.values().next_back().map(|sent| sent.ahead));
        if before.is_none_or(|before| self.ahead <= before + MAX_APART) {
            return false;
        }
        self.ahead_at_renewal = Some(self.ahead);
        self.until = self.until.map(|until| until.min(now.moment));
        self.under_way.clear();
        self.due = now.moment;
        true
    }

    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Until when it lasts; none if it has never been renewed in this process.
    pub(crate) fn until(&self) -> Option<Moment> {
        self.until
    }

    pub(crate) fn holds(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Another term begins: nothing that was renewed before counts.
    pub(crate) fn begin_term(&mut self, now: Moment, term: u64) {
        self.term = term;
        (self.until, self.began) = (None, now);
        self.under_way.clear();
        self.refused.clear();
        self.due = now;
    }

    /// It is over: others may go by another list.
    pub(crate) fn end(&mut self, now: Moment) {
        self.until = self.until.map(|until| until.min(now));
        self.under_way.clear();
    }

    /// It is renewed at once, by a new list.
    pub(crate) fn list_changed(&mut self, now: Moment, list: &VoterList) {
        self.refused.clear();
        self.answered.retain(|voter, _| list.contains(voter));
        self.held.retain(|voter, _| list.contains(voter));
        self.due = now;
    }

    /// It is renewed at once: the voters are to be told something.
    pub(crate) fn renew_now(&mut self, now: Moment) {
        self.due = now;
    }

    /// Whether a renewal was sent by this list.
    pub(crate) fn was_sent_by(&self, number: u64, list: u64) -> bool {
        self.under_way.get(&number).is_some_and(|sent| sent.list == list)
    }

    /// Whether a voter answered within the time of a lease.
    pub(crate) fn is_answered_by(&self, now: Moment, voter: &AccessPoint) -> bool {
        self.answered.get(voter).is_some_and(|at| now.since(*at) < self.times.lease)
    }

    /// Whether a voter has answered in this process, but not for the time of a lease.
    pub(crate) fn is_silent(&self, now: Moment, voter: &AccessPoint) -> bool {
        self.answered.get(voter).is_some_and(|at| now.since(*at) >= self.times.lease)
    }

    /// Whether as many voters as decide said last that they cannot renew it yet: each of them has begun anew, or changes to another list.
    pub(crate) fn is_refused_by_enough(&self, list: &VoterList) -> bool {
        let changing = self.refused.iter().filter(|(who, said)| list.contains(who) && **said == Renewed::Changing);
        changing.count() >= list.quorum()
    }

    /// Whether a voter knows of another process with our key.
    pub(crate) fn is_in_use(&self) -> bool {
        self.refused.values().any(|answer| matches!(answer, Renewed::Held | Renewed::Superseded(_)))
    }

    /// Whether more voters than may lie have said within the time in which a lease is over that another process with our key holds it.
    pub(crate) fn is_surely_in_use(&self, now: Moment, me: AccessPoint, list: &VoterList) -> bool {
        let lately = |(who, at): &(&AccessPoint, &Moment)| list.contains(who) && **who != me && now.since(**at) < self.times.patience();
        let others = list.voters.len() - usize::from(list.contains(&me));
        let may_lie = ((list.voters.len().max(1) - 1) / 3).max(1).min(others.saturating_sub(1));
        self.held.iter().filter(lately).count() > may_lie
    }

    /// The number of a renewal that is due now, if one is. If too few voters answer it, the next one follows when half of what is left of
    /// the lease is over.
    pub(crate) fn next_renewal(&mut self, now: Moment, list: u64, pace: Pace) -> Option<u64> {
        let last = self.under_way.last_key_value().map(|(_, sent)| sent.at);
        // Who was idle and has work has a lease that is as new as others' are.
        let is_old = pace == Pace::Usual && last.is_some_and(|last| now.since(last) >= self.times.renew_every);
        if now < self.due && !is_old {
            return None;
        }
        let lately = now.since(self.until.unwrap_or(self.began)) < self.times.lease;
        let Times { renew_every, renew_idle_every, .. } = self.times;
        let every = match (self.holds(now), pace) {
            (true, Pace::Usual) => renew_every,
            (true, Pace::Idle) => renew_idle_every,
            (false, Pace::Usual | Pace::Idle) if !lately => renew_every / SOON,
            _ => renew_every / SOONER,
        };
        let left = self.until.filter(|until| now < *until).map_or(every, |until| until.since(now) / 2);
        self.due = now.after(every.min(left.max(renew_every / SOONER)).max(1));
        self.count += 1;
        self.under_way
            .insert(self.count, Sent { at: now, list, renewed: BTreeSet::new(), next: now.after(every.max(1)), ahead: self.ahead });
        while self.under_way.len() > MAX_UNDER_WAY {
            self.under_way.pop_first();
        }
        Some(self.count)
    }

    /// A voter of the present list answered.
    pub(crate) fn answered(&mut self, now: Moment, number: u64, list: &VoterList, from: AccessPoint, answer: &Renewed) -> Step {
        if !list.contains(&from) {
            return Step::Nothing;
        }
        self.answered.insert(from, now);
        self.held.remove(&from);
        if matches!(answer, Renewed::Held | Renewed::Superseded(_)) {
            self.held.insert(from, now);
        }
        if !matches!(answer, Renewed::Granted(_)) {
            self.refused.insert(from, answer.clone());
        }
        match answer {
            Renewed::Granted(_) => {
                self.refused.remove(&from);
                let Some(sent) = self.under_way.get_mut(&number).filter(|sent| sent.list == list.number) else { return Step::Nothing };
                sent.renewed.insert(from);
                if sent.renewed.len() >= list.quorum() && self.ahead <= sent.ahead + MAX_APART {
                    let until = sent.at.after(self.times.lease);
                    if self.until.is_none_or(|known| known <= until) {
                        (self.until, self.ahead_at_renewal) = (Some(until), Some(sent.ahead));
                    }
                    // One that is to be sent at once is.
                    if self.due > now {
                        let usual = sent.at.after(self.times.renew_every);
                        self.due = self.due.max(if sent.renewed.len() < list.voters.len() { sent.next.min(usual) } else { sent.next });
                    }
                }
                Step::Nothing
            }
            Renewed::OtherList(number) if *number > list.number => Step::OtherList(*number),
            Renewed::Ended(_) => {
                let ended = self.refused.iter().filter(|(who, _)| list.contains(who));
                let terms: Vec<u64> =
                    ended.filter_map(|(_, said)| if let Renewed::Ended(term) = said { Some(*term) } else { None }).collect();
                // Those that do not answer may never do: then it cannot be renewed either.
                let without = now.since(self.until.unwrap_or(self.began)) >= self.times.patience();
                let lost = list.voters.len() - terms.len() < list.quorum() || without;
                // One that lies names a term after which there is none.
                let likely = terms.into_iter().filter(|term| *term <= self.term.saturating_add(MAX_TERMS_SKIPPED));
                let last = likely.max().unwrap_or(0).max(self.term);
                if lost { Step::NextTerm(last.saturating_add(1)) } else { Step::Nothing }
            }
            Renewed::Held | Renewed::Superseded(_) | Renewed::Changing | Renewed::OtherList(_) => Step::Nothing,
        }
    }

    /// Why it is not held, if it is not.
    pub(crate) fn why_not(&self, list: Option<&VoterList>) -> NoLease {
        let Some(list) = list else { return NoLease::NoVoters };
        let said = |what: fn(&Renewed) -> bool| self.refused.values().any(what);
        if self.is_in_use() {
            NoLease::KeyInUse
        } else if said(|answer| matches!(answer, Renewed::Ended(_))) {
            NoLease::Ended
        } else {
            let renewed = self.under_way.values().map(|sent| sent.renewed.len()).next_back().unwrap_or(0);
            NoLease::FewVoters { renewed, needed: list.quorum() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::RosterConfig;
    use nearcrawl_model::time::WallTime;

    const VOTER: AccessPoint = AccessPoint([1; 32]);

    fn at(boot: u64, wall: u64) -> Now {
        Now { moment: Moment(boot), wall: WallTime(1_700_000_000_000 + wall) }
    }

    /// A lease that the only voter has renewed, sent at this time.
    fn renewed(lease: &mut Lease, now: Now) -> bool {
        let list = VoterList { number: 1, voters: vec![VOTER], age: 0 };
        lease.compare_clocks(now);
        let Some(number) = lease.next_renewal(now.moment, 1, Pace::Usual) else { return false };
        lease.answered(now.moment, number, &list, VOTER, &Renewed::Granted(Box::default()));
        lease.holds(now.moment)
    }

    #[test]
    fn a_boot_clock_that_stood_still_while_the_wall_clock_went_on_ends_the_lease_until_it_is_renewed() {
        let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(1_000), 1);
        assert!(renewed(&mut lease, at(1_000, 0)));
        assert!(!lease.compare_clocks(at(2_000, 5_000)) && lease.holds(Moment(2_000)), "four seconds apart are no proof");
        assert!(lease.compare_clocks(at(2_001, 60_000)));
        assert!(!lease.holds(Moment(2_001)));
        assert!(!lease.compare_clocks(at(2_002, 60_001)), "it is told once");
        assert!(renewed(&mut lease, at(2_100, 60_100)), "it is renewed at once");
    }

    #[test]
    fn an_answer_to_a_renewal_of_before_does_not_renew_it() {
        let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(1_000), 1);
        let list = VoterList { number: 1, voters: vec![VOTER], age: 0 };
        lease.compare_clocks(at(1_000, 0));
        let number = lease.next_renewal(Moment(1_000), 1, Pace::Usual).unwrap();
        assert!(lease.compare_clocks(at(1_001, 300_000)));
        lease.answered(Moment(1_002), number, &list, VOTER, &Renewed::Granted(Box::default()));
        assert!(!lease.holds(Moment(1_002)));
    }

    #[test]
    fn a_wall_clock_that_is_put_back_or_drifts_decides_nothing() {
        let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(0), 1);
        assert!(renewed(&mut lease, at(0, 0)));
        assert!(!lease.compare_clocks(Now { moment: Moment(1_000), wall: WallTime(5) }) && lease.holds(Moment(1_000)));
        let mut drifting = Lease::new(Times::of(&RosterConfig::default()), Moment(0), 1);
        for second in 0..2_000 {
            let now = at(second * 1_000, second * 1_100);
            assert!(!drifting.compare_clocks(now), "a tenth too quick, after {second} s");
            drifting.next_renewal(now.moment, 1, Pace::Usual);
        }
    }

    #[test]
    fn a_voter_that_lies_about_terms_uses_none_up_for_ever() {
        let voter = |number: u8| AccessPoint([number; 32]);
        let list = VoterList { number: 1, voters: vec![voter(1), voter(2), voter(3)], age: 0 };
        let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(0), 1);
        let number = lease.next_renewal(Moment(0), 1, Pace::Usual).unwrap();
        assert_eq!(lease.answered(Moment(1), number, &list, voter(1), &Renewed::Ended(u64::MAX)), Step::Nothing);
        assert_eq!(lease.answered(Moment(2), number, &list, voter(2), &Renewed::Ended(500)), Step::NextTerm(501));
    }

    #[test]
    fn one_that_ran_out_is_asked_for_often_at_first_and_less_often_if_nobody_answers_for_long() {
        let config = RosterConfig::default();
        let times = Times::of(&config);
        let mut lease = Lease::new(times, Moment(0), 1);
        let sent: Vec<_> = (0..=60_000).step_by(100).filter(|now| lease.next_renewal(Moment(*now), 1, Pace::Usual).is_some()).collect();
        let pauses: BTreeSet<_> = sent.windows(2).filter(|pair| pair[0] < config.lease).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses, [2_600].into());
        let pauses: BTreeSet<_> = sent.windows(2).filter(|pair| pair[0] >= config.lease).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses, [6_500].into());
    }

    #[test]
    fn an_idle_owner_renews_it_less_often_and_as_soon_as_a_busy_one_if_nobody_answers() {
        let config = RosterConfig::default();
        let list = VoterList { number: 1, voters: vec![VOTER], age: 0 };
        let sent = |pace: Pace, is_answered: fn(Millis) -> bool| {
            let mut lease = Lease::new(Times::of(&config), Moment(0), 1);
            let mut sent = Vec::new();
            for now in (0..=120_000).step_by(100) {
                if let Some(number) = lease.next_renewal(Moment(now), 1, pace) {
                    sent.push(now);
                    if is_answered(now) {
                        lease.answered(Moment(now + 20), number, &list, VOTER, &Renewed::Granted(Box::default()));
                    }
                }
                assert!(lease.holds(Moment(now)), "{pace:?}: {now}");
            }
            sent
        };
        // The first one was asked for without a lease.
        let pauses = |sent: &[Millis]| sent[1..].windows(2).map(|pair| pair[1] - pair[0]).collect::<BTreeSet<_>>();
        assert_eq!(pauses(&sent(Pace::Usual, |_| true)), [13_000].into());
        assert_eq!(pauses(&sent(Pace::Idle, |_| true)), [20_000].into());
        // Who has work again after fifteen seconds renews it at once.
        let mut lease = Lease::new(Times::of(&config), Moment(0), 1);
        for now in [0, 2_600] {
            let number = lease.next_renewal(Moment(now), 1, Pace::Idle).unwrap();
            lease.answered(Moment(now + 20), number, &list, VOTER, &Renewed::Granted(Box::default()));
        }
        assert_eq!(lease.next_renewal(Moment(17_600), 1, Pace::Idle), None);
        assert!(lease.next_renewal(Moment(17_600), 1, Pace::Usual).is_some());
        // One that gets lost is followed by another before the lease is over.
        let lossy = sent(Pace::Idle, |now| now != 42_600);
        assert_eq!(lossy[..6], [0, 2_600, 22_600, 42_600, 47_600, 67_600]);
    }

    #[test]
    fn renewals_that_nobody_answers_hide_no_time_in_which_the_boot_clock_stood_still() {
        let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(0), 1);
        assert!(renewed(&mut lease, at(0, 0)));
        // Four seconds before each of them: each by itself would be no proof.
        let mut stood = 0;
        for boot in [13_000, 21_500, 25_800] {
            stood += 4_000;
            let over = lease.compare_clocks(at(boot, boot + stood));
            assert_eq!(over, stood == 8_000, "{boot}");
            lease.next_renewal(Moment(boot), 1, Pace::Usual);
        }
        assert!(!lease.holds(Moment(25_800)));
    }

    #[test]
    fn voters_that_missed_a_renewal_are_asked_as_soon_as_those_of_a_busy_owner() {
        let voter = |number: u8| AccessPoint([number; 32]);
        let list = VoterList { number: 1, voters: vec![voter(1), voter(2), voter(3)], age: 0 };
        let next_after = |answer: &[u8]| {
            let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(0), 1);
            for now in [0, 2_600] {
                let number = lease.next_renewal(Moment(now), 1, Pace::Idle).unwrap();
                let answering = if now == 0 { &[1, 2, 3][..] } else { answer };
                for who in answering {
                    lease.answered(Moment(now + 20), number, &list, voter(*who), &Renewed::Granted(Box::default()));
                }
            }
            (2_700..).step_by(100).find(|now| lease.next_renewal(Moment(*now), 1, Pace::Idle).is_some())
        };
        assert_eq!([next_after(&[1, 2, 3]), next_after(&[1, 2])], [Some(22_600), Some(16_300)]);
    }

    #[test]
    fn a_voter_is_silent_if_it_answered_once_and_not_for_the_time_of_a_lease() {
        let config = RosterConfig::default();
        let list = VoterList { number: 1, voters: vec![VOTER], age: 0 };
        let mut lease = Lease::new(Times::of(&config), Moment(0), 1);
        assert!(!lease.is_silent(Moment(100_000), &VOTER), "one that has just been chosen is asked");
        lease.answered(Moment(100_000), 1, &list, VOTER, &Renewed::Changing);
        assert!(!lease.is_silent(Moment(129_999), &VOTER));
        assert!(lease.is_silent(Moment(130_000), &VOTER));
    }

    #[test]
    fn more_voters_than_may_lie_must_say_that_the_key_is_in_use_and_say_it_again() {
        let voter = |number: u8| AccessPoint([number; 32]);
        for (voters, needed) in [(1, 1), (3, 2), (5, 2), (7, 3)] {
            let list = VoterList { number: 1, voters: (1..=voters).map(voter).collect(), age: 0 };
            let mut lease = Lease::new(Times::of(&RosterConfig::default()), Moment(0), 1);
            let me = voter(99);
            for number in 1..=needed {
                assert!(!lease.is_surely_in_use(Moment(1_000), me, &list), "{voters}: {number}");
                lease.answered(Moment(1_000), 1, &list, voter(number), &Renewed::Held);
            }
            let over = Moment(1_000 + lease.times.patience());
            assert!(lease.is_surely_in_use(Moment(1_000), me, &list) && !lease.is_surely_in_use(over, me, &list), "{voters}");
            lease.answered(Moment(1_000), 1, &list, voter(1), &Renewed::Changing);
            assert!(!lease.is_surely_in_use(Moment(1_000), me, &list), "{voters}");
        }
    }
}
