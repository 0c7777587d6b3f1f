//! State machine of delegation: what it knows, and what it learns from claims, downloads and members.
//!
//! How subnets get their owners is in `settlement`, whose an address is in `address_assignment`.

use crate::{
    context::Context,
    delegation::{
        Delegated, Delegation, Knowledge,
        prober::{ProbeOrder, Prober},
        reads::DelegationReads,
        reservations::Reservations,
        rounds::Rounds,
    },
    membership::Membership,
    ownership::Ownership,
};
use nearcrawl_model::{
    access_point::{AccessPoint, ShortId},
    claim::{Claim, ClaimReason},
    distances::Distances,
    fetch::{ProbeReport, ProbeTarget},
    ids::{QuestionId, Ticket},
    receipt::Declined,
    subnet::Subnet,
    time::{Millis, Moment},
};
use std::net::IpAddr;

/// The longest rest that a subnet is given: that of an answer that took as long as any may.
const MAX_REST: Millis = 600_000;

/// How many subnets' rests are noted before those that members tell are refused.
pub(crate) const MAX_RESTS: usize = 100_000;

/// What happens.
impl Delegation {
    /// Starts with the record of contacts of the previous process. We are where our address is.
    pub(crate) fn wake(&mut self, cx: &Context, contacts: &[Vec<u8>]) {
        self.prober.recall(cx, contacts);
        self.distances.introduce_me(cx, &mut self.knowledge);
    }

    /// A claim holds that did not hold before: reservations and procedures that it decides are over, and what was measured for it is
    /// known from now on.
    pub(crate) fn claim_holds(&mut self, cx: &mut Context, others: DelegationReads<'_>, claim: &Claim, before: Option<&Claim>) {
        self.delegated.populate(&cx.hierarchy, others.ownership.register(), claim);
        self.learn_from(cx, others.members, claim);
        if let Some(before) = before.filter(|_| claim.reason == ClaimReason::Moved && !claim.released) {
            self.learn_from_move(cx, claim, before.owner);
        }
        if let Some(procedure) = self.rounds.get(&claim.subnet).filter(|procedure| procedure.is_awarded()) {
            *cx.counters.settled.entry(procedure.probes()).or_default() += 1;
            cx.events.note(procedure.ended(cx.now, claim.subnet, claim.owner));
        }
        self.reservations.decided(&claim.subnet);
        self.rounds.decided(&claim.subnet);
    }

    /// What the probes before a claim measured, its owner's and the others'.
    fn learn_from(&mut self, cx: &Context, members: &Membership, claim: &Claim) {
        let own = claim.rtt_us.filter(|_| claim.reason != ClaimReason::OwnSubnet).map(|rtt_us| (claim.owner, rtt_us));
        let known = members.known().chain([&cx.me]);
        let others = claim.answers.iter();
        let others = others.filter_map(|answer| Some((*known.clone().find(|who| ShortId::from(**who) == answer.prober)?, answer.rtt_us)));
        for (who, rtt_us) in own.into_iter().chain(others) {
            self.knowledge.measured(&cx.hierarchy, claim.subnet, who, rtt_us);
        }
    }

    /// The member that gave a subnet away said how far it had come to be from there: that is newer than any probe.
    fn learn_from_move(&mut self, cx: &Context, claim: &Claim, giver: AccessPoint) {
        let said = claim.answers.iter().find(|answer| answer.prober == ShortId::from(giver));
        if let Some(answer) = said {
            self.knowledge.measured_anew(&cx.hierarchy, claim.subnet, giver, answer.rtt_us);
        }
    }

    /// What a download of ours says of the way to a subnet, free of charge.
    pub(crate) fn timed(&mut self, cx: &mut Context, subnet: Subnet, rtt_us: u32) {
        let known = self.measured_by(cx.me, &subnet);
        if known.is_none_or(|known| rtt_us < known) {
            cx.counters.passive_timings += 1;
            self.knowledge.measured(&cx.hierarchy, subnet, cx.me, rtt_us);
        }
    }

    /// Our way to a subnet has changed: this is what it is now.
    pub(crate) fn way_changed(&mut self, cx: &Context, subnet: Subnet, rtt_us: u32) {
        self.knowledge.measured_anew(&cx.hierarchy, subnet, cx.me, rtt_us);
    }

    /// Leaves every address of this subnet alone for so long. A longer rest that is under way stays as it is.
    pub(crate) fn rest_subnet(&mut self, cx: &Context, subnet: Subnet, rest: Millis) {
        let until = cx.now.moment.after(rest.min(MAX_REST));
        let known = self.rests.entry(subnet).or_insert(until);
        *known = until.max(*known);
    }

    /// The same if a member said so: of such rests there are at most [`MAX_RESTS`] until the next tidying.
    pub(crate) fn rest_subnet_as_told(&mut self, cx: &mut Context, subnet: Subnet, rest: Millis) {
        if self.rests.len() < MAX_RESTS || self.rests.contains_key(&subnet) {
            self.rest_subnet(cx, subnet, rest);
        } else {
            cx.refuse("rests of awarded subnets beyond the limit");
        }
    }

    /// How many subnets rest, as far as is noted here.
    pub(crate) fn resting(&self) -> usize {
        self.rests.len()
    }

    /// Another hierarchy is used. What is known by position is built anew from the claims, without a message or a probe.
    pub(crate) fn relocate(&mut self, cx: &Context, ownership: &Ownership) {
        self.delegated = Delegated::default();
        self.knowledge.relocate(&cx.hierarchy);
        for claim in ownership.register().all().map(|held| &held.claim).filter(|claim| !claim.released) {
            self.delegated.populate(&cx.hierarchy, ownership.register(), claim);
        }
        self.reservations.forget_asked();
    }

    /// A probe of ours ended, of a subnet or of a member's web server.
    pub(crate) fn probed(&mut self, cx: &mut Context, others: DelegationReads<'_>, question: QuestionId, report: ProbeReport) {
        if self.distances.home_timed(cx, &mut self.knowledge, question, report) {
            return;
        }
        if let Some((subnet, receipt)) = self.prober.ended(cx, others.members, question, report) {
            self.probe_answered(cx, others, subnet, cx.me, Some((report, receipt)));
        }
    }

    /// A subnet's steward asks us to probe. `held_back` is whether nothing may be fetched here now.
    pub(crate) fn probe_for(
        &mut self,
        cx: &mut Context,
        others: DelegationReads<'_>,
        steward: (AccessPoint, Ticket),
        order: ProbeOrder,
        held_back: bool,
    ) {
        self.prober.probe_for(cx, others, steward, order, held_back);
    }

    /// Whether a server of a survey's sample may be probed from here: its subnet may get one more contact, and that counts from now on.
    pub(crate) fn contact_for_survey(&mut self, cx: &mut Context, target: &ProbeTarget) -> Result<(), Declined> {
        self.prober.contact_for_survey(cx, target)
    }

    /// Has new contacts stored.
    pub(crate) fn keep_contacts(&mut self, cx: &mut Context) {
        self.prober.keep_contacts(cx);
    }

    /// Forgets whom we asked if that is too much to remember.
    pub(crate) fn limit_asked(&mut self) {
        self.reservations.limit_asked();
    }

    /// Once a minute: forgets what is over.
    pub(crate) fn tidy(&mut self, cx: &Context) {
        self.reservations.forget_unwanted(cx.now.moment);
        self.rests.retain(|_, until| *until > cx.now.moment);
        self.prober.tidy(cx);
    }
}

/// The distances between members.
impl Delegation {
    /// A member came: what it measured, and what others measured to it, may have been told before it was known here.
    pub(crate) fn member_came(&mut self, cx: &Context, others: DelegationReads<'_>, who: AccessPoint) {
        self.distances.newcomer(cx, &mut self.knowledge, others.members, who);
        let short = ShortId::from(who);
        for claim in others.ownership.register().all().map(|held| &held.claim) {
            for answer in claim.answers.iter().filter(|answer| answer.prober == short) {
                self.knowledge.measured(&cx.hierarchy, claim.subnet, who, answer.rtt_us);
            }
        }
    }

    /// A member is gone for good.
    pub(crate) fn member_died(&mut self, cx: &Context, gone: AccessPoint) {
        self.distances.forget(gone);
        self.knowledge.forget(&cx.hierarchy, gone);
    }

    /// A connection to a member was timed.
    pub(crate) fn distance_measured(&mut self, cx: &Context, to: AccessPoint, rtt_us: u32, remote: Option<IpAddr>) {
        self.distances.measured(cx, &mut self.knowledge, to, rtt_us, remote);
    }

    /// A member told its distances, as the message's author.
    pub(crate) fn distances_told(&mut self, cx: &mut Context, members: &Membership, told: Distances) {
        self.distances.told(cx, &mut self.knowledge, members, told);
    }

    /// Times the way to a member's web server, and tells what is new.
    pub(crate) fn tick_distances(&mut self, cx: &mut Context, members: &Membership) {
        self.distances.tick(cx, members);
    }
}

/// What others ask of it.
impl Delegation {
    /// What is known of the distances to subnets.
    pub(crate) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// How far a subnet is from a member, in microseconds, if that was measured.
    pub(crate) fn measured_by(&self, who: AccessPoint, subnet: &Subnet) -> Option<u32> {
        self.knowledge.measurements(subnet).find(|(by, _)| *by == who).map(|(_, rtt_us)| rtt_us)
    }

    /// Where we are, by an address of ours that the hierarchy has.
    pub(crate) fn place(&self, cx: &Context) -> Option<IpAddr> {
        self.distances.place(cx)
    }

    /// The address that a member is at by our direct connection to it, or as it tells; none if neither is known.
    pub(crate) fn address_of(&self, who: &AccessPoint) -> Option<IpAddr> {
        self.distances.address_of(who)
    }

    /// How far the other members are from here, in microseconds.
    pub(crate) fn round_trips(&self) -> impl Iterator<Item = (AccessPoint, u32)> {
        self.distances.round_trips()
    }

    /// How many members' distances were measured.
    pub(crate) fn members_measured(&self) -> usize {
        self.distances.known()
    }

    /// Until when a subnet's addresses rest because it was probed a moment ago.
    pub(crate) fn rests_until(&self, subnet: &Subnet) -> Option<Moment> {
        self.rests.get(subnet).copied()
    }

    /// The procedures that run, and the subnets that wait for one.
    pub(crate) fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// The addresses without an owner that are reserved here.
    pub(crate) fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// Our prober, with the record of contacts.
    pub(crate) fn prober(&self) -> &Prober {
        &self.prober
    }

    /// Whether an owner is being found for some subnet, or a probe runs here.
    pub(crate) fn is_busy(&self) -> bool {
        self.rounds.running() > 0 || self.rounds.queued() > 0 || self.prober.is_busy()
    }
}
