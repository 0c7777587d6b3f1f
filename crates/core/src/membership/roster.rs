//! Who is missing, and since when for good? A silent member keeps what it owns until it has been silent for long enough.
//!
//! Two rules have to fit together, or two members crawl the same server: no member is declared dead before it must have fenced
//! itself ([`Fence`]), and a member that declares others dead must itself be with the greater half.
//!
//! Both judge by the *settled* members: those that have been members for [`RosterConfig::stable_after`]. A member leaves
//! this set only by leaving for good or by being declared dead by a quorum, never by mere silence, so the lonely half of a
//! partition goes on counting those it cannot hear. Members do not see a newcomer at the same instant; a quorum is therefore
//! needed in the set as it is and as it was a quarter of that time ago.
//!
//! Not covered, as it would take consensus: a second, different split soon after a take-over, in which a member of the
//! greater part changes over to those who were cut off before and still count by the old set. Both sides can then have their
//! majority until claims meet; the higher epoch ends it.

use super::fence::{Fence, FenceReason};
use nearcrawl_model::{
    access_point::AccessPoint,
    time::{Millis, Moment},
};
use std::collections::{BTreeMap, BTreeSet};

/// How many times its patience the swarm waits at most for a silent member while others come and go.
const MAX_PATIENCE: u64 = 4;

/// How long the swarm waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterConfig {
    /// Silence after which a member is dead, in milliseconds.
    pub dead_after: Millis,
    /// The same in a swarm of two, where no member can tell who was cut off.
    pub pair_dead_after: Millis,
    /// After which time a newcomer counts, in milliseconds.
    pub stable_after: Millis,
    /// For how long too few may answer before this access point fences itself, in milliseconds; well below `dead_after`.
    pub fence_after: Millis,
    /// For how long enough must answer before it goes on, in milliseconds.
    pub resume_after: Millis,
    /// SWIM's probe period, in milliseconds: in larger swarms finding out that half is gone takes that much per member.
    pub probe_every: Millis,
}

impl Default for RosterConfig {
    fn default() -> Self {
        RosterConfig {
            dead_after: 45_000,
            pair_dead_after: 600_000,
            stable_after: 30_000,
            fence_after: 30_000,
            resume_after: 5_000,
            probe_every: 1_000,
        }
    }
}

impl RosterConfig {
    /// All times divided by `factor`: for tests and demonstrations, together with the same factor of the membership.
    pub fn faster(&self, factor: u64) -> RosterConfig {
        let cut = |millis: Millis| (millis / factor.max(1)).max(1);
        RosterConfig {
            dead_after: cut(self.dead_after),
            pair_dead_after: cut(self.pair_dead_after),
            stable_after: cut(self.stable_after),
            fence_after: cut(self.fence_after),
            resume_after: cut(self.resume_after),
            probe_every: cut(self.probe_every),
        }
    }
}

/// How a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Since when it has been a member without having been declared dead.
    pub member_since: Moment,
    /// Since when nothing answers for it; none while it is alive.
    pub silent_since: Option<Moment>,
    /// From when on its silence counts against it: later than `silent_since` if a member came back since who may have heard it.
    counted_from: Moment,
    /// How many members it said itself that it counts, itself included ([`Roster::told`]).
    sure_of: usize,
    /// Counts for the quorum from the first moment: known from before our start, or met in our own first moments.
    from_start: bool,
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
    left: Vec<AccessPoint>,
    fence: Fence,
    /// Whether there was a quorum and no fence when that was last looked at.
    judging: bool,
}

impl Roster {
    /// A roster at this access point's start. `remembered` are the settled members of its last life
    /// ([`Roster::settled`], from disk): a restarted member may not fetch before it has heard of enough of them.
    pub(crate) fn new(me: AccessPoint, config: RosterConfig, now: Moment, remembered: &BTreeSet<AccessPoint>) -> Roster {
        let standing = Standing { member_since: now, silent_since: Some(now), counted_from: now, from_start: true, sure_of: 0 };
        let others: BTreeMap<_, _> = remembered.iter().filter(|member| **member != me).map(|member| (*member, standing)).collect();
        let fence = Fence::new(now, config.fence_after, config.resume_after, others.len() >= 2);
        let mut roster = Roster { me, config, started: now, others, left: Vec::new(), fence, judging: false };
        roster.judge(now);
        roster
    }

    /// SWIM says that this member is alive.
    pub(crate) fn up(&mut self, now: Moment, member: AccessPoint) {
        if member == self.me {
            return;
        }
        let from_start = now.since(self.started) < self.config.stable_after;
        let fresh = Standing { member_since: now, silent_since: None, counted_from: now, from_start, sure_of: 0 };
        let back = self.others.entry(member).or_insert(fresh).silent_since.take().is_some();
        if back {
            // It may have been with others that we do not hear, and may have been what kept them from fencing.
            for standing in self.others.values_mut() {
                standing.counted_from = now;
            }
        }
        self.fence.heard(now);
        self.judge(now);
    }

    /// SWIM says that this member does not answer.
    pub(crate) fn down(&mut self, now: Moment, member: AccessPoint) {
        if let Some(standing) = self.others.get_mut(&member)
            && standing.silent_since.is_none()
        {
            standing.silent_since = Some(now);
            standing.counted_from = now;
        }
        self.judge(now);
    }

    /// A member said good-bye: `leaving` for good (it gave everything back), or stopping for a while.
    pub(crate) fn farewell(&mut self, now: Moment, member: AccessPoint, leaving: bool) {
        if !leaving {
            self.down(now, member);
        } else if self.others.remove(&member).is_some() {
            self.left.push(member);
            self.judge(now);
        }
    }

    /// A member says how many members it counts, itself included: one that counts three or more fences itself when it is cut off.
    pub(crate) fn told(&mut self, member: AccessPoint, sure_of: usize) {
        if let Some(standing) = self.others.get_mut(&member) {
            standing.sure_of = sure_of;
        }
    }

    /// Anything came from a member: a request, an answer, gossip.
    pub(crate) fn heard(&mut self, now: Moment) {
        self.fence.heard(now);
    }

    /// To be called about once a second: who is dead now?
    pub(crate) fn tick(&mut self, now: Moment) -> Vec<Verdict> {
        self.judge(now);
        let mut dead = std::mem::take(&mut self.left);
        // A member that may itself be the one cut off declares no member dead. One at a time: each death changes the quorum.
        while self.judging
            && let Some(member) = self.overdue(now)
        {
            self.others.remove(&member);
            dead.push(member);
            self.judge(now);
        }
        dead.into_iter().map(Verdict::Dead).collect()
    }

    /// The live members in order, this one included.
    pub(crate) fn live(&self) -> Vec<AccessPoint> {
        let mut live: Vec<_> =
            self.others.iter().filter(|(_, standing)| standing.silent_since.is_none()).map(|(member, _)| *member).collect();
        let place = live.partition_point(|member| *member < self.me);
        live.insert(place, self.me);
        live
    }

    /// How every other member stands, the silent ones included.
    pub(crate) fn standings(&self) -> &BTreeMap<AccessPoint, Standing> {
        &self.others
    }

    #[cfg(test)]
    /// For how long this member has been silent, in milliseconds; none if it is alive or unknown.
    pub(crate) fn silent_for(&self, member: AccessPoint, now: Moment) -> Option<Millis> {
        Some(now.since(self.others.get(&member)?.silent_since?))
    }

    /// The members that count, this one included: to be kept on disk for [`Roster::new`].
    pub(crate) fn settled(&self, now: Moment) -> BTreeSet<AccessPoint> {
        self.settled_for(now, self.config.stable_after)
    }

    /// Must this access point refrain from fetching? To be asked right before each request.
    pub(crate) fn fenced(&self, now: Moment) -> Option<FenceReason> {
        self.fence.fenced(now)
    }

    /// Whether this access point may claim what has no owner. Stricter than the fence, and without its patience: as soon as not
    /// more than half of the settled members answer (or exactly half without the smallest one), another member may be claiming
    /// the same. It holds in a swarm of two as well: only the smaller one goes on claiming while the other is silent.
    pub(crate) fn may_claim(&self, now: Moment) -> bool {
        let whole =
            [self.config.stable_after, self.surely_settled()].into_iter().all(|age| self.is_more_than_half_of(&self.settled_for(now, age)));
        whole && self.fence.fenced(now).is_none()
    }

    /// How long a new claim is watched before it is acted on, in milliseconds: by then SWIM has found out about a partition, and
    /// gossip about another claim to the same.
    pub(crate) fn watch(&self) -> Millis {
        self.config.fence_after / 3
    }

    /// Members for at least `age`, this one included.
    fn settled_for(&self, now: Moment, age: Millis) -> BTreeSet<AccessPoint> {
        let counts = |standing: &Standing| standing.from_start || now.since(standing.member_since) >= age;
        let others = self.others.iter().filter(|(_, standing)| counts(standing)).map(|(member, _)| *member);
        others.chain([self.me]).collect()
    }

    /// The age from which on every other member must have seen a member settle, too.
    fn surely_settled(&self) -> Millis {
        self.config.stable_after + self.config.stable_after / 4
    }

    fn judge(&mut self, now: Moment) {
        let (quorum, settled) = (self.quorum(now), self.settled(now).len());
        self.fence.observe(now, quorum, settled);
        let judging = quorum && self.fence.fenced(now).is_none();
        if judging && !self.judging {
            // While we were cut off ourselves, silence proved nothing: those who are still silent get their full time.
            for standing in self.others.values_mut().filter(|standing| standing.silent_since.is_some()) {
                standing.silent_since = Some(now);
                standing.counted_from = now;
            }
        }
        self.judging = judging;
    }

    fn quorum(&self, now: Moment) -> bool {
        [self.config.stable_after, self.surely_settled()].into_iter().all(|age| self.is_quorum_of(&self.settled_for(now, age)))
    }

    /// Whether those alive are the greater half of `members`; of exact halves the one with the smallest member.
    fn is_quorum_of(&self, members: &BTreeSet<AccessPoint>) -> bool {
        members.len() <= 2 || self.is_more_than_half_of(members)
    }

    fn is_more_than_half_of(&self, members: &BTreeSet<AccessPoint>) -> bool {
        let alive =
            |member: &AccessPoint| *member == self.me || self.others.get(member).is_some_and(|standing| standing.silent_since.is_none());
        let count = members.iter().filter(|member| alive(member)).count();
        2 * count > members.len() || (2 * count == members.len() && members.first().is_some_and(alive))
    }

    /// A member whose silence has lasted for long enough, the longest first.
    fn overdue(&self, now: Moment) -> Option<AccessPoint> {
        let silent = self
            .others
            .iter()
            .filter_map(|(member, standing)| Some((standing.silent_since?, standing.counted_from, standing.sure_of, *member)));
        let is_overdue = |(since, counted_from, sure_of, _): &(Moment, Moment, usize, AccessPoint)| {
            let patience = self.patience(*since, *sure_of);
            // A member with a bad line who comes and goes must not keep the dead alive for ever.
            now.since(*counted_from) >= patience || now.since(*since) >= MAX_PATIENCE * patience
        };
        silent.filter(is_overdue).min().map(|(_, _, _, member)| member)
    }

    /// How long to wait for a member that fell silent at `since`. What counts is how large a swarm the silent one itself was
    /// sure of then: in a swarm of two it does not fence itself. It may have said so itself; else we know only how long we have known
    /// the others.
    fn patience(&self, since: Moment, told: usize) -> Millis {
        let was_settled = |standing: &&Standing| since.since(standing.member_since) >= self.surely_settled();
        let sure = 1 + self.others.values().filter(was_settled).count();
        if sure.max(told) <= 2 {
            return self.config.pair_dead_after;
        }
        // Those on the other side probe one member after another until they know that half is gone.
        let beyond_a_dozen = (self.others.len() as u64 + 1).saturating_sub(12);
        self.config.dead_after + beyond_a_dozen * self.config.probe_every
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

    /// Ticks and hears once a second; the verdicts with their seconds.
    fn run(roster: &mut Roster, seconds: std::ops::RangeInclusive<u64>) -> Vec<(u64, Verdict)> {
        let mut verdicts = Vec::new();
        for second in seconds {
            roster.heard(at(second));
            verdicts.extend(roster.tick(at(second)).into_iter().map(|verdict| (second, verdict)));
        }
        verdicts
    }

    #[test]
    fn a_silent_member_is_dead_after_forty_five_seconds_once() {
        let mut roster = settled_swarm(1, 5);
        roster.down(at(1000), ap(4));
        assert_eq!(roster.live(), [ap(1), ap(2), ap(3), ap(5)]);
        assert_eq!(roster.silent_for(ap(4), at(1010)), Some(10_000));
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
    fn a_pair_waits_ten_minutes_and_never_fences() {
        let mut roster = settled_swarm(2, 2);
        roster.down(at(1000), ap(1));
        let mut verdicts = Vec::new();
        for second in 1001..=1700 {
            verdicts.extend(roster.tick(at(second)).into_iter().map(|verdict| (second, verdict)));
            assert_eq!(roster.fenced(at(second)), None);
        }
        assert_eq!(verdicts, [(1600, Verdict::Dead(ap(1)))]);
    }

    #[test]
    fn the_smaller_half_fences_and_declares_no_member_dead_the_greater_goes_on() {
        let mut few = settled_swarm(5, 5);
        (1..=3).for_each(|other| few.down(at(1000), ap(other)));
        assert_eq!(run(&mut few, 1001..=1029), []);
        assert_eq!(few.fenced(at(1029)), None);
        assert_eq!(few.fenced(at(1030)), Some(FenceReason::Minority));
        assert_eq!(run(&mut few, 1030..=5000), []);
        assert!(few.fenced(at(5000)).is_some(), "the set it counts by does not shrink with the silence");

        let mut many = settled_swarm(1, 5);
        (4..=5).for_each(|other| many.down(at(1000), ap(other)));
        assert_eq!(run(&mut many, 1001..=1100), [(1045, Verdict::Dead(ap(4))), (1045, Verdict::Dead(ap(5)))]);
        assert_eq!(many.fenced(at(1100)), None);

        (1..=3).for_each(|other| few.up(at(5001), ap(other)));
        run(&mut few, 5001..=5006);
        assert_eq!(few.fenced(at(5006)), None, "healed");
    }

    #[test]
    fn of_exact_halves_the_one_with_the_smallest_member_goes_on() {
        let mut with_smallest = settled_swarm(2, 4);
        (3..=4).for_each(|other| with_smallest.down(at(1000), ap(other)));
        assert_eq!(run(&mut with_smallest, 1001..=1050).len(), 2);
        assert_eq!(with_smallest.fenced(at(1050)), None);
        let mut without = settled_swarm(3, 4);
        (1..=2).for_each(|other| without.down(at(1000), ap(other)));
        assert_eq!(run(&mut without, 1001..=1050), []);
        assert!(without.fenced(at(1050)).is_some());
    }

    #[test]
    fn three_become_two_and_two_are_patient() {
        let mut roster = settled_swarm(1, 3);
        roster.down(at(1000), ap(3));
        assert_eq!(run(&mut roster, 1001..=1100), [(1045, Verdict::Dead(ap(3)))]);
        roster.down(at(1100), ap(2));
        assert_eq!(run(&mut roster, 1101..=2000), [(1700, Verdict::Dead(ap(2)))]);
    }

    #[test]
    fn newcomers_do_not_make_a_pair_impatient_before_the_pair_has_settled_with_them() {
        // An old pair 1 and 2; 3 came ten seconds before 1 fell silent. 1 counts a swarm of two and will not fence itself.
        let mut roster = settled_swarm(2, 2);
        roster.up(at(1000), ap(3));
        roster.down(at(1010), ap(1));
        assert_eq!(run(&mut roster, 1011..=1300), []);
        // The same as the newcomer 3 sees it.
        let mut newcomer = Roster::new(ap(3), RosterConfig::default(), at(1000), &BTreeSet::new());
        newcomer.up(at(1000), ap(1));
        newcomer.up(at(1000), ap(2));
        newcomer.down(at(1010), ap(1));
        assert_eq!(run(&mut newcomer, 1011..=1300), []);
    }

    #[test]
    fn a_newcomer_that_is_cut_off_fences_itself() {
        let mut newcomer = Roster::new(ap(6), RosterConfig::default(), at(0), &BTreeSet::new());
        (1..=5).for_each(|other| newcomer.up(at(1), ap(other)));
        (1..=5).for_each(|other| newcomer.down(at(12), ap(other)));
        assert_eq!(newcomer.fenced(at(20)), None);
        newcomer.tick(at(42));
        assert!(newcomer.fenced(at(42)).is_some(), "although it has known the others for no more than a few seconds");
    }

    #[test]
    fn a_restart_waits_for_the_members_it_knew() {
        let known = settled_swarm(1, 5).settled(at(1000));
        assert_eq!(known.len(), 5);
        let mut roster = Roster::new(ap(1), RosterConfig::default(), at(0), &known);
        assert_eq!(roster.fenced(at(0)), Some(FenceReason::NotHeardSinceStart));
        roster.up(at(2), ap(2));
        assert_eq!(run(&mut roster, 3..=100), []);
        assert!(roster.fenced(at(100)).is_some(), "two of five are not enough");
        roster.up(at(100), ap(3));
        run(&mut roster, 101..=106);
        assert_eq!(roster.fenced(at(106)), None);
    }
}
