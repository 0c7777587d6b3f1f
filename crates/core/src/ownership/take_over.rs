//! Who comes after? An owner died, left, or lost: its subnets go to the runner-up or the next steward.

use crate::{context::Context, delegation::Knowledge, membership::Membership, ownership::Ownership};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::{Answer, Claim, ClaimReason, MAX_ANSWERS},
    subnet::Subnet,
    time::{Millis, Moment},
};

/// How long each next successor waits for the one before it to claim.
const TURN: Millis = 10_000;

impl Ownership {
    /// The roster gave a member up.
    pub(crate) fn dead(&mut self, now: Moment, gone: AccessPoint) {
        self.dead_since.insert(gone, now);
    }

    /// An owner released a subnet.
    pub(crate) fn freed(&mut self, now: Moment, claim: &Claim) {
        self.freed.insert(claim.subnet, now);
    }

    /// Takes over what is ours to take over.
    pub(crate) fn take_over(
        &mut self,
        cx: &mut Context,
        members: &Membership,
        knowledge: &Knowledge,
        released_to_us: impl Fn(&Subnet, u64) -> bool,
    ) {
        let now = cx.now.moment;
        if !self.synced || !members.may_claim(now) {
            return;
        }
        let mut claims = Vec::new();
        let owners: Vec<_> = self.register.owners().filter(|owner| *owner != cx.me).collect();
        self.dead_since.retain(|gone, _| owners.contains(gone));
        for owner in owners {
            if members.standings().contains_key(&owner) {
                self.dead_since.remove(&owner);
                continue;
            }
            // An owner that we never met died before our time, or is about to be met.
            let patience = cx.settings.roster.dead_after;
            let since = *self.dead_since.entry(owner).or_insert(now.after(patience));
            claims.extend(self.successor_claims_to(cx, members, knowledge, &owner, since));
        }
        let freed: Vec<_> = self.freed.iter().map(|(subnet, since)| (*subnet, *since)).collect();
        for (subnet, since) in freed {
            match self.register.latest(&subnet).map(|held| held.claim.clone()) {
                Some(claim) if claim.released => {
                    let given = released_to_us(&subnet, claim.epoch);
                    let reason = if given { ClaimReason::Moved } else { ClaimReason::Released };
                    claims.extend(successor_claim(cx, members, knowledge, &claim, since, reason));
                }
                _ => {
                    self.freed.remove(&subnet);
                }
            }
        }
        claims.retain(|claim| self.inheriting.insert((claim.subnet, claim.epoch)));
        self.make_claims(cx, claims);
    }

    fn successor_claims_to(
        &self,
        cx: &Context,
        members: &Membership,
        knowledge: &Knowledge,
        owner: &AccessPoint,
        since: Moment,
    ) -> Vec<Claim> {
        let held = self.register.held_by(owner).filter_map(|subnet| self.register.claim(&subnet));
        held.filter_map(|claim| successor_claim(cx, members, knowledge, claim, since, ClaimReason::OwnerDead)).collect()
    }
}

/// Our claim to what this one leaves, if it is our turn.
fn successor_claim(
    cx: &Context,
    members: &Membership,
    knowledge: &Knowledge,
    last: &Claim,
    since: Moment,
    reason: ClaimReason,
) -> Option<Claim> {
    let live = members.live();
    let successors = successors(cx.me, members, last, &live);
    let turn = successors.iter().position(|successor| *successor == cx.me)? as u64;
    if cx.now.moment < since.after(turn * TURN) {
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
    let runner_up = measured_successors(&answers, &live).next();
    let (subnet, epoch, owner) = (last.subnet, last.epoch.saturating_add(1), cx.me);
    Some(Claim { subnet, epoch, owner, rtt_us, runner_up, probes: 0, reason, released: false, answers })
}

/// Who may take over, in the order of their turns: the runner-up, those who measured the subnet, the nearest first, then its
/// stewards. The claim alone says so: every member has the same order, as far as they agree on who is alive.
fn successors(me: AccessPoint, members: &Membership, last: &Claim, live: &[AccessPoint]) -> Vec<AccessPoint> {
    let mut successors: Vec<AccessPoint> = Vec::new();
    // Whom a release names may be claiming at this moment: that it seems silent to us does not make it our turn, only its death does.
    let released_to = |successor: &AccessPoint| last.released && (*successor == me || members.standings().contains_key(successor));
    let runner_up = last.runner_up.filter(|successor| live.contains(successor) || released_to(successor));
    let stewards = members.stewards_of(&last.subnet);
    for successor in runner_up.into_iter().chain(measured_successors(&last.answers, live)).chain(stewards) {
        if !successors.contains(&successor) {
            successors.push(successor);
        }
    }
    successors
}

/// Of those who answered, the living, the nearest first.
fn measured_successors(answers: &[Answer], live: &[AccessPoint]) -> impl Iterator<Item = AccessPoint> {
    answers.iter().filter_map(|answer| live.iter().copied().find(|successor| ShortId::from(*successor) == answer.prober))
}
