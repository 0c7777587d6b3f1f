//! Roster of members: who is missing, and since when for good.
//!
//! A silent member keeps what it owns until it has been silent for long enough.
//!
//! This is a guess, good for finding out early who may be needed in its place. Whether what it owned may be claimed is decided by the
//! voters, who know when they last renewed its lease.

use nearcrawl_model::{
    access_point::AccessPoint,
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// How long the swarm waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterConfig {
    /// Silence after which a member is dead and others may claim what it owned, in milliseconds; longer than `lease`.
    pub dead_after: Millis,
    /// For how long a lease lasts from when its renewal was sent, in milliseconds.
    pub lease: Millis,
    /// After which silence a voter is replaced, in milliseconds.
    pub replace_voter_after: Millis,
    /// For how long an access point must have held leases before it may be a voter, at least, in milliseconds.
    pub vote_after: Millis,
    /// Ranges in which each address counts for itself where there is one vote for each network: those of laboratories.
    pub singly: Vec<Subnet>,
    /// Which part of the protocol is left out; none but in a laboratory.
    pub without: Option<LeftOut>,
}

/// A part of the protocol that is left out to show what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Nothing is fetched less without a lease.
    Lease,
    /// One vote is enough for a claim.
    Quorum,
    /// As a voter, whatever is proposed is accepted: a liar.
    Honesty,
    /// As a voter, a second claim at an epoch is accepted, too: a liar.
    OneVoteAnEpoch,
}

impl Default for RosterConfig {
    fn default() -> Self {
        let (dead_after, lease, replace_voter_after, vote_after) = (45_000, 30_000, 600_000, 30_000);
        RosterConfig { dead_after, lease, replace_voter_after, vote_after, singly: Vec::new(), without: None }
    }
}

impl RosterConfig {
    /// All times divided by `factor`: for tests and demonstrations, together with the same factor of the membership.
    pub fn faster(&self, factor: u64) -> RosterConfig {
        let cut = |millis: Millis| (millis / factor.max(1)).max(1);
        RosterConfig {
            dead_after: cut(self.dead_after),
            lease: cut(self.lease),
            replace_voter_after: cut(self.replace_voter_after),
            vote_after: cut(self.vote_after),
            singly: self.singly.clone(),
            without: self.without,
        }
    }
}

/// For how long it is known how a member parted, in milliseconds: a day.
const PARTINGS: Millis = 86_400_000;

/// Members of whom that is known; beyond it the one that parted first is forgotten.
pub(crate) const MAX_PARTED: usize = 1_024;

/// What a member said before it stopped may arrive so long after it announced its departure.
const LAST_WORDS: Millis = 3_000;

/// How a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Since when it has been a member without having been declared dead.
    pub member_since: Moment,
    /// Since when nothing answers for it; none while it is alive.
    pub silent_since: Option<Moment>,
    /// Counts as settled from the first moment: known from before our start, or met in our own first moments.
    from_start: bool,
}

/// How a member ceased to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// It said that it leaves, and gave everything back.
    Left,
    /// It may be a member no more.
    Excluded,
    /// It did not answer for too long.
    Dead,
}

/// What the roster has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This member is gone for good: its subnets may be taken over. Said once.
    Dead(AccessPoint),
}

/// The members as this access point knows them.
#[derive(Clone, Debug)]
pub(crate) struct Roster {
    me: AccessPoint,
    config: RosterConfig,
    started: Moment,
    others: BTreeMap<AccessPoint, Standing>,
    /// The living of them and this access point, in order: they are asked for many times between two changes.
    live: Vec<AccessPoint>,
    left: Vec<AccessPoint>,
    /// Members that are none any more: how, and since when they said nothing; for [`PARTINGS`], at most [`MAX_PARTED`].
    parted: BTreeMap<AccessPoint, (Parting, Moment)>,
}

impl Roster {
    /// A roster at this access point's start. `remembered` are the settled members of its previous process ([`Roster::settled`], from
    /// disk).
    pub(crate) fn new(me: AccessPoint, config: RosterConfig, now: Moment, remembered: &BTreeSet<AccessPoint>) -> Roster {
        let standing = Standing { member_since: now, silent_since: Some(now), from_start: true };
        let others = remembered.iter().filter(|member| **member != me).map(|member| (*member, standing)).collect();
        Roster { me, config, started: now, others, live: vec![me], left: Vec::new(), parted: BTreeMap::new() }
    }

    /// SWIM says that this member is alive.
    pub(crate) fn up(&mut self, now: Moment, member: AccessPoint) {
        if member == self.me {
            return;
        }
        let from_start = now.since(self.started) < self.config.vote_after;
        let fresh = Standing { member_since: now, silent_since: None, from_start };
        self.others.entry(member).or_insert(fresh).silent_since = None;
        if let Err(place) = self.live.binary_search(&member) {
            self.live.insert(place, member);
        }
        self.parted.remove(&member);
    }

    /// SWIM says that this member does not answer.
    pub(crate) fn down(&mut self, now: Moment, member: AccessPoint) {
        if let Some(standing) = self.others.get_mut(&member) {
            standing.silent_since.get_or_insert(now);
            self.live.retain(|living| *living != member);
        }
    }

    /// A member announced its departure: `leaving` for good (it gave everything back), or stopping for a while.
    pub(crate) fn farewell(&mut self, now: Moment, member: AccessPoint, leaving: bool) {
        if !leaving {
            self.down(now, member);
        } else {
            self.leaves(now, member, Parting::Left);
        }
    }

    /// A member may be one no more.
    pub(crate) fn exclude(&mut self, now: Moment, member: AccessPoint) {
        self.leaves(now, member, Parting::Excluded);
    }

    fn leaves(&mut self, now: Moment, member: AccessPoint, how: Parting) {
        if self.others.remove(&member).is_some() {
            self.live.retain(|living| *living != member);
            self.left.push(member);
            self.part(member, how, now);
        }
    }

    fn part(&mut self, member: AccessPoint, how: Parting, since: Moment) {
        if self.parted.len() >= MAX_PARTED {
            let first = self.parted.iter().min_by_key(|(member, (_, since))| (*since, **member)).map(|(member, _)| *member);
            first.and_then(|first| self.parted.remove(&first));
        }
        self.parted.insert(member, (how, since));
    }

    /// Members of the last day that are none any more: how, and since when they said nothing.
    pub(crate) fn parted(&self) -> &BTreeMap<AccessPoint, (Parting, Moment)> {
        &self.parted
    }

    /// Whether a member has counted as silent for so long that nothing it said before can still be under way.
    pub(crate) fn is_past_its_last_words(&self, now: Moment, member: &AccessPoint) -> bool {
        let silent_since = self.others.get(member).and_then(|standing| standing.silent_since);
        silent_since.is_some_and(|since| now.since(since) >= LAST_WORDS)
    }

    /// To be called about once a second: who is dead now? The longest silent first.
    pub(crate) fn tick(&mut self, now: Moment) -> Vec<Verdict> {
        let mut dead = std::mem::take(&mut self.left);
        let overdue = self.overdue(now);
        self.parted.retain(|_, (_, since)| now.since(*since) < PARTINGS);
        for (since, member) in overdue {
            self.others.remove(&member);
            self.part(member, Parting::Dead, since);
            dead.push(member);
        }
        dead.into_iter().map(Verdict::Dead).collect()
    }

    /// Those that have been silent for too long, the longest silent first.
    fn overdue(&self, now: Moment) -> Vec<(Moment, AccessPoint)> {
        if self.live.len() > self.others.len() {
            return Vec::new();
        }
        let silent = self.others.iter().filter_map(|(member, standing)| Some((standing.silent_since?, *member)));
        let mut overdue: Vec<_> = silent.filter(|(since, _)| now.since(*since) >= self.config.dead_after).collect();
        overdue.sort_unstable();
        overdue
    }

    /// The live members in order, this one included.
    pub(crate) fn live(&self) -> &[AccessPoint] {
        &self.live
    }

    /// How every other member stands, the silent ones included.
    pub(crate) fn standings(&self) -> &BTreeMap<AccessPoint, Standing> {
        &self.others
    }

    /// The members that have been here for a while, this one included: to be kept on disk for [`Roster::new`].
    pub(crate) fn settled(&self, now: Moment) -> BTreeSet<AccessPoint> {
        self.settled_others(now).chain([self.me]).collect()
    }

    /// How many these are.
    pub(crate) fn count_settled(&self, now: Moment) -> usize {
        self.settled_others(now).count() + 1
    }

    fn settled_others(&self, now: Moment) -> impl Iterator<Item = AccessPoint> {
        let counts = move |standing: &Standing| standing.from_start || now.since(standing.member_since) >= self.config.vote_after;
        self.others.iter().filter(move |(_, standing)| counts(standing)).map(|(member, _)| *member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ap(number: u8) -> AccessPoint {
        AccessPoint([number; 32])
    }

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1000)
    }

    /// Member `me` of a swarm of `count`, all of them settled, at second 1000.
    fn settled_swarm(me: u8, count: u8) -> Roster {
        let mut roster = Roster::new(ap(me), RosterConfig::default(), at(0), &BTreeSet::new());
        for other in (1..=count).filter(|other| *other != me) {
            roster.up(at(1), ap(other));
        }
        assert_eq!(run(&mut roster, 2..=1000), []);
        roster
    }

    /// Ticks once a second; the verdicts with their seconds.
    fn run(roster: &mut Roster, seconds: std::ops::RangeInclusive<u64>) -> Vec<(u64, Verdict)> {
        let verdicts = |second| roster.tick(at(second)).into_iter().map(move |verdict| (second, verdict));
        seconds.flat_map(verdicts).collect()
    }

    #[test]
    fn a_silent_member_is_dead_after_forty_five_seconds_once() {
        let mut roster = settled_swarm(1, 5);
        roster.down(at(1000), ap(4));
        roster.down(at(1010), ap(4));
        assert_eq!(roster.live(), [ap(1), ap(2), ap(3), ap(5)]);
        assert_eq!(run(&mut roster, 1001..=1200), [(1045, Verdict::Dead(ap(4)))]);
        assert!(!roster.settled(at(1200)).contains(&ap(4)));
    }

    #[test]
    fn a_member_that_is_back_in_time_loses_nothing() {
        let mut roster = settled_swarm(1, 5);
        roster.farewell(at(1000), ap(4), false);
        assert_eq!(run(&mut roster, 1001..=1044), []);
        roster.up(at(1044), ap(4));
        assert_eq!(run(&mut roster, 1045..=1300), []);
        assert_eq!(roster.live().len(), 5);
    }

    #[test]
    fn a_member_that_leaves_for_good_is_gone_at_once() {
        let mut roster = settled_swarm(1, 5);
        roster.farewell(at(1000), ap(4), true);
        assert_eq!(run(&mut roster, 1001..=1100), [(1001, Verdict::Dead(ap(4)))]);
    }

    #[test]
    fn how_a_member_parted_is_known_for_a_day_or_until_it_is_back() {
        let mut roster = settled_swarm(1, 5);
        roster.farewell(at(1000), ap(4), true);
        roster.down(at(1000), ap(3));
        roster.exclude(at(1001), ap(2));
        run(&mut roster, 1001..=1100);
        let known: Vec<_> = roster.parted().iter().map(|(who, parted)| (*who, *parted)).collect();
        assert_eq!(known, [(ap(2), (Parting::Excluded, at(1001))), (ap(3), (Parting::Dead, at(1000))), (ap(4), (Parting::Left, at(1000)))]);
        roster.up(at(1101), ap(3));
        assert!(!roster.parted().contains_key(&ap(3)), "it is back");
        roster.tick(at(1000 + 86_400));
        assert_eq!(roster.parted().keys().copied().collect::<Vec<_>>(), [ap(2)]);
    }

    #[test]
    fn those_known_before_the_start_are_missing_until_they_are_met() {
        let known = settled_swarm(1, 3).settled(at(1000));
        let mut roster = Roster::new(ap(1), RosterConfig::default(), at(0), &known);
        roster.up(at(2), ap(2));
        assert_eq!(roster.live(), [ap(1), ap(2)]);
        assert_eq!(run(&mut roster, 3..=100), [(45, Verdict::Dead(ap(3)))]);
    }
}
