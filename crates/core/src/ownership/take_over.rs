//! Take-over of the subnets of an owner that died, left or lost them: they go to the runner-up or the next steward.

use crate::{
    context::Context,
    delegation::{Knowledge, drawn_in_order},
    membership::Membership,
    ownership::Ownership,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::{Answer, Claim, ClaimReason, MAX_ANSWERS},
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::{collections::BTreeSet, ops::Bound};

/// How long each next successor waits for the one before it to claim.
const TURN: Millis = 10_000;

/// A member that has been here for less than so many times what it takes to vote is a guest among the successors, unless it votes: three
/// minutes. Many may come and vanish at once, and each of them would cost a turn, or take over and die.
const GUEST: u64 = 6;

/// So many turns are taken alone before the first successor is due again: of more than so many successors several share one.
const MAX_TURNS: u64 = 8;

/// Subnets that are looked at in one tick, of the dead and of those that were released: a member may leave a hundred thousand, and to find
/// out whose turn it is takes microseconds for each.
const MAX_LOOKED_AT: usize = 4_096;

/// Claims to what others left that are under way at a time.
const MAX_INHERITING: usize = 8_000;

/// The living, of whom the successors are.
struct Living<'a> {
    all: &'a [AccessPoint],
    /// Those of them that came of late, and may go again: they come after all others.
    guests: BTreeSet<AccessPoint>,
}

/// Who may take over, in the order of their turns.
struct Successors {
    all: Vec<AccessPoint>,
    /// How many of them come before the guests.
    lasting: usize,
}

impl Ownership {
    /// The roster gave a member up.
    pub(crate) fn dead(&mut self, now: Moment, gone: AccessPoint) {
        self.dead_since.insert(gone, now);
    }

    /// An owner released a subnet.
    pub(crate) fn freed(&mut self, now: Moment, claim: &Claim) {
        self.freed.insert(claim.subnet, now);
    }

    /// Whether a subnet that this member released has no owner yet.
    pub(crate) fn has_released(&self, member: &AccessPoint) -> bool {
        let latest = |subnet| self.register.latest(subnet).map(|held| &held.claim);
        self.freed.keys().filter_map(latest).any(|claim| claim.released && claim.owner == *member)
    }

    /// Takes over what is ours to take over. `votes` is whether a member is a voter.
    pub(crate) fn take_over(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        knowledge: &Knowledge,
        votes: impl Fn(&AccessPoint) -> bool,
        released_to_us: impl Fn(&Subnet, u64) -> bool,
    ) {
        let now = cx.now.moment;
        if !self.synced || !members.may_claim(now) {
            return;
        }
        let is_absent = |owner: &AccessPoint| *owner != cx.me && !members.standings().contains_key(owner);
        let absent: Vec<_> = self.register.owners().filter(is_absent).collect();
        self.dead_since.retain(|gone, _| absent.contains(gone));
        let mut dead = Vec::new();
        for owner in absent {
            // An owner that we never met died before our time, or is about to be met.
            let patience = cx.settings.roster.dead_after;
            let since = *self.dead_since.entry(owner).or_insert(now.after(patience));
            if now >= since {
                dead.push((owner, since));
            }
        }
        let living = Living::of(cx, members, votes);
        let mut claims = self.claims_to_what_the_dead_left(cx, members, knowledge, &living, &dead);
        claims.extend(self.claims_to_what_was_freed(cx, members, knowledge, &living, released_to_us));
        claims.retain(|claim| self.inheriting.insert((claim.subnet, claim.epoch)));
        self.make_claims(cx, claims);
    }

    /// Those of the dead, in order, from where the last look ended: at most [`MAX_LOOKED_AT`] subnets, and as many claims as there is room for.
    fn claims_to_what_the_dead_left(
        &mut self,
        cx: &Context,
        members: &Membership,
        knowledge: &Knowledge,
        living: &Living<'_>,
        dead: &[(AccessPoint, Moment)],
    ) -> Vec<Claim> {
        let (begin, room) = (self.looked_at.dead.take(), MAX_INHERITING.saturating_sub(self.inheriting.len()));
        let mut claims = Vec::new();
        let ahead = dead.iter().filter(|(owner, _)| begin.is_none_or(|(at, _)| *owner >= at));
        let subnets = ahead.flat_map(|(owner, since)| {
            let after = begin.filter(|(at, _)| at == owner).map(|(_, subnet)| subnet);
            self.register.held_after(owner, after).map(move |subnet| (*owner, *since, subnet))
        });
        let (mut last, mut looked_at) = (begin, 0);
        for (owner, since, subnet) in subnets {
            if looked_at == MAX_LOOKED_AT || claims.len() >= room {
                self.looked_at.dead = last;
                return claims;
            }
            (last, looked_at) = (Some((owner, subnet)), looked_at + 1);
            let held = self.register.claim(&subnet).filter(|claim| !self.is_inheriting(claim));
            claims.extend(held.and_then(|claim| successor_claim(cx, members, knowledge, living, claim, since, ClaimReason::OwnerDead)));
        }
        claims
    }

    /// The same for what was released.
    fn claims_to_what_was_freed(
        &mut self,
        cx: &Context,
        members: &Membership,
        knowledge: &Knowledge,
        living: &Living<'_>,
        released_to_us: impl Fn(&Subnet, u64) -> bool,
    ) -> Vec<Claim> {
        let (after, room) = (self.looked_at.freed.take(), MAX_INHERITING.saturating_sub(self.inheriting.len()));
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let freed: Vec<_> =
            self.freed.range((from, Bound::Unbounded)).take(MAX_LOOKED_AT).map(|(subnet, since)| (*subnet, *since)).collect();
        let all = freed.len() < MAX_LOOKED_AT;
        let (mut claims, mut last) = (Vec::new(), after);
        for (subnet, since) in freed {
            if claims.len() >= room {
                self.looked_at.freed = last;
                return claims;
            }
            last = Some(subnet);
            match self.register.latest(&subnet).map(|held| &held.claim).filter(|claim| claim.released) {
                Some(claim) if self.is_inheriting(claim) => {}
                Some(claim) => {
                    let given = released_to_us(&subnet, claim.epoch);
                    let reason = if given { ClaimReason::Moved } else { ClaimReason::Released };
                    claims.extend(successor_claim(cx, members, knowledge, living, claim, since, reason));
                }
                None => drop(self.freed.remove(&subnet)),
            }
        }
        self.looked_at.freed = last.filter(|_| !all);
        claims
    }

    /// Whether a claim of ours that follows this one is under way.
    fn is_inheriting(&self, last: &Claim) -> bool {
        self.inheriting.contains(&(last.subnet, last.epoch.saturating_add(1)))
    }
}

/// Whether it is the turn of the successor in this place of so many, after so long. First each is waited for as well as those before it, who
/// go on trying. When all have had their turn, they take turns alone: if all that want the same claimed it at once, they would go on splitting the
/// votes.
fn is_turn(waited: Millis, place: u64, successors: u64) -> bool {
    let round = waited / TURN;
    if round < successors { round >= place } else { round % MAX_TURNS.min(successors) == place % MAX_TURNS.min(successors) }
}

/// Our claim to what this one leaves, if it is our turn.
fn successor_claim(
    cx: &Context,
    members: &Membership,
    knowledge: &Knowledge,
    living: &Living<'_>,
    last: &Claim,
    since: Moment,
    reason: ClaimReason,
) -> Option<Claim> {
    let Successors { all, lasting } = successors(cx, members, last, living);
    let place = all.iter().position(|successor| *successor == cx.me)?;
    // Guests, who come and go, change nothing for the others.
    let of = if place < lasting { lasting } else { all.len() };
    if !is_turn(cx.now.moment.since(since), place as u64, of as u64) {
        return None;
    }
    // What was measured goes on to those who come after us; the one before us may come back.
    let mine = ShortId::from(cx.me);
    let timed = knowledge.measurements(&last.subnet).find(|(who, _)| *who == cx.me).map(|(_, rtt)| rtt);
    let answered = last.answers.iter().find(|answer| answer.prober == mine).map(|answer| answer.rtt_us);
    let rtt_us = timed.into_iter().chain(answered).min();
    // The owner that released it said how far it has come to be from there.
    let said = last.answers.iter().any(|answer| answer.prober == ShortId::from(last.owner));
    let before = last.rtt_us.filter(|_| !said).map(|rtt_us| Answer { rtt_us, prober: last.owner.into() });
    let mut answers: Vec<_> = last.answers.iter().copied().filter(|answer| answer.prober != mine).chain(before).collect();
    answers.sort_unstable();
    answers.truncate(MAX_ANSWERS);
    let seeks_the_nearest = cx.settings.policy.seeks_the_nearest();
    let runner_up = measured_successors(&answers, living.all).next().filter(|_| seeks_the_nearest);
    let (subnet, epoch, owner) = (last.subnet, last.epoch.saturating_add(1), cx.me);
    Some(Claim { subnet, epoch, owner, rtt_us, runner_up, probes: 0, reason, released: false, answers })
}

impl<'a> Living<'a> {
    fn of(cx: &Context, members: &'a Membership, votes: impl Fn(&AccessPoint) -> bool) -> Living<'a> {
        let (now, all) = (cx.now.moment, members.live());
        let here_since = |member: &AccessPoint| members.standings().get(member).map_or(cx.started, |standing| standing.member_since);
        let is_guest = |member: &&AccessPoint| now.since(here_since(member)) < GUEST * cx.settings.roster.vote_after && !votes(member);
        Living { all, guests: all.iter().filter(is_guest).copied().collect() }
    }
}

/// Who may take over: the runner-up, those who measured the subnet, the nearest first, then its stewards; guests after all others. The claim
/// alone says so: every member has the same order, as far as they agree on who is alive. Where owners are drawn, the runner-up is only whom a
/// release names, and those who come after are drawn.
fn successors(cx: &Context, members: &Membership, last: &Claim, living: &Living<'_>) -> Successors {
    let live = living.all;
    // Whom a release names may be claiming at this moment: that it seems silent to us does not make it our turn, only its death does.
    let released_to = |successor: &AccessPoint| last.released && (*successor == cx.me || members.standings().contains_key(successor));
    let runner_up = last.runner_up.filter(|successor| live.contains(successor) || released_to(successor));
    let mut all: Vec<AccessPoint> = Vec::new();
    if !cx.settings.policy.seeks_the_nearest() {
        all.extend(runner_up);
        all.extend(drawn_in_order(&last.subnet, live).into_iter().filter(|drawn| runner_up != Some(*drawn)));
    } else {
        for successor in runner_up.into_iter().chain(measured_successors(&last.answers, live)).chain(members.stewards_of(&last.subnet)) {
            if !all.contains(&successor) {
                all.push(successor);
            }
        }
    }
    // Whom the owner itself chose comes first, however long it has been here.
    let chosen = runner_up.filter(|_| last.released);
    let comes_late = |successor: &AccessPoint| chosen != Some(*successor) && living.guests.contains(successor);
    all.sort_by_key(comes_late);
    let lasting = all.iter().filter(|successor| !comes_late(successor)).count();
    Successors { all, lasting }
}

/// Of those who answered, the living, the nearest first.
fn measured_successors(answers: &[Answer], live: &[AccessPoint]) -> impl Iterator<Item = AccessPoint> {
    answers.iter().filter_map(|answer| live.iter().copied().find(|successor| ShortId::from(*successor) == answer.prober))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(waited: Millis, successors: u64) -> Vec<u64> {
        (0..successors).filter(|place| is_turn(waited, *place, successors)).collect()
    }

    #[test]
    fn successors_join_in_one_after_the_other_and_then_take_turns_alone() {
        assert_eq!(whose(0, 3), [0]);
        assert_eq!(whose(TURN, 3), [0, 1]);
        assert_eq!(whose(3 * TURN - 1, 3), [0, 1, 2]);
        assert_eq!([3, 4, 5, 6].map(|round| whose(round * TURN, 3)), [[0], [1], [2], [0]]);
        assert_eq!(whose(1_000 * TURN, 1), [0], "one alone goes on");
        assert_eq!((whose(40 * TURN, 20), whose(43 * TURN, 20)), (vec![0, 8, 16], vec![3, 11, 19]));
    }
}
