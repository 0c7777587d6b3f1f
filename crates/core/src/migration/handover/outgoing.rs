//! The present owner's side of a hand-over: from the offer to the release, one stage after the other.

use super::{
    Immovable, Stage, Surroundings,
    stage::{COPY_TIMEOUT, STOP_TIMEOUT},
};
use crate::{
    context::Context,
    event::{Command, PeerCommand},
    pending::Pending,
    signal::Signal,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::{Answer, Claim, ClaimReason, MAX_ANSWERS, SignedClaim},
    ids::QuestionId,
    message::{Request, Response},
    subnet::Subnet,
    time::{Moment, Now},
    view::{EventKind, EventOutcome, EventView},
};
use std::collections::BTreeMap;

/// Subnets on their way out at a time.
pub(crate) const MAX_OUTGOING: usize = 2;

/// Rows that may still be lacking when the crawl stops: they take less than a second.
const MAX_ROWS_LACKING: u64 = 500;

/// Subnets of ours on their way to others.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    under_way: BTreeMap<Subnet, HandOver>,
    /// Subnets that we released for a member, and the epoch of the release, until a member claims them.
    released: BTreeMap<Subnet, u64>,
}

/// A subnet of ours on its way to another owner.
#[derive(Debug)]
struct HandOver {
    begun: Now,
    to: AccessPoint,
    /// Of our claim.
    epoch: u64,
    why: String,
    stage: Stage,
    /// When the stage must have ended.
    until: Moment,
}

impl HandOver {
    /// What is told of it when it has ended.
    fn ended(&self, cx: &Context, subnet: Subnet, outcome: EventOutcome) -> EventView {
        EventView {
            kind: EventKind::Move,
            begun_at: self.begun.wall,
            duration_ms: cx.now.moment.since(self.begun.moment),
            subnet,
            outcome,
            from: Some(cx.me),
            to: self.to,
            probes: None,
            policy: None,
            reason_text: Some(self.why.clone()),
            requests: None,
            took_ms: None,
        }
    }
}

/// A subnet that should have another owner.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) subnet: Subnet,
    pub(crate) to: AccessPoint,
    pub(crate) why: String,
}

/// What comes next for a subnet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing yet.
    Wait,
    /// It stays.
    CallOff,
    /// Its servers are not asked any more.
    Stop,
    /// Nothing of it is under way: its last row is written.
    Close,
    /// The next owner has all rows: it is released.
    Release,
}

/// What can be read of hand-overs.
impl Outgoing {
    /// To whom a subnet of ours is on its way and copied.
    pub(crate) fn next_owner(&self, subnet: &Subnet) -> Option<AccessPoint> {
        self.under_way.get(subnet).filter(|hand_over| hand_over.stage != Stage::Offered).map(|hand_over| hand_over.to)
    }

    /// Whether nothing may be asked in a subnet of ours, because it is about to go.
    pub(crate) fn has_stopped(&self, subnet: &Subnet) -> bool {
        self.under_way.get(subnet).is_some_and(|hand_over| hand_over.stage >= Stage::Stopping)
    }

    /// The subnets on their way, in address order.
    pub(crate) fn subnets(&self) -> Vec<Subnet> {
        self.under_way.keys().copied().collect()
    }

    /// How many are on their way.
    pub(crate) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Why a subnet goes; empty if it does not.
    pub(crate) fn reason(&self, subnet: &Subnet) -> String {
        self.under_way.get(subnet).map(|hand_over| hand_over.why.clone()).unwrap_or_default()
    }

    /// How far each of them is.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        self.under_way.values().map(|hand_over| hand_over.stage).chain(self.released.keys().map(|_| Stage::Given))
    }

    /// How far a subnet is on its way from here.
    pub(crate) fn stage_of(&self, subnet: &Subnet) -> Option<Stage> {
        let stage = self.under_way.get(subnet).map(|hand_over| hand_over.stage);
        stage.or_else(|| self.released.contains_key(subnet).then_some(Stage::Given))
    }

    /// Whether a subnet can be handed over to another member now; the epoch of our claim to it.
    pub(crate) fn may_move(&self, cx: &Context, around: &Surroundings<'_>, subnet: &Subnet, to: &AccessPoint) -> Result<u64, Immovable> {
        let claim = around.own_claim(cx, subnet).ok_or(Immovable::NotOurs)?;
        if claim.reason == ClaimReason::OwnSubnet {
            return Err(Immovable::OwnNetwork);
        }
        if *to == cx.me || !around.membership.live().contains(to) {
            return Err(Immovable::ReceiverNotAlive);
        }
        let epoch = around.movable_epoch(cx, subnet).ok_or(Immovable::Unsettled)?;
        if self.under_way.len() >= MAX_OUTGOING || self.under_way.contains_key(subnet) {
            return Err(Immovable::Busy);
        }
        Ok(epoch)
    }

    /// What comes next for a subnet on its way.
    pub(crate) fn next_step(&self, cx: &Context, around: &Surroundings<'_>, subnet: &Subnet) -> Step {
        let Some(HandOver { to, epoch, stage, until, .. }) = self.under_way.get(subnet) else { return Step::Wait };
        if *stage == Stage::Releasing {
            // The release holds when it is durable, however long that takes, unless another claim beats it meanwhile.
            let is_beaten = around.own_claim(cx, subnet).is_none_or(|claim| claim.epoch != *epoch);
            return if is_beaten { Step::CallOff } else { Step::Wait };
        }
        let late = *until <= cx.now.moment;
        if late || !around.membership.live().contains(to) || around.movable_epoch(cx, subnet) != Some(*epoch) {
            return Step::CallOff;
        }
        let lacking = || around.replication.lacking(*to, subnet);
        let is_quiet = || around.crawl.is_quiet(subnet);
        match stage {
            Stage::Copying if lacking().is_some_and(|rows| rows <= MAX_ROWS_LACKING) => Step::Stop,
            Stage::Stopping if is_quiet() => Step::Close,
            Stage::Closing if lacking() == Some(0) && around.replication.all_is_stored(subnet) && is_quiet() => Step::Release,
            _ => Step::Wait,
        }
    }
}

/// What happens to hand-overs.
impl Outgoing {
    /// Offers a subnet of ours to another owner, if that can be done now.
    pub(crate) fn offer(&mut self, cx: &mut Context, around: &Surroundings<'_>, proposal: Proposal) {
        let Proposal { subnet, to, why } = proposal;
        let Ok(epoch) = self.may_move(cx, around, &subnet, &to) else { return };
        cx.counters.moves_offered += 1;
        let until = cx.now.moment.after(STOP_TIMEOUT);
        self.under_way.insert(subnet, HandOver { begun: cx.now, to, epoch, why, stage: Stage::Offered, until });
        cx.ask(to, Pending::Offer { subnet }, Request::Offer { subnet, epoch });
    }

    /// The member that we offered a subnet to answered, or did not. Whether it stays therefore.
    #[must_use]
    pub(crate) fn answered(&mut self, cx: &mut Context, subnet: Subnet, from: AccessPoint, answer: Option<Response>) -> bool {
        let offered = |hand_over: &&mut HandOver| hand_over.to == from && hand_over.stage == Stage::Offered;
        let Some(hand_over) = self.under_way.get_mut(&subnet).filter(offered) else { return false };
        match answer {
            Some(Response::Offered(None)) => {
                (hand_over.stage, hand_over.until) = (Stage::Copying, cx.now.moment.after(COPY_TIMEOUT));
                cx.signal(Signal::NextOwnerChanged(subnet));
                false
            }
            Some(Response::Offered(Some(why))) => {
                *cx.counters.moves_refused.entry(why).or_default() += 1;
                true
            }
            _ => true,
        }
    }

    /// The subnet stays, and its crawl goes on. Returns who should have had it.
    pub(crate) fn call_off(&mut self, cx: &mut Context, subnet: Subnet) -> Option<AccessPoint> {
        let hand_over = self.under_way.remove(&subnet)?;
        cx.counters.moves_called_off += 1;
        cx.events.note(hand_over.ended(cx, subnet, EventOutcome::CalledOff));
        cx.signal(Signal::HandOverCalledOff(subnet));
        Some(hand_over.to)
    }

    /// The next stage begins, which has to end in time.
    pub(crate) fn enter_stage(&mut self, cx: &Context, subnet: &Subnet, stage: Stage) {
        if let Some(hand_over) = self.under_way.get_mut(subnet) {
            (hand_over.stage, hand_over.until) = (stage, cx.now.moment.after(STOP_TIMEOUT));
        }
    }

    /// Gives a subnet up, with the next owner as the first successor and ourselves among those after it.
    pub(crate) fn release(&mut self, cx: &mut Context, around: &Surroundings<'_>, subnet: &Subnet) {
        let Some(claim) = around.ownership.register().claim(subnet).cloned() else { return };
        let Some(hand_over) = self.under_way.get_mut(subnet) else { return };
        (hand_over.stage, hand_over.until) = (Stage::Releasing, cx.now.moment);
        // How far it is by now, not how far it was when it was claimed.
        let own = around.delegation.measured_by(cx.me, subnet).or(claim.rtt_us).map(|rtt_us| Answer { rtt_us, prober: cx.me.into() });
        let others = claim.answers.iter().copied().filter(|answer| answer.prober != ShortId::from(cx.me));
        let mut answers: Vec<_> = others.chain(own).collect();
        answers.sort_unstable();
        answers.truncate(MAX_ANSWERS);
        cx.signal(Signal::Claim(vec![Claim { released: true, runner_up: Some(hand_over.to), answers, ..claim }]));
    }

    /// The release of a subnet of ours is durable and holds: the member that it is for is told at once, if there is one.
    pub(crate) fn release_stored(&mut self, cx: &mut Context, subnet: Subnet, release: SignedClaim) -> bool {
        let Some(hand_over) = self.under_way.remove(&subnet) else { return false };
        let HandOver { to, epoch, .. } = hand_over;
        cx.counters.moves_made += 1;
        cx.events.note(hand_over.ended(cx, subnet, EventOutcome::Released));
        self.released.insert(subnet, epoch);
        cx.commands.push_back(Command::Peers(PeerCommand::Ask {
            to,
            question: QuestionId::NO_ANSWER,
            request: Request::TakeOver(release),
        }));
        true
    }

    /// A subnet has an owner since `epoch`: what we released before has arrived.
    pub(crate) fn claimed(&mut self, subnet: &Subnet, epoch: u64) {
        if self.released.get(subnet).is_some_and(|released_at| *released_at < epoch) {
            self.released.remove(subnet);
        }
    }
}
